//! The cameras that answer.

use std::{io, net::IpAddr, process::Command, time::Duration};

use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    child,
    gstreamer::GStreamerState,
    probe::Probe,
    report::{Report, Section},
};

/// Aravis's program, which lists GigE Vision and USB3 Vision cameras.
const TOOL: &str = "arv-tool-0.8";

/// What the network needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Cameras {
    /// A camera has an address on the network.
    pub on_network: bool,
}

/// A camera.
#[derive(Debug, Serialize, Deserialize)]
pub struct Camera {
    name: String,
    /// What to write into a pipeline.
    source: String,
}

/// The cameras that GStreamer's device monitor finds.
///
/// # Errors
/// The monitor does not start.
pub fn probe() -> Result<Vec<Camera>, String> {
    let monitor = gst::DeviceMonitor::new();
    monitor.add_filter(Some("Video/Source"), None);
    // It would not start.
    if monitor.providers().is_empty() {
        return Ok(Vec::new());
    }
    monitor.start().map_err(|error| error.message.to_string())?;
    let found = monitor.devices();
    monitor.stop();
    let camera = found.iter().map(|device| {
        let properties = device.properties();
        let path = ["device.path", "api.v4l2.path"]
            .iter()
            .find_map(|key| properties.as_ref()?.get::<String>(*key).ok());
        Camera {
            name: device.display_name().to_string(),
            source: path.map_or(String::new(), |path| format!("v4l2src device={path}")),
        }
    });
    Ok(camera.collect())
}

/// Adds the section.
pub fn examine(report: &mut Report, limit: Duration, found: &GStreamerState) -> Cameras {
    let mut section = Section::new("cameras", "Cameras that answer");
    let mut cameras = match Probe::Cameras.ask::<Vec<Camera>>(limit, &[]) {
        Ok(cameras) => cameras,
        Err(trouble) => {
            section.fault(
                format!("GStreamer's search for cameras fails: {trouble}"),
                "unplug the cameras one by one, and run clinspect-doctor again",
            );
            Vec::new()
        }
    };
    let mut on_network = false;
    match child::run(&mut Command::new(TOOL), limit) {
        Ok(done) if done.is_success() => {
            let listed = done.output.lines().filter_map(parse);
            for (name, address) in listed {
                on_network |= address.is_some();
                cameras.push(Camera {
                    source: format!("aravissrc camera-name=\"{name}\""),
                    name,
                });
            }
        }
        Ok(done) => section.fault(
            format!(
                "{TOOL}, which lists GigE Vision and USB3 Vision cameras, {}",
                done.how(limit)
            ),
            "unplug the cameras one by one, and run clinspect-doctor again",
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if found.has("aravissrc") {
                section.advise(
                    format!("{TOOL} is not installed, so GigE Vision and USB3 Vision cameras are not listed"),
                    "sudo apt install aravis-tools-cli",
                );
            }
        }
        Err(error) => section.note(format!("{TOOL} cannot be started: {error}")),
    }
    for Camera { name, source } in &cameras {
        section.ok(format!("{name}: {source}"));
    }
    if cameras.is_empty() {
        section.note("no camera answers");
    }
    section.set_data(&cameras);
    report.add(section);
    Cameras { on_network }
}

/// A line of the program's list, such as `Maker-Model-Serial (192.168.1.5)`: the name, and the address on the network.
fn parse(line: &str) -> Option<(String, Option<IpAddr>)> {
    let (name, place) = line.trim().rsplit_once(" (")?;
    let place = place.strip_suffix(')')?;
    Some((name.to_owned(), place.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_read() {
        let fake = parse("Aravis-Fake-GV01 (127.0.0.1)").unwrap();
        assert_eq!(fake.0, "Aravis-Fake-GV01");
        assert!(fake.1.is_some());
        let usb = parse("Maker-Model-1 (USB3)").unwrap();
        assert!(usb.1.is_none());
        assert!(parse("No device found").is_none());
    }
}
