//! Metas with invalid contents: any element may write a meta.

use clinspect_core::statistics::Statistics;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, HistogramResult};

use super::{
    caps, counted,
    drawing::{with_defects, with_histogram},
    drawn, found,
};
use crate::support::{Rig, register};

const SIZE: [usize; 2] = [400, 300];

#[test]
fn nonsense_in_metas_never_stops_the_picture() {
    register();
    let mut rig = Rig::new(
        "inspectoverlay show-ignored=true",
        &caps(Format::Bgrx, SIZE),
    );
    let (most, far) = (u32::MAX, i32::MAX);
    let defect = |x, y, width, height| Defect {
        x,
        y,
        width,
        height,
        area: most,
        mean_difference: f32::NAN,
        class: 1,
        ..found(SIZE, &[[0, 0, 1, 1]]).defects[0]
    };
    let listed = vec![
        defect(far, far, most, most),
        defect(i32::MIN, i32::MIN, most, most),
        defect(0, 0, most, most),
        defect(399, 299, 2, 2),
        defect(far - 1, 0, 1, 1),
        defect(5, 5, 0, 0),
    ];
    let well = found(SIZE, &[]);
    for (width, height, mask) in [
        (400, 300, 0),
        (400, 300, 50 * 300),
        (400, 300, 50 * 300 - 1),
        (0, 0, 100),
        (most, most, 100),
        (most, 1, 100),
        (1, most, 100),
        (1, 1, 1),
    ] {
        let result = DefectResult {
            width,
            height,
            mask: Some(gst::Buffer::from_slice(vec![0x11_u8; mask])),
            ignored: Some(gst::Buffer::from_slice(vec![0x77_u8; mask])),
            class_names: vec!["\u{1f980}".repeat(400)],
            first_line: u64::MAX,
            mm_per_pixel_x: f64::INFINITY,
            mm_per_pixel_y: f64::MAX,
            mean_level: f64::MIN_POSITIVE,
            defects: listed.clone(),
            defect_pixels: u64::MAX,
            element: "\u{1f980}".repeat(400),
            ..well.clone()
        };
        drawn(&mut rig, with_defects(SIZE, &result));
    }
    let many = DefectResult {
        defects: vec![defect(3, 3, 390, 290); 50_000],
        ..well.clone()
    };
    drawn(&mut rig, with_defects(SIZE, &many));
    rig.only("inspectoverlay")
        .set_property("max-boxes", 10_000_u32);
    drawn(&mut rig, with_defects(SIZE, &many));

    let one = counted("RGB", SIZE, 3);
    let wild = Statistics {
        median: f64::NAN,
        p5: f64::INFINITY,
        p95: -1e300,
        ..Statistics::default()
    };
    for (format, bit_depth, bins, channels) in [
        ("", 8, 256, 3),
        ("NV12", 0, 256, 3),
        ("NV12", most, 256, 3),
        ("RGBA", 16, 1, 4),
        ("RGBA", 8, 256, 1000),
        ("GRAY8", 8, 1_000_000, 1),
        ("GRAY8", 8, 256, 0),
    ] {
        let result = HistogramResult {
            format: format.into(),
            bit_depth,
            bins,
            counts: vec![most; (bins * channels) as usize],
            statistics: vec![wild; channels as usize],
            ..one.clone()
        };
        drawn(&mut rig, with_histogram(SIZE, &result));
    }
}
