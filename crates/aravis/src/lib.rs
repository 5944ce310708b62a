//! GenICam cameras (GigE Vision, USB3 Vision) through libaravis: which answer, their exposure, gain and black
//! level, and features by name.
//!
//! libaravis is loaded when it is first needed. Without it every function says so.

mod alone;
mod camera;
mod library;
mod patient;

use std::sync::{Mutex, PoisonError};

pub use camera::{Camera, Control, Value};
use library::{Library, text};
pub use patient::patient_source;

/// A camera that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CameraInfo {
    /// Opens this camera and no other.
    pub id: String,
    /// Its maker.
    pub vendor: String,
    /// Its model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// Its address in the network or on the bus.
    pub address: String,
    /// `GigEVision` or `USB3Vision`.
    pub protocol: String,
}

/// The cameras that answer, in the order of their names. Asks all networks and buses of this machine, for up to about a second.
///
/// # Errors
/// libaravis is missing; a sentence.
pub fn cameras() -> Result<Vec<CameraInfo>, String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let library = Library::get()?;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the function takes nothing, and libaravis locks its list.
    let count = unsafe {
        (library.update_device_list)();
        (library.get_n_devices)()
    };
    let mut found: Vec<CameraInfo> = (0..count)
        .filter_map(|index| {
            // SAFETY: the functions take any index. Their texts live until the next update of the list: only this
            // function updates it, and it holds the lock until the texts are copied.
            let of = |function: library::DeviceText| unsafe { text(function(index)) };
            Some(CameraInfo {
                id: of(library.get_device_id)?,
                vendor: of(library.get_device_vendor).unwrap_or_default(),
                model: of(library.get_device_model).unwrap_or_default(),
                serial: of(library.get_device_serial_nbr).unwrap_or_default(),
                address: of(library.get_device_address).unwrap_or_default(),
                protocol: of(library.get_device_protocol).unwrap_or_default(),
            })
        })
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}
