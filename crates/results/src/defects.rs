//! The defects of a frame: `GstClDefectMeta`, and the messages of the elements that find defects.

use gst::glib;

use super::{
    Alignment, Defect, Parts, Unplaced,
    defect::{from_records, to_records},
    metas::{HAS_PLACE, attach, attach_place, is_in_place, structures},
    verdict::Verdict,
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
    /// The parts of the frame, if they are compared by themselves.
    pub parts: Option<Parts>,
    /// Of a frame that trains the element and is not judged: frames of the training so far, and all of them.
    pub training: Option<[u32; 2]>,
    /// While the element learns limits: good frames so far, this one included if it is one, and all of them.
    pub learning: Option<[u32; 2]>,
    /// Why the frame cannot pass, although pixels were judged and none of its own limits was exceeded.
    pub blind: Option<BlindLimit>,
    /// Why it is not known where the regions lie that follow a part, if it is not. No pixel is judged then.
    pub unplaced: Option<Unplaced>,
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
        if let Some(parts) = &self.parts {
            parts.write(fields, [self.mm_per_pixel_x, self.mm_per_pixel_y]);
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
        if let Some(unplaced) = self.unplaced {
            fields.set("unplaced", unplaced.name());
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
            .field_if_some(
                "part",
                (defect.part() > 0).then(|| u32::from(defect.part())),
            )
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
            parts: Parts::read(fields)?,
            training: (all > 0).then_some([trained, all]),
            learning: (wanted > 0).then_some([good, wanted]),
            blind,
            unplaced: match later::<Option<&str>>(fields, "unplaced")? {
                Some(name) => Some(Unplaced::from_name(name)?),
                None => None,
            },
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
