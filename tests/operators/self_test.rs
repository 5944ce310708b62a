//! The self-test passes on a healthy device, whatever the settings, formats and sizes are.

use clinspect_core::{
    lattice::Lattice, region::Rect, scales::SCALE_FACTORS, surface::ChannelsInUse,
    texture::CHANNELS, variant::TextureVariant,
};
use clinspect_opencl::frame::{COLOUR_FORMATS, FLAT_FORMATS, FORMATS, LUMA_FORMATS, layout_of};
use clinspect_operators::{
    Align, Arithmetic, Borders, Compare, Contrast, FlatFieldMode, FlatFieldSettings, Gaussian,
    GaussianSettings, Histogram, HistogramSettings, NoiseFrom, NormalizeBy, PitchThresholdSettings,
    Polarity, ReferenceSettings, SelfTest, Strategy, SurfaceSettings, TextureSettings, Trial,
};
use gst_video::{VideoFormat as Format, VideoInfo};

use crate::device;

/// Smaller than a test frame, about as large, and larger.
const SIZES: [[u32; 2]; 6] = [[1, 1], [33, 9], [97, 64], [203, 151], [640, 480], [1921, 7]];

fn infos(formats: &[Format]) -> impl Iterator<Item = VideoInfo> {
    let info = |format, [width, height]: [u32; 2]| {
        let info = VideoInfo::builder(format, width, height).build();
        info.expect("GStreamer knows the format")
    };
    let formats = formats.iter().enumerate();
    formats.flat_map(move |(i, &format)| {
        // Every size with the first format, and a size with each.
        let sizes = SIZES.iter().enumerate();
        let chosen = move |&(s, _): &(usize, _)| i == 0 || s == i % SIZES.len();
        sizes
            .filter(chosen)
            .map(move |(_, &size)| info(format, size))
    })
}

#[test]
fn gaussians_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        for (kernel_size, arithmetic) in [
            (3, Arithmetic::Auto),
            (5, Arithmetic::Float),
            (31, Arithmetic::Integer),
        ] {
            let settings = GaussianSettings {
                kernel_size,
                sigma_px: i as f64 % 3.0,
                arithmetic,
                image: false,
                variant: None,
            };
            let operator = Gaussian::new(&device, &layout, &settings).expect("an operator");
            let tested = trial.gaussian(&layout, &settings, &operator);
            assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
        }
    }
}

#[test]
fn histograms_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        for strategy in [Strategy::Auto, Strategy::Private] {
            let settings = HistogramSettings {
                bins: [256, 16][i % 2],
                bit_depth: 0,
                region: Rect::new(0, 0, layout.width.div_ceil(1 + i % 2), layout.height),
                strategy,
                image: false,
            };
            let operator = Histogram::new(&device, &layout, &settings).expect("an operator");
            let tested = trial.histogram(&layout, &settings, &operator);
            assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
        }
    }
}

#[test]
fn flat_fields_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&FLAT_FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        for bit_depth in [0, 1, 7, layout.sample.bits()] {
            let settings = FlatFieldSettings {
                mode: [FlatFieldMode::Area, FlatFieldMode::Line][i % 2],
                bit_depth,
                correction: None,
                image: false,
                variant: None,
            };
            let tested = trial.flat_field(&layout, &settings);
            assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
        }
    }
}

fn comparison(pitch: [f64; 2]) -> PitchThresholdSettings {
    PitchThresholdSettings {
        may_be_blind: true,
        is_steady: false,
        pitch_x: pitch[0],
        pitch_y: pitch[1],
        lattice: None,
        multiples: vec![1],
        threshold: 20.0,
        compare: Compare::Minimum,
        match_center: true,
        scales: 0,
        scale_factors: SCALE_FACTORS.to_vec(),
        polarity: Polarity::Both,
        borders: Borders::Inward,
        edge_margin: 2,
        contrast: Contrast::Unknown,
        rois: Vec::new(),
        ignored: None,
        bit_depth: 0,
        line_scan: false,
        image: false,
        variant: None,
    }
}

#[test]
fn pitch_comparisons_pass() {
    let Some(device) = device::open() else { return };
    for info in infos(&LUMA_FORMATS) {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        let plain = comparison([7.35, 0.0]);
        for settings in [
            plain.clone(),
            comparison([0.0; 2]),
            comparison([900.5, 1.0]),
            PitchThresholdSettings {
                scales: 2,
                contrast: Contrast::Off,
                ..comparison([12.0, 5.25])
            },
            PitchThresholdSettings {
                multiples: vec![1, 4],
                compare: Compare::Average,
                match_center: false,
                borders: Borders::Skip,
                contrast: Contrast::Known(9.0),
                polarity: Polarity::Dark,
                threshold: 0.0,
                ..comparison([6.5, 0.0])
            },
            PitchThresholdSettings {
                lattice: Lattice::new(&[[8.5, 1.25], [-1.5, 8.25]]).ok(),
                multiples: vec![1, 4],
                ..plain.clone()
            },
            // Vectors that the test frame does not hold.
            PitchThresholdSettings {
                lattice: Lattice::new(&[[900.5, -33.0]]).ok(),
                compare: Compare::Average,
                contrast: Contrast::Known(9.0),
                ..plain.clone()
            },
            PitchThresholdSettings {
                threshold: 255.0,
                line_scan: true,
                is_steady: true,
                ..plain
            },
        ] {
            let tested = trial.pitch_threshold(&layout, &settings);
            assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
        }
    }
}

#[test]
fn components_pass() {
    let Some(device) = device::open() else { return };
    for info in infos(&COLOUR_FORMATS) {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        assert_eq!(trial.colour(&layout), Ok(()), "{info:?}");
    }
}

#[test]
fn comparisons_with_a_reference_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&LUMA_FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        for (align, normalize) in [
            (Align::None, NormalizeBy::None),
            (Align::Translation, NormalizeBy::Offset),
            (Align::Translation, NormalizeBy::Gain),
            (Align::Affine, NormalizeBy::None),
            (Align::Local, NormalizeBy::Gain),
        ] {
            let settings = ReferenceSettings {
                model: None,
                threshold: [20.0, 0.0, 255.0][i % 3],
                deviation_factor: 4.0,
                edge_tolerance: i as u32 % 3,
                opening: [0, 3][i % 2],
                polarity: Polarity::Both,
                align,
                search_range: 1 + 7 * (i as u32 % 3),
                match_score: 0.7,
                normalize,
                train_frames: 10,
                rois: Vec::new(),
                ignored: None,
                bit_depth: 0,
            };
            let tested = trial.reference(&layout, &settings);
            assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
        }
    }
}

#[test]
fn reading_and_marking_parts_passes() {
    let Some(device) = device::open() else { return };
    for info in infos(&LUMA_FORMATS).chain(infos(&COLOUR_FORMATS)) {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        assert_eq!(trial.parts(&layout, 0), Ok(()), "{info:?}");
    }
}

#[test]
fn textures_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&LUMA_FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        let settings = TextureSettings {
            pitches: [[7.35, 5.0], [0.0; 2]][i % 2],
            lattice: None,
            may_turn: i % 2 == 1,
            // What is not learned yet, and what other settings change, does not matter.
            thresholds: [vec![], vec![2.0; CHANNELS]][i % 2].clone(),
            noise_from: [NoiseFrom::Around, NoiseFrom::Above][i / 4 % 2],
            contrast: Contrast::Unknown,
            rois: Vec::new(),
            ignored: None,
            bit_depth: [0, layout.sample.bits()][i % 2],
            line_scan: i % 5 == 0,
            image: false,
            variant: Some([TextureVariant::Rows, TextureVariant::Items][i / 2 % 2]),
        };
        let tested = trial.texture(&layout, &settings);
        assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
    }
}

#[test]
fn surfaces_pass() {
    let Some(device) = device::open() else { return };
    for (i, info) in infos(&LUMA_FORMATS).enumerate() {
        let trial = Trial::new(&device, &info, SelfTest::Always);
        let layout = layout_of(&info).expect("a layout");
        let settings = SurfaceSettings {
            // What is not learned yet does not matter.
            model: None,
            limits: Vec::new(),
            channels: ChannelsInUse {
                novelty: i % 3 < 2,
                dark_lines: i % 3 > 0,
                bright_lines: i % 3 == 2,
            },
            rois: Vec::new(),
            ignored: None,
            bit_depth: [0, layout.sample.bits()][i % 2],
            line_scan: false,
            image: false,
        };
        let tested = trial.surface(&layout, &settings);
        assert_eq!(tested, Ok(()), "{info:?} {settings:?}");
    }
}
