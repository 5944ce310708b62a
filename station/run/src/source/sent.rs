//! What a camera sends, and what becomes of it before the inspection.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use gst::prelude::*;
use plan::{Source, bytes_a_pixel};

/// The frames of a camera as they come.
pub struct SourceFrames {
    pad: gst::Pad,
    /// Bytes of the newest frame; 0 before the first.
    bytes: Arc<AtomicU64>,
}

impl SourceFrames {
    /// Watches the pad behind the source.
    pub fn watch(pad: gst::Pad) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let newest = bytes.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let Some(buffer) = info.buffer() {
                newest.store(buffer.size() as u64, Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
        Self { pad, bytes }
    }

    /// Whether the format of the frames is known.
    pub fn has_begun(&self) -> bool {
        self.pad.has_current_caps()
    }

    /// What was asked, what comes, and what `unpack` makes of it. `None` before the first frame.
    pub fn sentence(&self, source: &Source, unpack: Option<&gst::Element>) -> Option<String> {
        let caps = self.pad.current_caps()?;
        let unpacked = unpack.and_then(|element| element.static_pad("src")?.current_caps());
        sentence(source, self.bytes.load(Relaxed), &caps, unpacked.as_deref())
    }
}

fn format_of(caps: &gst::CapsRef) -> Option<&str> {
    caps.structure(0)?.get("format").ok()
}

fn sentence(
    source: &Source,
    bytes: u64,
    caps: &gst::CapsRef,
    unpacked: Option<&gst::CapsRef>,
) -> Option<String> {
    let structure = caps.structure(0)?;
    let length = |field: &str| {
        let length = structure.get::<i32>(field).ok();
        length.and_then(|length| u64::try_from(length).ok())
    };
    let (width, height) = (length("width")?, length("height")?);
    let pixels = width.checked_mul(height).filter(|&pixels| pixels > 0)?;
    let sent = format_of(caps).unwrap_or_else(|| structure.name().as_str());
    let asked = match source {
        Source::Aravis { pixel_format, .. } => pixel_format.as_ref(),
        Source::Description(_) => None,
    };
    let begin = match asked.map(|asked| asked.format) {
        Some(format) if bytes == format.frame_bytes(width, height) => {
            format!("asked for {0}, sends {0}", format.name)
        }
        Some(format) => format!("asked for {format}, sends frames of another size"),
        None => format!("sends {sent}"),
    };
    let of_pixel = bytes_a_pixel(bytes as f64 / pixels as f64);
    let end = match unpacked.and_then(format_of) {
        Some(format) => format!("clunpack makes {format} of it on the device"),
        None => "inspected as it comes".to_owned(),
    };
    Some(format!("{begin}, {width}x{height}, {of_pixel}; {end}"))
}

#[cfg(test)]
mod tests {
    use plan::{PixelFormat, Place, RequestedFormat};

    use super::*;

    #[test]
    fn the_sentence_tells_what_was_asked_what_comes_and_what_crosses_the_bus() {
        gst::init().expect("GStreamer");
        let asked = |name| Source::Aravis {
            camera: "left".into(),
            pixel_format: PixelFormat::by_name(name).map(|format| RequestedFormat {
                format,
                place: Place { line: 1 },
            }),
            caps: None,
            controls: Default::default(),
        };
        let other = Source::Description("v4l2src".into());
        let packed = "video/x-raw, format=GRAY16_LE, width=642, height=48";
        let bayer = "video/x-bayer, format=rggb, width=640, height=48";
        let grey = "video/x-raw, format=GRAY16_LE";
        for (source, bytes, caps, unpacked, told) in [
            (
                asked("Mono12p"),
                46_272,
                packed,
                Some(grey),
                "asked for Mono12p, sends Mono12p, 642x48, 1.502 bytes a pixel; clunpack makes GRAY16_LE of it on the device",
            ),
            (
                asked("Mono12p"),
                642 * 48 * 2,
                packed,
                Some(grey),
                "asked for Mono12p (1.5 bytes a pixel), sends frames of another size, 642x48, 2 bytes a pixel; clunpack \
                 makes GRAY16_LE of it on the device",
            ),
            (
                other,
                640 * 48,
                bayer,
                Some("video/x-raw, format=RGB"),
                "sends rggb, 640x48, 1 byte a pixel; clunpack makes RGB of it on the device",
            ),
            (
                asked("none"),
                640 * 48,
                "video/x-raw, format=GRAY8, width=640, height=48",
                None,
                "sends GRAY8, 640x48, 1 byte a pixel; inspected as it comes",
            ),
        ] {
            let caps: gst::Caps = caps.parse().expect("caps");
            let unpacked: Option<gst::Caps> = unpacked.map(|caps| caps.parse().expect("caps"));
            let sentence = sentence(&source, bytes, &caps, unpacked.as_deref());
            assert_eq!(sentence.as_deref(), Some(told));
        }
    }
}
