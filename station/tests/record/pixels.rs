//! The pictures hold the pixels of the frames.

use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;
use run::recording::Recorder;

use crate::support::{
    alarms, all_whole, camera, files, frame, info, load, noise, report, settings,
};

/// Sizes with odd widths, a row and a column.
const SIZES: [[u32; 2]; 5] = [[1, 1], [15, 1], [1, 15], [37, 11], [640, 48]];

/// Records one frame and reads its PNG.
fn through(name: &str, buffer: &gst::Buffer, info: &gst_video::VideoInfo) -> image::DynamicImage {
    let sandbox = Sandbox::new(&format!("record-pixels-{name}"));
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    recorder.frame(buffer, info, &report(0, "fail"));
    drop(recorder);
    assert_eq!(alarms(&camera), [""; 0]);
    let png = files(&folder)
        .into_iter()
        .find(|name| name.ends_with(".png"))
        .unwrap();
    image::open(folder.join(png)).unwrap()
}

/// The bytes of each row of the first plane, without the padding.
fn rows(data: &[u8], info: &gst_video::VideoInfo, row: usize) -> Vec<u8> {
    let lines = data
        .chunks(info.stride()[0] as usize)
        .take(info.height() as usize);
    lines.flat_map(|line| &line[..row]).copied().collect()
}

#[test]
fn grey_and_rgb_keep_every_bit() {
    for [width, height] in SIZES {
        for format in [
            VideoFormat::Gray8,
            VideoFormat::Gray16Le,
            VideoFormat::Gray16Be,
            VideoFormat::Rgb,
        ] {
            let info = info(format, width, height);
            let data = noise(info.size(), 7);
            let buffer = gst::Buffer::from_slice(data.clone());
            let picture = through(&format!("{format}-{width}x{height}"), &buffer, &info);
            let row = width as usize * info.comp_pstride(0) as usize;
            let bytes = rows(&data, &info, row);
            let pairs = bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
            let same = match format {
                VideoFormat::Gray8 => picture.as_luma8().unwrap().as_raw() == &bytes,
                VideoFormat::Rgb => picture.as_rgb8().unwrap().as_raw() == &bytes,
                VideoFormat::Gray16Le => {
                    let levels = pairs.map(u16::from_le_bytes);
                    levels.eq(picture.as_luma16().unwrap().as_raw().iter().copied())
                }
                _ => {
                    let levels = pairs.map(u16::from_be_bytes);
                    levels.eq(picture.as_luma16().unwrap().as_raw().iter().copied())
                }
            };
            assert!(same, "{format} {width}x{height}");
        }
    }
}

#[test]
fn padded_rows_and_an_offset_are_followed() {
    let info = info(VideoFormat::Gray8, 37, 11);
    let [stride, offset] = [61, 5];
    let data = noise(offset + stride * 11, 3);
    let mut buffer = gst::Buffer::from_mut_slice(data.clone());
    gst_video::VideoMeta::add_full(
        buffer.get_mut().unwrap(),
        gst_video::VideoFrameFlags::empty(),
        VideoFormat::Gray8,
        37,
        11,
        &[offset],
        &[stride as i32],
    )
    .unwrap();
    let expected: Vec<u8> = data[offset..]
        .chunks(stride)
        .flat_map(|line| &line[..37])
        .copied()
        .collect();
    let picture = through("padded", &buffer, &info);
    assert_eq!(picture.as_luma8().unwrap().as_raw(), &expected);
}

#[test]
fn other_formats_become_rgb() {
    let bgr = info(VideoFormat::Bgr, 13, 5);
    let data = noise(bgr.size(), 9);
    let picture = through("bgr", &gst::Buffer::from_slice(data.clone()), &bgr);
    let expected: Vec<u8> = rows(&data, &bgr, 39)
        .chunks(3)
        .flat_map(|bgr| [bgr[2], bgr[1], bgr[0]])
        .collect();
    assert_eq!(picture.as_rgb8().unwrap().as_raw(), &expected);
    for format in [
        VideoFormat::I420,
        VideoFormat::Nv12,
        VideoFormat::Yuy2,
        VideoFormat::Argb64,
    ] {
        let info = info(format, 34, 6);
        let picture = through(&format.to_string(), &frame(&info, 2), &info);
        assert_eq!((picture.width(), picture.height()), (34, 6), "{format}");
        assert!(picture.as_rgb8().is_some(), "{format}");
    }
}

#[test]
fn a_buffer_that_cannot_be_read_is_an_alarm_and_the_next_frame_is_recorded() {
    let sandbox = Sandbox::new("record-short");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    let info = info(VideoFormat::Gray8, 64, 64);
    for number in 0..3 {
        recorder.frame(
            &gst::Buffer::from_slice([0; 64]),
            &info,
            &report(number, "fail"),
        );
    }
    recorder.frame(&frame(&info, 1), &info, &report(3, "fail"));
    drop(recorder);
    assert_eq!(load(&camera.counters.recording_errors), 3);
    assert_eq!(all_whole(&folder), 1);
    assert_eq!(
        alarms(&camera),
        ["frames cannot be recorded: GStreamer cannot read the GRAY8 frame"]
    );
}

#[test]
fn frames_of_any_rate_size_and_format_are_recorded() {
    let with = |format, width, height| {
        gst::init().unwrap();
        gst_video::VideoInfo::builder(format, width, height)
            .fps(gst::Fraction::new(25, 1))
            .build()
            .unwrap()
    };
    for (format, width, height) in [
        (VideoFormat::Bgr, 13, 5),
        (VideoFormat::I420, 1, 1),
        (VideoFormat::Nv12, 15, 33_000),
        (VideoFormat::Gray16Be, 3, 100_000),
        (VideoFormat::Uyvy, 70_000, 2),
    ] {
        let info = with(format, width, height);
        let name = format!("any-{format}-{width}x{height}");
        let picture = through(&name, &frame(&info, 2), &info);
        assert_eq!(
            (picture.width(), picture.height()),
            (width, height),
            "{format}"
        );
    }
}

/// The shape of the pixels that a PNG names.
fn pixel_shape(png: &std::path::Path) -> Option<[u32; 2]> {
    let file = std::fs::read(png).unwrap();
    let at = file.windows(4).position(|name| name == b"pHYs")?;
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    Some([number(at + 4), number(at + 8)])
}

#[test]
fn recordings_keep_all_pixels_and_tell_viewers_their_shape() {
    gst::init().unwrap();
    for (numbers, expected) in [
        ((2, 1), Some([1, 2])),
        ((10, 11), Some([11, 10])),
        ((1, 1), None),
    ] {
        let sandbox = Sandbox::new("record-shape");
        let folder = sandbox.folder("out");
        let camera = camera("left");
        let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
        let info = gst_video::VideoInfo::builder(VideoFormat::Gray8, 96, 108)
            .par(gst::Fraction::new(numbers.0, numbers.1))
            .build()
            .unwrap();
        recorder.frame(&frame(&info, 1), &info, &report(0, "fail"));
        drop(recorder);
        let png = files(&folder)
            .into_iter()
            .find(|name| name.ends_with(".png"));
        let png = folder.join(png.unwrap());
        assert_eq!(pixel_shape(&png), expected, "{numbers:?}");
        let picture = image::open(png).unwrap();
        assert_eq!((picture.width(), picture.height()), (96, 108));
    }
}
