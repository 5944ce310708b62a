//! The defects of a frame and the verdict: `GstClDefectMeta`, and the messages of the elements that find defects.

use gst::glib;

use super::{
    Alignment, Defect,
    defect::{from_records, to_records},
    metas::{HAS_PLACE, attach, attach_place, is_in_place, structures},
};

/// Name of the meta.
pub const DEFECT_META: &str = "GstClDefectMeta";
/// Version of its fields.
pub(super) const VERSION: u32 = 2;

/// Maximum number of defects in a message, the largest first.
const MESSAGE_DEFECTS: usize = 16;
/// Red, green and blue.
const COMPONENTS: usize = 3;
/// Between the names of classes in the field `classes`.
const BETWEEN_CLASSES: &str = ";";

/// The limit that sees best where no limit sees: each marks only what differs by more than a defect of half the range of
/// the pattern, texture or model.
#[derive(Debug, Clone, PartialEq)]
pub struct BlindLimit {
    /// Its name, such as `threshold`, `deviation-factor`, `residual-33` or `threshold.red`.
    pub name: String,
    /// Least difference that it marks, grey levels of a sample.
    pub marks: f64,
    /// The difference of a defect of half the range, grey levels of a sample.
    pub reach: f64,
}

/// A frame's defects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DefectResult {
    /// Name of the inspecting element.
    pub element: String,
    /// The buffer's offset if it has one, otherwise a counter.
    pub frame_number: u64,
    /// Number of the web that the strip belongs to, counted from 0; 0 for frames.
    pub web: u64,
    /// Number of the strip's row 0, counted from the web's first row; 0 for frames.
    pub first_line: u64,
    /// Width of the frame, px.
    pub width: u32,
    /// Height of the frame, px.
    pub height: u32,
    /// Width of a pixel, mm; 0 if unknown.
    pub mm_per_pixel_x: f64,
    /// Height of a pixel, mm; 0 if unknown.
    pub mm_per_pixel_y: f64,
    /// Mean of the samples where the pattern is seen, grey levels; 0 if unknown.
    pub mean_level: f64,
    /// Pitch along x, px; 0 for no comparison along x. With a lattice the length of its first vector.
    pub pitch_x: f64,
    /// Pitch along y, px; 0 for no comparison along y. With a lattice the length of its second vector.
    pub pitch_y: f64,
    /// The one or two vectors along which the frame was compared, x and y in px; empty for a comparison along x and y.
    pub lattice: Vec<[f64; 2]>,
    /// Threshold, grey levels.
    pub threshold: f64,
    /// Of a comparison with a picture: where the frame was found in it.
    pub alignment: Option<Alignment>,
    /// Of a frame that trains the element and is not judged: frames of the training so far, and all of them.
    pub training: Option<[u32; 2]>,
    /// While the element learns limits: good frames so far, this one included if it is one, and all of them.
    pub learning: Option<[u32; 2]>,
    /// Why the frame cannot pass, although pixels were judged and none of its own limits was exceeded.
    pub blind: Option<BlindLimit>,
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
    /// The source flagged the frame as corrupted, or rows of the web that its result depends on.
    pub corrupted: bool,
    /// The buffer that the result was read from shows another part of the picture, or the picture mirrored, turned or in another
    /// shape:
    /// positions and masks are places in the inspected frame only.
    pub is_moved: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// The listed defects, largest area first. In a web, those that closed with this strip.
    pub defects: Vec<Defect>,
    /// Whether there were more defects than are listed.
    pub overflow: bool,
    /// Names of the classes 1, 2, …; none contains a semicolon.
    pub class_names: Vec<String>,
    /// Names of the element's channels: a defect's [`Defect::level`] is the channel that marks it most. Where the components
    /// of a colour are judged apart, the channels of red, of green and of blue. Empty for elements without channels.
    pub channels: Vec<String>,
    /// Marked pixels of the largest defect that may continue in the next strip; 0 for frames.
    pub open_area: u64,
    /// The packed mask, if the meta is on the frame itself.
    pub mask: Option<gst::Buffer>,
    /// The pixels that the property `ignore` excludes, packed like the mask.
    pub ignored: Option<gst::Buffer>,
}

impl DefectResult {
    /// Writes the fields that meta, event and message share.
    pub fn write_scalars(&self, fields: &mut gst::StructureRef) {
        fields.set("element", &self.element);
        fields.set("frame-number", self.frame_number);
        fields.set("web", self.web);
        fields.set("first-line", self.first_line);
        fields.set("width", self.width);
        fields.set("height", self.height);
        fields.set("mm-per-pixel-x", self.mm_per_pixel_x);
        fields.set("mm-per-pixel-y", self.mm_per_pixel_y);
        fields.set("mean-level", self.mean_level);
        fields.set("pitch-x", self.pitch_x);
        fields.set("pitch-y", self.pitch_y);
        if !self.lattice.is_empty() {
            fields.set("lattice", gst::Array::new(self.lattice.as_flattened()));
        }
        fields.set("threshold", self.threshold);
        if let Some(alignment) = &self.alignment {
            alignment.write(fields);
        }
        if let Some([trained, all]) = self.training {
            fields.set("trained-frames", trained);
            fields.set("train-frames", all);
        }
        if let Some([good, all]) = self.learning {
            fields.set("learned-frames", good);
            fields.set("learn-frames", all);
        }
        if let Some(blind) = &self.blind {
            fields.set("blind-limit", &blind.name);
            fields.set("blind-limit-marks", blind.marks);
            fields.set("blind-limit-reach", blind.reach);
        }
        fields.set("judged-pixels", self.judged_pixels);
        fields.set("judged-x", self.judged_x);
        fields.set("judged-y", self.judged_y);
        fields.set("defect-pixels", self.defect_pixels);
        fields.set("missing-pixels", self.missing_pixels);
        fields.set("defect-count", self.defects.len() as u32);
        fields.set("overflow", self.overflow);
        fields.set("open-area", self.open_area);
        if !self.class_names.is_empty() {
            fields.set("classes", self.class_names.join(BETWEEN_CLASSES));
        }
        if !self.channels.is_empty() {
            fields.set("channels", self.channels.join(BETWEEN_CLASSES));
        }
        fields.set("corrupted", self.corrupted);
        fields.set("verdict", self.verdict.name());
    }

    /// Writes the fields of a message, without `summary`: those that it shares with the meta, and
    /// `class-counts`.
    pub fn write_message(&self, fields: &mut gst::StructureRef) {
        self.write_scalars(fields);
        let mut counts = gst::Structure::new_empty("class-counts");
        for (name, count) in self.class_counts() {
            counts.set(name, count);
        }
        fields.set("class-counts", counts);
    }

    /// The largest defects as structures, for messages.
    pub fn defect_structures(&self) -> gst::Array {
        let first = self.defects.iter().take(MESSAGE_DEFECTS);
        gst::Array::new(first.map(|defect| self.defect_structure(defect)))
    }

    /// A defect as a structure, for messages and regions of interest.
    pub fn defect_structure(&self, defect: &Defect) -> gst::Structure {
        gst::Structure::builder("defect")
            .field("id", defect.id)
            .field("x", defect.x)
            .field("y", defect.y)
            .field("width", defect.width)
            .field("height", defect.height)
            .field_if_some("x-mm", self.x_mm(defect))
            .field_if_some("y-m", self.y_m(defect))
            .field("area", defect.area)
            .field("centroid-x", f64::from(defect.centroid_x))
            .field("centroid-y", f64::from(defect.centroid_y))
            .field("mean-difference", f64::from(defect.mean_difference))
            .field("peak-difference", f64::from(defect.peak_difference))
            .field("polarity", defect.polarity)
            .field("class", u32::from(defect.class))
            .field("class-name", self.class_name(defect.class))
            .field("flags", u32::from(defect.flags))
            .field("level", u32::from(defect.level()))
            .field_if_some("channel", self.channel(defect))
            .field_if_some("semu", self.semu(defect))
            .field("major-axis", f64::from(defect.major_axis))
            .field("minor-axis", f64::from(defect.minor_axis))
            .field("orientation", f64::from(defect.orientation))
            .field("boundary-length", defect.boundary_length)
            .build()
    }

    /// The channel that marks a defect most; `None` for elements without channels, and where the pattern is missing.
    pub fn channel(&self, defect: &Defect) -> Option<&str> {
        if defect.class == Defect::PATTERN_MISSING {
            return None;
        }
        let level = usize::from(defect.level());
        let channel = match defect.component() {
            None => level,
            // An element without channels of its own has one per component.
            Some(component) => {
                let of_component = (self.channels.len() / COMPONENTS).max(1);
                usize::from(component) * of_component + level.min(of_component - 1)
            }
        };
        self.channels.get(channel).map(String::as_str)
    }

    /// The part of a defect's box that lies in the frame: x, y, width, height, px.
    pub fn box_in_frame(&self, defect: &Defect) -> Option<[u32; 4]> {
        let cut = |at: i32, len: u32, size: u32| {
            let end = (i64::from(at) + i64::from(len)).min(size.into());
            let at = i64::from(at).max(0);
            (at < end).then_some([at as u32, (end - at) as u32])
        };
        let [x, width] = cut(defect.x, defect.width, self.width)?;
        let [y, height] = cut(defect.y, defect.height, self.height)?;
        Some([x, y, width, height])
    }

    /// Attaches the result to a buffer, and a `GstVideoRegionOfInterestMeta` per defect, with the
    /// part of its box that lies in the frame. With the feature `analytics` the same as GstAnalytics too.
    ///
    /// # Errors
    /// The meta is not registered (see [`super::register`]).
    pub fn attach(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        attach(buffer, DEFECT_META, |fields| {
            self.write_scalars(fields);
            fields.set("version", VERSION);
            fields.set(HAS_PLACE, true);
            let records = to_records(&self.defects);
            fields.set("defects-data", glib::Bytes::from_owned(records));
            for (name, mask) in [("mask", &self.mask), ("ignored", &self.ignored)] {
                if let Some(mask) = mask {
                    fields.set(name, mask);
                }
            }
        })?;
        attach_place(buffer)?;
        for defect in &self.defects {
            let Some([x, y, width, height]) = self.box_in_frame(defect) else {
                continue;
            };
            let rect = (x, y, width, height);
            let mut roi = gst_video::VideoRegionOfInterestMeta::add(buffer, "defect", rect);
            roi.set_id(defect.id as i32);
            roi.add_param(self.defect_structure(defect));
        }
        #[cfg(feature = "analytics")]
        super::analytics::attach(self, buffer)?;
        Ok(())
    }

    /// Every result on a buffer, in the order of attachment. A meta is ignored if fields are
    /// missing or if the number of defects does not match the records.
    pub fn read(buffer: &gst::BufferRef) -> Vec<Self> {
        let is_in_place = is_in_place(buffer);
        structures(buffer, DEFECT_META)
            .filter_map(|fields| {
                let data = fields.get::<glib::Bytes>("defects-data").ok()?;
                let result = Self::from_fields(&fields, &data)?;
                // Senders of earlier versions attach no such meta.
                let had_place = later::<bool>(&fields, HAS_PLACE)?;
                Some(Self {
                    is_moved: had_place && !is_in_place,
                    ..result
                })
            })
            .collect()
    }

    /// The result with the records `data`, of version 1 or later; `None` if a field is missing or
    /// has another type, or if the number of defects does not match the records.
    pub(super) fn from_fields(fields: &gst::StructureRef, data: &[u8]) -> Option<Self> {
        let defects = from_records(data, fields.get("version").ok()?)?;
        if defects.len() != fields.get::<u32>("defect-count").ok()? as usize {
            return None;
        }
        let classes: Option<&str> = later(fields, "classes")?;
        let [trained, all]: [u32; 2] = [
            later(fields, "trained-frames")?,
            later(fields, "train-frames")?,
        ];
        let [good, wanted]: [u32; 2] = [
            later(fields, "learned-frames")?,
            later(fields, "learn-frames")?,
        ];
        let blind: Option<&str> = later(fields, "blind-limit")?;
        let blind = match blind {
            Some(name) => Some(BlindLimit {
                name: name.into(),
                marks: fields.get("blind-limit-marks").ok()?,
                reach: fields.get("blind-limit-reach").ok()?,
            }),
            None => None,
        };
        let class_names = classes.map(|names| names.split(BETWEEN_CLASSES).map(Into::into));
        let channels: Option<&str> = later(fields, "channels")?;
        let channels = channels.map(|names| names.split(BETWEEN_CLASSES).map(Into::into));
        Some(Self {
            element: fields.get("element").ok()?,
            frame_number: fields.get("frame-number").ok()?,
            web: later(fields, "web")?,
            first_line: later(fields, "first-line")?,
            width: fields.get("width").ok()?,
            height: fields.get("height").ok()?,
            mm_per_pixel_x: later(fields, "mm-per-pixel-x")?,
            mm_per_pixel_y: later(fields, "mm-per-pixel-y")?,
            mean_level: later(fields, "mean-level")?,
            pitch_x: fields.get("pitch-x").ok()?,
            pitch_y: fields.get("pitch-y").ok()?,
            lattice: vectors(fields)?,
            threshold: fields.get("threshold").ok()?,
            alignment: Alignment::read(fields)?,
            training: (all > 0).then_some([trained, all]),
            learning: (wanted > 0).then_some([good, wanted]),
            blind,
            judged_pixels: fields.get("judged-pixels").ok()?,
            judged_x: later(fields, "judged-x")?,
            judged_y: later(fields, "judged-y")?,
            defect_pixels: fields.get("defect-pixels").ok()?,
            missing_pixels: later(fields, "missing-pixels")?,
            corrupted: later(fields, "corrupted")?,
            is_moved: false,
            verdict: Verdict::from_name(fields.get("verdict").ok()?)?,
            defects,
            overflow: fields.get("overflow").ok()?,
            class_names: class_names.map_or(Vec::new(), Iterator::collect),
            channels: channels.map_or(Vec::new(), Iterator::collect),
            open_area: later(fields, "open-area")?,
            mask: fields.get("mask").ok(),
            ignored: fields.get("ignored").ok(),
        })
    }
}

/// The vectors of a field `lattice`, if it is there; `None` for other values than one or two vectors.
fn vectors(fields: &gst::StructureRef) -> Option<Vec<[f64; 2]>> {
    if !fields.has_field("lattice") {
        return Some(Vec::new());
    }
    let array: gst::Array = fields.get("lattice").ok()?;
    let numbers: Option<Vec<f64>> = array.iter().map(|value| value.get().ok()).collect();
    let numbers = numbers?;
    let (vectors, rest) = numbers.as_chunks::<2>();
    (rest.is_empty() && (1..=2).contains(&vectors.len())).then(|| vectors.to_vec())
}

/// A field that senders of earlier versions lack: the type's default then. `None` if the field has
/// another type.
pub(super) fn later<'a, T>(fields: &'a gst::StructureRef, name: &str) -> Option<T>
where
    T: Default + glib::value::FromValue<'a>,
{
    if fields.has_field(name) {
        fields.get(name).ok()
    } else {
        Some(T::default())
    }
}

/// The verdict on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// No limit was exceeded.
    Pass,
    /// A limit was exceeded, or the frame was not found in the picture to compare it with.
    Fail,
    /// No limit was exceeded, but no pixel could be judged, or no limit can see a defect.
    #[default]
    None,
}

/// Why the verdict is `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoneReason {
    /// The frame trains the element.
    Training,
    /// No limit can see a defect.
    BlindLimit,
    /// No pixel could be judged, because the pattern, a model or limits are missing.
    NothingJudged,
}

impl NoneReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Training, Self::BlindLimit, Self::NothingJudged];

    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::BlindLimit => "blind-limit",
            Self::NothingJudged => "nothing-judged",
        }
    }
}

impl DefectResult {
    /// Why the verdict is `none`, if it is.
    pub fn none_reason(&self) -> Option<NoneReason> {
        (self.verdict == Verdict::None).then_some(if self.training.is_some() {
            NoneReason::Training
        } else if self.blind.is_some() {
            NoneReason::BlindLimit
        } else {
            NoneReason::NothingJudged
        })
    }
}

/// Limits of a frame; a frame fails above them. A negative limit is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictLimits {
    /// Maximum number of marked pixels.
    pub defect_pixels: i64,
    /// Maximum number of listed defects that count.
    pub defect_count: i64,
    /// Maximum area of a listed defect that counts, and of a defect that is still open, px.
    pub defect_area: i64,
    /// A frame that its source flagged as corrupted fails.
    pub corrupted: bool,
    /// Classes whose defects count, besides [`Defect::PATTERN_MISSING`]; empty: all classes.
    pub classes: Vec<u16>,
}

impl VerdictLimits {
    /// Whether any marked pixel fails a frame, if every defect is listed.
    pub fn fails_for_any_pixel(&self) -> bool {
        self.defect_pixels == 0 || (self.defect_count == 0 && self.classes.is_empty())
    }

    fn counts(&self, defect: &&Defect) -> bool {
        self.classes.is_empty()
            || defect.class == Defect::PATTERN_MISSING
            || self.classes.contains(&defect.class)
    }
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Pass, Self::Fail, Self::None];

    /// The verdict on a result, from its numbers of pixels and its defects; its own verdict is
    /// ignored.
    ///
    /// If there were more defects than are listed (`overflow`), a limit that the list cannot decide
    /// counts as exceeded: a frame must not pass because its list was truncated. A strip of a web may list a defect
    /// that ended in the strips before, although none of its own pixels is judged; it fails all the same.
    pub fn new(result: &DefectResult, limits: &VerdictLimits) -> Self {
        let exceeds = |n: u64, limit: i64| u64::try_from(limit).is_ok_and(|limit| n > limit);
        let is_large = |defect: &Defect| exceeds(defect.area.into(), limits.defect_area);
        let counted = || result.defects.iter().filter(|defect| limits.counts(defect));
        // Defects that are not listed are at most as large as the last one that is.
        let may_hide_large = match result.defects.last() {
            Some(last) => is_large(last),
            None => limits.defect_area >= 0,
        };
        let is_lost = result.alignment.is_some_and(|alignment| !alignment.matched);
        if is_lost
            || (limits.corrupted && result.corrupted)
            || exceeds(result.defect_pixels, limits.defect_pixels)
            || exceeds(counted().count() as u64, limits.defect_count)
            || counted().any(is_large)
            || exceeds(result.open_area, limits.defect_area)
            || (result.overflow && (limits.defect_count >= 0 || may_hide_large))
        {
            Self::Fail
        } else if result.judged_pixels == 0 || result.blind.is_some() {
            Self::None
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alignment, BlindLimit};

    const PASSES: Verdict = Verdict::Pass;
    const FAILS: Verdict = Verdict::Fail;

    /// Limits on pixels, count and area, for these classes.
    fn limits(limits: [i64; 3], classes: &[u16]) -> VerdictLimits {
        let [defect_pixels, defect_count, defect_area] = limits;
        VerdictLimits {
            defect_pixels,
            defect_count,
            defect_area,
            corrupted: false,
            classes: classes.to_vec(),
        }
    }

    /// A result with defects of these areas and classes.
    fn found(defects: &[(u32, u16)]) -> DefectResult {
        let defects = defects.iter().map(|&(area, class)| Defect {
            area,
            class,
            ..Defect::default()
        });
        DefectResult {
            judged_pixels: 20,
            defect_pixels: 15,
            defects: defects.collect(),
            ..DefectResult::default()
        }
    }

    #[track_caller]
    fn assert_each(result: &DefectResult, classes: &[u16], cases: &[([i64; 3], Verdict)]) {
        for &(of, expected) in cases {
            let limits = limits(of, classes);
            assert_eq!(Verdict::new(result, &limits), expected, "{limits:?}");
        }
    }

    #[test]
    fn strip_without_judged_pixels_fails_for_a_defect_of_the_strips_before() {
        let strip = DefectResult {
            judged_pixels: 0,
            defect_pixels: 0,
            ..found(&[(5, 0)])
        };
        assert_each(&strip, &[], &[([0, 0, -1], FAILS), ([-1, -1, 4], FAILS)]);
        assert_each(&strip, &[], &[([0, 1, 5], Verdict::None)]);
        let open = DefectResult {
            open_area: 7,
            ..DefectResult::default()
        };
        assert_each(
            &open,
            &[],
            &[([-1, -1, 6], FAILS), ([-1, -1, 7], Verdict::None)],
        );
    }

    #[test]
    fn verdict_each_limit_fails_above_it_only() {
        let two = found(&[(5, 0), (3, 0)]);
        let pixels = [(-1, PASSES), (0, FAILS), (14, FAILS), (15, PASSES)];
        assert_each(&two, &[], &pixels.map(|(n, wanted)| ([n, -1, -1], wanted)));
        let count = [(0, FAILS), (1, FAILS), (2, PASSES)];
        assert_each(&two, &[], &count.map(|(n, wanted)| ([-1, n, -1], wanted)));
        let area = [(0, FAILS), (4, FAILS), (5, PASSES)];
        assert_each(&two, &[], &area.map(|(n, wanted)| ([-1, -1, n], wanted)));
        let nothing = DefectResult::default();
        assert_each(&nothing, &[], &[([0, 0, 0], Verdict::None)]);
    }

    #[test]
    fn verdict_of_a_cut_list_fails_where_a_limit_needs_the_rest() {
        let cut = |defects: &[(u32, u16)]| DefectResult {
            overflow: true,
            ..found(defects)
        };
        let two = cut(&[(5, 1), (3, 2)]);
        assert_each(&two, &[], &[([-1, 5, -1], FAILS), ([-1, -1, 5], PASSES)]);
        let off = ([-1, -1, -1], PASSES);
        assert_each(&cut(&[]), &[], &[([-1, -1, 5], FAILS), off]);
        // A defect of class 3 that is not listed has at most 3 pixels.
        assert_each(&two, &[3], &[([-1, -1, 2], FAILS), ([-1, -1, 3], PASSES)]);
    }

    #[test]
    fn frame_of_a_blind_limit_never_passes_and_a_found_defect_still_fails_it() {
        let blind = |of: DefectResult| DefectResult {
            blind: Some(BlindLimit {
                name: "threshold".into(),
                marks: 129.0,
                reach: 93.0,
            }),
            ..of
        };
        let off = [-1, -1, -1];
        assert_each(&blind(found(&[])), &[], &[(off, Verdict::None)]);
        let one = blind(found(&[(5, 0)]));
        let cases = [([-1, 0, -1], FAILS), ([-1, 1, -1], Verdict::None)];
        assert_each(&one, &[], &cases);
        assert_eq!(one.none_reason(), Some(NoneReason::BlindLimit));
        let trains = DefectResult {
            training: Some([1, 2]),
            ..one
        };
        assert_eq!(trains.none_reason(), Some(NoneReason::Training));
        let nothing = DefectResult::default();
        assert_eq!(nothing.none_reason(), Some(NoneReason::NothingJudged));
        let passed = DefectResult {
            verdict: PASSES,
            ..nothing
        };
        assert_eq!(passed.none_reason(), None);
    }

    #[test]
    fn any_pixel_fails_a_frame_unless_limits_or_classes_allow_it() {
        for (of, classes, expected) in [
            ([-1, 0, -1], &[][..], true),
            ([-1, 0, -1], &[1], false),
            ([0, -1, -1], &[1], true),
            ([-1, 1, -1], &[], false),
            ([3, -1, 0], &[], false),
        ] {
            assert_eq!(limits(of, classes).fails_for_any_pixel(), expected);
        }
    }

    #[test]
    fn corrupted_frame_fails_unless_it_may_pass() {
        let clean = found(&[]);
        for (is_flagged, fails, expected) in [
            (false, true, PASSES),
            (true, true, FAILS),
            (true, false, PASSES),
        ] {
            let result = DefectResult {
                corrupted: is_flagged,
                ..clean.clone()
            };
            let limits = VerdictLimits {
                corrupted: fails,
                ..limits([-1, 0, -1], &[])
            };
            assert_eq!(Verdict::new(&result, &limits), expected);
        }
    }

    #[test]
    fn verdict_of_a_frame_without_a_match_is_fail() {
        let found = |matched| DefectResult {
            alignment: Some(Alignment {
                matched,
                ..Alignment::default()
            }),
            ..DefectResult::default()
        };
        let off = [-1, -1, -1];
        assert_each(&found(false), &[], &[(off, FAILS)]);
        assert_each(&found(true), &[], &[(off, Verdict::None)]);
    }

    #[test]
    fn verdict_counts_only_the_named_classes() {
        let some = found(&[(9, 2), (5, 1), (1, Defect::OTHER)]);
        for (classes, count, area) in [
            (&[][..], 3, 9),
            (&[1], 1, 5),
            (&[1, 2], 2, 9),
            (&[Defect::OTHER], 1, 1),
        ] {
            let count = [([-1, count - 1, -1], FAILS), ([-1, count, -1], PASSES)];
            assert_each(&some, classes, &count);
            let area = [([-1, -1, area - 1], FAILS), ([-1, -1, area], PASSES)];
            assert_each(&some, classes, &area);
        }
        // Marked pixels count whatever the classes of the defects are.
        assert_each(&some, &[7], &[([-1, 0, 0], PASSES), ([14, 0, 0], FAILS)]);
    }

    #[test]
    fn verdict_always_counts_a_missing_pattern() {
        let missing = found(&[(9, Defect::PATTERN_MISSING)]);
        assert_each(
            &missing,
            &[1],
            &[([-1, 0, -1], FAILS), ([-1, -1, 8], FAILS)],
        );
    }

    #[test]
    fn verdict_fails_while_a_large_defect_is_open() {
        let open = DefectResult {
            open_area: 100,
            ..found(&[])
        };
        let cases = [(-1, PASSES), (99, FAILS), (100, PASSES)];
        assert_each(&open, &[1], &cases.map(|(n, wanted)| ([-1, 0, n], wanted)));
    }
}
