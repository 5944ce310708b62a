//! `inspectoverlay` with results made by the test; most tests need no device.

mod attached;
mod drawing;
mod formats;
mod hiding;
mod mask_pad;
mod moved;
mod nonsense;
mod pipelines;
mod properties;
mod seeking;
mod waiting;

use clinspect_core::statistics::Statistics;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, HistogramResult, Verdict};

use crate::{
    frames::{foreign_memory, read},
    support::Rig,
};

/// The value of every byte of a frame.
const LEVEL: u8 = 100;
/// Everything off, at full opacity; a test switches on the parts it needs.
const NOTHING: &str = "inspectoverlay name=o show-tint=false show-boxes=false show-labels=false \
                       show-histogram=false show-verdict=false histogram-opacity=1 \
                       verdict-opacity=1";

fn caps(format: Format, [width, height]: [usize; 2]) -> gst::Caps {
    let info = gst_video::VideoInfo::builder(format, width as u32, height as u32)
        .fps(gst::Fraction::new(25, 1))
        .build()
        .unwrap();
    info.to_caps().unwrap()
}

fn size_in_bytes(format: Format, [width, height]: [usize; 2]) -> usize {
    let info = gst_video::VideoInfo::builder(format, width as u32, height as u32).build();
    info.unwrap().size()
}

/// The bytes of a uniform frame.
fn frame_bytes(format: Format, size: [usize; 2]) -> Vec<u8> {
    vec![LEVEL; size_in_bytes(format, size)]
}

/// A uniform frame with a timestamp in ms.
fn frame_at(format: Format, size: [usize; 2], ms: u64) -> gst::Buffer {
    buffer_at(&frame_bytes(format, size), ms)
}

/// A buffer of these bytes with a timestamp in ms and a duration of 40 ms.
fn buffer_at(bytes: &[u8], ms: u64) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().unwrap();
    writable.append_memory(foreign_memory(bytes, 0));
    writable.set_pts(gst::ClockTime::from_mseconds(ms));
    writable.set_duration(gst::ClockTime::from_mseconds(40));
    buffer
}

/// A packed mask with the pixels of these rectangles (x, y, width, height) marked.
fn packed(size: [usize; 2], rectangles: &[[usize; 4]]) -> Vec<u8> {
    let stride = size[0].div_ceil(8);
    let mut bytes = vec![0; stride * size[1]];
    for &[left, top, width, height] in rectangles {
        for (x, y) in (top..top + height).flat_map(|y| (left..left + width).map(move |x| (x, y))) {
            bytes[y * stride + x / 8] |= 0x80 >> (x % 8);
        }
    }
    bytes
}

/// A result with a defect per rectangle, and the mask.
fn found(size: [usize; 2], rectangles: &[[usize; 4]]) -> DefectResult {
    let defects: Vec<Defect> = rectangles
        .iter()
        .map(|rectangle| {
            let [x, y, width, height] = rectangle.map(|n| n as u32);
            Defect {
                x: x as i32,
                y: y as i32,
                width,
                height,
                area: width.wrapping_mul(height),
                mean_difference: -20.0,
                ..Defect::default()
            }
        })
        .collect();
    DefectResult {
        element: "p".into(),
        frame_number: 3,
        width: size[0] as u32,
        height: size[1] as u32,
        judged_pixels: 1000,
        defect_pixels: 80,
        verdict: Verdict::Fail,
        defects,
        mask: Some(gst::Buffer::from_slice(packed(size, rectangles))),
        ..DefectResult::default()
    }
}

/// A histogram of `channels` channels.
fn counted(format: &str, size: [usize; 2], channels: usize) -> HistogramResult {
    let counts = (0..256 * channels as u32).map(|n| n * 7 % 113).collect();
    let statistics = Statistics {
        count: 1000,
        p5: 20.0,
        median: 128.0,
        p95: 200.0,
        ..Statistics::default()
    };
    HistogramResult {
        element: "h".into(),
        frame_number: 3,
        format: format.into(),
        width: size[0] as u32,
        height: size[1] as u32,
        roi: [0, 0, size[0] as u32, size[1] as u32],
        bit_depth: 8,
        bins: 256,
        counts,
        statistics: vec![statistics; channels],
        alarms: Vec::new(),
        corrupted: false,
    }
}

/// The output bytes for a frame.
#[track_caller]
fn drawn(rig: &mut Rig, frame: gst::Buffer) -> Vec<u8> {
    let bytes = read(&rig.pass(frame));
    assert!(rig.errors().is_empty());
    bytes
}

/// A picture with four bytes per pixel.
struct Picture {
    width: usize,
    bytes: Vec<u8>,
}

impl Picture {
    fn of(size: [usize; 2], bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), 4 * size[0] * size[1]);
        Self {
            width: size[0],
            bytes,
        }
    }

    /// B, G, R of a pixel.
    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = 4 * (y * self.width + x);
        self.bytes[at..at + 3].try_into().unwrap()
    }

    /// The box (left, top, right, bottom; half-open) around all changed pixels.
    fn changed(&self) -> Option<[usize; 4]> {
        let mut around = None;
        for y in 0..self.bytes.len() / 4 / self.width {
            for x in 0..self.width {
                if self.at(x, y) != [LEVEL; 3] {
                    let [left, top, right, bottom] = around.unwrap_or([x, y, x + 1, y + 1]);
                    around = Some([left.min(x), top, right.max(x + 1), bottom.max(y + 1)]);
                }
            }
        }
        around
    }
}
