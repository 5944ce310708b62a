//! GigE Vision and USB3 Vision cameras, through aravis' GStreamer element.

use clinspect_aravis::Camera;
use gst::{glib, prelude::*};
use plan::{BAYER, Controls, PIXEL_FORMATS, PixelFormat, RequestedFormat, Source};

use super::{QUEUE, controls};
use crate::{
    state::Trouble,
    stopped::{StopReason, held_by_another, stopped_by},
};

/// The element's name.
pub const NAME: &str = "clinspect-camera";

/// Formats in which every camera that has one of them can be negotiated. `aravissrc` takes `GRAY16_LE` for Mono16,
/// which a camera of 10 or 12 bits may lack.
const CARRIERS: [(&str, &[&str]); 2] = [
    ("video/x-raw", &["GRAY8", "RGB", "BGR", "UYVY", "YUY2"]),
    (BAYER, &["bggr", "gbrg", "grbg", "rggb"]),
];

/// `aravissrc ! capsfilter ! capssetter ! queue`, without those that are not needed.
pub(super) fn bin(
    source: gst::Element,
    asked: Option<&RequestedFormat>,
    caps: Option<&gst::Caps>,
    set: Controls,
) -> Result<gst::Bin, glib::Error> {
    let mut elements = vec![source];
    controls::prepare(&elements[0], set);
    begin_at_once(&elements[0]);
    let filter = match asked {
        // Each version of aravis has other names for the formats of cameras, and some have none. So a format that
        // every version knows is negotiated, and the camera gets its format as a feature, after that.
        Some(asked) => {
            let features = format!("PixelFormat={}", asked.format.name);
            elements[0].set_property("features", features);
            Some(carriers(caps))
        }
        None => caps.cloned(),
    };
    if let Some(filter) = filter {
        let element = make("capsfilter")?;
        element.set_property("caps", filter);
        elements.push(element);
    }
    if let Some(asked) = asked {
        let element = make("capssetter")?;
        let [media, format] = asked.format.caps;
        let caps = gst::Caps::builder(media).field("format", format).build();
        element.set_property("caps", caps);
        element.set_property("join", false);
        elements.push(element);
    }
    let queue = make("queue")?;
    queue.set_property("name", QUEUE);
    elements.push(queue);
    let unlinked = |error: glib::BoolError| glib::Error::new(gst::ParseError::Link, &error.message);
    let bin = gst::Bin::new();
    bin.add_many(&elements).map_err(unlinked)?;
    gst::Element::link_many(&elements).map_err(unlinked)?;
    Ok(bin)
}

fn make(factory: &str) -> Result<gst::Element, glib::Error> {
    let element = gst::ElementFactory::make(factory).build();
    let missing = format!("no element \"{factory}\"");
    element.map_err(|_| glib::Error::new(gst::ParseError::NoSuchElement, &missing))
}

/// The camera's element. With a trigger (`is_triggered`) it waits for frames without limit.
pub(super) fn source(camera: &str, is_triggered: bool) -> Result<gst::Element, glib::Error> {
    let source = match is_triggered {
        true => clinspect_aravis::patient_source()
            .map_err(|why| glib::Error::new(gst::ParseError::NoSuchElement, &why))?,
        false => make("aravissrc")?,
    };
    source.set_property("name", NAME);
    source.set_property("camera-name", camera);
    Ok(source)
}

/// Lets the camera's first frame leave while kernels are compiled behind the queue. The source takes frames from libaravis as
/// long after their timestamps as the first one, for ever: with a first frame that waited for 4 s, each is 4 s late. The
/// query of an allocation is what waits, and of no use, because libaravis has memory of its own.
fn begin_at_once(source: &gst::Element) {
    let Some(pad) = source.static_pad("src") else {
        return;
    };
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
        match info.query().map(gst::QueryRef::view) {
            Some(gst::QueryView::Allocation(_)) => gst::PadProbeReturn::Drop,
            _ => gst::PadProbeReturn::Ok,
        }
    });
}

/// The camera that the source holds open; `None` if it holds none. Once frames flow the source may answer late.
pub fn genicam(bin: &gst::Bin) -> Option<Camera> {
    let held = bin
        .by_name(NAME)?
        .property::<Option<glib::Object>>("camera");
    Camera::of(&held?).ok()
}

/// [`CARRIERS`] with the size and the rate of `caps`.
fn carriers(caps: Option<&gst::Caps>) -> gst::Caps {
    let any = [gst::Structure::new_empty(BAYER)];
    let sizes: Vec<gst::Structure> = match caps {
        Some(caps) => caps.iter().map(ToOwned::to_owned).collect(),
        None => any.into(),
    };
    let mut carriers = gst::Caps::new_empty();
    for size in &sizes {
        for (media, formats) in CARRIERS {
            let mut structure = size.clone();
            structure.set_name(media);
            structure.set("format", gst::List::new(formats.iter().copied()));
            carriers.make_mut().append_structure(structure);
        }
    }
    carriers
}

/// The caps that the camera offers. It is opened and closed again; its settings stay.
///
/// # Errors
/// The camera does not answer.
pub(super) fn offered(camera: &str) -> Result<gst::Caps, StopReason> {
    let lacks = |error: glib::BoolError| (Trouble::SettingsRefused, error.message.into_owned());
    let source = source(camera, false);
    let source = source.map_err(|error| (Trouble::SettingsRefused, error.message().to_owned()))?;
    // No format passes this filter, so the element does not start the camera.
    let filter = gst::ElementFactory::make("capsfilter");
    let nothing = gst::Caps::new_empty_simple("application/x-clinspect-nothing");
    let filter = filter.property("caps", nothing).build().map_err(lacks)?;
    let bin = gst::Bin::new();
    let pipeline = gst::Pipeline::new();
    bin.add(&source).map_err(lacks)?;
    let asking = ScopedPipeline(pipeline);
    asking
        .0
        .add_many([bin.upcast_ref(), &filter])
        .map_err(lacks)?;
    let pad = source.static_pad("src");
    let ghost = pad
        .clone()
        .and_then(|pad| gst::GhostPad::with_target(&pad).ok());
    if let Some(ghost) = ghost {
        bin.add_pad(&ghost).map_err(lacks)?;
    }
    bin.link(&filter).map_err(lacks)?;
    if asking.0.set_state(gst::State::Paused).is_err() {
        let bus = asking.0.bus();
        let message = bus.and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error]));
        let stopped = message.and_then(|message| match message.view() {
            gst::MessageView::Error(error) => Some(stopped_by(error, &bin)),
            _ => None,
        });
        let silent = || (Trouble::CameraLost, "the camera does not open".to_owned());
        return Err(stopped.unwrap_or_else(silent));
    }
    Ok(pad.map_or_else(gst::Caps::new_empty, |pad| pad.query_caps(None)))
}

/// A pipeline that stops when dropped.
struct ScopedPipeline(gst::Pipeline);

impl Drop for ScopedPipeline {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// Why the camera stopped, if it refused its pixel format: with the place in the file, and what the camera offers.
/// `bin` has been started.
pub fn explained((trouble, text): StopReason, source: &Source, bin: &gst::Bin) -> StopReason {
    // Refused settings come without a message of an element.
    if let Source::Aravis { .. } = source
        && trouble == Trouble::SettingsRefused
        && let Some(text) = held_by_another(&text)
    {
        return (Trouble::CameraLost, text);
    }
    let Source::Aravis {
        pixel_format: Some(asked),
        ..
    } = source
    else {
        return (trouble, text);
    };
    // In the words of aravis: [PixelFormat] 'Mono14' not an entry.
    if !text.contains("PixelFormat") {
        return (trouble, text);
    }
    let pad = bin
        .by_name(NAME)
        .and_then(|element| element.static_pad("src"));
    let offered = pad.map_or_else(gst::Caps::new_empty, |pad| pad.query_caps(None));
    let text = format!(
        "pixel-format = \"{}\" (line {} of the file) is no format of this camera; it has {}, and perhaps packed formats: \
         arv-tool-0.8 features prints all after PixelFormat ({text})",
        asked.format.name,
        asked.place.line,
        list(&offered),
    );
    (Trouble::SettingsRefused, text)
}

/// The formats of a camera, as in a sentence.
pub(super) fn list(offered: &gst::Caps) -> String {
    let names = names_in(offered);
    if names.is_empty() {
        return "no format that GStreamer knows".to_owned();
    }
    names.join(", ")
}

/// The formats in the caps that aravis makes of a camera's formats, in their order. It leaves packed formats out, or
/// calls them `GRAY16_LE`.
fn names_in(caps: &gst::Caps) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |media: &str, format: &str| {
        let is_exact = |of: &&PixelFormat| of.caps == [media, format] && of.bit_depth().is_none();
        let found = PIXEL_FORMATS
            .iter()
            .find(is_exact)
            .filter(|of| of.name != "Mono16");
        let name = match found {
            Some(found) => found.name.to_owned(),
            None if format == "GRAY16_LE" => "some of Mono10 to Mono16".to_owned(),
            None => format.to_owned(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for structure in caps.iter() {
        let media = structure.name().as_str();
        if let Ok(format) = structure.get::<&str>("format") {
            add(media, format);
        } else if let Ok(list) = structure.get::<gst::List>("format") {
            for format in list.iter().filter_map(|value| value.get::<&str>().ok()) {
                add(media, format);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_in_caps_are_named_as_the_camera_names_them() {
        gst::init().expect("GStreamer");
        let caps: gst::Caps = "video/x-bayer, format=bggr; video/x-raw, format=GRAY8; video/x-raw, format=GRAY16_LE; \
             video/x-raw, format=GRAY16_LE; video/x-raw, format={ RGB, UYVY }"
            .parse()
            .expect("caps");
        let names = [
            "BayerBG8",
            "Mono8",
            "some of Mono10 to Mono16",
            "RGB8",
            "UYVY",
        ];
        assert_eq!(names_in(&caps), names);
        assert!(names_in(&gst::Caps::new_any()).is_empty());
    }
}
