//! Sums good parts, wherever they lie, to a model.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::COMPONENTS,
    ignored::Ignored,
    layout::{FrameLayout, SampleType},
    place::{Light, Motion},
    reference::Model,
    region::Rect,
};
use clinspect_opencl::{ClContext, Memory, Meter, frame::ClFrame};

use super::{
    ComponentTraining, HeldOut, Models, PartPixels, PartsSettings, Progress, Reference,
    ReferenceSettings, part_search::PartSearch,
};
use crate::colour::{Components, JudgedComponents, is_colour};

/// What a training of parts needs to know.
#[derive(Debug, Clone)]
pub struct PartsPlan {
    /// Which components are judged.
    pub judged: JudgedComponents,
    /// Which parts are looked for.
    pub settings: PartsSettings,
    /// The comparison of whole frames.
    pub comparison: ReferenceSettings,
}

impl PartsPlan {
    /// The part in the trained picture.
    pub(super) fn with_pixels<T>(&self, height: usize, of: impl FnOnce(PartPixels) -> T) -> T {
        let ignored: Option<&Arc<Ignored>> = self.comparison.ignored.as_ref();
        let ignored = ignored.map(|ignored| ignored.rows(0, height));
        let rois: &[Rect] = &self.comparison.rois;
        of(PartPixels {
            rois,
            ignored: ignored.as_ref(),
        })
    }
}

/// A training in progress.
#[derive(Debug)]
pub struct PartTraining {
    context: Arc<ClContext>,
    layout: FrameLayout,
    plan: PartsPlan,
    /// Known after the first frame.
    part: Option<TrainedPart>,
    wanted: u32,
    seen: u32,
    left_out: Vec<u32>,
}

/// The part of the first frame, and the good ones so far.
#[derive(Debug)]
struct TrainedPart {
    /// The first frame.
    first: Models,
    search: PartSearch,
    /// Without models.
    comparison: Components<Reference>,
    training: ComponentTraining,
    /// The last frame was added.
    is_last_added: bool,
}

impl PartTraining {
    /// Of frames of a layout.
    pub fn new(context: &Arc<ClContext>, layout: &FrameLayout, plan: PartsPlan) -> Self {
        Self {
            context: context.clone(),
            layout: layout.clone(),
            wanted: plan.comparison.train_frames.max(1),
            plan,
            part: None,
            seen: 0,
            left_out: Vec::new(),
        }
    }

    /// Number of frames that were added.
    pub fn frames(&self) -> u32 {
        self.part.as_ref().map_or(0, |part| part.training.frames())
    }

    /// Number of frames so far, those that were left out included.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// Number of frames that the training takes, those that are left out included.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The frames that were left out, counted from 1.
    pub fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// Adds the surest part of a frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn add(&mut self, frame: &ClFrame, meter: &Arc<Meter>) -> Result<Progress, ClError> {
        self.seen += 1;
        let progress = self.add_part(frame, meter)?;
        if progress != Progress::Added {
            self.left_out.push(self.seen);
        }
        Ok(progress)
    }

    fn add_part(&mut self, frame: &ClFrame, meter: &Arc<Meter>) -> Result<Progress, ClError> {
        let Some(part) = &mut self.part else {
            return match self.begin(frame, meter) {
                Ok(part) => {
                    self.part = Some(part);
                    Ok(Progress::Added)
                }
                Err(ClError::Refused(why)) => Ok(Progress::Flat(format!("shows no part: {why}"))),
                Err(error) => Err(error),
            };
        };
        part.is_last_added = false;
        let sighting = part.search.find(frame, meter)?;
        let surest = (sighting.parts.iter())
            .filter(|located| !located.is_cut)
            .filter_map(|located| located.poses.first())
            .max_by(|a, b| a.place_score.total_cmp(&b.place_score));
        let Some((motion, light)) = surest.map(|found| (found.motion, found.light)) else {
            return Ok(Progress::Unmatched);
        };
        part.add(frame, (&motion, &light), meter)
    }

    /// The part of the first frame.
    fn begin(&self, frame: &ClFrame, meter: &Arc<Meter>) -> Result<TrainedPart, ClError> {
        let Self {
            context,
            layout,
            plan,
            ..
        } = self;
        let first = first_models(context, layout, plan.judged, frame, meter)?;
        let whole = plan.comparison.of_parts();
        plan.with_pixels(layout.height, |pixels| {
            let search = PartSearch::new(context, layout, whole, &first, pixels, &plan.settings)?;
            let settings = search.settings_of_cut(plan.comparison.clone(), pixels)?;
            let comparison =
                Components::new(context, search.layout(), plan.judged, |layout, _| {
                    Reference::new(context, layout, &settings)
                })?;
            let mut part = TrainedPart {
                first,
                training: comparison.training()?,
                comparison,
                is_last_added: false,
                search,
            };
            let still = Motion::of_cut(part.search.finder().cut());
            match part.add(frame, (&still, &Light::default()), meter)? {
                Progress::Added => Ok(part),
                Progress::Flat(why) => Err(ClError::Refused(why)),
                Progress::Unmatched => Err(ClError::Refused("it does not match itself".into())),
            }
        })
    }

    /// The whole pictures with the parts that were added; `None` if those are not more than half of the training, so that they
    /// may be the ones that are wrong.
    ///
    /// # Errors
    /// The failing call.
    pub fn models(&self, meter: &Meter) -> Result<Option<Models>, ClError> {
        let Some(part) = self
            .part
            .as_ref()
            .filter(|_| 2 * self.frames() > self.wanted)
        else {
            return Ok(None);
        };
        let cut = part.search.finder().cut();
        let trained = part.training.trained(meter)?;
        let joined = part.first.all().iter().zip(trained.all());
        let joined = joined.map(|(whole, part)| cut.into_model(part, whole).map(Arc::new));
        let models = joined.collect::<Result<_, _>>().map_err(ClError::Refused)?;
        Ok(Some(Models::new(models)))
    }

    /// By component the samples of the part that was added last; `None` if the frame was left out.
    ///
    /// # Errors
    /// The failing call.
    pub fn last_samples(&mut self, meter: &Arc<Meter>) -> Result<Option<Vec<Vec<u16>>>, ClError> {
        let Some(part) = self.part.as_mut().filter(|part| part.is_last_added) else {
            return Ok(None);
        };
        let TrainedPart {
            search,
            comparison,
            training,
            ..
        } = part;
        let frame = (search.part(), search.layout().height);
        training.last_samples(comparison, frame, meter)
    }

    /// A part of the training by its [`Self::last_samples`], and a comparison like `like`, or like that of the training, with
    /// what the other parts trained; `None` if there is no other one.
    ///
    /// # Errors
    /// The failing call.
    pub fn without(
        &mut self,
        samples: &[Vec<u16>],
        like: Option<&Components<Reference>>,
        meter: &Arc<Meter>,
    ) -> Result<Option<HeldOut>, ClError> {
        let Some(part) = &mut self.part else {
            return Ok(None);
        };
        let like = like.unwrap_or(&part.comparison);
        part.training.without(samples, like, meter)
    }
}

impl TrainedPart {
    fn add(
        &mut self,
        frame: &ClFrame,
        (motion, light): (&Motion, &Light),
        meter: &Arc<Meter>,
    ) -> Result<Progress, ClError> {
        self.search.read(frame, (motion, light), meter)?;
        let read = (self.search.part(), self.search.layout().height);
        let progress = self.training.add(&mut self.comparison, read, meter)?;
        self.is_last_added = progress == Progress::Added;
        Ok(progress)
    }
}

/// A frame as a trained picture of each component that is judged, or of its luma.
fn first_models(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    judged: JudgedComponents,
    frame: &ClFrame,
    meter: &Arc<Meter>,
) -> Result<Models, ClError> {
    let copy = frame.copy_of_first_plane(context, layout, meter)?;
    let Memory::Buffer(buffer) = copy.plane(0)?.memory() else {
        return Err(ClError::Input("a copy of a frame has no buffer".into()));
    };
    let row = layout.planes.first().map_or(0, |plane| plane.row_bytes);
    let count = if is_colour(layout) { COMPONENTS } else { 1 };
    let mut means = buffer.read_with(|bytes| {
        let of = |component: &clinspect_core::layout::Component| {
            let rows = bytes.chunks_exact(row.max(1)).take(layout.height);
            let level = |sample: &[u8]| match (layout.sample, sample) {
                (SampleType::U16Le, &[a, b]) => u32::from(u16::from_le_bytes([a, b])),
                (SampleType::U16Be, &[a, b]) => u32::from(u16::from_be_bytes([a, b])),
                _ => sample.first().copied().unwrap_or(0).into(),
            };
            let samples = rows.flat_map(|row| {
                row.chunks(component.pixel_stride.max(1))
                    .take(layout.width)
                    .map(|pixel| {
                        let sample = pixel.get(component.offset..).unwrap_or(&[]);
                        256 * level(&sample[..sample.len().min(layout.sample.bytes())])
                    })
            });
            samples.collect::<Vec<u32>>()
        };
        let components = layout.components.iter().take(count);
        components.map(of).collect::<Vec<_>>()
    })?;
    if count == COMPONENTS && !judged.are_apart(layout)? {
        let [red, green, blue] = &means[..] else {
            return Err(ClError::Input("a colour lacks a component".into()));
        };
        // As the device computes it.
        let luma = |((&r, &g), &b): ((&u32, &u32), &u32)| {
            ((77 * (r >> 8) + 150 * (g >> 8) + 29 * (b >> 8) + 128) >> 8) << 8
        };
        let luma = red.iter().zip(green).zip(blue).map(luma).collect();
        means = vec![luma];
    }
    let models = means.into_iter().map(|mean| {
        let deviation = vec![0; mean.len()];
        let size = [layout.width, layout.height];
        Model::new(size, layout.sample.bits(), 1, mean, deviation).map(Arc::new)
    });
    let models = models.collect::<Result<_, _>>().map_err(ClError::Refused)?;
    Ok(Models::new(models))
}
