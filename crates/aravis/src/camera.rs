//! A camera that is open.

use std::{
    ffi::CString,
    fmt, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gst::{
    glib::{self, translate::*},
    prelude::*,
};

use crate::{
    alone,
    library::{Failure, Functions, Library, Object, text},
};

/// What of a camera can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Exposure time, µs.
    Exposure,
    /// Gain, dB or a unit of the camera's own.
    Gain,
    /// Black level, in a unit of the camera's own.
    BlackLevel,
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exposure => "exposure",
            Self::Gain => "gain",
            Self::BlackLevel => "black level",
        })
    }
}

/// A control's value, with the least and the most that the camera takes now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value in force.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// A camera that is open. It is closed when the last that uses it is dropped. Threads may share it: one call after the other
/// goes to the camera.
pub struct Camera {
    library: &'static Library,
    object: glib::Object,
    /// Held during each call. All that use this camera share it.
    alone: Arc<Mutex<()>>,
}

// SAFETY: GObject counts references atomically, and libaravis locks the registers of a device. It does not lock what it
// keeps of the camera's description, so `alone` is held during each call.
unsafe impl Send for Camera {}
// SAFETY: as above; no method gives the object away.
unsafe impl Sync for Camera {}

impl Camera {
    /// Opens a camera by the name, the id or the address; the first one that answers if the name is empty.
    ///
    /// # Errors
    /// libaravis is missing, no such camera answers, or another program uses it; a sentence.
    pub fn open(name: &str) -> Result<Self, String> {
        let library = Library::get()?;
        let name = CString::new(name).map_err(|_| "the camera's name holds a zero byte")?;
        let first = name.as_bytes().is_empty();
        let pointer = if first { ptr::null() } else { name.as_ptr() };
        // SAFETY: the name is null or ends with a zero byte, and it outlives the call.
        let object = checked(|failure| unsafe { (library.camera_new)(pointer, failure) })?;
        if object.is_null() {
            return Err("the camera does not answer".to_owned());
        }
        // SAFETY: arv_camera_new returns an object that belongs to the caller.
        let object = unsafe { from_glib_full(object) };
        Ok(Self::new(library, object))
    }

    /// The camera that `aravissrc` holds in its property `camera`, from its state READY on.
    ///
    /// # Errors
    /// The object is no camera, or libaravis is missing; a sentence.
    pub fn of(object: &glib::Object) -> Result<Self, String> {
        let library = Library::get()?;
        let is_camera =
            glib::Type::from_name("ArvCamera").is_some_and(|of| object.type_().is_a(of));
        if !is_camera {
            return Err(format!("{} is no camera of aravis", object.type_()));
        }
        Ok(Self::new(library, object.clone()))
    }

    fn new(library: &'static Library, object: glib::Object) -> Self {
        let alone = alone::of(&object);
        Self {
            library,
            object,
            alone,
        }
    }

    /// A control's value and range; `None` if the camera does not have it.
    ///
    /// # Errors
    /// The camera does not answer; a sentence.
    pub fn get(&self, control: Control) -> Result<Option<Value>, String> {
        let Some(functions) = self.functions(control)? else {
            return Ok(None);
        };
        let _alone = self.alone();
        let camera = self.pointer();
        // SAFETY: `camera` is an ArvCamera that outlives the call.
        let value = checked(|failure| unsafe { (functions.get)(camera, failure) })?;
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        // SAFETY: as above, and both numbers outlive the call.
        checked(|failure| unsafe { (functions.bounds)(camera, &mut least, &mut most, failure) })?;
        Ok(Some(Value { value, least, most }))
    }

    /// Sets a control. The camera may round the value, and not every camera refuses a value out of its range: ask for the
    /// range before, and read the value back.
    ///
    /// # Errors
    /// The camera does not have the control, refuses the value, or does not answer; a sentence.
    pub fn set(&self, control: Control, value: f64) -> Result<(), String> {
        let Some(functions) = self.functions(control)? else {
            return Err(format!("this camera has no {control} that can be set"));
        };
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera that outlives the call.
        checked(|failure| unsafe { (functions.set)(self.pointer(), value, failure) })
    }

    /// The names of the pixel formats that the camera can send now, such as `Mono12p`.
    ///
    /// # Errors
    /// The camera does not answer; a sentence.
    pub fn pixel_formats(&self) -> Result<Vec<String>, String> {
        let _alone = self.alone();
        let mut count = 0;
        // SAFETY: the object is an ArvCamera, and `count` outlives the call.
        let names = checked(|failure| unsafe {
            (self.library.pixel_formats)(self.pointer(), &mut count, failure)
        })?;
        if names.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the array holds `count` texts that belong to the camera; the array itself belongs to the caller.
        unsafe {
            let names_in_c = std::slice::from_raw_parts(names, count as usize);
            let copied = names_in_c.iter().filter_map(|name| text(*name)).collect();
            glib::ffi::g_free(names.cast());
            Ok(copied)
        }
    }

    /// The functions for a control, if library and camera have it.
    fn functions(&self, control: Control) -> Result<Option<&'static Functions>, String> {
        let functions = match control {
            Control::Exposure => Some(&self.library.exposure),
            Control::Gain => Some(&self.library.gain),
            Control::BlackLevel => self.library.black_level.as_ref(),
        };
        let Some(functions) = functions else {
            return Ok(None);
        };
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera that outlives the call.
        let has = checked(|failure| unsafe { (functions.is_available)(self.pointer(), failure) })?;
        Ok((has != 0).then_some(functions))
    }

    /// Whether the camera has a feature now, by its name in the naming convention (SFNC).
    ///
    /// # Errors
    /// The camera does not answer; a sentence.
    pub fn has(&self, feature: &str) -> Result<bool, String> {
        let feature = c_text(feature)?;
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, the name ends with a zero byte, and both outlive the call.
        let has = checked(|failure| unsafe {
            (self.library.has_feature)(self.pointer(), feature.as_ptr(), failure)
        })?;
        Ok(has != 0)
    }

    /// Whether an enumeration has an entry now.
    ///
    /// # Errors
    /// The camera has no such enumeration, or does not answer; a sentence.
    pub fn has_entry(&self, feature: &str, entry: &str) -> Result<bool, String> {
        let (feature, entry) = (c_text(feature)?, c_text(entry)?);
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, both texts end with a zero byte, and all outlive the call.
        let has = checked(|failure| unsafe {
            let entry = entry.as_ptr();
            (self.library.has_entry)(self.pointer(), feature.as_ptr(), entry, failure)
        })?;
        Ok(has != 0)
    }

    /// The entry of an enumeration, or a text.
    ///
    /// # Errors
    /// The camera has no such feature, or does not answer; a sentence.
    pub fn text(&self, feature: &str) -> Result<String, String> {
        let feature = c_text(feature)?;
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, the name ends with a zero byte, and both outlive the call.
        let found = checked(|failure| unsafe {
            (self.library.get_text)(self.pointer(), feature.as_ptr(), failure)
        })?;
        // SAFETY: the text is null, or belongs to the camera until the next call, which waits for the lock.
        Ok(unsafe { text(found) }.unwrap_or_default())
    }

    /// Sets an enumeration to an entry, or a feature that is a text.
    ///
    /// # Errors
    /// The camera has no such feature or entry, refuses it, or does not answer; a sentence.
    pub fn set_text(&self, feature: &str, value: &str) -> Result<(), String> {
        let (feature, value) = (c_text(feature)?, c_text(value)?);
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, both texts end with a zero byte, and all outlive the call.
        checked(|failure| unsafe {
            let value = value.as_ptr();
            (self.library.set_text)(self.pointer(), feature.as_ptr(), value, failure);
        })
    }

    /// Sets a feature that is true or false.
    ///
    /// # Errors
    /// The camera has no such feature, refuses it, or does not answer; a sentence.
    pub fn set_boolean(&self, feature: &str, value: bool) -> Result<(), String> {
        let feature = c_text(feature)?;
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, the name ends with a zero byte, and both outlive the call.
        checked(|failure| unsafe {
            (self.library.set_boolean)(self.pointer(), feature.as_ptr(), value.into(), failure);
        })
    }

    /// Carries out a command, such as `TriggerSoftware`.
    ///
    /// # Errors
    /// The camera has no such command, or does not answer; a sentence.
    pub fn execute(&self, command: &str) -> Result<(), String> {
        let command = c_text(command)?;
        let _alone = self.alone();
        // SAFETY: the object is an ArvCamera, the name ends with a zero byte, and both outlive the call.
        checked(|failure| unsafe {
            (self.library.execute)(self.pointer(), command.as_ptr(), failure);
        })
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pointer(&self) -> Object {
        self.object.as_ptr()
    }
}

fn c_text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{text:?} holds a zero byte; remove it"))
}

/// Calls a function that may fail, and makes a sentence of its error.
fn checked<T>(call: impl FnOnce(Failure) -> T) -> Result<T, String> {
    let mut failure = ptr::null_mut();
    let result = call(&mut failure);
    if failure.is_null() {
        return Ok(result);
    }
    // SAFETY: the function has set an error, which belongs to the caller.
    let error: glib::Error = unsafe { from_glib_full(failure) };
    Err(format!("the camera says: {}", error.message()))
}
