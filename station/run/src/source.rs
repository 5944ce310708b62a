//! The source of a camera: the elements that the file describes, and a queue behind them.

mod aravis;
mod controls;
mod folder;
mod sent;
mod trigger;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use gst::{glib, prelude::*};
use machine::locks::Mutex;
use plan::{BAYER, Source};

use crate::{
    state::{Camera, Trouble},
    stopped::StopReason,
    tag::Tag,
};
pub use aravis::NAME as GENICAM;
pub use aravis::{explained, genicam};
pub use controls::set_controls;
use folder::FolderSrc;
pub use folder::{description as folder_description, register};
pub use sent::SourceFrames;
pub use trigger::{end_trigger_by_software, trigger_by};

/// The queue's name.
pub const QUEUE: &str = "clinspect-input";
/// Frames that wait between the source and the inspection.
const QUEUED_FRAMES: u32 = 16;
/// Their bytes; one frame may have more.
const QUEUED_BYTES: u32 = 256 << 20;

/// The folder, if the source sends the pictures of a folder as they are.
pub fn folder_of(source: &Source) -> Option<PathBuf> {
    let Source::Description(_) = source else {
        return None;
    };
    let children = bin(source, false).ok()?.children();
    let [_, _] = &children[..] else { return None };
    let mut folders = children
        .iter()
        .filter_map(|of| of.downcast_ref::<FolderSrc>());
    Some(folders.next()?.property::<String>("location").into())
}

/// A bin of the source's elements and the queue. A camera of aravis with a trigger (`is_triggered`) may pause.
///
/// # Errors
/// The description cannot be parsed, an element is missing, or there is no free output.
pub fn bin(source: &Source, is_triggered: bool) -> Result<gst::Bin, glib::Error> {
    let bin = match source {
        Source::Description(description) => described(description)?,
        Source::Aravis {
            camera,
            pixel_format,
            caps,
            controls,
        } => {
            let element = aravis::source(camera, is_triggered)?;
            aravis::bin(
                element,
                pixel_format.as_ref(),
                caps_of(caps).as_ref(),
                *controls,
            )?
        }
    };
    let queue = bin
        .by_name(QUEUE)
        .ok_or_else(|| glib::Error::new(gst::ParseError::Syntax, "its end is missing"))?;
    queue.set_property("max-size-buffers", QUEUED_FRAMES);
    queue.set_property("max-size-bytes", QUEUED_BYTES);
    queue.set_property("max-size-time", 0_u64);
    let output = queue.static_pad("src");
    let output = output.and_then(|output| gst::GhostPad::with_target(&output).ok());
    match output.map(|output| bin.add_pad(&output)) {
        Some(Ok(())) => Ok(bin),
        _ => Err(glib::Error::new(
            gst::ParseError::Link,
            "there is no free output",
        )),
    }
}

/// The caps of a plan, which were parsed before.
fn caps_of(caps: &Option<String>) -> Option<gst::Caps> {
    caps.as_ref().and_then(|caps| caps.parse().ok())
}

/// The only place that parses a description. No other text of the file goes into it.
fn described(description: &str) -> Result<gst::Bin, glib::Error> {
    // With the queue the description may end with caps, or with an element whose pads come later.
    let line = format!("{description} ! queue name={QUEUE}");
    let flags = gst::ParseFlags::FATAL_ERRORS;
    // The parser makes no pads of the bin: an input that waits for a pad that comes later would become an input of the
    // bin.
    gst::parse::bin_from_description_full(&line, false, None, flags)?
        .dynamic_cast()
        .map_err(|_| glib::Error::new(gst::ParseError::Syntax, "it is no pipeline"))
}

/// Whether the frames need `clunpack` before an element that takes the caps `accepted`. Frames that this element takes
/// as they are come first. If only the camera knows, it is asked.
///
/// # Errors
/// A camera does not answer, or has no format that can be inspected.
pub fn needs_unpack(
    source: &Source,
    bin: &gst::Bin,
    accepted: &gst::Caps,
) -> Result<bool, StopReason> {
    if let Source::Aravis {
        pixel_format: Some(asked),
        ..
    } = source
    {
        return Ok(asked.format.needs_unpack());
    }
    let Some(pad) = bin.static_pad("src") else {
        return Ok(false);
    };
    let pictures = gst::Caps::builder(BAYER).build();
    let takes = |caps: &gst::Caps| [accepted, &pictures].map(|of| caps.can_intersect(of));
    match takes(&pad.query_caps(None)) {
        [raw, true] if raw => {}
        [_, is_bayer] => return Ok(is_bayer),
    }
    let offered = match source {
        Source::Aravis { camera, caps, .. } => {
            let offered = aravis::offered(camera)?;
            let wanted = match caps_of(caps) {
                Some(caps) => offered.intersect(&caps),
                None => offered.clone(),
            };
            if takes(&wanted) == [false; 2] {
                let text = format!(
                    "no format of this camera can be inspected; it has {}",
                    aravis::list(&offered)
                );
                return Err((Trouble::SettingsRefused, text));
            }
            wanted
        }
        // A source that opens its device knows then what the device sends. A failure comes again at the start.
        Source::Description(_) => {
            let _ = bin.set_state(gst::State::Ready);
            let offered = pad.query_caps(None);
            let _ = bin.set_state(gst::State::Null);
            offered
        }
    };
    let [raw, is_bayer] = takes(&offered);
    Ok(is_bayer && !raw)
}

/// Gives each frame its number on the pad behind the source, and counts those that the source lost. Without a number of the
/// source on each frame a gap between timestamps counts, unless a trigger gives the frames (`is_triggered`).
pub fn watch_arrivals(pad: &gst::Pad, camera: &Arc<Camera>, is_triggered: bool) {
    let camera = camera.clone();
    let last = Mutex::new(Gaps::default());
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(kinds, move |_, info| {
        let machine = &camera.machine;
        let mut last = last.lock();
        match &mut info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let lost = last.before(buffer, is_triggered);
                camera.counters.lost.fetch_add(lost.all, Relaxed);
                machine.lose(lost.by_number);
                Tag::set(buffer.make_mut(), machine.arrive());
            }
            Some(gst::PadProbeData::Event(event)) => {
                if let gst::EventView::Caps(caps) = event.view() {
                    let info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                    let rate = info.map(|info| info.fps());
                    let rate = rate.filter(|rate| rate.numer() > 0 && rate.denom() > 0);
                    last.period =
                        rate.map(|rate| 1e9 * f64::from(rate.denom()) / f64::from(rate.numer()));
                }
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
}

/// The frame before, to find frames that are missing after it.
#[derive(Default)]
struct Gaps {
    /// Time between two frames, ns, if the caps say so.
    period: Option<f64>,
    pts: Option<gst::ClockTime>,
    /// The number that the next frame should have.
    next: Option<u64>,
    has_frames: bool,
}

/// Frames that are missing.
struct LostFrames {
    all: u64,
    /// Those that the source's numbers show. The others may be a camera that is late.
    by_number: u64,
}

impl Gaps {
    /// Frames that are missing before this one.
    fn before(&mut self, buffer: &gst::BufferRef, is_triggered: bool) -> LostFrames {
        let (offset, pts) = (buffer.offset(), buffer.pts());
        // Sources that number frames set both; others count bytes.
        let is_number = offset < u64::MAX - 1 && buffer.offset_end() == offset + 1;
        let by_number = match (is_number, self.next) {
            (true, Some(next)) => offset.saturating_sub(next),
            _ => 0,
        };
        let by_time = match (is_number, self.pts.zip(pts), self.period) {
            (false, Some((last, pts)), Some(period)) if !is_triggered => {
                let gap = pts.saturating_sub(last).nseconds() as f64;
                // Timestamps tremble, so half a period is not missing yet.
                (gap / period).round() as u64
            }
            .saturating_sub(1),
            _ => 0,
        };
        let torn = gst::BufferFlags::DISCONT | gst::BufferFlags::GAP;
        let is_torn = self.has_frames && buffer.flags().intersects(torn);
        self.next = is_number.then(|| offset + 1);
        self.pts = pts;
        self.has_frames = true;
        LostFrames {
            all: by_number.max(by_time).max(is_torn.into()),
            by_number,
        }
    }
}

#[cfg(test)]
mod tests {
    use plan::Controls;

    use super::*;

    fn frame(pts_ms: u64, number: Option<u64>, flags: gst::BufferFlags) -> gst::Buffer {
        let mut buffer = gst::Buffer::new();
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(gst::ClockTime::from_mseconds(pts_ms));
            buffer.set_flags(flags);
            if let Some(number) = number {
                buffer.set_offset(number);
                buffer.set_offset_end(number + 1);
            }
        }
        buffer
    }

    fn lost(frames: &[gst::Buffer], is_triggered: bool) -> u64 {
        let mut gaps = Gaps {
            period: Some(40e6),
            ..Gaps::default()
        };
        let lost = frames.iter().map(|frame| gaps.before(frame, is_triggered));
        lost.map(|missing| missing.all).sum()
    }

    #[test]
    fn names_and_caps_of_a_camera_are_values_and_no_text_of_a_pipeline() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        if gst::ElementFactory::find("aravissrc").is_none() {
            eprintln!("skipped: aravissrc is not installed");
            return;
        }
        let grey = "video/x-raw, format=\"GRAY8\", width=640";
        let several =
            "video/x-raw, format=(string){ \"GRAY8\", GRAY16_LE }; video/x-raw, format=RGB";
        let note = r#"video/x-raw, note="a \" b ! fakesink c=\\""#;
        for (name, caps) in [
            ("Aravis-Fake-GV01", grey),
            ("A \"quoted\" \\ name' ! fakesink", several),
            ("a b=c", note),
        ] {
            let caps: gst::Caps = caps.parse().expect("caps");
            let source = Source::Aravis {
                camera: name.into(),
                pixel_format: None,
                caps: Some(caps.to_string()),
                controls: Controls::default(),
            };
            let bin = bin(&source, false).expect("a source");
            let children = bin.children();
            let find = |factory: &str| {
                let is = |of: &&gst::Element| of.factory().is_some_and(|of| of.name() == factory);
                children.iter().find(is).expect("an element")
            };
            assert_eq!(children.len(), 3, "{name}");
            assert_eq!(find("aravissrc").property::<String>("camera-name"), name);
            assert_eq!(find("capsfilter").property::<gst::Caps>("caps"), caps);
            assert!(bin.static_pad("src").is_some());
        }
    }

    #[test]
    fn sources_that_send_only_bayer_pictures_need_clunpack() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let accepted = "video/x-raw, format={ GRAY8, RGB }";
        let accepted: gst::Caps = accepted.parse().expect("caps");
        for (description, needs) in [
            ("videotestsrc ! video/x-bayer,format=rggb", true),
            (
                "videotestsrc ! video/x-bayer,format={rggb,bggr},width=64",
                true,
            ),
            ("videotestsrc ! video/x-raw,format=GRAY8", false),
            // It can send both.
            ("videotestsrc", false),
            // What the elements refuse stays refused.
            ("videotestsrc ! video/x-raw,format=YUY2", false),
        ] {
            let source = Source::Description(description.to_owned());
            let bin = bin(&source, false).expect("a source");
            let found = needs_unpack(&source, &bin, &accepted);
            assert_eq!(found, Ok(needs), "{description}");
        }
    }

    #[test]
    fn frames_behind_every_source_are_bounded_by_count_and_bytes() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let source = Source::Description("videotestsrc ! video/x-raw,width=64".into());
        let bin = bin(&source, false);
        let queue = bin.expect("a source").by_name(QUEUE).expect("a queue");
        assert_eq!(queue.property::<u32>("max-size-buffers"), QUEUED_FRAMES);
        assert_eq!(queue.property::<u32>("max-size-bytes"), QUEUED_BYTES);
        assert_eq!(queue.property::<u64>("max-size-time"), 0);
    }

    #[test]
    fn lost_frames_are_counted_by_number_else_by_time_else_by_flag() {
        let none = gst::BufferFlags::empty();
        let discont = gst::BufferFlags::DISCONT;
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let numbered = [(0, 5), (40, 6), (500, 7), (540, 10)];
        let numbered = numbered.map(|(pts, number)| frame(pts, Some(number), none));
        assert_eq!(
            lost(&numbered, false),
            2,
            "7 to 10 lacks two; time does not count"
        );
        let timed = [0, 40, 79, 121, 240].map(|pts| frame(pts, None, none));
        assert_eq!(lost(&timed, false), 2, "121 to 240 ms lacks two");
        assert_eq!(lost(&timed, true), 0, "a trigger has no period");
        let flagged = [frame(0, None, discont), frame(40, None, discont)];
        assert_eq!(
            lost(&flagged, false),
            1,
            "the first frame begins the stream"
        );
    }
}
