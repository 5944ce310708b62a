//! Webs for the tests, cut into strips, and what elements make of them.

use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use crate::{frames::read, support::Rig};

/// A web: rows of bytes.
pub struct Web {
    pub format: Format,
    pub width: usize,
    pub rows: usize,
    pub bytes: Vec<u8>,
}

/// Bytes of a pixel row and of its part of the other planes, for formats of one plane.
pub fn row_bytes(format: Format, width: usize) -> usize {
    match format {
        Format::Gray16Le => 2 * width,
        Format::Rgb => 3 * width,
        _ => width,
    }
}

/// A small generator of reproducible numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

impl Web {
    /// A cloth of period 7.35 × 5.25 with noise, spots, streaks and a torn place.
    pub fn cloth(format: Format, width: usize, rows: usize, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let mut grey = vec![0_i64; width * rows];
        for (i, v) in grey.iter_mut().enumerate() {
            let (x, y) = ((i % width) as f64, (i / width) as f64);
            let wave = |at: f64, period: f64| (std::f64::consts::TAU * at / period).cos();
            let level = 110.0 + 45.0 * wave(x, 7.35) + 40.0 * wave(y, 5.25);
            *v = level as i64 + numbers.next(7) as i64;
        }
        for _ in 0..12 {
            let (x, y) = (
                numbers.next(width as u64) as usize,
                numbers.next(rows as u64) as usize,
            );
            let (w, h) = match numbers.next(3) {
                0 => (2, 1 + numbers.next(60) as usize),
                1 => (1 + numbers.next(40) as usize, 2),
                _ => (3, 3),
            };
            let change = if numbers.next(2) == 0 { 70 } else { -70 };
            for row in y..(y + h).min(rows) {
                for column in x..(x + w).min(width) {
                    grey[row * width + column] += change;
                }
            }
        }
        let torn = numbers.next(rows as u64) as usize;
        for row in torn..(torn + 30).min(rows) {
            for column in width / 2..(width / 2 + 50).min(width) {
                grey[row * width + column] = 90;
            }
        }
        let bytes = grey.iter().flat_map(|&v| {
            let v = v.clamp(0, 255) as u8;
            match format {
                Format::Gray16Le => vec![v.wrapping_mul(37), v],
                Format::Rgb => vec![v, v.wrapping_mul(3), 255 - v],
                _ => vec![v],
            }
        });
        Self {
            format,
            width,
            rows,
            bytes: bytes.collect(),
        }
    }

    pub fn caps(&self, height: usize) -> gst::Caps {
        gst_video::VideoInfo::builder(self.format, self.width as u32, height as u32)
            .fps(gst::Fraction::new(100, 1))
            .build()
            .unwrap()
            .to_caps()
            .unwrap()
    }

    /// The strips of `height` rows, with GStreamer's own strides.
    pub fn strips(&self, height: usize) -> Vec<gst::Buffer> {
        let info = gst_video::VideoInfo::from_caps(&self.caps(height)).unwrap();
        let (row, stride) = (
            row_bytes(self.format, self.width),
            info.stride()[0] as usize,
        );
        self.bytes
            .chunks_exact(row * height)
            .enumerate()
            .map(|(index, rows)| {
                let mut bytes = vec![0; info.size()];
                for (y, row) in rows.chunks_exact(row).enumerate() {
                    bytes[y * stride..][..row.len()].copy_from_slice(row);
                }
                let mut buffer = gst::Buffer::from_mut_slice(bytes);
                let fields = buffer.get_mut().unwrap();
                fields.set_offset(index as u64);
                fields.set_pts(gst::ClockTime::from_mseconds(10 * index as u64));
                fields.set_duration(gst::ClockTime::from_mseconds(10));
                buffer
            })
            .collect()
    }

    /// What `description` sends for strips of `height` rows.
    pub fn through(&self, description: &str, height: usize) -> Vec<gst::Buffer> {
        let mut rig = Rig::new(description, &self.caps(height));
        for strip in self.strips(height) {
            if let Err(flow) = rig.push(strip) {
                panic!("{flow:?}: {:?}", rig.errors());
            }
        }
        rig.harness().push_event(gst::event::Eos::new());
        // A queue sends from a thread of its own.
        std::iter::from_fn(|| rig.harness().pull_until_eos().unwrap()).collect()
    }
}

/// Rows without the stride's padding.
pub fn rows_of(buffers: &[gst::Buffer], row: usize, stride: usize) -> Vec<u8> {
    let rows = buffers.iter().flat_map(|buffer| {
        let bytes = read(buffer);
        bytes
            .chunks_exact(stride)
            .flat_map(|line| line[..row].to_vec())
            .collect::<Vec<u8>>()
    });
    rows.collect()
}

/// The heights at which the tests cut a web of 360 rows.
pub const HEIGHTS: [usize; 7] = [1, 3, 8, 20, 45, 120, 360];

/// Settings along both axes, with borders and presence.
pub const JUDGED: &str = "clpitchthreshold pitch-x=7.35 pitch-y=5.25 threshold=40 min-contrast=15 scales=3 line-scan=true";

/// A listed defect with its place in the web: the first row and the rest of its box, and its features.
pub fn in_web(results: &[DefectResult]) -> Vec<(i64, [u32; 4], String)> {
    let mut all: Vec<(i64, [u32; 4], String)> = results
        .iter()
        .flat_map(|result| {
            result.defects.iter().map(|d| {
                let row = result.first_line as i64 + i64::from(d.y);
                // Rounded: a 32-bit float has fewer digits left at a large y.
                let centre = result.first_line as f64 + f64::from(d.centroid_y);
                let features = format!(
                    "{} {centre:.2} {} {} {} {} {} {} {} {} {}",
                    d.centroid_x,
                    d.mean_difference,
                    d.peak_difference,
                    d.polarity,
                    d.major_axis,
                    d.minor_axis,
                    d.orientation,
                    d.boundary_length,
                    d.level(),
                    result.class_name(d.class),
                );
                (row, [d.x as u32, d.width, d.height, d.area], features)
            })
        })
        .collect();
    all.sort_by_key(|(row, place, _)| (*row, *place));
    all
}

/// A flat web with a bright line of one column.
pub fn line(rows: usize, marked: std::ops::Range<usize>) -> Web {
    let mut web = Web {
        format: Format::Gray8,
        width: 64,
        rows,
        bytes: vec![100; 64 * rows],
    };
    for row in marked {
        web.bytes[64 * row + 30] = 200;
    }
    web
}
