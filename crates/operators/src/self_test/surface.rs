//! The self-test of the comparison of a surface.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::FrameLayout,
    mask::packed_stride,
    surface::{CHANNELS, ChannelsInUse, DIMENSIONS, FEATURES, Model, PROTOTYPES},
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_oracle::surface as definition;

use super::{KnownAnswer, Mask, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{Inspection, Subject, Surface, SurfaceSettings, depth::effective_depth};

/// The test frame is at least this long along each axis: two tiles.
const LEAST: usize = 64;
/// Limits at which novelty, and lines of each direction, mark a part of the test frame.
const NOVELTY: f64 = 54.0;
const LINES: f64 = 0.4;

impl Trial {
    /// Tests the comparison of a surface with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn surface(&self, layout: &FrameLayout, settings: &SurfaceSettings) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        if size.iter().any(|&length| length < LEAST) {
            // Such a frame has hardly a cell to judge.
            return Ok(());
        }
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let channels = settings.channels;
        let model = Arc::new(model().map_err(ClError::Refused)?);
        let limits = channels.numbers().map(limit).collect();
        let tried = SurfaceSettings {
            model: Some(model.clone()),
            limits,
            rois: Vec::new(),
            ignored: None,
            line_scan: false,
            ..settings.clone()
        };
        let subject = format!(
            "the comparison of a surface (lines {}; images {})",
            channels.has_lines(),
            tried.image
        );
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            Ok(Test {
                context: context.clone(),
                operator: Surface::new(context, small, &tried)?,
                model: model.clone(),
                channels,
                depth,
            })
        };
        self.run(size, make, &subject)
    }
}

fn limit(channel: usize) -> f64 {
    if channel == 0 { NOVELTY } else { LINES }
}

/// Numbers from `-most` to `most`.
fn numbers(seed: u64, most: i32) -> impl FnMut() -> i32 {
    let mut at = 0;
    move || {
        at += 1;
        (noise(seed, 0, at, 0) % (2 * most as u32 + 1)) as i32 - most
    }
}

/// A model with numbers of all sizes.
fn model() -> Result<Model, String> {
    let [mut mean, mut weight, mut value] = [numbers(1, 900), numbers(2, 40), numbers(3, 500)];
    let projected =
        |next: &mut dyn FnMut() -> i32| -> [i32; DIMENSIONS] { std::array::from_fn(|_| next()) };
    Model::new(
        std::array::from_fn::<_, FEATURES, _>(|_| mean()),
        std::array::from_fn(|_| projected(&mut weight)),
        (0..PROTOTYPES).map(|_| projected(&mut value)).collect(),
    )
}

/// The same for the definition.
fn defined(model: &Model) -> definition::Model {
    let wide = |values: &[i32]| values.iter().copied().map(i64::from).collect::<Vec<_>>();
    let wide_rows = |rows: &[[i32; DIMENSIONS]]| rows.iter().map(|row| wide(row)).collect();
    definition::Model {
        mean: wide(model.mean()),
        weights: wide_rows(model.weights()),
        prototypes: wide_rows(model.prototypes()),
    }
}

/// Spots and lines in noise.
fn draw(picture: &mut Picture, depth: u32, round: u64) {
    let most = (1_u32 << depth) - 1;
    picture.fill(|component, x, y| {
        let line = [
            x % 29 == 9,
            y % 31 == 12,
            (x + y) % 37 == 5,
            (x + 2 * y) % 41 == 7,
        ];
        let lines: u32 = line.iter().map(|&is_on| 40 * u32::from(is_on)).sum();
        let gap = 60 * u32::from((2 * x + 40 - y % 40) % 43 == 3);
        let spot = 50 * u32::from((x / 9 + y / 7) % 5 == 2);
        let grain = noise(round, component, x, y) % (8 + 2 * (x as u32 / 8));
        let level = (70 + lines + spot + grain).saturating_sub(gap).min(255);
        (u64::from(level) * u64::from(most) / 255) as u32
    });
}

/// The outcome of a picture by the definition.
fn outcome(
    picture: &Picture,
    model: &Model,
    channels: ChannelsInUse,
    depth: u32,
) -> definition::Outcome {
    let mut limits = [None; CHANNELS];
    for channel in channels.numbers() {
        limits[channel] = Some((256.0 * limit(channel)).round() as i64);
    }
    let settings = definition::Settings {
        model: defined(model),
        limits,
        depth,
        rois: Vec::new(),
        ignored: Vec::new(),
    };
    definition::compare(picture.component(0), &settings)
}

struct Test {
    context: Arc<ClContext>,
    operator: Surface,
    model: Arc<Model>,
    channels: ChannelsInUse,
    depth: u32,
}

impl KnownAnswer for Test {
    type Answer = definition::Outcome;

    fn draw(&self, picture: &mut Picture, round: u64) {
        draw(picture, self.depth, round);
    }

    fn answer(&self, picture: &Picture) -> definition::Outcome {
        outcome(picture, &self.model, self.channels, self.depth)
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        answer: &definition::Outcome,
    ) -> Result<Option<Wrong>, ClError> {
        let [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        let meter = Meter::new(false);
        let mask = Mask::new(&self.context, &meter, packed_stride(width) * height)?;
        let marked = (self.operator).mark(Subject::whole(frame, height, &meter), mask.target()?)?;
        mask.compare_pixels(width, marked.pixels, &answer.mask)
    }
}

#[cfg(test)]
mod tests {
    use clinspect_opencl::frame::layout_of;

    use super::*;

    #[test]
    fn every_channel_marks_a_part_of_the_test_frame() {
        gst::init().expect("GStreamer");
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 64).build();
        let info = info.expect("a format");
        let layout = layout_of(&info).expect("a layout");
        let channels = ChannelsInUse {
            novelty: true,
            dark_lines: true,
            bright_lines: true,
        };
        let mut picture = Picture::new(&info, &layout);
        draw(&mut picture, 8, 0);
        let found = outcome(&picture, &model().expect("a model"), channels, 8);
        let mut counts = [0; CHANNELS];
        for strongest in found.strongest.iter().filter(|&&strongest| strongest != 0) {
            counts[(strongest.abs() & 31) as usize] += 1;
        }
        let marked = found.mask.iter().filter(|&&is_marked| is_marked).count();
        assert!(
            counts.iter().all(|&count| count > 0) && marked < 48 * 48 * 9 / 10,
            "{counts:?} {marked} {:?}",
            found.peaks
        );
    }
}
