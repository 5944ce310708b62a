//! `Texture` compared with its sequential reference: masks, counts, lists and peaks, of frames and of strips of a web.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::Finder,
    ignored::{Ignored, Polygon},
    lattice::Lattice,
    region::user_region,
    texture::CHANNELS,
    variant::TextureVariant,
    window::Window,
};
use clinspect_opencl::{ClContext, Meter, frame::layout_of};
use clinspect_operators::{
    Contrast, Inspection, MaskTarget, NoiseFrom, Subject, Texture, TextureSettings,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    channels::{Channels, Packed, assert_mask, check_list},
    content::{Content, random},
    defects::{ALL, NEAR},
    device,
    frames::{ARRANGEMENTS, Arrangement, Frame, OUTPUT_POISON, PADDED, PLAIN, assert_same, read},
    oracle::{SampleKind, ignore, put, texture as oracle},
};

pub const FORMATS: [Format; 5] = [
    Format::Gray8,
    Format::Gray16Le,
    Format::Gray16Be,
    Format::I420,
    Format::Nv12,
];

/// A comparison as a user sets it.
#[derive(Clone, Debug)]
pub struct Job {
    pub pitches: [f64; 2],
    /// One vector or two instead of the pitches.
    pub vectors: Vec<[f64; 2]>,
    pub thresholds: [f64; CHANNELS],
    pub noise_from: NoiseFrom,
    pub rois: Vec<[u32; 4]>,
    pub ignored: Vec<Vec<f64>>,
    pub bit_depth: u32,
}

pub const VARIANTS: [TextureVariant; 2] = [TextureVariant::Rows, TextureVariant::Items];

/// Thresholds at which each channel marks something in noise.
pub const LOW: [f64; CHANNELS] = [2.5, 1.2, 1.1, 1.05, 1.5, 1.0];

pub const JOB: Job = Job {
    pitches: [7.3, 5.0],
    vectors: Vec::new(),
    thresholds: LOW,
    noise_from: NoiseFrom::Around,
    rois: Vec::new(),
    ignored: Vec::new(),
    bit_depth: 0,
};

impl Job {
    pub fn settings(&self, input: &Frame, variant: Option<TextureVariant>) -> TextureSettings {
        let [width, height] = input.size();
        let polygons = self.ignored.iter();
        let polygons = polygons.map(|p| Polygon::new(p).expect("a polygon"));
        let ignored = Ignored::new(width, Some(height), None, polygons.collect());
        TextureSettings {
            pitches: self.pitches,
            lattice: (!self.vectors.is_empty())
                .then(|| Lattice::new(&self.vectors).expect("a lattice")),
            may_turn: false,
            thresholds: self.thresholds.to_vec(),
            noise_from: self.noise_from,
            contrast: Contrast::Off,
            rois: (self.rois.iter())
                .map(|&roi| user_region(roi, width, height).expect("a region inside"))
                .collect(),
            ignored: (!self.ignored.is_empty()).then(|| Arc::new(ignored.expect("no picture"))),
            bit_depth: self.bit_depth,
            line_scan: false,
            image: false,
            variant,
        }
    }

    /// Both vectors, px.
    fn repeats(&self) -> [[f64; 2]; 2] {
        match self.vectors[..] {
            [a, b] => [a, b],
            [[x, y]] => [[x, y], [-y, x]],
            _ => [[self.pitches[0], 0.0], [0.0, self.pitches[1]]],
        }
    }

    pub fn oracle(&self, input: &Frame) -> oracle::Settings {
        let [width, height] = input.size();
        oracle::Settings {
            vectors: (self.repeats()).map(|v| v.map(|c| (16.0 * c).round() as i64)),
            thresholds: self.thresholds.map(|t| (256.0 * t).round() as i64),
            depth: match self.bit_depth {
                0 => 8 * input.kind().size() as u32,
                bits => bits,
            },
            above: self.noise_from == NoiseFrom::Above,
            rois: self
                .rois
                .iter()
                .map(|roi| roi.map(|v| v as usize))
                .collect(),
            ignored: ignore::ignored(&self.ignored, width, 0, height),
        }
    }
}

/// Compares masks, counts, lists and peaks with the reference.
#[track_caller]
pub fn check(device: &Arc<ClContext>, input: &Frame, job: &Job) {
    for variant in VARIANTS {
        check_variant(device, input, job, Some(variant));
    }
}

#[track_caller]
fn check_variant(
    device: &Arc<ClContext>,
    input: &Frame,
    job: &Job,
    variant: Option<TextureVariant>,
) {
    let about = || format!("{} {job:?} {variant:?}", input.describe());
    let layout = layout_of(&input.info).expect("a layout");
    let size = input.size();
    // Longer than two of each vector.
    let fits = job.repeats().iter().all(|v| {
        let margin = |axis: usize| ((16.0 * v[axis]).round().abs() / 16.0).ceil() as usize;
        (0..2).all(|axis| 2 * margin(axis) < size[axis])
    });
    let mut operator = match Texture::new(device, &layout, &job.settings(input, variant)) {
        Ok(operator) => operator,
        Err(ClError::Refused(why)) if why.starts_with("Items needs") => {
            device::skip("textures in blocks", &why);
            return;
        }
        Err(ClError::Refused(why)) => {
            let nothing = fits
                && !oracle::compare(input.component(0), &job.oracle(input))
                    .judged
                    .contains(&true);
            assert!(!fits || nothing, "{}: {why}", about());
            return;
        }
        Err(error) => panic!("{}: {error}", about()),
    };
    check_marks(device, input, job, &mut operator);
}

/// Compares what an operator that was made, or changed, for a job gives of a frame.
#[track_caller]
pub fn check_marks(device: &Arc<ClContext>, input: &Frame, job: &Job, operator: &mut Texture) {
    let variant = operator.variant();
    let about = || format!("{} {job:?} {variant:?}", input.describe());
    let size @ [width, height] = input.size();
    let wanted = oracle::compare(input.component(0), &job.oracle(input));
    let count = wanted.mask.iter().filter(|&&set| set).count() as u64;
    let judged = wanted.judged.iter().filter(|&&set| set).count() as u64;
    let frame = input.import(device);
    let meter = Meter::new(false);
    let subject = Subject::whole(&frame, height, &meter);
    for limits in [&ALL, &NEAR] {
        let packed = Packed::new(device, size);
        let marked = operator
            .mark(subject, packed.target())
            .expect("the comparison runs");
        assert_mask(&packed.read(width), &wanted.mask, width, &about);
        assert_eq!((marked.pixels, marked.missing), (count, 0), "{}", about());
        assert_eq!(operator.basis().judged.any, judged, "{}", about());
        let listed = operator.list(subject, packed.target(), &mut Finder::default(), limits);
        let channels = Channels {
            bits: 3,
            limit: &|channel| job.thresholds[channel],
        };
        let defects = &listed.expect("a list").defects;
        check_list(defects, &wanted.strongest, &channels, width, &about);
        let peaks = operator
            .peaks(&meter)
            .expect("peaks")
            .expect("a judged frame");
        for (k, [peak, typical]) in peaks.into_iter().enumerate() {
            assert_eq!(
                peak,
                wanted.peaks[k] as f64 / 256.0,
                "channel {k} of {}",
                about()
            );
            let expected = wanted.typical[k] / 256.0;
            assert!(
                (typical - expected).abs() <= 1e-9 * expected,
                "channel {k} of {}",
                about()
            );
        }
    }
    let mut grey = Frame::poisoned(Format::Gray8, size, PADDED, OUTPUT_POISON);
    let (output, buffer) = grey.output(device);
    operator
        .mark(subject, MaskTarget::Grey(&output))
        .expect("the comparison runs");
    let pixels = wanted.mask.iter().map(|&set| if set { 255 } else { 0 });
    grey.set(&[pixels.collect()], input);
    assert_same(&read(&buffer), &grey, || {
        format!("grey mask of {}", about())
    });
}

/// Cloth: a pattern with a pitch, noise, and some defects.
pub fn cloth(
    format: Format,
    [width, height]: [usize; 2],
    arrangement: Arrangement,
    bit_depth: u32,
) -> Frame {
    let mut frame = Frame::showing(
        format,
        [width, height],
        arrangement,
        Content::Constant(0),
        bit_depth,
    );
    let geometry = frame.geometry(0);
    let bits = match bit_depth {
        0 if geometry.depth == SampleKind::U8 => 8,
        0 => 16,
        bits => bits,
    };
    let scale = f64::from((1_u32 << bits) - 1) / 255.0;
    for y in 0..height {
        for x in 0..width {
            let wave = |at: usize, pitch: f64| (std::f64::consts::TAU * at as f64 / pitch).sin();
            let noise = f64::from(random(7, x, y, 0) % 41) - 20.0;
            let stain = if (x / 40 + y / 25) % 5 == 1 && x % 40 < 9 {
                30.0
            } else {
                0.0
            };
            let value = 110.0 + 40.0 * wave(x, 7.3) + 30.0 * wave(y, 5.0) + noise + stain;
            put(
                &mut frame.bytes,
                &geometry,
                x,
                y,
                (scale * value.clamp(0.0, 255.0)) as u32,
            );
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
    let job = Job {
        pitches: [2.5, 2.0],
        ..JOB
    };
    check(device, &cloth(format, size, arrangement, 0), &job);
}

#[test]
fn texture_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    let mut arrangements = ARRANGEMENTS.iter().cycle();
    for format in FORMATS {
        for size in
            SIZES
                .into_iter()
                .chain([[9, 9], [31, 63], [64, 64], [97, 130], [200, 70], [330, 301]])
        {
            let arrangement = *arrangements.next().expect("a cycle");
            for noise_from in [NoiseFrom::Around, NoiseFrom::Above] {
                let pitches = size.map(|n| if n > 20 { 7.3 } else { 2.0 });
                check(
                    &device,
                    &cloth(format, size, arrangement, 0),
                    &Job {
                        pitches,
                        noise_from,
                        ..JOB
                    },
                );
            }
        }
    }
}

#[test]
fn texture_every_content_and_pitch_equals_reference() {
    let Some(device) = device::open() else { return };
    for content in Content::ALL {
        let input = Frame::showing(Format::Gray8, [150, 101], PADDED, content, 0);
        for pitches in [
            [2.0, 2.0625],
            [9.0, 3.97],
            [12.84, 20.5],
            [40.0, 31.7],
            [74.0, 49.9],
        ] {
            check(&device, &input, &Job { pitches, ..JOB });
        }
    }
    for bit_depth in [9, 10, 12, 14, 16] {
        for content in [Content::BeyondDepth, Content::Natural] {
            let input = Frame::showing(Format::Gray16Le, [90, 75], PADDED, content, bit_depth);
            check(&device, &input, &Job { bit_depth, ..JOB });
        }
    }
}

#[test]
fn texture_regions_and_ignored_pixels_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [211, 133], PADDED, 0);
    for rois in [
        vec![],
        vec![[0, 0, 30, 30], [20, 11, 99, 110], [150, 2, 61, 131]],
    ] {
        for ignored in [vec![], vec![vec![40.0, 20.0, 160.0, 33.3, 70.5, 120.0]]] {
            check(
                &device,
                &input,
                &Job {
                    rois: rois.clone(),
                    ignored,
                    ..JOB
                },
            );
        }
    }
}

#[test]
fn texture_at_a_peak_marks_nothing_and_below_it_does() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [170, 99], PLAIN, 0);
    let peaks = oracle::compare(input.component(0), &JOB.oracle(&input)).peaks;
    for channel in 0..CHANNELS {
        for (step, is_marked) in [(0, false), (-1, true)] {
            let mut thresholds = [60_000.0; CHANNELS];
            thresholds[channel] = (peaks[channel] + step) as f64 / 256.0;
            let job = Job { thresholds, ..JOB };
            let outcome = oracle::compare(input.component(0), &job.oracle(&input));
            // A limit is rounded: one step less may still mark nothing.
            assert!(
                is_marked || !outcome.mask.contains(&true),
                "channel {channel}"
            );
            check(&device, &input, &job);
        }
    }
}

#[test]
fn texture_strips_of_a_web_equal_one_frame() {
    check_strips(&[]);
}

/// Compares strips of webs along these vectors, or at the pitches without vectors.
pub fn check_strips(vectors: &[[f64; 2]]) {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    for (height, noise_from, variant) in [
        (700, NoiseFrom::Around, TextureVariant::Rows),
        (683, NoiseFrom::Above, TextureVariant::Rows),
        (615, NoiseFrom::Around, TextureVariant::Items),
        (40, NoiseFrom::Around, TextureVariant::Items),
    ] {
        let width = 101;
        let input = cloth(Format::Gray8, [width, height], PLAIN, 0);
        // Some strips of the last web hold no region.
        let rois = if height < 50 {
            vec![[10, 12, 80, 9]]
        } else {
            vec![[3, 1, 70, height as u32 - 1], [60, 20, 41, 15]]
        };
        let job = Job {
            noise_from,
            rois,
            vectors: vectors.to_vec(),
            ..JOB
        };
        let wanted = oracle::compare(input.component(0), &job.oracle(&input));
        let layout = layout_of(&input.info).expect("a layout");
        let settings = TextureSettings {
            line_scan: true,
            ..job.settings(&input, Some(variant))
        };
        let mut operator = Texture::new(&device, &layout, &settings).expect("an operator");
        let reach = operator.reach();
        for rows in [7, 64, 150] {
            for first in (0..height).step_by(rows) {
                let rows = rows.min(height - first);
                // What the element has: the rows above and below that the operator asks for.
                let top = first.saturating_sub(reach.above());
                let bottom =
                    (reach.to_come(&(first as u64..(first + rows) as u64)) as usize).min(height);
                let window = Window {
                    first: first - top,
                    rows,
                    height: bottom - top,
                    web_row: top as u64,
                    is_web: true,
                    ends: bottom == height,
                };
                let mut part = Frame::poisoned(Format::Gray8, [width, bottom - top], PLAIN, 0);
                let pixels: Vec<u32> =
                    input.component(0).values()[top * width..bottom * width].to_vec();
                part.set(
                    &[pixels],
                    &Frame::poisoned(Format::Gray8, [width, bottom - top], PLAIN, 0),
                );
                let frame = part.import(&device);
                let subject = Subject {
                    frame: &frame,
                    window,
                    meter: &meter,
                };
                let packed = Packed::new(&device, [width, rows]);
                operator
                    .mark(subject, packed.target())
                    .expect("the comparison runs");
                // Later strips have more rows around them, and more tiles.
                operator
                    .peaks(&meter)
                    .expect("peaks")
                    .expect("a judged strip");
                let about = || {
                    format!(
                        "rows {first} to {} of {height}, {noise_from:?}",
                        first + rows
                    )
                };
                assert_mask(
                    &packed.read(width),
                    &wanted.mask[first * width..(first + rows) * width],
                    width,
                    &about,
                );
            }
        }
    }
}

#[test]
fn texture_of_more_rows_than_a_cache_holds_equals_reference() {
    let Some(device) = device::open() else { return };
    // 33 kB of pictures a row: the rows are worked on in two parts. The second pitch reads rows of the first part.
    let input = cloth(Format::Gray8, [4100, 640], PLAIN, 0);
    let job = Job {
        pitches: [7.3, 90.0],
        thresholds: LOW.map(|limit| 2.0 * limit),
        ..JOB
    };
    check_variant(&device, &input, &job, Some(TextureVariant::Rows));
}
