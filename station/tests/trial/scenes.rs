//! Frames that are drawn, and cameras that exist as a file only.

use std::{fs, path::Path, sync::Arc};

use clinspect_testkit::{
    label::{LabelGenerator, LabelSpec},
    panel::{PanelGenerator, PanelSpec},
};
use config::file::Config;
use gst_video::{VideoFormat, VideoInfo};
use plan::CameraConfig;
use run::{
    frame::Frame,
    recorded::{Label, LabelledFrame},
};

/// Registers the elements.
pub fn start() {
    clinspect_testkit::support::register();
    gstinspectpublish::register_static().unwrap();
}

/// The camera that these lines of the file describe, besides its name and source.
pub fn camera(folder: &Path, lines: &str) -> CameraConfig {
    let file = folder.join("station.toml");
    let text = format!("[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n{lines}\n");
    fs::write(&file, text).unwrap();
    let mut config = Config::read(&file).unwrap();
    config.cameras.remove(0)
}

/// A frame of these bytes, whose rows have no padding.
pub fn frame(format: VideoFormat, size: [usize; 2], bytes: &[u8]) -> Frame {
    let [width, height] = size.map(|side| u32::try_from(side).unwrap());
    let info = VideoInfo::builder(format, width, height).build().unwrap();
    let stride = usize::try_from(info.stride()[0]).unwrap();
    let row = bytes.len() / size[1];
    let mut padded = Vec::with_capacity(info.size());
    for row in bytes.chunks(row) {
        padded.extend_from_slice(row);
        padded.resize(padded.len().next_multiple_of(stride), 0);
    }
    Frame::copy_of(&gst::Buffer::from_slice(padded), &info).unwrap()
}

/// Frames of a panel: those of the given numbers have defects.
pub fn panels(format: VideoFormat, count: usize, bad: &[usize]) -> Vec<Frame> {
    let spec = PanelSpec {
        width: 320,
        height: 240,
        noise_sigma: 2.0,
        bit_depth: if format == VideoFormat::Gray16Le {
            12
        } else {
            8
        },
        ..PanelSpec::default()
    };
    let mut generator = PanelGenerator::new(spec, 3).unwrap();
    let frames = (0..count).map(|at| {
        let drawn = generator.next_random(if bad.contains(&at) { 4 } else { 0 });
        let mut bytes = drawn.samples;
        if format == VideoFormat::Rgb {
            // The green and the blue of a pixel follow its red, so that the components differ.
            bytes = (bytes.iter())
                .flat_map(|&level| [level, level / 2 + 40, 255 - level])
                .collect();
        }
        frame(format, [drawn.width, drawn.height], &bytes)
    });
    frames.collect()
}

/// Frames of a grained surface: those of the given numbers have a blot.
pub fn surfaces(count: usize, bad: &[usize]) -> Vec<Frame> {
    const SIZE: [usize; 2] = [320, 240];
    let [width, height] = SIZE;
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as i32
    };
    let frames = (0..count).map(|at| {
        let noise: Vec<i32> = (0..width * height).map(|_| random()).collect();
        let near = |x: usize, y: usize| noise[y % height * width + x % width];
        let level = |x: usize, y: usize| {
            let sum: i32 = (0..9).map(|n| near(x + n % 3, y + n / 3)).sum();
            let blot = bad.contains(&at) && (100..124).contains(&x) && (100..116).contains(&y);
            let grain = (sum / 9 - 128) / if blot { 4 } else { 1 };
            u8::try_from((128 + grain).clamp(0, 255)).unwrap()
        };
        let bytes: Vec<u8> = (0..width * height)
            .map(|n| level(n % width, n / width))
            .collect();
        frame(VideoFormat::Gray8, SIZE, &bytes)
    });
    frames.collect()
}

/// Frames of printed labels: those of the given numbers have misprints.
pub fn labels(count: usize, bad: &[usize]) -> Vec<Frame> {
    let spec = LabelSpec {
        width: 320,
        height: 240,
        shift_px: 3.0,
        ..LabelSpec::default()
    };
    let mut generator = LabelGenerator::new(spec, 5).unwrap();
    let frames = (0..count).map(|at| {
        let drawn = generator.next_random(if bad.contains(&at) { 6 } else { 0 });
        frame(
            VideoFormat::Gray8,
            [drawn.width, drawn.height],
            &drawn.samples,
        )
    });
    frames.collect()
}

/// Frames that were kept; those of the given numbers are failed ones.
pub fn kept(frames: Vec<Frame>, bad: &[usize]) -> Vec<LabelledFrame> {
    let each = frames
        .into_iter()
        .enumerate()
        .map(|(at, frame)| LabelledFrame {
            name: format!("frame {at}"),
            frame: Arc::new(frame),
            label: match bad.contains(&at) {
                true => Label::Failed,
                false => Label::Good,
            },
            missed: Vec::new(),
        });
    each.collect()
}
