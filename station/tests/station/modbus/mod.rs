//! A PLC at the station: Modbus TCP.

mod away;
mod client;
mod handshake;
mod limits;
mod lost;
mod outside;
mod recipes;

use clinspect_testkit::tools::Sandbox;

use crate::process::{Station, live_camera};

const INSPECTION: &str = "pitch-x = 16, pitch-y = 0, multiples = [1], min-contrast = 0";
/// No difference is larger: every frame passes.
const LENIENT: &str = "threshold = 255";

/// Bits that the PLC writes, and that it reads.
const ENABLE: u16 = 1;
const TRIGGER: u16 = 2;
const RESULT_ACK: u16 = 4;
const RECIPE_REQUEST: u16 = 8;
const CLEAR: u16 = 16;
const ONLINE: u16 = 1;
const READY: u16 = 2;
const TRIGGER_ACK: u16 = 8;
const RESULT_VALID: u16 = 16;
const PASS: u16 = 32;
const REJECT: u16 = 64;
const OVERRUN: u16 = 256;
const RECIPE_BUSY: u16 = 512;
const RECIPE_FAILED: u16 = 1024;
const ERROR: u16 = 2048;

/// The table of a station that obeys a PLC on this PC.
fn table(keys: &str) -> String {
    format!("[modbus]\nlisten = \"127.0.0.1:0\"\n{keys}\n")
}

/// A camera whose frames pass.
fn camera(name: &str, keys: &str) -> String {
    let camera = live_camera(name, "ball", &format!("{INSPECTION}, {LENIENT}"));
    format!("{camera}{keys}\n")
}

/// A camera that is asked for frames.
fn triggered(name: &str) -> String {
    camera(name, "machine = { trigger = \"next-frame\" }")
}

/// Starts a station and waits until these cameras run. Returns the port for the PLC, too.
fn start(sandbox: &Sandbox, file: &str, cameras: &[&str]) -> (Station, u16) {
    let mut station = Station::start(sandbox, file);
    for name in cameras {
        station.wait_for_status(name, "running");
    }
    let port = port(&mut station);
    (station, port)
}

/// The port for the PLC.
fn port(station: &mut Station) -> u16 {
    let line = station.wait_for_log("PLCs connect at ");
    let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:"));
    let port = address.and_then(|of| of.rsplit(':').next()?.parse().ok());
    port.unwrap()
}
