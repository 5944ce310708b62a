//! Photographs through `clgaussian` and `clhistogram`, compared with the references; boards through `clreference`.
//!
//! `CLINSPECT_PHOTOGRAPHS` names a folder of PNGs (`scripts/photographs` fetches one).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod boards;

use clinspect_testkit::oracle;
use gst::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult, Verdict};
use oracle::{SampleKind, Samples, gaussian::gaussian_integer, histogram::histogram};

/// The photographs; `None` if there are none and none are required.
fn photographs() -> Option<Vec<std::path::PathBuf>> {
    let Some(folder) = std::env::var_os("CLINSPECT_PHOTOGRAPHS") else {
        assert!(
            std::env::var_os("CLINSPECT_REQUIRE_DEVICE").is_none(),
            "CLINSPECT_PHOTOGRAPHS names no folder"
        );
        eprintln!("SKIP: CLINSPECT_PHOTOGRAPHS names no folder of photographs");
        return None;
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "png"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    Some(paths)
}

/// One component of a packed RGB picture.
fn component(data: &[u8], width: usize, height: usize, offset: usize) -> Samples<'_> {
    Samples {
        data,
        offset,
        stride: 3 * width,
        pixel_stride: 3,
        width,
        height,
        depth: SampleKind::U8,
    }
}

/// A pipeline, its appsrc `src` and its appsink `sink`.
fn line(description: &str) -> (gst::Pipeline, gst_app::AppSrc, gst_app::AppSink) {
    let pipeline = gst::parse::launch(description).unwrap();
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    let src = pipeline.by_name("src").unwrap().downcast().unwrap();
    let sink = pipeline.by_name("sink").unwrap().downcast().unwrap();
    (pipeline, src, sink)
}

/// Number of frames of a photograph from which a pitch is estimated.
const SHOWN: usize = 12;

#[test]
fn photographs_have_no_pitch_and_are_not_judged() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    let Some(paths) = photographs() else { return };
    for path in paths {
        let picture = image::open(&path).unwrap().to_luma8();
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        let (pipeline, src, sink) = line(
            "appsrc name=src format=time ! clpitchthreshold name=judge pitch-y=-1 ! appsink name=sink sync=false",
        );
        let format = gst_video::VideoFormat::Gray8;
        let info = gst_video::VideoInfo::builder(format, picture.width(), picture.height())
            .build()
            .unwrap();
        src.set_caps(Some(&info.to_caps().unwrap()));
        pipeline.set_state(gst::State::Playing).unwrap();
        let stride = info.stride()[0] as usize;
        let mut frame = vec![0; stride * height];
        for (row, out) in picture.chunks(width).zip(frame.chunks_mut(stride)) {
            out[..width].copy_from_slice(row);
        }
        for i in 0..SHOWN {
            let mut buffer = gst::Buffer::from_slice(frame.clone());
            let time = gst::ClockTime::from_mseconds(33 * i as u64);
            buffer.get_mut().unwrap().set_pts(time);
            src.push_buffer(buffer).unwrap();
        }
        src.end_of_stream().unwrap();
        for _ in 0..SHOWN {
            let sample = sink.pull_sample().unwrap();
            let mask = sample.buffer().unwrap();
            let result = &DefectResult::read(mask)[0];
            assert_eq!(result.verdict, Verdict::None, "{path:?}: {result:?}");
            assert_eq!(
                (result.pitch_x, result.pitch_y, result.judged_pixels),
                (0.0, 0.0, 0)
            );
            assert!(mask.map_readable().unwrap().iter().all(|&byte| byte == 0));
        }
        // Once along rows, once along columns.
        let bus = pipeline.bus().unwrap();
        let warnings = std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Warning]));
        assert_eq!(warnings.count(), 2, "{path:?}");
        let judge = pipeline.by_name("judge").unwrap();
        let estimates: gst::Structure = judge.property("estimates");
        assert_eq!(estimates.get("pitch-x"), Ok(0.0));
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn photographs_smoothed_and_counted_equal_the_references() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    let Some(paths) = photographs() else { return };
    for path in paths {
        let picture = image::open(&path).unwrap().to_rgb8();
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        let (pipeline, src, sink) = line(
            "appsrc name=src ! clgaussian kernel-size=5 sigma=0.8 ! clhistogram ! appsink name=sink sync=false",
        );
        let info = gst_video::VideoInfo::builder(
            gst_video::VideoFormat::Rgb,
            picture.width(),
            picture.height(),
        )
        .build()
        .unwrap();
        src.set_caps(Some(&info.to_caps().unwrap()));
        pipeline.set_state(gst::State::Playing).unwrap();
        // GStreamer pads rows to four bytes.
        let stride = info.stride()[0] as usize;
        let mut frame = vec![0; info.size()];
        for (row, out) in picture.chunks(3 * width).zip(frame.chunks_mut(stride)) {
            out[..row.len()].copy_from_slice(row);
        }
        src.push_buffer(gst::Buffer::from_slice(frame)).unwrap();
        src.end_of_stream().unwrap();
        let sample = sink.pull_sample().unwrap();
        let buffer = sample.buffer().unwrap();
        let smoothed = buffer.map_readable().unwrap();
        let found = HistogramResult::read(buffer);
        assert_eq!(found.len(), 1);
        for c in 0..3 {
            let expected = gaussian_integer(component(&picture, width, height, c), 5, 0.8);
            let mut packed = vec![0; 3 * width * height];
            for (i, &value) in expected.iter().enumerate() {
                let (x, y) = (i % width, i / width);
                let got = smoothed[y * stride + 3 * x + c];
                assert_eq!(u32::from(got), value, "{path:?} component {c} at {x}, {y}");
                packed[3 * i + c] = got;
            }
            let region = [0, 0, width, height];
            let bins = histogram(component(&packed, width, height, c), region, 8, 256);
            assert_eq!(found[0].channel(c).unwrap(), bins, "{path:?} channel {c}");
        }
        drop(smoothed);
        pipeline.set_state(gst::State::Null).unwrap();
    }
}
