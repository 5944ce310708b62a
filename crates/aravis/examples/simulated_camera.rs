//! aravis' simulated GigE Vision camera, for the demo: the package aravis-tools, which has it as a program, brings a desktop.
//!
//! `simulated_camera 127.0.0.1` answers on the network interface with this address until it is killed.

use std::{
    env,
    ffi::{CString, c_char, c_int, c_void},
    process::ExitCode,
    ptr, thread,
};

use libloading::os::unix::Library;

type New = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;
type IsRunning = unsafe extern "C" fn(*mut c_void) -> c_int;

fn main() -> ExitCode {
    let interface = env::args().nth(1).unwrap_or_else(|| "127.0.0.1".into());
    match start(&interface) {
        Ok(true) => loop {
            // The camera has threads of its own.
            thread::park();
        },
        Ok(false) => eprintln!("no network interface has the address {interface}"),
        Err(error) => eprintln!("{error}; install the package libaravis-0.8-0"),
    }
    ExitCode::FAILURE
}

/// Starts the camera for the rest of the process; false if its sockets cannot be opened.
fn start(interface: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let interface = CString::new(interface)?;
    // SAFETY: these are the functions of libaravis 0.8, which copies the name, and names the camera itself without a serial
    // number. The library stays loaded, and so does the camera.
    unsafe {
        let library = Library::new("libaravis-0.8.so.0")?;
        let new = library.get::<New>("arv_gv_fake_camera_new")?;
        let is_running = library.get::<IsRunning>("arv_gv_fake_camera_is_running")?;
        let camera = new(interface.as_ptr(), ptr::null());
        let runs = is_running(camera) != 0;
        std::mem::forget(library);
        Ok(runs)
    }
}
