//! A frame's results as JSON: what `inspectpublish` sends, and what the line station keeps.

use std::fmt;

use serde::Serialize;

use crate::{Alignment, Defect, DefectResult, HistogramResult, NoneReason, Parts, Verdict};

/// Version of the fields; docs/report.schema.json describes them.
pub const VERSION: u32 = 1;

/// The results of one frame, or of one strip of a web.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Name of the camera; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera: Option<String>,
    /// The frame number that the elements give; absent for a frame without results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// What the machine was told of the frame; absent without a station.
    #[serde(flatten)]
    pub outcome: Option<ReportedOutcome>,
    /// When the frame was captured: ISO 8601, UTC, microseconds.
    pub time: String,
    /// The recipe by which the frame was judged; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<RecipeId>,
    /// The source flagged the frame as corrupted, or rows that its results depend on.
    pub corrupted: bool,
    /// The worst verdict of the inspections: `fail`, then `none`, then `pass`.
    pub verdict: &'static str,
    /// One for each element that judged, in the order of the pipeline.
    pub inspections: Vec<Inspection>,
    /// One for each element that counted, in the order of the pipeline.
    pub histograms: Vec<Histogram>,
}

/// The answer of a station to its machine: one for each number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedOutcome {
    /// Tells this run of the station from all others.
    pub epoch: u32,
    /// The number of the frame, counted over all cameras of the station.
    pub sequence: u64,
    /// `pass`, `fail`, `none`, `late`, `lost` or `fault`.
    pub outcome: &'static str,
    /// From the arrival of the frame, or from its trigger if it did not arrive, to the outcome, ms.
    pub latency_ms: f64,
    /// The number of the part, if the machine names parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
}

/// Epoch and number, as recordings carry them.
impl fmt::Display for ReportedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.sequence)
    }
}

/// A recipe, as it was when it came into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecipeId {
    /// Its name.
    pub name: String,
    /// Tells its text and its files from others: 16 hexadecimal digits.
    pub hash: String,
}

/// As recordings carry it.
impl fmt::Display for RecipeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.hash)
    }
}

/// What one element found, without its mask.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Inspection {
    /// Name of the element.
    pub element: String,
    /// `pass`, `fail` or `none`.
    pub verdict: &'static str,
    /// Number of the web; 0 for frames.
    pub web: u64,
    /// Row 0 of the strip in the web; 0 for frames.
    pub first_line: u64,
    /// Width of the frame, px.
    pub width: u32,
    /// Height of the frame, px.
    pub height: u32,
    /// Where the frame was found in the picture that it was compared with, if it was compared with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<ReportedAlignment>,
    /// The parts of the frame, if they are compared by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<ReportedParts>,
    /// The training that the frame belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<Progress>,
    /// The learning of limits that is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<Progress>,
    /// Why the verdict is `none`: `training`, `blind-limit`, `unplaced`, `missing`, `other`, `cut` or `nothing-judged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The limit that sees best, if none sees a defect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind_limit: Option<ReportedBlindLimit>,
    /// Pixels that could be judged.
    pub judged_pixels: u64,
    /// Pixels marked.
    pub defect_pixels: u64,
    /// Pixels marked for want of the pattern.
    pub missing_pixels: u64,
    /// Number of listed defects.
    pub defect_count: usize,
    /// Whether there are more defects than listed.
    pub overflow: bool,
    /// Number of listed defects by class, for classes that occur, in the order of the classes.
    pub counts: serde_json::Map<String, serde_json::Value>,
    /// The defects, largest area first.
    pub defects: Vec<ReportedDefect>,
    /// Defects of the web that repeat along it, as far as a station found them up to this strip; absent if none do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<ReportedRepeat>,
}

/// Defects at the same place across that repeat along a web.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedRepeat {
    /// Counts the repeats of a web, from 1.
    pub id: u32,
    /// Distance of two turns, lines.
    pub period_lines: f64,
    /// The same in metres, if the size of a pixel is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_m: Option<f64>,
    /// Turns with a defect.
    pub count: u64,
    /// Middle of the leftmost defect, px.
    pub left: f64,
    /// Middle of the rightmost defect, px.
    pub right: f64,
    /// Middle of the first defect, lines of the web.
    pub first_line: f64,
    /// Middle of the last defect, lines of the web.
    pub last_line: f64,
}

/// How a frame lies, compared with the picture of the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReportedAlignment {
    /// Displacement along x of the point at the frame's centre, px.
    pub shift_x: f64,
    /// Displacement along y, px.
    pub shift_y: f64,
    /// By how much the frame is turned clockwise, degrees.
    pub rotation_degrees: f64,
    /// How much larger the frame shows the object.
    pub scale: f64,
    /// From a pixel of the model to its place in the frame, as in the meta.
    pub transform: [f64; 6],
    /// What the alignment used: `affine`, `shift`, `start` or `none`.
    pub step: &'static str,
    /// The correlation with the model, 0 to 1.
    pub match_score: f64,
    /// Whether it was high enough for a comparison.
    pub matched: bool,
    /// Root mean square difference from the model after the alignment, grey levels of 8 bits.
    pub misfit: f64,
    /// The longest local shift, px.
    pub largest_local_shift: f64,
}

/// The parts of a frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedParts {
    /// Fewest parts that a frame may have.
    pub least: u32,
    /// Most parts that a frame may have.
    pub most: u32,
    /// From top to bottom, then from left to right.
    pub found: Vec<ReportedPart>,
}

/// A part of a frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedPart {
    /// Counted from 1.
    pub number: u32,
    /// Where its centre lies along x, px from the left edge.
    pub x: f64,
    /// The same along y from the upper edge, px.
    pub y: f64,
    /// The same along x in mm, if the size of a pixel is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_mm: Option<f64>,
    /// The same along y in mm, if the size of a pixel is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_mm: Option<f64>,
    /// How far it is turned clockwise, degrees.
    pub angle: f64,
    /// How much larger it is than the trained one.
    pub scale: f64,
    /// How surely it is there, 0 to 1.
    pub score: f64,
    /// The share of it that lies in the frame, 0 to 1.
    pub inside: f64,
    /// Whether the frame's edge cuts it; then it was not compared.
    pub cut: bool,
    /// Its pixels that were judged.
    pub judged_pixels: u64,
    /// Those of them that are marked.
    pub defect_pixels: u64,
    /// `pass`, `fail` or `none`.
    pub verdict: &'static str,
}

/// A limit that no defect of half the range of what is inspected exceeds, grey levels of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedBlindLimit {
    /// Its name.
    pub name: String,
    /// Least difference that it marks.
    pub marks: f64,
    /// The difference of a defect of half the range.
    pub reach: f64,
}

/// How far a training or learning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Frames so far.
    pub frames: u32,
    /// All frames that are needed.
    pub all: u32,
}

/// One defect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedDefect {
    /// Number of the defect since the element's start.
    pub id: u32,
    /// Name of the class.
    pub class: String,
    /// Left edge of the box, px.
    pub x: i32,
    /// Top edge of the box, px; negative if it began in an earlier strip.
    pub y: i32,
    /// Width of the box, px.
    pub width: u32,
    /// Height of the box, px.
    pub height: u32,
    /// Marked pixels.
    pub area: u32,
    /// Mean difference, grey levels.
    pub mean_difference: f32,
    /// Difference of largest magnitude, grey levels.
    pub peak_difference: f32,
    /// Number of the part that has it, where parts are compared by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u8>,
    /// The channel that marks the defect most, if the element has channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Distance of the box from the left edge, mm, if the size of a pixel is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_mm: Option<f64>,
    /// Distance of the box from the first row of the web or frame, m, if the size of a pixel is
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_m: Option<f64>,
    /// The SEMU, if the size of a pixel and the mean level are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semu: Option<f64>,
}

/// What one `clhistogram` counted, without the bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Name of the element.
    pub element: String,
    /// Format of the frame, such as `GRAY8`.
    pub format: String,
    /// The alarms that are raised, such as `over-exposed`.
    pub alarms: Vec<String>,
    /// The statistics of each channel.
    pub channels: Vec<Channel>,
}

/// Statistics of a channel, grey levels of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Channel {
    /// Lowest level that occurs.
    pub minimum: f64,
    /// Highest level that occurs.
    pub maximum: f64,
    /// Mean level.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Median.
    pub median: f64,
    /// Share of samples in the lowest bin, 0 to 1.
    pub saturated_low: f64,
    /// Share of samples in the highest bin, 0 to 1.
    pub saturated_high: f64,
}

impl Report {
    /// The report of a frame that got no results.
    pub fn without_results(camera: &str, outcome: ReportedOutcome, time: String) -> Self {
        Self {
            camera: Some(camera.to_owned()),
            outcome: Some(outcome),
            ..Self::empty(Verdict::None.name(), time)
        }
    }

    /// A report of a frame without a number, an inspection and a histogram.
    pub fn empty(verdict: &'static str, time: String) -> Self {
        Self {
            version: VERSION,
            camera: None,
            frame: None,
            outcome: None,
            time,
            recipe: None,
            corrupted: false,
            verdict,
            inspections: Vec::new(),
            histograms: Vec::new(),
        }
    }

    /// The report as one line of JSON, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        // Numbers, texts and lists cannot fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// The alignment of the last inspection that has one.
    pub fn alignment(&self) -> Option<&ReportedAlignment> {
        let mut inspections = self.inspections.iter().rev();
        inspections.find_map(|inspection| inspection.alignment.as_ref())
    }

    /// The parts of the last inspection that compares parts.
    pub fn parts(&self) -> Option<&ReportedParts> {
        let mut inspections = self.inspections.iter().rev();
        inspections.find_map(|inspection| inspection.parts.as_ref())
    }

    /// The training of the last inspection that trains.
    pub fn training(&self) -> Option<Progress> {
        let mut inspections = self.inspections.iter().rev();
        inspections.find_map(|inspection| inspection.training)
    }

    /// The pending learning of the last inspection that learns.
    pub fn learning(&self) -> Option<Progress> {
        let mut inspections = self.inspections.iter().rev();
        inspections.find_map(|inspection| inspection.learning)
    }

    /// Why the verdict is `none`: the reason of the last inspection with this verdict.
    pub fn none_reason(&self) -> Option<&'static str> {
        let reasons = self.inspections.iter().rev();
        let is_none = self.verdict == Verdict::None.name();
        reasons
            .filter(|_| is_none)
            .find_map(|inspection| inspection.reason)
    }

    /// The blind limit of the last inspection that has one.
    pub fn blind_limit(&self) -> Option<&ReportedBlindLimit> {
        let mut inspections = self.inspections.iter().rev();
        inspections.find_map(|inspection| inspection.blind_limit.as_ref())
    }

    /// The memory that the report takes, about, bytes: its lists and the texts that each defect has.
    pub fn memory(&self) -> usize {
        let of_inspection = |inspection: &Inspection| {
            let defects = inspection.defects.iter();
            let classes: usize = defects.map(|defect| defect.class.capacity()).sum();
            size_of::<Inspection>()
                + inspection.defects.capacity() * size_of::<ReportedDefect>()
                + inspection.repeats.capacity() * size_of::<ReportedRepeat>()
                + (inspection.parts.iter())
                    .map(|parts| parts.found.capacity() * size_of::<ReportedPart>())
                    .sum::<usize>()
                + classes
        };
        let of_histogram = |histogram: &Histogram| {
            size_of::<Histogram>() + histogram.channels.capacity() * size_of::<Channel>()
        };
        size_of::<Self>()
            + self.inspections.iter().map(of_inspection).sum::<usize>()
            + self.histograms.iter().map(of_histogram).sum::<usize>()
    }

    /// The results on a buffer; `None` if it has none. `time` is the capture time in ISO 8601.
    pub fn of(buffer: &gst::BufferRef, camera: Option<&str>, time: String) -> Option<Self> {
        Self::with_inspections(buffer, &DefectResult::read(buffer), camera, time)
    }

    /// As [`Self::of`], for a caller that has read the inspections on the buffer.
    pub fn with_inspections(
        buffer: &gst::BufferRef,
        inspections: &[DefectResult],
        camera: Option<&str>,
        time: String,
    ) -> Option<Self> {
        let histograms = HistogramResult::read(buffer);
        let of_inspection = inspections.first().map(|result| result.frame_number);
        let of_histogram = histograms.first().map(|result| result.frame_number);
        Some(Self {
            version: VERSION,
            camera: camera.map(Into::into),
            frame: Some(of_inspection.or(of_histogram)?),
            outcome: None,
            time,
            recipe: None,
            corrupted: buffer.flags().contains(gst::BufferFlags::CORRUPTED)
                || inspections.iter().any(|result| result.corrupted)
                || histograms.iter().any(|result| result.corrupted),
            verdict: worst(inspections.iter().map(|result| result.verdict)).name(),
            inspections: inspections.iter().map(Inspection::from).collect(),
            histograms: histograms.iter().map(Histogram::from).collect(),
        })
    }
}

/// The verdict of several: a `pass` needs a `pass` of each, and one at least.
fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Pass => 0,
        Verdict::None => 1,
        Verdict::Fail => 2,
    };
    verdicts.max_by_key(rank).unwrap_or(Verdict::None)
}

impl From<&DefectResult> for Inspection {
    fn from(result: &DefectResult) -> Self {
        let counts = result.class_counts().into_iter();
        Self {
            element: result.element.clone(),
            verdict: result.verdict.name(),
            web: result.web,
            first_line: result.first_line,
            width: result.width,
            height: result.height,
            alignment: result.alignment.as_ref().map(Into::into),
            parts: (result.parts.as_ref()).map(|parts| ReportedParts::new(result, parts)),
            training: result.training.map(Into::into),
            learning: result.learning.map(Into::into),
            reason: result.none_reason().map(NoneReason::name),
            blind_limit: result.blind.as_ref().map(|blind| ReportedBlindLimit {
                name: blind.name.clone(),
                marks: blind.marks,
                reach: blind.reach,
            }),
            judged_pixels: result.judged_pixels,
            defect_pixels: result.defect_pixels,
            missing_pixels: result.missing_pixels,
            defect_count: result.defects.len(),
            overflow: result.overflow,
            counts: counts
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
            defects: result
                .defects
                .iter()
                .map(|defect| ReportedDefect::new(result, defect))
                .collect(),
            repeats: Vec::new(),
        }
    }
}

impl From<&Alignment> for ReportedAlignment {
    fn from(found: &Alignment) -> Self {
        Self {
            shift_x: found.shift_x,
            shift_y: found.shift_y,
            rotation_degrees: found.rotation_degrees(),
            scale: found.scale(),
            transform: found.transform,
            step: found.step.name(),
            match_score: found.match_score,
            matched: found.matched,
            misfit: found.misfit,
            largest_local_shift: found.largest_local_shift,
        }
    }
}

impl ReportedParts {
    fn new(result: &DefectResult, parts: &Parts) -> Self {
        let found = parts.parts.iter().zip(1..).map(|(part, number)| {
            let mm = part.mm([result.mm_per_pixel_x, result.mm_per_pixel_y]);
            ReportedPart {
                number,
                x: part.x,
                y: part.y,
                x_mm: mm.map(|[x, _]| x),
                y_mm: mm.map(|[_, y]| y),
                angle: part.angle,
                scale: part.scale,
                score: part.score,
                inside: part.inside,
                cut: part.is_cut,
                judged_pixels: part.judged_pixels,
                defect_pixels: part.defect_pixels,
                verdict: part.verdict.name(),
            }
        });
        Self {
            least: parts.least,
            most: parts.most,
            found: found.collect(),
        }
    }
}

impl From<[u32; 2]> for Progress {
    fn from([frames, all]: [u32; 2]) -> Self {
        Self { frames, all }
    }
}

impl ReportedDefect {
    fn new(result: &DefectResult, defect: &Defect) -> Self {
        Self {
            id: defect.id,
            class: result.class_name(defect.class).to_owned(),
            x: defect.x,
            y: defect.y,
            width: defect.width,
            height: defect.height,
            area: defect.area,
            mean_difference: defect.mean_difference,
            peak_difference: defect.peak_difference,
            x_mm: result.x_mm(defect),
            y_m: result.y_m(defect),
            part: Some(defect.part()).filter(|&part| part > 0),
            channel: result.channel(defect).map(Into::into),
            semu: result.semu(defect),
        }
    }
}

impl From<&HistogramResult> for Histogram {
    fn from(result: &HistogramResult) -> Self {
        let channels = result.statistics.iter().map(|of| Channel {
            minimum: of.minimum,
            maximum: of.maximum,
            mean: of.mean,
            stddev: of.stddev,
            median: of.median,
            saturated_low: of.saturated_low,
            saturated_high: of.saturated_high,
        });
        Self {
            element: result.element.clone(),
            format: result.format.clone(),
            alarms: result.alarms.clone(),
            channels: channels.collect(),
        }
    }
}
