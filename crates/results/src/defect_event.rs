//! The event `GstClDefectMeta`: a frame's defects, sent before the frame for transports that drop
//! metas.

use super::{DEFECT_META, Defect, DefectResult, META_VERSION, Verdict, defects::RECORD};

/// Maximum number of defects that an element lists and that are accepted from an event: each
/// becomes a meta.
pub const MOST_DEFECTS: u32 = 100_000;

impl DefectResult {
    /// A custom downstream event with the meta's name and fields.
    ///
    /// Transports such as `rtpgstpay` send an event as the text of its structure. A double has 17
    /// digits there, so it is restored exactly. A GBytes has no text form, and GStreamer 1.22
    /// cannot parse an empty GstBuffer, so `defects-data` is a string with two hexadecimal digits
    /// per byte. The mask of the meta is not sent.
    pub fn to_event(&self) -> gst::Event {
        let mut fields = gst::Structure::new_empty(DEFECT_META);
        self.write_scalars(&mut fields);
        fields.set("version", META_VERSION);
        fields.set("defects-data", to_hex(&self.records()));
        gst::event::CustomDownstream::new(fields)
    }

    /// Whether an event claims to be one of [`Self::to_event`].
    pub fn is_event(event: &gst::EventRef) -> bool {
        event.type_() == gst::EventType::CustomDownstream && event.has_name(DEFECT_META)
    }

    /// The result in an event; `None` for other events and for invalid results.
    ///
    /// Events may come from a network, so they are checked more strictly than metas: the numbers
    /// must not contradict each other, boxes must lie inside the frame, and there are at most
    /// [`MOST_DEFECTS`] defects.
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
        // The event does not carry the mask.
        result.mask = None;
        result.is_plausible().then_some(result)
    }

    fn is_plausible(&self) -> bool {
        let pixels = u64::from(self.width) * u64::from(self.height);
        self.judged_pixels <= pixels
            && self.defect_pixels <= self.judged_pixels
            && self.missing_pixels <= self.defect_pixels
            && self.judged_x.max(self.judged_y) <= self.judged_pixels
            && (self.judged_pixels == 0) == (self.verdict == Verdict::None)
            && [self.pitch_x, self.pitch_y, self.threshold]
                .iter()
                .all(|value| value.is_finite() && *value >= 0.0)
            && self.defects.iter().all(|defect| self.can_hold(defect))
            && self.defects.iter().map(|d| u64::from(d.area)).sum::<u64>() <= self.defect_pixels
    }

    fn can_hold(&self, defect: &Defect) -> bool {
        let inside = |at: u32, len: u32, size: u32| {
            len > 0 && at.checked_add(len).is_some_and(|end| end <= size)
        };
        inside(defect.x, defect.width, self.width)
            && inside(defect.y, defect.height, self.height)
            && defect.area > 0
            && u64::from(defect.area) <= u64::from(defect.width) * u64::from(defect.height)
            && [
                defect.centroid_x,
                defect.centroid_y,
                defect.mean_difference,
                defect.peak_difference,
            ]
            .iter()
            .all(|value| value.is_finite())
            && (-1..=1).contains(&defect.polarity)
    }
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
