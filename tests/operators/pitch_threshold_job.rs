//! Runs a pitch comparison and compares the result with the reference.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    ignored::{Ignored, Polygon},
    lattice::Lattice,
    region::user_region,
    scales::SCALE_FACTORS,
    variant::PitchThresholdVariant,
};
use clinspect_opencl::frame::{ClFrame, layout_of};
use clinspect_opencl::{ClContext, Meter, buffer_of};
use clinspect_operators::{
    Borders, Compare, Contrast, Inspection, Marked, MaskTarget, PitchThreshold,
    PitchThresholdSettings, Polarity, Subject,
};
use gst_video::VideoFormat as Format;

use crate::{
    device,
    frames::{
        Arrangement, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, PLAIN, assert_same, our_memory,
        read,
    },
    oracle::{SampleKind, ignore, pitch_threshold as oracle},
};

/// A variant to force, and whether it reads an image.
pub type Choice = (Option<PitchThresholdVariant>, bool);

/// Every variant, and the one chosen for the device.
pub const CHOICES: [Choice; 5] = [
    (None, false),
    (Some(PitchThresholdVariant::Bytes), false),
    (Some(PitchThresholdVariant::Words), false),
    (Some(PitchThresholdVariant::Wide), false),
    (None, true),
];

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Job {
    pub pitch: [f64; 2],
    /// Of a lattice, instead of the pitches.
    pub vectors: Vec<[f64; 2]>,
    pub multiples: Vec<u32>,
    pub threshold: f64,
    pub compare: Compare,
    pub match_center: bool,
    pub polarity: Polarity,
    pub borders: Borders,
    pub edge_margin: u32,
    pub scales: usize,
    pub scale_factors: Vec<f64>,
    /// Minimum contrast, grey levels of 8 bits; 0 = off.
    pub min_contrast: f64,
    pub rois: Vec<[u32; 4]>,
    /// Polygons of ignored pixels.
    pub ignored: Vec<Vec<f64>>,
    pub bit_depth: u32,
}

/// The classic comparison along x.
pub fn classic(pitch_x: f64, threshold: f64) -> Job {
    Job {
        pitch: [pitch_x, 0.0],
        vectors: Vec::new(),
        multiples: vec![1],
        threshold,
        compare: Compare::Average,
        match_center: false,
        polarity: Polarity::Both,
        borders: Borders::Skip,
        edge_margin: 0,
        scales: 0,
        scale_factors: SCALE_FACTORS.to_vec(),
        min_contrast: 0.0,
        rois: Vec::new(),
        ignored: Vec::new(),
        bit_depth: 0,
    }
}

/// The whole frame, for an operator.
pub fn whole<'a>(input: &Frame, frame: &'a ClFrame, meter: &'a Arc<Meter>) -> Subject<'a> {
    Subject::whole(frame, input.size()[1], meter)
}

impl Job {
    pub fn settings(&self, input: &Frame, (variant, image): Choice) -> PitchThresholdSettings {
        let [width, height] = input.size();
        PitchThresholdSettings {
            line_scan: false,
            may_be_blind: false,
            // A program for each of hundreds of jobs would take the compiler minutes.
            is_steady: variant == Some(PitchThresholdVariant::Fixed),
            pitch_x: self.pitch[0],
            pitch_y: self.pitch[1],
            lattice: (!self.vectors.is_empty())
                .then(|| Lattice::new(&self.vectors).expect("a lattice")),
            multiples: self.multiples.clone(),
            threshold: self.threshold,
            compare: self.compare,
            match_center: self.match_center,
            polarity: self.polarity,
            borders: self.borders,
            edge_margin: self.edge_margin,
            scales: self.scales,
            scale_factors: self.scale_factors.clone(),
            contrast: if self.min_contrast > 0.0 {
                Contrast::Known(self.min_contrast)
            } else {
                Contrast::Off
            },
            rois: self
                .rois
                .iter()
                .map(|&roi| user_region(roi, width, height).expect("a region inside"))
                .collect(),
            ignored: self.ignored(width, height),
            bit_depth: self.bit_depth,
            image,
            variant,
        }
    }

    fn ignored(&self, width: usize, height: usize) -> Option<Arc<Ignored>> {
        let polygons = self
            .ignored
            .iter()
            .map(|p| Polygon::new(p).expect("a polygon"));
        let ignored = Ignored::new(width, Some(height), None, polygons.collect());
        (!self.ignored.is_empty()).then(|| Arc::new(ignored.expect("no picture")))
    }

    /// The settings for the reference.
    pub fn oracle(&self, [width, height]: [usize; 2]) -> oracle::Settings {
        oracle::Settings {
            vectors: self.vectors.clone(),
            pitch_x: self.pitch[0],
            pitch_y: self.pitch[1],
            multiples: self.multiples.clone(),
            threshold: self.threshold,
            compare: match self.compare {
                Compare::Average => oracle::Compare::Average,
                Compare::Minimum => oracle::Compare::Minimum,
            },
            match_center: self.match_center,
            polarity: match self.polarity {
                Polarity::Both => oracle::Polarity::Both,
                Polarity::Bright => oracle::Polarity::Bright,
                Polarity::Dark => oracle::Polarity::Dark,
            },
            inward: self.borders == Borders::Inward,
            edge_margin: self.edge_margin as usize,
            scales: self.scales as u32,
            scale_factors: self.scale_factors.clone(),
            min_contrast: self.min_contrast,
            bit_depth: self.bit_depth,
            rois: self
                .rois
                .iter()
                .map(|roi| roi.map(|v| v as usize))
                .collect(),
            ignored: ignore::ignored(&self.ignored, width, 0, height),
        }
    }

    /// True if no pixel can be judged along one of the directions in use; such settings are refused.
    pub fn is_blind(&self, input: &Frame) -> bool {
        let alone = |v: &[f64; 2]| Self {
            vectors: vec![*v],
            ..self.clone()
        };
        if !self.vectors.is_empty() {
            let mut alone = self.vectors.iter().map(alone);
            return alone.any(|alone| alone.expected(input).judged_pixels == 0);
        }
        let [x, y] = self.pitch;
        [[x, 0.0], [0.0, y]]
            .into_iter()
            .filter(|pitch| *pitch != [0.0, 0.0])
            .any(|pitch| {
                let alone = Self {
                    pitch,
                    ..self.clone()
                };
                alone.expected(input).judged_pixels == 0
            })
    }

    /// The finest level that marks each pixel.
    pub fn levels(&self, input: &Frame) -> Vec<Option<u32>> {
        oracle::finest_level(input.component(0), &self.oracle(input.size()))
    }

    pub fn expected(&self, input: &Frame) -> oracle::Outcome {
        oracle::compare(input.component(0), &self.oracle(input.size()))
    }
}

/// A packed mask's bytes and the number of marked pixels; the memory around the mask is checked.
fn packed(
    device: &Arc<ClContext>,
    operator: &mut PitchThreshold,
    input: &Frame,
) -> (Vec<u8>, Marked) {
    const BEFORE: usize = 5;
    const AFTER: usize = 9;
    let meter = Meter::new(false);
    let [width, height] = input.size();
    let len = width.div_ceil(8) * height;
    let memory = our_memory(
        device,
        &meter,
        &vec![OUTPUT_POISON; BEFORE + len + AFTER],
        3,
    );
    let mask = buffer_of(&memory).expect("memory of ours");
    let target = MaskTarget::Packed {
        buffer: mask,
        offset: memory.offset() + BEFORE,
    };
    let count = operator
        .mark(whole(input, &input.import(device), &meter), target)
        .expect("the comparison runs");
    let bytes = memory.map_readable().expect("a reading map").to_vec();
    let (before, rest) = bytes.split_at(BEFORE);
    let (mask, after) = rest.split_at(len);
    let untouched = before
        .iter()
        .chain(after)
        .all(|&byte| byte == OUTPUT_POISON);
    assert!(
        untouched,
        "bytes around the mask of {} are written",
        input.describe()
    );
    (mask.to_vec(), count)
}

/// Compares the GRAY8 mask with the reference, including padding.
#[track_caller]
fn check_grey(
    device: &Arc<ClContext>,
    operator: &mut PitchThreshold,
    input: &Frame,
    expected: &oracle::Outcome,
    arrangement: Arrangement,
) {
    let size = input.size();
    let mut wanted = Frame::poisoned(Format::Gray8, size, arrangement, OUTPUT_POISON);
    let (output, buffer) = wanted.output(device);
    let count = operator
        .mark(
            whole(input, &input.import(device), &Meter::new(false)),
            MaskTarget::Grey(&output),
        )
        .expect("the comparison runs");
    assert_eq!(count, marked(expected));
    let pixels: Vec<u32> = expected
        .mask
        .iter()
        .map(|&set| if set { 255 } else { 0 })
        .collect();
    wanted.set(&[pixels], input);
    assert_same(&read(&buffer), &wanted, || {
        format!("grey mask of {}", input.describe())
    });
}

/// Compares every choice with the reference: packed twice, then GRAY8.
#[track_caller]
pub fn check(device: &Arc<ClContext>, input: &Frame, job: &Job, choices: &[Choice]) {
    let expected = job.expected(input);
    let is_blind = job.is_blind(input);
    let layout = layout_of(&input.info).expect("a layout");
    for &choice in choices {
        let settings = job.settings(input, choice);
        let about = || format!("{} {job:?} {choice:?}", input.describe());
        let result = PitchThreshold::new(device, &layout, &settings);
        let words = input.kind() != SampleKind::U8;
        let fixed = choice.0 == Some(PitchThresholdVariant::Fixed);
        if is_blind || words && (choice.1 || fixed) {
            let refused = matches!(&result, Err(ClError::Refused(_)));
            assert!(refused, "{} is not refused: {result:?}", about());
            continue;
        }
        if choice.1 && !device::has_images(device) {
            assert!(matches!(&result, Err(ClError::Refused(_))), "{}", about());
            device::skip("pitch comparison of images", "the device has no images");
            continue;
        }
        let mut operator = result.unwrap_or_else(|error| panic!("{}: {error}", about()));
        if let Some(PitchThresholdVariant::Wide | PitchThresholdVariant::Fixed) = choice.0
            && input.import(device).planes()[0].aligned_len().is_none()
        {
            // Wrapped host memory may be unaligned: the result is an error, never a misaligned load.
            let (mask, _) = Frame::poisoned(Format::Gray8, input.size(), PLAIN, 0).output(device);
            let target = MaskTarget::Grey(&mask);
            let frame = input.import(device);
            let result = operator.mark(whole(input, &frame, &Meter::new(false)), target);
            assert!(matches!(result, Err(ClError::Input(_))), "{}", about());
            continue;
        }
        let judged = operator.basis().judged;
        assert_eq!(judged.any, expected.judged_pixels, "{}", about());
        assert_eq!([judged.x, judged.y], expected.judged_along, "{}", about());
        for run in 0..2 {
            let (mask, count) = packed(device, &mut operator, input);
            assert_mask(&mask, &expected, input.size()[0], || {
                format!("{}, run {run}", about())
            });
            assert_eq!(count, marked(&expected), "{}, run {run}", about());
        }
        let arrangement = OUTPUT_ARRANGEMENTS[input.size()[0] % OUTPUT_ARRANGEMENTS.len()];
        check_grey(device, &mut operator, input, &expected, arrangement);
    }
}

/// The counts of the reference.
fn marked(expected: &oracle::Outcome) -> Marked {
    Marked {
        pixels: expected.defect_pixels,
        missing: expected.missing_pixels,
    }
}

#[track_caller]
fn assert_mask(
    actual: &[u8],
    expected: &oracle::Outcome,
    width: usize,
    about: impl FnOnce() -> String,
) {
    if let Some(at) = (0..expected.packed.len()).find(|&i| actual[i] != expected.packed[i]) {
        let stride = width.div_ceil(8);
        panic!(
            "{}: row {}, byte {}: {:08b} instead of {:08b}",
            about(),
            at / stride,
            at % stride,
            actual[at],
            expected.packed[at]
        );
    }
}
