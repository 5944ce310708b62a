//! The results of a chain of elements for a frame, from the sequential references.

use std::path::Path;

use clinspect_models::ArrayRef;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, HistogramResult};

use crate::{
    frames::{Frame, PLAIN, read},
    oracle::{
        defects::Web, flat_field::Field, gaussian::gaussian_integer, histogram::histogram,
        pitch_threshold::compare, trained,
    },
    panels::{DEFAULT, listed, listed_of, listed_of_strips, without_ids},
    support::pitch_threshold_settings,
};

/// An element of a chain.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// `clgaussian` with this kernel size.
    Gaussian(usize),
    /// The same from images.
    GaussianOfImages(usize),
    /// The same of a web.
    GaussianOfWeb(usize),
    /// `clhistogram`.
    Histogram,
    /// `clpitchthreshold` with this pitch and threshold, sending masks.
    Pitch(f64, f64),
    /// The same, sending frames.
    PitchOfFrames(f64, f64),
    /// The same of a web, sending masks.
    PitchOfWeb(f64, f64),
    /// `clmaskunpack`.
    Unpack,
    /// `clflatfield` with the references of [`write_models`].
    FlatField,
    /// `clreference` with the model of [`write_models`] and this threshold, sending frames.
    Reference(f64),
}

/// White level of a sample, 1/256 grey level: a lamp at the left.
fn white(x: usize) -> u32 {
    256 * (230 - (x % 164) as u32 / 2)
}

/// Mean of every sample of the model, 1/256 grey level.
const MEAN: u32 = 256 * 140;

/// Writes `white.npz` and `model.npz` for frames of this size into a folder.
pub fn write_models(folder: &Path, [width, height]: [usize; 2]) {
    let array = |name, shape, samples| ArrayRef {
        name,
        shape,
        samples,
    };
    let shape = [height, width];
    let pixels = width * height;
    let levels: Vec<u32> = (0..pixels).map(|at| white(at % width)).collect();
    let whites = [array("white", &shape[..], &levels[..])];
    clinspect_models::write(&folder.join("white.npz"), &whites).unwrap();
    let (mean, none) = (vec![MEAN; pixels], vec![0; pixels]);
    let model = [
        array("mean", &shape[..], &mean[..]),
        array("deviation", &shape, &none),
        array("frames", &[], &[1]),
        array("bits", &[], &[8]),
    ];
    clinspect_models::write(&folder.join("model.npz"), &model).unwrap();
}

impl Step {
    /// Whether frames are strips of a web.
    pub fn is_of_web(self) -> bool {
        matches!(self, Self::GaussianOfWeb(_) | Self::PitchOfWeb(..))
    }

    /// The element in a gst-launch line.
    pub fn line(self, device: &str, models: &Path) -> String {
        let models = models.display();
        match self {
            Self::Gaussian(taps) => format!("clgaussian device=\"{device}\" kernel-size={taps}"),
            Self::GaussianOfImages(taps) => {
                format!("clgaussian device=\"{device}\" kernel-size={taps} memory-object=image")
            }
            Self::GaussianOfWeb(taps) => {
                format!("clgaussian device=\"{device}\" kernel-size={taps} line-scan=true")
            }
            Self::Histogram => format!("clhistogram device=\"{device}\""),
            Self::Pitch(pitch, threshold) => {
                format!(
                    "clpitchthreshold device=\"{device}\" PUBLISHED pitch-x={pitch} threshold={threshold}"
                )
            }
            Self::PitchOfFrames(pitch, threshold) => format!(
                "clpitchthreshold device=\"{device}\" PUBLISHED pitch-x={pitch} threshold={threshold} output=frame"
            ),
            Self::PitchOfWeb(pitch, threshold) => format!(
                "clpitchthreshold device=\"{device}\" PUBLISHED pitch-x={pitch} threshold={threshold} line-scan=true"
            ),
            Self::Unpack => "clmaskunpack".into(),
            Self::FlatField => {
                format!("clflatfield device=\"{device}\" location={models}/white.npz")
            }
            Self::Reference(threshold) => format!(
                "clreference device=\"{device}\" location={models}/model.npz threshold={threshold} output=frame"
            ),
        }
    }
}

/// Judged and marked pixels, packed mask (if in the meta) and defects.
type Judgement = (u64, u64, Option<Vec<u8>>, Vec<Defect>);

/// All results of a chain for a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Result {
    /// The bytes sent: a frame or a mask.
    pub bytes: Vec<u8>,
    /// Counts of each `clhistogram`.
    pub counts: Vec<Vec<u32>>,
    /// Results of each `clpitchthreshold`.
    pub defects: Vec<Judgement>,
}

impl Result {
    /// Reads the results from a buffer.
    pub fn read(buffer: &gst::Buffer) -> Self {
        Self {
            bytes: read(buffer),
            counts: HistogramResult::read(buffer)
                .into_iter()
                .map(|result| result.counts)
                .collect(),
            defects: DefectResult::read(buffer)
                .into_iter()
                .map(|r| {
                    let mask = r.mask.as_ref().map(read);
                    let defects = without_ids(&r.defects);
                    (r.judged_pixels, r.defect_pixels, mask, defects)
                })
                .collect(),
        }
    }

    /// Computes the results for a frame without row padding.
    pub fn expected(steps: &[Step], input: &Frame) -> Self {
        let mut frame = input.clone();
        let mut result = Self {
            bytes: Vec::new(),
            counts: Vec::new(),
            defects: Vec::new(),
        };
        let mut mask: Option<(Vec<u8>, Vec<bool>)> = None;
        for &step in steps {
            match step {
                Step::Gaussian(taps) | Step::GaussianOfImages(taps) => {
                    let components: Vec<Vec<u32>> = (0..frame.component_count())
                        .map(|c| gaussian_integer(frame.component(c), taps, 0.0))
                        .collect();
                    let mut filtered = Frame::poisoned(frame.info.format(), frame.size(), PLAIN, 0);
                    filtered.set(&components, &frame);
                    frame = filtered;
                }
                Step::Histogram => {
                    let [width, height] = frame.size();
                    result.counts.push(
                        (0..frame.component_count())
                            .flat_map(|c| {
                                let samples = frame.component(c);
                                assert!(samples.width <= width && samples.height <= height);
                                let all = [0, 0, samples.width, samples.height];
                                let depth = 8 * frame.kind().size() as u32;
                                histogram(samples, all, depth, 256)
                            })
                            .collect(),
                    );
                }
                Step::Pitch(pitch, threshold) | Step::PitchOfFrames(pitch, threshold) => {
                    let settings = pitch_threshold_settings(pitch, 0.0, threshold);
                    let outcome = compare(frame.component(0), &settings);
                    let (found, _) = listed(&frame, &settings, DEFAULT);
                    let travels = matches!(step, Step::PitchOfFrames(..));
                    result.defects.push((
                        outcome.judged_pixels,
                        outcome.defect_pixels,
                        travels.then(|| outcome.packed.clone()),
                        found,
                    ));
                    if !travels {
                        mask = Some((outcome.packed, outcome.mask));
                    }
                }
                Step::GaussianOfWeb(_) | Step::PitchOfWeb(..) => panic!("see of_web"),
                Step::FlatField => {
                    let [width, height] = frame.size();
                    let field = Field {
                        dark: vec![vec![0; width * height]],
                        white: vec![(0..width * height).map(|at| white(at % width)).collect()],
                        line: false,
                        target: 0,
                        min_range: 0,
                        most: 255,
                    };
                    let corrected = field.correct(0, frame.component(0));
                    frame.set(&[corrected], input);
                }
                Step::Reference(threshold) => {
                    let [width, height] = frame.size();
                    let model = trained::Model {
                        mean: vec![MEAN.into(); width * height],
                        deviation: vec![0; width * height],
                    };
                    let outcome = trained::compare(
                        frame.component(0),
                        &model,
                        &trained::Settings {
                            threshold,
                            deviation_factor: 0.0,
                            edge_tolerance: 0,
                            bright: true,
                            dark: true,
                            motion: trained::Motion::default(),
                            opens: false,
                            normalize: trained::Normalize::None,
                            rois: Vec::new(),
                            ignored: Vec::new(),
                            bit_depth: 0,
                        },
                    );
                    assert!(outcome.defect_pixels > 0, "nothing to find");
                    let levels: Vec<_> = (outcome.mask.iter())
                        .map(|&marked| marked.then_some(0))
                        .collect();
                    let web = Web {
                        mask: &outcome.mask,
                        differences: &outcome.differences,
                        levels: &levels,
                        width,
                    };
                    let (found, _) = listed_of(web, DEFAULT);
                    result.defects.push((
                        outcome.judged_pixels,
                        outcome.defect_pixels,
                        Some(outcome.packed),
                        found,
                    ));
                }
                Step::Unpack => {
                    let (_, pixels) = mask.take().expect("a mask before clmaskunpack");
                    let mut grey = Frame::poisoned(Format::Gray8, frame.size(), PLAIN, 0);
                    let levels = pixels.iter().map(|&set| if set { 255 } else { 0 });
                    grey.set(&[levels.collect()], &frame);
                    frame = grey;
                }
            }
        }
        result.bytes = mask.map_or(frame.bytes, |(packed, _)| packed);
        result
    }

    /// Computes the results for the grey strips of one web: the references see the web as one frame.
    pub fn of_web(steps: &[Step], strips: &[&Frame]) -> Vec<Self> {
        let [width, height] = strips[0].size();
        let mut web = Frame::poisoned(Format::Gray8, [width, height * strips.len()], PLAIN, 0);
        let blank = web.clone();
        let samples = strips.iter().flat_map(|strip| strip.component(0).values());
        web.set(&[samples.collect()], &blank);
        let mut results = vec![
            Self {
                bytes: Vec::new(),
                counts: Vec::new(),
                defects: Vec::new(),
            };
            strips.len()
        ];
        for &step in steps {
            match step {
                Step::GaussianOfWeb(taps) => {
                    let filtered = gaussian_integer(web.component(0), taps, 0.0);
                    web.set(&[filtered], &blank);
                }
                Step::Histogram => {
                    for (number, result) in results.iter_mut().enumerate() {
                        let region = [0, number * height, width, height];
                        let counts = histogram(web.component(0), region, 8, 256);
                        result.counts.push(counts);
                    }
                }
                Step::PitchOfWeb(pitch, threshold) => {
                    let settings = pitch_threshold_settings(pitch, 0.0, threshold);
                    let outcome = compare(web.component(0), &settings);
                    // Along x all rows are judged alike.
                    let judged = outcome.judged_pixels / strips.len() as u64;
                    let masks = outcome
                        .packed
                        .chunks_exact(outcome.packed.len() / strips.len());
                    let lists = listed_of_strips(&web, &settings, DEFAULT, height);
                    assert!(
                        lists.iter().flatten().any(|defect| defect.y < 0),
                        "no defect crosses a seam"
                    );
                    for ((result, mask), list) in results.iter_mut().zip(masks).zip(lists) {
                        let marked = mask.iter().map(|byte| u64::from(byte.count_ones())).sum();
                        result.defects.push((judged, marked, None, list));
                        result.bytes = mask.to_vec();
                    }
                }
                _ => panic!("{step:?} is not of a web"),
            }
        }
        results
    }

    /// The first difference, or `None`.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.bytes != other.bytes {
            let differ = |i: &usize| self.bytes.get(*i) != other.bytes.get(*i);
            let len = self.bytes.len().max(other.bytes.len());
            let count = (0..len).filter(differ).count();
            let first = (0..len).find(differ);
            return Some(format!("{count} of {len} bytes, the first at {first:?}"));
        }
        if self.counts != other.counts {
            return Some("the histograms".into());
        }
        (self.defects != other.defects).then(|| {
            let short = |r: &Self| -> Vec<(u64, u64, usize)> {
                r.defects.iter().map(|d| (d.0, d.1, d.3.len())).collect()
            };
            format!(
                "judged, marked, defects: {:?} instead of {:?}, or the masks or records",
                short(self),
                short(other)
            )
        })
    }
}
