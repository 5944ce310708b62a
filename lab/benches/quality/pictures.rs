//! The pictures of docs/limits.md and docs/quality.md: scenes with the marked pixels in red.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use gst::prelude::*;

use crate::{
    detector::Judgement,
    limits::{DEFAULTS, Inspector, LimitsEffort, Settings, add_dots, add_spot, corner, panel},
    scene::{MEAN_LEVEL, Picture, Texture},
};

/// Part of the frame that is shown, x, y, width, height.
const CROP: [usize; 4] = [190, 115, 260, 250];
const GAP_PX: usize = 6;
const RED: [u8; 3] = [255, 40, 30];
/// Contrast of the stains, grey levels.
const PANEL_STAIN: f32 = 4.0;
const CLOTH_STAIN: f32 = 5.0;
/// Longest wait for the encoder.
const ENCODER_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(30);

/// Parts of a picture, side by side.
#[derive(Default)]
struct Strip(Vec<Vec<[u8; 3]>>);

impl Strip {
    /// Adds a judged scene: its frame, and the marks if `marks`.
    fn add(&mut self, (frame, judgement): &(Vec<u8>, Judgement), marks: bool) {
        let [left, top, width, height] = CROP;
        let pixels = (top..top + height)
            .flat_map(|y| (left..left + width).map(move |x| (x, y)))
            .map(|(x, y)| {
                if marks && judgement.is_marked(x, y) {
                    RED
                } else {
                    [frame[y * 640 + x]; 3]
                }
            });
        self.0.push(pixels.collect());
    }

    fn write(&self, path: &Path) -> Result<()> {
        let [_, _, width, height] = CROP;
        // I420 needs an even width.
        let whole = self.0.len() * (width + GAP_PX) - GAP_PX;
        let mut bytes = Vec::with_capacity(whole * height * 3);
        for y in 0..height {
            for (i, part) in self.0.iter().enumerate() {
                if i > 0 {
                    bytes.extend([255; 3 * GAP_PX]);
                }
                bytes.extend(part[y * width..][..width].as_flattened());
            }
        }
        let line = format!(
            "appsrc name=in format=time caps=video/x-raw,format=RGB,width={whole},height={height},\
             framerate=1/1 ! videoconvert ! jpegenc quality=60 ! filesink name=file"
        );
        let pipeline = gst::parse::launch(&line)?
            .downcast::<gst::Pipeline>()
            .map_err(|_| anyhow!("no pipeline: {line}"))?;
        let file = pipeline.by_name("file").context("no filesink")?;
        file.set_property("location", path.to_str().context("a path in UTF-8")?);
        let source = pipeline
            .by_name("in")
            .and_then(|element| element.downcast::<gst_app::AppSrc>().ok())
            .context("no appsrc")?;
        // Rows of RGB are padded to four bytes.
        let stride = (3 * whole).next_multiple_of(4);
        let padded: Vec<u8> = bytes
            .chunks(3 * whole)
            .flat_map(|row| {
                let padding = std::iter::repeat_n(0, stride - row.len());
                row.iter().copied().chain(padding)
            })
            .collect();
        pipeline.set_state(gst::State::Playing)?;
        let mut buffer = gst::Buffer::from_slice(padded);
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(gst::ClockTime::ZERO);
        }
        source.push_buffer(buffer)?;
        source.end_of_stream()?;
        let ended = pipeline.bus().and_then(|bus| {
            bus.timed_pop_filtered(
                ENCODER_TIMEOUT,
                &[gst::MessageType::Eos, gst::MessageType::Error],
            )
        });
        pipeline.set_state(gst::State::Null)?;
        match ended {
            Some(message) if message.type_() == gst::MessageType::Eos => Ok(()),
            other => Err(anyhow!("{} was not written: {other:?}", path.display())),
        }
    }
}

/// A stain without an edge: its grey levels fall like a bell's outline, steeper than a Gaussian.
fn add_stain(picture: &mut Picture, [x0, y0]: [f32; 2], diameter_px: f32, contrast: f32) {
    picture.change_all(|x, y, level| {
        let r = (x as f32 - x0).hypot(y as f32 - y0) / (diameter_px / 2.0);
        level + contrast / (1.0 + r.powi(6))
    });
}

/// Stains that nobody sees: the frame, the marks of pixels alone, the marks of all levels.
fn stains(folder: &Path, effort: &LimitsEffort) -> Result<()> {
    let across = Settings {
        scales: 3,
        ..DEFAULTS
    };
    let cloth = Texture::Weave {
        size: [640, 480],
        pitch_px: 16.35,
        wander_px: 0.4,
    };
    for (name, texture, contrast) in [
        ("panel", Texture::Panel(panel()), PANEL_STAIN),
        ("cloth", cloth, CLOTH_STAIN),
    ] {
        let edit = |picture: &mut Picture| {
            add_stain(picture, [300.0, 220.0], 40.0, contrast);
            add_stain(picture, [375.0, 290.0], 24.0, -contrast);
        };
        let mut strip = Strip::default();
        for (settings, marks) in [(across, false), (DEFAULTS, true), (across, true)] {
            let inspector = Inspector::new(settings, texture, effort)?;
            eprintln!(
                "{name}, scales={}: T {}",
                settings.scales, inspector.threshold
            );
            strip.add(&inspector.shown(edit)?, marks);
        }
        strip.write(&folder.join(format!("stain-{name}.jpg")))?;
    }
    Ok(())
}

/// Writes `limit-*.jpg` and `stain-*.jpg` into the folder.
///
/// # Errors
/// A pipeline's error, or a file that cannot be written.
pub fn write(folder: &Path, effort: &LimitsEffort) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let inspector = |settings: Settings| Inspector::new(settings, Texture::Panel(panel()), effort);
    let on = inspector(DEFAULTS)?;
    let off = inspector(Settings {
        presence: false,
        ..DEFAULTS
    })?;
    let one_axis = inspector(Settings {
        axes: [true, false],
        ..DEFAULTS
    })?;
    let file = |name: &str| folder.join(format!("limit-{name}.jpg"));
    let square = |size: usize, stain: bool| {
        move |picture: &mut Picture| {
            let [x, y] = corner(size, 0);
            picture.change([x, y, size, size], |_, _, level| {
                if stain { level + 40.0 } else { MEAN_LEVEL }
            });
        }
    };

    let mut strip = Strip::default();
    strip.add(&off.shown(square(160, false))?, false);
    strip.add(&off.shown(square(160, false))?, true);
    strip.add(&on.shown(square(160, false))?, true);
    strip.write(&file("uniform"))?;

    let mut strip = Strip::default();
    for size in [48, 100, 160] {
        strip.add(&on.shown(square(size, true))?, true);
    }
    strip.write(&file("stain"))?;

    let lines = |picture: &mut Picture| {
        picture.change_all(|x, y, level| {
            let near = |v: usize, at: f32| (-0.5 * ((v as f32 - at) / 0.75).powi(2)).exp();
            level + 40.0 * near(x, 330.0).max(near(y, 250.0))
        });
    };
    let mut strip = Strip::default();
    strip.add(&one_axis.shown(lines)?, false);
    strip.add(&one_axis.shown(lines)?, true);
    strip.add(&on.shown(lines)?, true);
    strip.write(&file("lines"))?;

    let mut strip = Strip::default();
    for cells in [3, 6, 9] {
        let first = [20 - cells / 2, 14 - cells / 2];
        strip.add(
            &on.shown(|picture| add_dots(picture, first, [cells; 2], [0.3, 0.6]))?,
            true,
        );
    }
    strip.write(&file("shared"))?;

    let mut strip = Strip::default();
    for s in [16.0, 32.0, 64.0] {
        strip.add(&on.shown(|picture| add_spot(picture, s, 30.0))?, true);
    }
    strip.write(&file("shading"))?;
    stains(folder, effort)
}
