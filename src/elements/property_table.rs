//! Properties of an element as a table: each row has description, getter and setter.

use std::sync::Mutex;

use gst::glib;

use super::lock;

type Get<S> = Box<dyn Fn(&S) -> glib::Value + Send + Sync>;
type Set<S> = Box<dyn Fn(&mut S, &glib::Value) + Send + Sync>;

/// The getter and the setter of a property in the settings `S`.
pub struct Access<S>(Get<S>, Set<S>);

impl<S> Access<S> {
    /// An access through the getter `get` and the setter `set`.
    pub fn new(
        get: impl Fn(&S) -> glib::Value + Send + Sync + 'static,
        set: impl Fn(&mut S, &glib::Value) + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(get), Box::new(set))
    }
}

/// The [`Access`] of a field whose type is the property's.
macro_rules! field {
    ($settings:ty, $($path:ident).+) => {
        $crate::elements::property_table::Access::new(
            |settings: &$settings| settings.$($path).+.to_value(),
            // GObject has checked type and range already.
            |settings: &mut $settings, value| {
                if let Ok(value) = value.get() {
                    settings.$($path).+ = value;
                }
            },
        )
    };
}
pub(crate) use field;

/// A [`PropertyTable`]: a kind of [`super::specs`] with name, nick, blurb and range, and the field
/// whose default is the property's.
macro_rules! properties {
    ($settings:ty { $($kind:ident($name:literal, $nick:literal, $blurb:literal $(, $range:expr)?)
        = $($path:ident).+;)* }) => {{
        let default = <$settings>::default();
        $crate::elements::property_table::PropertyTable::new(vec![$((
            $crate::elements::specs::$kind($name, $nick, $blurb, $($range,)? default.$($path).+),
            $crate::elements::property_table::field!($settings, $($path).+),
        )),*])
    }};
}
pub(crate) use properties;

/// Properties whose values are in `S`.
pub struct PropertyTable<S> {
    specs: Vec<glib::ParamSpec>,
    access: Vec<Access<S>>,
}

impl<S> PropertyTable<S> {
    /// A table with these rows.
    pub fn new(rows: Vec<(glib::ParamSpec, Access<S>)>) -> Self {
        let (specs, access) = rows.into_iter().unzip();
        Self { specs, access }
    }

    /// The table with more rows.
    pub fn with(mut self, rows: impl IntoIterator<Item = (glib::ParamSpec, Access<S>)>) -> Self {
        let (specs, access): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        self.specs.extend(specs);
        self.access.extend(access);
        self
    }

    /// The descriptions.
    pub fn specs(&self) -> &[glib::ParamSpec] {
        &self.specs
    }

    fn access(&self, name: &str) -> Option<&Access<S>> {
        let index = self.specs.iter().position(|spec| spec.name() == name)?;
        self.access.get(index)
    }

    /// Sets a property; returns `false` if the table has none of this name.
    pub fn set(&self, settings: &Mutex<S>, name: &str, value: &glib::Value) -> bool {
        let access = self.access(name);
        if let Some(Access(_, set)) = access {
            set(&mut lock(settings), value);
        }
        access.is_some()
    }

    /// Reads a property; `None` if the table has none of this name.
    pub fn get(&self, settings: &Mutex<S>, name: &str) -> Option<glib::Value> {
        let Access(get, _) = self.access(name)?;
        Some(get(&lock(settings)))
    }
}
