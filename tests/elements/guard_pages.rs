//! Frames of small sizes whose memory ends at a guard page: an access one byte past the end crashes.
//! `CLINSPECT_ALL_SIZES=1` (set by `scripts/torture`) runs all formats and sizes, otherwise a sample.

use std::{ffi::c_void, ptr, sync::LazyLock};

use clinspect_opencl::frame::{COLOUR_FORMATS, FORMATS, LUMA_FORMATS};
use gst_video::VideoFormat as Format;
use gstclinspect::results::HistogramResult;

use crate::{
    device::say,
    frames::{ARRANGEMENTS, Frame, PLAIN, read},
    oracle::pitch_threshold::{self, compare, pack},
    results::{assert_counted, assert_smoothed},
    support::{Rig, caps_of, feed, judged, noise, pitch_threshold_settings, start},
};

const WIDTHS: std::ops::RangeInclusive<usize> = 1..=33;
const HEIGHTS: std::ops::RangeInclusive<usize> = 1..=17;
const PAGE: usize = 4096;

unsafe extern "C" {
    fn mmap(at: *mut c_void, len: usize, prot: i32, flags: i32, fd: i32, off: i64) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, prot: i32) -> i32;
    fn munmap(at: *mut c_void, len: usize) -> i32;
}

/// Pages between two guard pages; the bytes end right before the second guard page.
struct Guarded {
    pages: *mut c_void,
    pages_len: usize,
    bytes: ptr::NonNull<u8>,
    len: usize,
}

// SAFETY: the value owns its pages and gives read-only access.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new(bytes: &[u8]) -> Self {
        const READ_WRITE: i32 = 3;
        const PRIVATE_ANONYMOUS: i32 = 0x22;
        let inside = bytes.len().next_multiple_of(PAGE);
        let pages_len = inside + 2 * PAGE;
        // SAFETY: new pages; the guards are the first and the last of them, and the bytes lie
        // between.
        unsafe {
            let pages = mmap(
                ptr::null_mut(),
                pages_len,
                READ_WRITE,
                PRIVATE_ANONYMOUS,
                -1,
                0,
            );
            assert!(pages as isize != -1, "no pages");
            let first: *mut u8 = pages.cast();
            let start = first.add(PAGE + inside - bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            assert_eq!(mprotect(pages, PAGE, 0), 0);
            assert_eq!(mprotect(first.add(PAGE + inside).cast(), PAGE, 0), 0);
            Self {
                pages,
                pages_len,
                bytes: ptr::NonNull::new(start).unwrap(),
                len: bytes.len(),
            }
        }
    }

    /// A buffer with this as its only memory.
    fn buffer(self) -> gst::Buffer {
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        writable.append_memory(gst::Memory::from_slice(self));
        buffer
    }
}

impl AsRef<[u8]> for Guarded {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the pages live as long as `self`, and they are never written.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the value owns the pages, and they are no longer used.
        unsafe { munmap(self.pages, self.pages_len) };
    }
}

/// Alternates by size: rows without padding under a VideoMeta, so that the last byte is the last sample,
/// and the layout of the caps.
fn frame(format: Format, size: [usize; 2]) -> Frame {
    let tight = ARRANGEMENTS[7];
    noise(
        format,
        size,
        if (size[0] + size[1]).is_multiple_of(2) {
            tight
        } else {
            PLAIN
        },
    )
}

fn guarded(frame: &Frame) -> gst::Buffer {
    let mut buffer = Guarded::new(&frame.bytes).buffer();
    if frame.arrangement != PLAIN {
        frame.add_meta(buffer.get_mut().unwrap());
    }
    buffer
}

fn wants_all() -> bool {
    std::env::var("CLINSPECT_ALL_SIZES").is_ok_and(|v| v == "1")
}

/// Every size, or every tenth.
fn sizes() -> Vec<[usize; 2]> {
    let step = if wants_all() { 1 } else { 10 };
    WIDTHS
        .flat_map(|width| HEIGHTS.map(move |height| [width, height]))
        .step_by(step)
        .collect()
}

fn formats(all: &[Format]) -> Vec<Format> {
    let few = [Format::Gray8, Format::Rgb, Format::I420, Format::Gray16Be];
    let wanted = |f: &&Format| wants_all() || few.contains(f);
    all.iter().filter(wanted).copied().collect()
}

/// Sends a frame of each format and size through an element.
fn sweep(element: &str, of: &LazyLock<Vec<Format>>, look: impl Fn(&Frame, &gst::Buffer)) {
    sweep_refused(element, of, |_| false, look);
}

/// The same; frames of which `is_refused` says so are refused.
fn sweep_refused(
    element: &str,
    of: &LazyLock<Vec<Format>>,
    is_refused: impl Fn(&Frame) -> bool,
    look: impl Fn(&Frame, &gst::Buffer),
) {
    if start().is_none() {
        return;
    }
    let sizes = sizes();
    // The list of formats needs an initialised GStreamer.
    for format in formats(of) {
        let (mut processed, mut refused) = (0, 0);
        let mut rig: Option<Rig> = None;
        for &size in &sizes {
            let frame = frame(format, size);
            let caps = caps_of(&frame);
            if is_refused(&frame) {
                let fate = feed(element, &caps, vec![guarded(&frame)]);
                assert_eq!(
                    (fate.received, fate.errors.len()),
                    (0, 1),
                    "{}",
                    frame.describe()
                );
                refused += 1;
                continue;
            }
            match &mut rig {
                Some(rig) => rig.renegotiate(&caps),
                None => rig = Some(Rig::new(element, &caps)),
            }
            let output = rig.as_mut().unwrap().pass(guarded(&frame));
            look(&frame, &output);
            processed += 1;
        }
        assert_eq!(processed + refused, sizes.len());
        if wants_all() {
            say(&format!(
                "PASS {element}, {format}: {processed} processed and {refused} refused of {}",
                sizes.len()
            ));
        }
    }
}

#[test]
fn gaussian_frames_that_end_at_a_guard_page_are_filtered() {
    sweep("clgaussian", &FORMATS, |frame, output| {
        assert_smoothed(frame, output, 3, 0.0);
    });
}

#[test]
fn histogram_frames_that_end_at_a_guard_page_are_counted() {
    sweep("clhistogram", &FORMATS, |frame, output| {
        let [width, height] = frame.size();
        let results = HistogramResult::read(output);
        assert_counted(frame, &results[0], [0, 0, width, height]);
    });
}

#[test]
fn pitch_threshold_frames_that_end_at_a_guard_page_are_judged() {
    sweep_refused(
        "clpitchthreshold PUBLISHED pitch-x=1",
        &LUMA_FORMATS,
        |frame| judged(frame, 1.0, 0.0, 10.0).judged_pixels == 0,
        |frame, output| {
            let expected = judged(frame, 1.0, 0.0, 10.0).packed;
            assert_eq!(read(output), expected, "{}", frame.describe());
        },
    );
}

#[test]
fn lattice_on_frames_that_end_at_a_guard_page_is_judged() {
    let settings = pitch_threshold::Settings {
        vectors: vec![[1.5, -1.25]],
        inward: true,
        match_center: true,
        ..pitch_threshold_settings(0.0, 0.0, 10.0)
    };
    sweep_refused(
        "clpitchthreshold PUBLISHED lattice=<1.5,-1.25> borders=inward edge-margin=0 match-center=true",
        &LUMA_FORMATS,
        |frame| compare(frame.component(0), &settings).judged_pixels == 0,
        |frame, output| {
            let expected = compare(frame.component(0), &settings).packed;
            assert_eq!(read(output), expected, "{}", frame.describe());
        },
    );
}

#[test]
fn components_of_frames_that_end_at_a_guard_page_are_judged() {
    sweep_refused(
        "clpitchthreshold PUBLISHED pitch-x=1",
        &COLOUR_FORMATS,
        |frame| judged(frame, 1.0, 0.0, 10.0).judged_pixels == 0,
        |frame, output| {
            let [width, height] = frame.size();
            let masks = [0, 1, 2].map(|component| {
                let settings = pitch_threshold_settings(1.0, 0.0, 10.0);
                compare(frame.component(component), &settings).mask
            });
            let joined: Vec<bool> = (0..width * height)
                .map(|at| masks.iter().any(|mask| mask[at]))
                .collect();
            let expected = pack(&joined, width, height);
            assert_eq!(read(output), expected, "{}", frame.describe());
        },
    );
}
