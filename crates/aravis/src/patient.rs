//! `aravissrc` for a camera with a trigger: `aravissrc` itself fails if no frame comes for 2 s.

use std::{
    collections::BTreeSet,
    ffi::c_void,
    ptr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use gst::{
    ffi::{GST_FLOW_ERROR, GST_FLOW_FLUSHING, GstBuffer, GstFlowReturn},
    glib::{self, ffi::gboolean, gobject_ffi, translate::*},
    prelude::*,
};
use gst_base::ffi::{GstBaseSrc, GstPushSrc, GstPushSrcClass};

/// `aravissrc` fails earlier only for another reason than the missing frame.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Makes the element. It has no factory, and all properties of `aravissrc`. Without frames it waits for ever; to stop it
/// takes 2 s at most.
///
/// # Errors
/// `aravissrc` is not installed; a sentence.
pub fn patient_source() -> Result<gst::Element, String> {
    static TYPE: OnceLock<Result<glib::Type, String>> = OnceLock::new();
    let of = TYPE.get_or_init(register).clone()?;
    let made = glib::Object::with_type(of).downcast();
    made.map_err(|_| "aravissrc is no element".to_owned())
}

fn register() -> Result<glib::Type, String> {
    let factory = gst::ElementFactory::find("aravissrc").ok_or("no element \"aravissrc\"")?;
    let loaded = factory.load().map_err(|error| error.message.into_owned())?;
    let parent = loaded.downcast::<gst::ElementFactory>();
    let parent = parent.ok().map(|factory| factory.element_type());
    let parent = parent.filter(|of| of.is_a(gst_base::PushSrc::static_type()));
    let parent = parent.ok_or("aravissrc is no source that pushes frames")?;
    let mut query = gobject_ffi::GTypeQuery {
        type_: 0,
        type_name: ptr::null(),
        class_size: 0,
        instance_size: 0,
    };
    // SAFETY: the type is registered, `query` outlives the call, and the new type adds nothing to class and instance.
    let of: glib::Type = unsafe {
        gobject_ffi::g_type_query(parent.into_glib(), &mut query);
        from_glib(gobject_ffi::g_type_register_static_simple(
            parent.into_glib(),
            c"ClinspectPatientAravisSrc".as_ptr(),
            query.class_size,
            Some(init_class),
            query.instance_size,
            None,
            0,
        ))
    };
    match of.is_valid() {
        true => Ok(of),
        false => Err("GLib does not take the type of the source".to_owned()),
    }
}

/// The functions of `aravissrc` that are replaced.
struct Replaced {
    create: Option<unsafe extern "C" fn(*mut GstPushSrc, *mut GstBuffer) -> GstFlowReturn>,
    unlock: Option<unsafe extern "C" fn(*mut GstBaseSrc) -> gboolean>,
    unlock_stop: Option<unsafe extern "C" fn(*mut GstBaseSrc) -> gboolean>,
}

static REPLACED: OnceLock<Replaced> = OnceLock::new();

/// The sources that are to return from `create`.
fn ending() -> MutexGuard<'static, BTreeSet<usize>> {
    static ENDING: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn init_class(class: glib::ffi::gpointer, _: *mut c_void) {
    // SAFETY: GLib passes the new class, which derives from GstPushSrc and which nobody else uses yet.
    let class = unsafe { &mut *class.cast::<GstPushSrcClass>() };
    let base = &mut class.parent_class;
    REPLACED.get_or_init(|| Replaced {
        create: class.create,
        unlock: base.unlock,
        unlock_stop: base.unlock_stop,
    });
    class.create = Some(create);
    base.unlock = Some(unlock);
    base.unlock_stop = Some(unlock_stop);
}

/// Waits for a frame until there is one, or the source is to end. `buffer` is where the frame's pointer goes; the bindings
/// give it another type.
unsafe extern "C" fn create(source: *mut GstPushSrc, buffer: *mut GstBuffer) -> GstFlowReturn {
    let Some(create) = REPLACED.get().and_then(|of| of.create) else {
        return GST_FLOW_ERROR;
    };
    loop {
        let begin = Instant::now();
        // SAFETY: the arguments are those of the caller, for whom they are valid until this function returns.
        let flow = unsafe { create(source, buffer) };
        if flow != GST_FLOW_ERROR || begin.elapsed() < LEAST_WAIT {
            return flow;
        }
        if ending().contains(&(source as usize)) {
            return GST_FLOW_FLUSHING;
        }
    }
}

unsafe extern "C" fn unlock(source: *mut GstBaseSrc) -> gboolean {
    ending().insert(source as usize);
    match REPLACED.get().and_then(|of| of.unlock) {
        // SAFETY: the argument is that of the caller, for whom it is valid until this function returns.
        Some(unlock) => unsafe { unlock(source) },
        None => glib::ffi::GTRUE,
    }
}

unsafe extern "C" fn unlock_stop(source: *mut GstBaseSrc) -> gboolean {
    ending().remove(&(source as usize));
    match REPLACED.get().and_then(|of| of.unlock_stop) {
        // SAFETY: as above.
        Some(unlock_stop) => unsafe { unlock_stop(source) },
        None => glib::ffi::GTRUE,
    }
}
