//! Properties that are structures: settings that belong together, such as `fail, defect-count=2`.

use gst::{glib, prelude::*};

use super::{checked::Readable, property_table::Row};

/// Begins a line of a blurb in the column in which `gst-inspect-1.0` prints.
pub const NEW_LINE: &str = "\n                        ";

/// A structure, whose fields are described like properties. A field that is left out has its default.
pub trait Structure: Clone + Default + 'static {
    /// The name of the property and of the structure.
    const NAME: &str;

    /// The fields.
    fn fields() -> &'static [Row<Self>];
}

/// Implements [`Structure`]: the type, the name, and the fields as for [`properties`](super::property_table::properties).
macro_rules! structure {
    ($settings:ty, $name:literal { $($fields:tt)* }) => {
        impl $crate::elements::structure::Structure for $settings {
            const NAME: &str = $name;

            fn fields() -> &'static [$crate::elements::property_table::Row<Self>] {
                static FIELDS: std::sync::LazyLock<Vec<$crate::elements::property_table::Row<$settings>>> =
                    std::sync::LazyLock::new(|| {
                        $crate::elements::property_table::properties!($settings { $($fields)* })
                    });
                &FIELDS
            }
        }
    };
}
pub(crate) use structure;

/// The blurb of a property: `about`, then a line for each field.
pub fn blurb<S: Structure>(about: &str) -> String {
    let mut default = S::default();
    let fields = S::fields().iter().map(|field| {
        let (name, blurb) = (
            field.spec().name(),
            field.spec().blurb().unwrap_or_default(),
        );
        let wanted = wanted(field.spec());
        // The blurbs of texts and arrays tell what "empty" means, their default.
        let default = match shown(&field.get(&mut default)) {
            Some(default) => format!("; default {default}"),
            None => String::new(),
        };
        format!("{NEW_LINE}{name} ({wanted}{default}): {blurb}")
    });
    format!("{about}{}", fields.collect::<String>())
}

impl<S: Structure> Readable for S {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let expected = |_| format!("a structure such as \"{}\" is expected", S::NAME);
        let structure = value.get::<Option<gst::Structure>>().map_err(expected)?;
        let mut read = Self::default();
        for (name, value) in structure.iter().flat_map(|fields| fields.iter()) {
            let field = S::fields()
                .iter()
                .find(|field| field.spec().name() == name.as_str());
            let field = field.ok_or_else(|| unknown::<S>(name))?;
            fitting(field.spec(), value)
                .and_then(|value| field.set(&mut read, &value))
                .map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(read)
    }

    fn write(&self) -> glib::SendValue {
        let mut settings = self.clone();
        let mut structure = gst::Structure::new_empty(S::NAME);
        for field in S::fields() {
            structure.set_value(field.spec().name(), field.get(&mut settings));
        }
        structure.to_send_value()
    }
}

fn unknown<S: Structure>(name: &glib::GStr) -> String {
    let known: Vec<&str> = S::fields()
        .iter()
        .map(|field| field.spec().name())
        .collect();
    // A C program may name a field with any bytes.
    let name = String::from_utf8_lossy(name.as_bytes());
    format!(
        "there is no field \"{name}\"; the fields are {}",
        known.join(", ")
    )
}

/// The value as one of the type of `spec`: whole numbers may have any type, because a type is rarely written.
///
/// # Errors
/// A sentence that says what the value must be.
fn fitting(spec: &glib::ParamSpec, value: &glib::Value) -> Result<glib::Value, String> {
    let wrong = || match shown(value) {
        Some(value) => format!("{value} is not {}", wanted(spec)),
        None => format!("a value of type {} is not {}", value.type_(), wanted(spec)),
    };
    macro_rules! whole {
        ($($spec:ident: $type:ty),*) => {
            $(if let Some(spec) = spec.downcast_ref::<glib::$spec>() {
                let number = whole(value).and_then(|number| <$type>::try_from(number).ok());
                let number = number.filter(|n| (spec.minimum()..=spec.maximum()).contains(n));
                return number.map(|number| number.to_value()).ok_or_else(wrong);
            })*
        };
    }
    whole!(ParamSpecUInt: u32, ParamSpecInt64: i64, ParamSpecUInt64: u64);
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecDouble>() {
        let number = value.get::<f64>().ok();
        let number = number.or_else(|| whole(value).map(|number| number as f64));
        let number = number.filter(|n| (spec.minimum()..=spec.maximum()).contains(n));
        return number.map(|number| number.to_value()).ok_or_else(wrong);
    }
    if value.type_() == spec.value_type() {
        return Ok(value.clone());
    }
    Err(wrong())
}

/// A whole number of any type. A number with more than 32 bits becomes a double where no type is written.
fn whole(value: &glib::Value) -> Option<i128> {
    let double = || {
        value
            .get::<f64>()
            .ok()
            .filter(|number| number.fract() == 0.0)
    };
    (value.get::<i32>().map(i128::from).ok())
        .or_else(|| value.get::<u32>().map(i128::from).ok())
        .or_else(|| value.get::<i64>().map(i128::from).ok())
        .or_else(|| value.get::<u64>().map(i128::from).ok())
        .or_else(|| double().map(|number| number as i128))
}

/// A number, or true or false, as text; `None` for other values, which may be long.
fn shown(value: &glib::Value) -> Option<String> {
    let whole = whole(value).map(|number| number.to_string());
    whole
        .or_else(|| value.get::<f64>().ok().map(|number| number.to_string()))
        .or_else(|| value.get::<bool>().ok().map(|choice| choice.to_string()))
}

/// What a field must be, in words.
fn wanted(spec: &glib::ParamSpec) -> String {
    macro_rules! range {
        ($($spec:ident: $type:ty, $what:literal),*) => {
            $(if let Some(spec) = spec.downcast_ref::<glib::$spec>() {
                let (least, most) = (spec.minimum(), spec.maximum());
                // Leave out the largest value of a type.
                return if most > <$type>::MAX / 4 as $type {
                    format!(concat!($what, ", {} or more"), least)
                } else {
                    format!(concat!($what, " from {} to {}"), least, most)
                };
            })*
        };
    }
    range!(
        ParamSpecUInt: u32, "a whole number",
        ParamSpecInt64: i64, "a whole number",
        ParamSpecUInt64: u64, "a whole number",
        ParamSpecDouble: f64, "a number"
    );
    match spec.value_type() {
        glib::Type::BOOL => "true or false".into(),
        glib::Type::STRING => "a text".into(),
        _ => "an array".into(),
    }
}
