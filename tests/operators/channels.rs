//! What the tests of comparisons by channels share: masks, and lists of defects.

use std::sync::Arc;

use clinspect_core::components::MeasuredDefect;
use clinspect_opencl::{ClContext, Meter, buffer_of};
use clinspect_operators::MaskTarget;

use crate::frames::{OUTPUT_POISON, our_memory};

/// Packed rows of a mask between poisoned bytes.
pub struct Packed {
    memory: gst::Memory,
    len: usize,
}

impl Packed {
    const BEFORE: usize = 5;

    pub fn new(device: &Arc<ClContext>, [width, rows]: [usize; 2]) -> Self {
        let len = width.div_ceil(8) * rows;
        let bytes = vec![OUTPUT_POISON; Self::BEFORE + len + 9];
        let memory = our_memory(device, &Meter::new(false), &bytes, 3);
        Self { memory, len }
    }

    pub fn target(&self) -> MaskTarget<'_> {
        MaskTarget::Packed {
            buffer: buffer_of(&self.memory).expect("memory of ours"),
            offset: self.memory.offset() + Self::BEFORE,
        }
    }

    /// By pixel: whether it is marked.
    pub fn read(&self, width: usize) -> Vec<bool> {
        let bytes = self.memory.map_readable().expect("a reading map").to_vec();
        let (before, rest) = bytes.split_at(Self::BEFORE);
        let (mask, after) = rest.split_at(self.len);
        let is_untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == OUTPUT_POISON);
        assert!(
            is_untouched(before) && is_untouched(after),
            "bytes around the mask are written"
        );
        mask.chunks(width.div_ceil(8))
            .flat_map(|row| {
                let past = row
                    .last()
                    .map_or(0, |&last| last & (0xff_u16 >> ((width + 7) % 8 + 1)) as u8);
                assert_eq!(past, 0, "bits behind the last pixel are set");
                (0..width).map(|x| row[x / 8] & 0x80 >> (x % 8) != 0)
            })
            .collect()
    }
}

/// Compares the marks of pixels.
#[track_caller]
pub fn assert_mask(found: &[bool], wanted: &[bool], width: usize, about: &dyn Fn() -> String) {
    if let Some(at) = (0..wanted.len()).find(|&at| found[at] != wanted[at]) {
        let differ = (0..wanted.len())
            .filter(|&at| found[at] != wanted[at])
            .count();
        panic!(
            "{}: pixel ({}, {}) is marked: {}, and {differ} pixels differ",
            about(),
            at % width,
            at / width,
            found[at]
        );
    }
}

/// The channels of a comparison.
pub struct Channels<'a> {
    /// Bits of a channel's number beside its excess.
    pub bits: u32,
    /// A channel's limit.
    pub limit: &'a dyn Fn(usize) -> f64,
}

impl Channels<'_> {
    fn number(&self, packed: i64) -> usize {
        (packed.abs() & ((1 << self.bits) - 1)) as usize
    }
}

/// Compares each defect's strongest channel and mean with the pixels in its box. Boxes of defects do not overlap with
/// pixels of others, unless defects are near each other.
#[track_caller]
pub fn check_list(
    defects: &[MeasuredDefect],
    strongest: &[i64],
    channels: &Channels,
    width: usize,
    about: &dyn Fn() -> String,
) {
    let area: u64 = defects.iter().map(|defect| u64::from(defect.area)).sum();
    let marked = strongest.iter().filter(|&&packed| packed != 0).count() as u64;
    assert_eq!(area, marked, "{}", about());
    let difference = |packed: i64| {
        let limit = (channels.limit)(channels.number(packed));
        packed.signum() as f64 * (packed.abs() >> channels.bits) as f64 / 256.0 * limit
    };
    for defect in defects {
        let rows = defect.y as usize..defect.y as usize + defect.height as usize;
        let columns = defect.x as usize..defect.x as usize + defect.width as usize;
        let pixels = rows.flat_map(|y| columns.clone().map(move |x| y * width + x));
        let values: Vec<i64> = (pixels.map(|at| strongest[at]))
            .filter(|&packed| packed != 0)
            .collect();
        if values.len() as u32 != defect.area {
            continue;
        }
        let most = values.iter().map(|v| v.abs()).max().expect("a pixel");
        let first = values
            .iter()
            .find(|v| v.abs() == most)
            .expect("the largest");
        assert_eq!(defect.level, channels.number(most) as u8, "{}", about());
        assert_eq!(defect.peak_difference, difference(*first), "{}", about());
        let mean = values.iter().map(|&v| difference(v)).sum::<f64>() / values.len() as f64;
        assert!(
            (defect.mean_difference - mean).abs() < 1e-2,
            "{}: {} {mean}",
            about(),
            defect.mean_difference
        );
        let signs = [1, -1].map(|sign| values.iter().all(|v| v.signum() == sign));
        assert_eq!(
            defect.polarity,
            i32::from(signs[0]) - i32::from(signs[1]),
            "{}",
            about()
        );
    }
}
