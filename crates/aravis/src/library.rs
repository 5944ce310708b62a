//! The functions of libaravis, looked up at run time.

use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    sync::OnceLock,
};

use gst::{glib, prelude::*};
use libloading::os::unix::{Library as File, RTLD_LAZY, RTLD_LOCAL};

/// The versions whose functions have the types below.
const NAMES: [&str; 2] = ["libaravis-0.8.so.0", "libaravis-0.10.so.0"];
/// `RTLD_NOLOAD` of Linux: only what is loaded already.
const ONLY_LOADED: c_int = 4;

/// `ArvCamera`.
pub type Object = *mut glib::gobject_ffi::GObject;
/// Where a function says why it failed.
pub type Failure = *mut *mut glib::ffi::GError;
pub type DeviceText = unsafe extern "C" fn(c_uint) -> *const c_char;
type Available = unsafe extern "C" fn(Object, Failure) -> glib::ffi::gboolean;
type Get = unsafe extern "C" fn(Object, Failure) -> f64;
type Set = unsafe extern "C" fn(Object, f64, Failure);
type Bounds = unsafe extern "C" fn(Object, *mut f64, *mut f64, Failure);
type Strings = unsafe extern "C" fn(Object, *mut c_uint, Failure) -> *mut *const c_char;
/// With the name of a feature.
type HasFeature = unsafe extern "C" fn(Object, *const c_char, Failure) -> glib::ffi::gboolean;
type HasEntry =
    unsafe extern "C" fn(Object, *const c_char, *const c_char, Failure) -> glib::ffi::gboolean;
type GetText = unsafe extern "C" fn(Object, *const c_char, Failure) -> *const c_char;
type SetText = unsafe extern "C" fn(Object, *const c_char, *const c_char, Failure);
type SetBoolean = unsafe extern "C" fn(Object, *const c_char, glib::ffi::gboolean, Failure);
type Execute = unsafe extern "C" fn(Object, *const c_char, Failure);

/// The functions for a control of a camera.
pub struct Functions {
    pub is_available: Available,
    pub get: Get,
    pub set: Set,
    pub bounds: Bounds,
}

/// libaravis. It registers types with GLib, so it is never unloaded.
pub struct Library {
    pub update_device_list: unsafe extern "C" fn(),
    pub get_n_devices: unsafe extern "C" fn() -> c_uint,
    pub get_device_id: DeviceText,
    pub get_device_vendor: DeviceText,
    pub get_device_model: DeviceText,
    pub get_device_serial_nbr: DeviceText,
    pub get_device_address: DeviceText,
    pub get_device_protocol: DeviceText,
    pub camera_new: unsafe extern "C" fn(*const c_char, Failure) -> Object,
    pub pixel_formats: Strings,
    pub exposure: Functions,
    pub gain: Functions,
    /// Not in the first releases of 0.8.
    pub black_level: Option<Functions>,
    pub has_feature: HasFeature,
    pub has_entry: HasEntry,
    pub get_text: GetText,
    pub set_text: SetText,
    pub set_boolean: SetBoolean,
    pub execute: Execute,
    _file: File,
}

impl Library {
    /// libaravis, loaded at the first call.
    ///
    /// # Errors
    /// It is not installed, or it lacks a function; a sentence.
    pub fn get() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Self::of(open()?));
        library.as_ref().map_err(Clone::clone)
    }

    fn of(file: File) -> Result<Self, String> {
        // SAFETY: each name belongs to a function of libaravis 0.8 and 0.10 that has the type of the field.
        unsafe {
            Ok(Self {
                update_device_list: find(&file, "arv_update_device_list")?,
                get_n_devices: find(&file, "arv_get_n_devices")?,
                get_device_id: find(&file, "arv_get_device_id")?,
                get_device_vendor: find(&file, "arv_get_device_vendor")?,
                get_device_model: find(&file, "arv_get_device_model")?,
                get_device_serial_nbr: find(&file, "arv_get_device_serial_nbr")?,
                get_device_address: find(&file, "arv_get_device_address")?,
                get_device_protocol: find(&file, "arv_get_device_protocol")?,
                camera_new: find(&file, "arv_camera_new")?,
                pixel_formats: find(&file, "arv_camera_dup_available_pixel_formats_as_strings")?,
                exposure: functions(&file, "exposure_time")?,
                gain: functions(&file, "gain")?,
                black_level: functions(&file, "black_level").ok(),
                has_feature: find(&file, "arv_camera_is_feature_available")?,
                has_entry: find(&file, "arv_camera_is_enumeration_entry_available")?,
                get_text: find(&file, "arv_camera_get_string")?,
                set_text: find(&file, "arv_camera_set_string")?,
                set_boolean: find(&file, "arv_camera_set_boolean")?,
                execute: find(&file, "arv_camera_execute_command")?,
                _file: file,
            })
        }
    }
}

/// The library of `aravissrc`, if there is this element: two versions in one process would register their types twice.
fn open() -> Result<File, String> {
    if gst::init().is_ok()
        && let Some(factory) = gst::ElementFactory::find("aravissrc")
    {
        // If it does not load, its library is not in use.
        let _ = factory.load();
    }
    for how in [RTLD_LAZY | RTLD_LOCAL | ONLY_LOADED, RTLD_LAZY | RTLD_LOCAL] {
        for name in NAMES {
            // SAFETY: the library of this name initialises nothing that this process relies on.
            if let Ok(file) = unsafe { File::open(Some(name), how) } {
                return Ok(file);
            }
        }
    }
    Err("GenICam cameras need libaravis, which is not installed; install the package libaravis-0.8-0".to_owned())
}

/// # Safety
/// The function has the type `F`.
unsafe fn find<F: Copy>(file: &File, name: &str) -> Result<F, String> {
    // SAFETY: as the caller says.
    let symbol = unsafe { file.get::<F>(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|_| {
        format!("this version of libaravis has no function {name}; install 0.8.26 or later")
    })
}

/// # Safety
/// The four functions of the control have the types of [`Functions`].
unsafe fn functions(file: &File, control: &str) -> Result<Functions, String> {
    // SAFETY: as the caller says.
    unsafe {
        Ok(Functions {
            is_available: find(file, &format!("arv_camera_is_{control}_available"))?,
            get: find(file, &format!("arv_camera_get_{control}"))?,
            set: find(file, &format!("arv_camera_set_{control}"))?,
            bounds: find(file, &format!("arv_camera_get_{control}_bounds"))?,
        })
    }
}

/// A text of C; bytes that are no UTF-8 are replaced.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() })
}
