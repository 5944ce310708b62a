//! `GstClDefectMeta` and the message `clpitchthreshold`.

use std::fmt;

use gst::glib;

use super::{META_VERSION, attach, structures};

/// Name of the meta.
pub const DEFECT_META: &str = "GstClDefectMeta";

/// The verdict on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No limit was exceeded.
    Pass,
    /// A limit was exceeded.
    Fail,
    /// No pixel could be judged.
    None,
}

/// Limits of a frame; a frame fails above them. A negative limit is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictLimits {
    /// Maximum number of marked pixels.
    pub defect_pixels: i64,
    /// Maximum number of listed defects.
    pub defect_count: i64,
    /// Maximum area of a listed defect, px.
    pub defect_area: i64,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Pass, Self::Fail, Self::None];

    /// The verdict on a frame with `judged_pixels`, `defect_pixels` marked pixels and these listed
    /// defects, the largest first.
    ///
    /// If there were more defects than are listed (`overflow`), a limit that the list cannot decide
    /// counts as exceeded: a frame must not pass because its list was truncated.
    pub fn new(
        judged_pixels: u64,
        defect_pixels: u64,
        defects: &[Defect],
        overflow: bool,
        limits: &VerdictLimits,
    ) -> Self {
        let exceeds = |n: u64, limit: i64| u64::try_from(limit).is_ok_and(|limit| n > limit);
        let largest = defects.iter().map(|d| d.area).max().unwrap_or(0);
        if judged_pixels == 0 {
            Self::None
        } else if exceeds(defect_pixels, limits.defect_pixels)
            || exceeds(defects.len() as u64, limits.defect_count)
            || (overflow && limits.defect_count >= 0)
            || exceeds(u64::from(largest), limits.defect_area)
            || (overflow && defects.is_empty() && limits.defect_area >= 0)
        {
            Self::Fail
        } else {
            Self::Pass
        }
    }

    /// The name in metas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::None => "none",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

/// Bytes per defect in `defects-data`.
pub(super) const RECORD: usize = 40;
/// Maximum number of defects in a message, the largest first.
const MESSAGE_DEFECTS: usize = 16;

/// One defect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defect {
    /// Left edge of its box, px.
    pub x: u32,
    /// Top edge of its box, px.
    pub y: u32,
    /// Width of its box, px.
    pub width: u32,
    /// Height of its box, px.
    pub height: u32,
    /// Marked pixels.
    pub area: u32,
    /// Mean of its pixels' centres along x, px; the centre of pixel 0 is 0.5.
    pub centroid_x: f32,
    /// Mean of its pixels' centres along y, px.
    pub centroid_y: f32,
    /// Mean difference of its pixels, grey levels; positive is brighter than the neighbours.
    pub mean_difference: f32,
    /// Difference of largest magnitude, grey levels.
    pub peak_difference: f32,
    /// 1 if all its pixels are brighter, -1 if all are darker, otherwise 0.
    pub polarity: i32,
}

impl Defect {
    /// The record in `defects-data`: ten little-endian words in field order.
    fn to_bytes(self) -> [u8; RECORD] {
        let words = [
            self.x,
            self.y,
            self.width,
            self.height,
            self.area,
            self.centroid_x.to_bits(),
            self.centroid_y.to_bits(),
            self.mean_difference.to_bits(),
            self.peak_difference.to_bits(),
            self.polarity as u32,
        ];
        let mut bytes = [0; RECORD];
        for (word, out) in words.iter().zip(bytes.chunks_exact_mut(4)) {
            out.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |i: usize| u32::from_le_bytes(words[i]);
        let float = |i: usize| f32::from_bits(word(i));
        Self {
            x: word(0),
            y: word(1),
            width: word(2),
            height: word(3),
            area: word(4),
            centroid_x: float(5),
            centroid_y: float(6),
            mean_difference: float(7),
            peak_difference: float(8),
            polarity: word(9) as i32,
        }
    }

    /// The fields as a structure, for messages and regions of interest.
    pub fn to_structure(self) -> gst::Structure {
        gst::Structure::builder("defect")
            .field("x", self.x)
            .field("y", self.y)
            .field("width", self.width)
            .field("height", self.height)
            .field("area", self.area)
            .field("centroid-x", f64::from(self.centroid_x))
            .field("centroid-y", f64::from(self.centroid_y))
            .field("mean-difference", f64::from(self.mean_difference))
            .field("peak-difference", f64::from(self.peak_difference))
            .field("polarity", self.polarity)
            .build()
    }
}

/// A frame's defects.
#[derive(Debug, Clone, PartialEq)]
pub struct DefectResult {
    /// Name of the inspecting element.
    pub element: String,
    /// The buffer's offset if it has one, otherwise a counter.
    pub frame_number: u64,
    /// Width of the frame, px.
    pub width: u32,
    /// Height of the frame, px.
    pub height: u32,
    /// Pitch along x, px; 0 for no comparison along x.
    pub pitch_x: f64,
    /// Pitch along y, px; 0 for no comparison along y.
    pub pitch_y: f64,
    /// Threshold, grey levels.
    pub threshold: f64,
    /// Pixels that could be judged.
    pub judged_pixels: u64,
    /// Pixels that at least one comparison along x could judge.
    pub judged_x: u64,
    /// Pixels that at least one comparison along y could judge.
    pub judged_y: u64,
    /// Pixels marked in the mask.
    pub defect_pixels: u64,
    /// Pixels marked for want of a pattern.
    pub missing_pixels: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The listed defects, largest area first.
    pub defects: Vec<Defect>,
    /// Whether there were more defects than are listed.
    pub overflow: bool,
    /// The packed mask, if the meta is on the frame itself.
    pub mask: Option<gst::Buffer>,
}

/// A line about the frame and a line about each defect, each with a line end.
impl fmt::Display for DefectResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "frame {} by {}: {}, {} of {} judged pixels, {} defects{}",
            self.frame_number,
            self.element,
            self.verdict.name(),
            self.defect_pixels,
            self.judged_pixels,
            self.defects.len(),
            if self.overflow { " and more" } else { "" },
        )?;
        for d in &self.defects {
            writeln!(
                f,
                "  {}x{} at {},{}: area {}, centre {:.2},{:.2}, difference {:.2}, peak {:.2}, \
                 polarity {}",
                d.width,
                d.height,
                d.x,
                d.y,
                d.area,
                d.centroid_x,
                d.centroid_y,
                d.mean_difference,
                d.peak_difference,
                d.polarity,
            )?;
        }
        Ok(())
    }
}

impl DefectResult {
    /// Writes the fields that meta and message share.
    pub fn write_scalars(&self, fields: &mut gst::StructureRef) {
        fields.set("element", &self.element);
        fields.set("frame-number", self.frame_number);
        fields.set("width", self.width);
        fields.set("height", self.height);
        fields.set("pitch-x", self.pitch_x);
        fields.set("pitch-y", self.pitch_y);
        fields.set("threshold", self.threshold);
        fields.set("judged-pixels", self.judged_pixels);
        fields.set("judged-x", self.judged_x);
        fields.set("judged-y", self.judged_y);
        fields.set("defect-pixels", self.defect_pixels);
        fields.set("missing-pixels", self.missing_pixels);
        fields.set("defect-count", self.defects.len() as u32);
        fields.set("overflow", self.overflow);
        fields.set("verdict", self.verdict.name());
    }

    /// The verdict as a line for people, such as "fail: 2 defects, 37 of 480000 judged pixels marked,
    /// largest 30 px at 12,40".
    pub fn summary(&self) -> String {
        if self.verdict == Verdict::None {
            return "none: no pixel could be judged".into();
        }
        let count = self.defects.len();
        let mut line = format!(
            "{}: {count}{} defect{}, {} of {} judged pixels marked",
            self.verdict.name(),
            if self.overflow { " or more" } else { "" },
            if count == 1 && !self.overflow {
                ""
            } else {
                "s"
            },
            self.defect_pixels,
            self.judged_pixels,
        );
        if self.missing_pixels > 0 {
            line += &format!(", the pattern is missing on {}", self.missing_pixels);
        }
        if let Some(largest) = self.defects.first() {
            line += &format!(
                ", largest {} px at {},{}",
                largest.area, largest.x, largest.y
            );
        }
        line
    }

    /// The largest defects as structures, for messages.
    pub fn defect_structures(&self) -> gst::Array {
        let first = self.defects.iter().take(MESSAGE_DEFECTS);
        gst::Array::new(first.map(|defect| defect.to_structure()))
    }

    /// Attaches the result to a buffer, and a `GstVideoRegionOfInterestMeta` per defect.
    ///
    /// # Errors
    /// The meta is not registered (see [`super::register`]).
    pub fn attach(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        attach(buffer, DEFECT_META, |fields| {
            self.write_scalars(fields);
            fields.set("version", META_VERSION);
            fields.set("defects-data", glib::Bytes::from_owned(self.records()));
            if let Some(mask) = &self.mask {
                fields.set("mask", mask);
            }
        })?;
        for (id, defect) in (0..).zip(&self.defects) {
            let rect = (defect.x, defect.y, defect.width, defect.height);
            let mut roi = gst_video::VideoRegionOfInterestMeta::add(buffer, "defect", rect);
            roi.set_id(id);
            roi.add_param(defect.to_structure());
        }
        Ok(())
    }

    /// The listed defects as `defects-data`.
    pub(super) fn records(&self) -> Vec<u8> {
        self.defects.iter().flat_map(|d| d.to_bytes()).collect()
    }

    /// Every result on a buffer, in the order of attachment. A meta is ignored if fields are
    /// missing or if the number of defects does not match the records.
    pub fn read(buffer: &gst::BufferRef) -> Vec<Self> {
        structures(buffer, DEFECT_META)
            .filter_map(|fields| {
                let data = fields.get::<glib::Bytes>("defects-data").ok()?;
                Self::from_fields(&fields, &data)
            })
            .collect()
    }

    /// The result with the records `data`; `None` if a field is missing or the number of defects
    /// does not match the records.
    pub(super) fn from_fields(fields: &gst::StructureRef, data: &[u8]) -> Option<Self> {
        let (records, rest) = data.as_chunks::<RECORD>();
        let count = fields.get::<u32>("defect-count").ok()?;
        if !rest.is_empty() || records.len() != count as usize {
            return None;
        }
        Some(Self {
            element: fields.get("element").ok()?,
            frame_number: fields.get("frame-number").ok()?,
            width: fields.get("width").ok()?,
            height: fields.get("height").ok()?,
            pitch_x: fields.get("pitch-x").ok()?,
            pitch_y: fields.get("pitch-y").ok()?,
            threshold: fields.get("threshold").ok()?,
            judged_pixels: fields.get("judged-pixels").ok()?,
            // Senders of earlier versions have no such fields.
            judged_x: fields.get("judged-x").unwrap_or(0),
            judged_y: fields.get("judged-y").unwrap_or(0),
            defect_pixels: fields.get("defect-pixels").ok()?,
            missing_pixels: fields.get("missing-pixels").unwrap_or(0),
            verdict: Verdict::from_name(fields.get("verdict").ok()?)?,
            defects: records.iter().map(Defect::from_bytes).collect(),
            overflow: fields.get("overflow").ok()?,
            mask: fields.get("mask").ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: VerdictLimits = VerdictLimits {
        defect_pixels: -1,
        defect_count: -1,
        defect_area: -1,
    };

    fn defect(area: u32) -> Defect {
        Defect {
            x: 1,
            y: 2,
            width: 3,
            height: 4,
            area,
            centroid_x: 2.5,
            centroid_y: -0.25,
            mean_difference: -17.5,
            peak_difference: -30.0,
            polarity: -1,
        }
    }

    #[test]
    fn verdict_each_limit_fails_above_it_only() {
        let two = [defect(5), defect(3)];
        let verdict = |limits| Verdict::new(10, 8, &two, false, &limits);
        assert_eq!(verdict(OFF), Verdict::Pass);
        for (limit, expected) in [(0, Verdict::Fail), (7, Verdict::Fail), (8, Verdict::Pass)] {
            let limits = VerdictLimits {
                defect_pixels: limit,
                ..OFF
            };
            assert_eq!(verdict(limits), expected, "pixels {limit}");
        }
        for (limit, expected) in [(0, Verdict::Fail), (1, Verdict::Fail), (2, Verdict::Pass)] {
            let limits = VerdictLimits {
                defect_count: limit,
                ..OFF
            };
            assert_eq!(verdict(limits), expected, "count {limit}");
        }
        for (limit, expected) in [(0, Verdict::Fail), (4, Verdict::Fail), (5, Verdict::Pass)] {
            let limits = VerdictLimits {
                defect_area: limit,
                ..OFF
            };
            assert_eq!(verdict(limits), expected, "area {limit}");
        }
        assert_eq!(Verdict::new(0, 0, &[], false, &OFF), Verdict::None);
    }

    #[test]
    fn verdict_of_a_cut_list_fails_where_a_limit_needs_the_rest() {
        let count = VerdictLimits {
            defect_count: 5,
            ..OFF
        };
        let area = VerdictLimits {
            defect_area: 5,
            ..OFF
        };
        let two = [defect(5), defect(3)];
        assert_eq!(Verdict::new(10, 8, &two, true, &count), Verdict::Fail);
        assert_eq!(Verdict::new(10, 8, &two, true, &area), Verdict::Pass);
        assert_eq!(Verdict::new(10, 8, &[], true, &area), Verdict::Fail);
        assert_eq!(Verdict::new(10, 8, &[], true, &OFF), Verdict::Pass);
    }

    #[test]
    fn defect_record_has_forty_bytes_in_the_documented_order() {
        let bytes = defect(7).to_bytes();
        assert_eq!(bytes[..4], 1_u32.to_le_bytes());
        assert_eq!(bytes[16..20], 7_u32.to_le_bytes());
        assert_eq!(bytes[28..32], (-17.5_f32).to_le_bytes());
        assert_eq!(bytes[36..], (-1_i32).to_le_bytes());
        assert_eq!(Defect::from_bytes(&bytes), defect(7));
    }
}
