//! The event `GstClDefectMeta`: a frame's defects, sent before the frame for transports that drop
//! metas.

use super::{
    DEFECT_META, Defect, DefectResult, Parts, Verdict,
    defect::{RECORD, to_records},
    defects::VERSION,
};

/// The flags of a defect that have a meaning.
const FLAGS: u16 = Defect::CONTINUED
    | Defect::CUT
    | Defect::PART_BITS
    | Defect::LEVEL_BITS
    | Defect::COMPONENT_BITS;

/// Maximum number of defects that an element lists and that are accepted from an event: each
/// becomes a meta.
pub const MOST_DEFECTS: u32 = 100_000;

impl DefectResult {
    /// A custom downstream event with the meta's name and fields.
    ///
    /// Transports such as `rtpgstpay` send an event as the text of its structure. A double has 17
    /// digits there, so it is restored exactly. A GBytes has no text form, and GStreamer 1.22
    /// cannot parse an empty GstBuffer, so `defects-data` is a string with two hexadecimal digits
    /// per byte. The masks of the meta are not sent.
    pub fn to_event(&self) -> gst::Event {
        let mut fields = gst::Structure::new_empty(DEFECT_META);
        self.write_scalars(&mut fields);
        fields.set("version", VERSION);
        fields.set("defects-data", to_hex(&to_records(&self.defects)));
        gst::event::CustomDownstream::new(fields)
    }

    /// Whether an event claims to be one of [`Self::to_event`].
    pub fn is_event(event: &gst::EventRef) -> bool {
        event.type_() == gst::EventType::CustomDownstream && event.has_name(DEFECT_META)
    }

    /// The result in an event; `None` for other events and for invalid results.
    ///
    /// Events may come from a network, so they are checked more strictly than metas: the numbers
    /// must not contradict each other, boxes must lie inside the frame, or inside the web up to the
    /// strip's last row, and there are at most [`MOST_DEFECTS`] defects.
    pub fn from_event(event: &gst::EventRef) -> Option<Self> {
        if !Self::is_event(event) {
            return None;
        }
        let fields = event.structure()?;
        let data = fields.get::<&str>("defects-data").ok()?;
        if data.len() > 2 * RECORD * MOST_DEFECTS as usize {
            return None;
        }
        let mut result = Self::from_fields(fields, &from_hex(data)?)?;
        // The event does not carry masks.
        (result.mask, result.ignored) = (None, None);
        result.is_plausible().then_some(result)
    }

    fn is_plausible(&self) -> bool {
        let lines = u128::from(self.first_line) + u128::from(self.height);
        let pixels = u64::from(self.width) * u64::from(self.height);
        let in_strip: u64 = self.defects.iter().map(pixels_in_strip).sum();
        // Each part counts the pixels of the trained one, which may be larger.
        let parts = self.parts.as_ref().map_or(1, |of| of.parts.len().max(1));
        self.judged_pixels <= pixels.saturating_mul(parts as u64)
            && self.parts.as_ref().is_none_or(Parts::is_plausible)
            && self.defect_pixels <= self.judged_pixels
            && self.missing_pixels <= self.defect_pixels
            && self.judged_x.max(self.judged_y) <= self.judged_pixels
            && self.is_judged_as_it_says()
            && self.training.is_none_or(|[trained, all]| {
                trained <= all && (self.verdict == Verdict::None || self.corrupted)
            })
            && (self.unplaced.is_none() || self.judged_pixels == 0)
            && self.learning.is_none_or(|[good, all]| good <= all)
            && u128::from(self.open_area) <= u128::from(self.width) * lines
            && are_lengths([self.pitch_x, self.pitch_y, self.threshold])
            && self.blind.as_ref().is_none_or(|blind| {
                !blind.name.is_empty()
                    && are_lengths([blind.marks, blind.reach, 0.0])
                    && blind.marks > blind.reach
            })
            && self.lattice.as_flattened().iter().all(|c| c.is_finite())
            && are_lengths([self.mm_per_pixel_x, self.mm_per_pixel_y, self.mean_level])
            && self.class_names.len() < usize::from(Defect::PATTERN_MISSING)
            && self.class_names.iter().all(|name| !name.is_empty())
            && self.channels.iter().all(|name| !name.is_empty())
            && self.defects.iter().all(|defect| self.can_hold(defect))
            && in_strip <= self.defect_pixels
            && have_ids_of_their_own(&self.defects)
    }

    /// Without a judged pixel, or without a limit that sees, the verdict is none, and fail if the frame was not found in the picture or is corrupted.
    fn is_judged_as_it_says(&self) -> bool {
        if self.corrupted && self.verdict == Verdict::Fail {
            return true;
        }
        let is_none = self.verdict == Verdict::None;
        if self.blind.is_some() {
            let is_lost = self
                .alignment
                .is_some_and(|found| !found.matched || !found.is_plausible());
            return is_none && self.judged_pixels > 0 && !is_lost;
        }
        if let Some(parts) = &self.parts {
            let passes = !parts.is_miscounted() && parts.why_none().is_none();
            return self.alignment.is_none_or(|found| found.is_plausible())
                && (self.verdict != Verdict::Pass || (passes && self.judged_pixels > 0));
        }
        match &self.alignment {
            Some(found) => {
                found.is_plausible()
                    && if found.matched {
                        (self.judged_pixels == 0) == is_none
                    } else {
                        self.judged_pixels == 0 && self.verdict == Verdict::Fail
                    }
            }
            None => (self.judged_pixels == 0) == is_none,
        }
    }

    fn can_hold(&self, defect: &Defect) -> bool {
        let end = |at: i32, len: u32| i64::from(at) + i64::from(len);
        let is_class = defect.class == Defect::PATTERN_MISSING
            || usize::from(defect.class) <= self.class_names.len();
        // A smaller part lies on fewer pixels of the frame than are counted.
        let of_part = if defect.part() > 0 { 2 } else { 1 };
        usize::from(defect.part()) <= self.parts.as_ref().map_or(0, |of| of.parts.len())
            && defect.x >= 0
            && end(defect.x, defect.width) <= i64::from(self.width)
            && i128::from(self.first_line) + i128::from(defect.y) >= 0
            && end(defect.y, defect.height) <= i64::from(self.height)
            && defect.area > 0
            && u64::from(defect.area)
                <= of_part * u64::from(defect.width) * u64::from(defect.height)
            && [
                defect.centroid_x,
                defect.centroid_y,
                defect.mean_difference,
                defect.peak_difference,
                defect.orientation,
            ]
            .iter()
            .all(|value| value.is_finite())
            && (-1..=1).contains(&defect.polarity)
            && is_class
            && defect.flags & !FLAGS == 0
            && are_lengths([defect.major_axis, defect.minor_axis].map(f64::from))
            && defect.minor_axis <= defect.major_axis
            && u64::from(defect.boundary_length) <= 4 * u64::from(defect.area)
    }
}

/// Minimum number of a defect's pixels that lie in the strip: its box may reach above the strip.
fn pixels_in_strip(defect: &Defect) -> u64 {
    let rows_above = defect.y.min(0).unsigned_abs().min(defect.height);
    let above = u64::from(rows_above) * u64::from(defect.width);
    u64::from(defect.area).saturating_sub(above)
}

fn are_lengths<const N: usize>(values: [f64; N]) -> bool {
    values
        .iter()
        .all(|value| value.is_finite() && *value >= 0.0)
}

/// Whether no two defects have the same id. Defects of version 1 have none.
fn have_ids_of_their_own(defects: &[Defect]) -> bool {
    let mut ids: Vec<u32> = defects.iter().map(|defect| defect.id).collect();
    ids.sort_unstable();
    ids.windows(2)
        .all(|pair| pair[0] != pair[1] || pair[0] == 0)
}

fn to_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half & 0xf)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let half = |digit: u8| char::from(digit).to_digit(16);
    let bytes = pairs.iter().map(|&[high, low]| {
        let byte = 16 * half(high)? + half(low)?;
        u8::try_from(byte).ok()
    });
    if rest.is_empty() {
        bytes.collect()
    } else {
        None
    }
}
