//! Properties of an element as a table: each row has a description and the place of its value.

use std::sync::{LazyLock, Mutex};

use gst::{glib, prelude::*, subclass::prelude::*};

use super::lock;

type Get<S> = Box<dyn Fn(&mut S) -> glib::SendValue + Send + Sync>;
type Set<S> = Box<dyn Fn(&mut S, &glib::Value) -> Result<(), String> + Send + Sync>;
type GetOfElement<E> = Box<dyn Fn(&E) -> glib::Value + Send + Sync>;
type SetOfElement<E> = Box<dyn Fn(&E, &glib::Value) -> Result<(), String> + Send + Sync>;

/// The type of a field that holds a property's value.
pub trait Field {
    /// The property's value.
    fn to_property(&self) -> glib::SendValue;
    /// Sets the property, whose type and range were checked.
    ///
    /// # Errors
    /// A sentence that says what else is wrong with the value.
    fn set_property(&mut self, value: &glib::Value) -> Result<(), String>;
}

impl<T: ToSendValue + for<'a> glib::value::FromValue<'a>> Field for T {
    fn to_property(&self) -> glib::SendValue {
        self.to_send_value()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        *self = value.get::<T>().map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// A property, or a field of a property that is a structure, whose value is in the settings `S`.
pub struct Row<S> {
    spec: glib::ParamSpec,
    get: Get<S>,
    set: Set<S>,
}

impl<S: 'static> Row<S> {
    /// A property with a getter and a setter of its own.
    pub fn new(
        spec: glib::ParamSpec,
        get: impl Fn(&mut S) -> glib::SendValue + Send + Sync + 'static,
        set: impl Fn(&mut S, &glib::Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            spec,
            get: Box::new(get),
            set: Box::new(set),
        }
    }

    /// A property whose value is a field.
    pub fn field<F: Field + 'static>(spec: glib::ParamSpec, field: fn(&mut S) -> &mut F) -> Self {
        Self::new(
            spec,
            move |settings| field(settings).to_property(),
            move |settings, value| field(settings).set_property(value),
        )
    }

    /// The same property of settings that have these settings as a part.
    pub fn within<P: 'static>(self, part: fn(&mut P) -> &mut S) -> Row<P> {
        let Self { spec, get, set } = self;
        Row::new(
            spec,
            move |settings| get(part(settings)),
            move |settings, value| set(part(settings), value),
        )
    }

    /// The description.
    pub fn spec(&self) -> &glib::ParamSpec {
        &self.spec
    }

    /// The value.
    pub fn get(&self, settings: &mut S) -> glib::SendValue {
        (self.get)(settings)
    }

    /// Sets the value, whose type and range were checked.
    ///
    /// # Errors
    /// A sentence that says what else is wrong with the value.
    pub fn set(&self, settings: &mut S, value: &glib::Value) -> Result<(), String> {
        (self.set)(settings, value)
    }
}

/// A vector of [`Row`]s: `kind(arguments) = field;`, where the kind is a function of
/// [`super::specs`], and the field's default is the property's.
macro_rules! properties {
    ($settings:ty { $($kind:ident($($argument:expr),*) = $($path:ident).+;)* }) => {{
        let default = <$settings>::default();
        vec![$($crate::elements::property_table::Row::field(
            $crate::elements::specs::$kind($($argument,)* default.$($path).+),
            |settings: &mut $settings| &mut settings.$($path).+,
        )),*]
    }};
}
pub(crate) use properties;

/// The methods of `ObjectImpl` for properties, which use a [`PropertyTable`], for a subclass of
/// [`ClBaseFilter`](super::base_filter::ClBaseFilter).
macro_rules! property_methods {
    ($table:ident) => {
        fn properties() -> &'static [glib::ParamSpec] {
            $table.specs()
        }

        fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
            $table.set(self, value, spec);
            $crate::elements::base_filter::ClBaseFilterExt::revise(&*self.obj());
        }

        fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
            $table.get(self, spec)
        }
    };
}
pub(crate) use property_methods;

/// All properties of the element `E`.
pub struct PropertyTable<E> {
    category: &'static LazyLock<gst::DebugCategory>,
    specs: Vec<glib::ParamSpec>,
    access: Vec<Access<E>>,
}

/// Reads and sets a property of the element `E`.
struct Access<E> {
    get: GetOfElement<E>,
    set: SetOfElement<E>,
}

impl<E: ObjectSubclass<Type: IsA<glib::Object>>> PropertyTable<E> {
    /// An empty table; changes are logged in `category`.
    pub fn new(category: &'static LazyLock<gst::DebugCategory>) -> Self {
        Self {
            category,
            specs: Vec::new(),
            access: Vec::new(),
        }
    }

    /// The table with the properties whose values are in `settings`.
    pub fn with<S: Send + 'static>(
        mut self,
        settings: fn(&E) -> &Mutex<S>,
        rows: Vec<Row<S>>,
    ) -> Self {
        for Row { spec, get, set } in rows {
            self.specs.push(spec);
            self.access.push(Access {
                get: Box::new(move |element| get(&mut lock(settings(element))).into()),
                set: Box::new(move |element, value| set(&mut lock(settings(element)), value)),
            });
        }
        self
    }

    /// The table with a property whose getter and setter need the element.
    pub fn with_own(
        mut self,
        spec: glib::ParamSpec,
        get: fn(&E) -> glib::Value,
        set: fn(&E, &glib::Value),
    ) -> Self {
        self.specs.push(spec);
        self.access.push(Access {
            get: Box::new(get),
            set: Box::new(move |element, value| {
                set(element, value);
                Ok(())
            }),
        });
        self
    }

    /// The table with a read-only property.
    pub fn with_read_only(self, spec: glib::ParamSpec, get: fn(&E) -> glib::Value) -> Self {
        self.with_own(spec, get, |_, _| {})
    }

    /// The descriptions.
    pub fn specs(&self) -> &[glib::ParamSpec] {
        &self.specs
    }

    fn access(&self, spec: &glib::ParamSpec) -> Option<&Access<E>> {
        let index = self.specs.iter().position(|s| s.name() == spec.name())?;
        self.access.get(index)
    }

    /// Sets a property.
    pub fn set(&self, element: &E, value: &glib::Value, spec: &glib::ParamSpec) {
        gst::info!(self.category, imp = element, "{} = {value:?}", spec.name());
        if let Some(Err(why)) = self.access(spec).map(|access| (access.set)(element, value)) {
            gst::warning!(self.category, imp = element, "{}: {why}", spec.name());
        }
    }

    /// Reads a property.
    pub fn get(&self, element: &E, spec: &glib::ParamSpec) -> glib::Value {
        match self.access(spec) {
            Some(access) => (access.get)(element),
            None => spec.default_value().clone(),
        }
    }
}
