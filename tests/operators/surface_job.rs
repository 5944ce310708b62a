//! A comparison of a surface with settings and frames as tests choose them, and with the reference.

use std::sync::{Arc, LazyLock};

use clinspect_core::{
    ClError,
    components::Finder,
    ignored::{Ignored, Polygon},
    region::user_region,
    surface::{CHANNELS, ChannelsInUse, DIMENSIONS, Features, Model, Samples},
};
use clinspect_opencl::{ClContext, Meter, frame::layout_of};
use clinspect_operators::{Inspection, MaskTarget, Subject, Surface, SurfaceSettings};
use gst_video::VideoFormat as Format;

use crate::{
    channels::{Channels, Packed, assert_mask, check_list},
    content::{Content, random},
    defects::{ALL, NEAR},
    frames::{Arrangement, Frame, OUTPUT_POISON, PADDED, PLAIN, assert_same, read},
    oracle::{SampleKind, ignore, put, surface as oracle},
};

pub const EVERY_CHANNEL: ChannelsInUse = ChannelsInUse {
    novelty: true,
    dark_lines: true,
    bright_lines: true,
};

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Job {
    pub channels: ChannelsInUse,
    /// Limits of novelty and of lines.
    pub limits: [f64; 2],
    pub rois: Vec<[u32; 4]>,
    pub ignored: Vec<Vec<f64>>,
    pub bit_depth: u32,
    pub image: bool,
}

pub const JOB: Job = Job {
    channels: EVERY_CHANNEL,
    // Each channel marks something in noise.
    limits: [1.5, 0.8],
    rois: Vec::new(),
    ignored: Vec::new(),
    bit_depth: 0,
    image: false,
};

/// The model of a leather.
pub static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| {
    let frames = [1, 2].map(|seed| leather(Format::Gray8, [200, 150], PLAIN, 0, seed));
    let features = frames.each_ref().map(|frame| features(frame, &JOB));
    Arc::new(learn(features.iter()))
});

/// The model of frames with these features.
pub fn learn<'a>(frames: impl Iterator<Item = &'a Vec<Features>> + Clone) -> Model {
    let mut samples = Samples::new(frames.clone().map(Vec::len).sum());
    frames.for_each(|cells| samples.add(cells));
    Model::learn(&samples).expect("a model")
}

/// The features of the judged cells by the definition.
pub fn features(input: &Frame, job: &Job) -> Vec<Features> {
    let settings = oracle::Settings {
        limits: [None; CHANNELS],
        ..job.oracle(input, oracle::Model::default())
    };
    let outcome = oracle::compare(input.component(0), &settings);
    let narrow = |cell: &[i64; 27]| cell.map(|feature| i16::try_from(feature).expect("16 bits"));
    outcome.features.iter().map(narrow).collect()
}

fn defined(model: &Model) -> oracle::Model {
    let wide = |values: &[i32]| values.iter().copied().map(i64::from).collect::<Vec<_>>();
    let wide_rows = |rows: &[[i32; DIMENSIONS]]| rows.iter().map(|row| wide(row)).collect();
    oracle::Model {
        mean: wide(model.mean()),
        weights: wide_rows(model.weights()),
        prototypes: wide_rows(model.prototypes()),
    }
}

impl Job {
    fn limit(&self, channel: usize) -> f64 {
        self.limits[usize::from(channel > 0)]
    }

    pub fn settings(&self, input: &Frame) -> SurfaceSettings {
        let [width, height] = input.size();
        let polygons = self.ignored.iter();
        let polygons = polygons.map(|p| Polygon::new(p).expect("a polygon"));
        let ignored = Ignored::new(width, Some(height), None, polygons.collect());
        SurfaceSettings {
            model: Some(MODEL.clone()),
            limits: self.channels.numbers().map(|k| self.limit(k)).collect(),
            channels: self.channels,
            rois: (self.rois.iter())
                .map(|&roi| user_region(roi, width, height).expect("a region inside"))
                .collect(),
            ignored: (!self.ignored.is_empty()).then(|| Arc::new(ignored.expect("no picture"))),
            bit_depth: self.bit_depth,
            line_scan: false,
            image: self.image,
        }
    }

    fn oracle(&self, input: &Frame, model: oracle::Model) -> oracle::Settings {
        let [width, height] = input.size();
        let mut limits = [None; CHANNELS];
        for channel in self.channels.numbers() {
            limits[channel] = Some((256.0 * self.limit(channel)).round() as i64);
        }
        oracle::Settings {
            model,
            limits,
            depth: match self.bit_depth {
                0 => 8 * input.kind().size() as u32,
                bits => bits,
            },
            rois: (self.rois.iter())
                .map(|roi| roi.map(|v| v as usize))
                .collect(),
            ignored: ignore::ignored(&self.ignored, width, 0, height),
        }
    }
}

/// What the definition makes of a frame.
pub fn outcome(input: &Frame, job: &Job) -> oracle::Outcome {
    oracle::compare(input.component(0), &job.oracle(input, defined(&MODEL)))
}

/// Compares features, masks, counts, lists and peaks with the reference; returns the pixels that each channel marks most.
#[track_caller]
pub fn check(device: &Arc<ClContext>, input: &Frame, job: &Job) -> [usize; CHANNELS] {
    let about = || format!("{} {job:?}", input.describe());
    let layout = layout_of(&input.info).expect("a layout");
    let size @ [width, height] = input.size();
    let wanted = outcome(input, job);
    let mut operator = match Surface::new(device, &layout, &job.settings(input)) {
        Ok(operator) => operator,
        Err(ClError::Refused(why)) => {
            let nothing = !wanted.judged.contains(&true);
            assert!(
                nothing && why.contains("can be judged"),
                "{}: {why}",
                about()
            );
            return [0; CHANNELS];
        }
        Err(error) => panic!("{}: {error}", about()),
    };
    let count = wanted.mask.iter().filter(|&&set| set).count() as u64;
    let judged = wanted.judged.iter().filter(|&&set| set).count() as u64;
    let frame = input.import(device);
    let meter = Meter::new(false);
    let subject = Subject::whole(&frame, height, &meter);
    for limits in [&ALL, &NEAR] {
        let packed = Packed::new(device, size);
        let marked = operator.mark(subject, packed.target()).expect("a mask");
        assert_mask(&packed.read(width), &wanted.mask, width, &about);
        assert_eq!((marked.pixels, marked.missing), (count, 0), "{}", about());
        assert_eq!(operator.basis().judged.any, judged, "{}", about());
        let listed = operator.list(subject, packed.target(), &mut Finder::default(), limits);
        let channels = Channels {
            bits: 5,
            limit: &|channel| (256.0 * job.limit(channel)).round() / 256.0,
        };
        let defects = &listed.expect("a list").defects;
        check_list(defects, &wanted.strongest, &channels, width, &about);
        let peaks = operator.peaks(&meter).expect("peaks").expect("a model");
        for (k, [peak, typical]) in peaks.into_iter().enumerate() {
            assert_eq!(
                peak,
                wanted.peaks[k] as f64 / 256.0,
                "channel {k} of {}",
                about()
            );
            let expected = wanted.typical[k] / 256.0;
            let is_near = (typical - expected).abs() <= 1e-9 * expected;
            assert!(is_near, "channel {k} of {}: {typical} {expected}", about());
        }
    }
    let found = operator.features().expect("features");
    assert_eq!(found.len(), wanted.features.len(), "{}", about());
    for (n, (found, wanted)) in found.iter().zip(&wanted.features).enumerate() {
        assert_eq!(
            found.map(i64::from),
            *wanted,
            "judged cell {n} of {}",
            about()
        );
    }
    let mut grey = Frame::poisoned(Format::Gray8, size, PADDED, OUTPUT_POISON);
    let (output, buffer) = grey.output(device);
    operator
        .mark(subject, MaskTarget::Grey(&output))
        .expect("a mask");
    let pixels = wanted.mask.iter().map(|&set| if set { 255 } else { 0 });
    grey.set(&[pixels.collect()], input);
    assert_same(&read(&buffer), &grey, || {
        format!("grey mask of {}", about())
    });
    let mut counts = [0; CHANNELS];
    for strongest in wanted.strongest.iter().filter(|&&strongest| strongest != 0) {
        counts[(strongest.abs() & 31) as usize] += 1;
    }
    counts
}

/// Grain of two sizes, cracks and scratches; `seed` 0 to 2 are good but for these.
pub fn leather(
    format: Format,
    [width, height]: [usize; 2],
    arrangement: Arrangement,
    bit_depth: u32,
    seed: u64,
) -> Frame {
    let content = Content::Constant(0);
    let mut frame = Frame::showing(format, [width, height], arrangement, content, bit_depth);
    let geometry = frame.geometry(0);
    let bits = match bit_depth {
        0 if geometry.depth == SampleKind::U8 => 8,
        0 => 16,
        bits => bits,
    };
    let scale = f64::from((1_u32 << bits) - 1) / 255.0;
    let grain = |x: usize, y: usize, side: usize, most: u32| {
        f64::from(random(seed, x / side, y / side, side) % most)
    };
    for y in 0..height {
        for x in 0..width {
            let coarse = 3 + random(5, x / 60, y / 50, 0) as usize % 3;
            let mut value = 90.0 + grain(x, y, coarse, 50) + grain(x, y, 1, 30);
            // Along each direction a dark line in one part of the frame, and a bright one in another.
            let (block, u, v) = ((x / 44 + 3 * (y / 44)) % 16, x % 44, y % 44);
            let on_line = match block % 8 {
                0 => v == 20,
                1 => v == 12 + u / 3,
                2 => u == v,
                3 => u == 12 + v / 3,
                4 => u == 20,
                5 => u + v / 3 == 27,
                6 => u + v == 42,
                _ => v + u / 3 == 27,
            };
            if on_line {
                value += if block < 8 { -70.0 } else { 70.0 };
            }
            let level = (scale * value.clamp(0.0, 255.0)) as u32;
            put(&mut frame.bytes, &geometry, x, y, level);
        }
    }
    frame
}

/// Compares a small frame with the reference.
pub fn check_small(
    device: &Arc<ClContext>,
    format: Format,
    size: [usize; 2],
    arrangement: Arrangement,
) {
    check(device, &leather(format, size, arrangement, 0, 3), &JOB);
}
