//! Trained pictures of red, green and blue, which are found in a frame by its luma.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    reference::Model,
};
use clinspect_opencl::{ClBuffer, Memory, Meter, frame::ClFrame};

use super::{Align, Progress, Reference, ReferenceSettings, Training};
use crate::{JudgedComponents, colour::Components, inspection::Component};

/// The trained picture of grey or luma, or those of red, green and blue.
#[derive(Debug, Clone)]
pub struct Models(Vec<Arc<Model>>);

impl Models {
    /// One for each operator of a [`Components`].
    pub fn new(models: Vec<Arc<Model>>) -> Self {
        Self(models)
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<Model>] {
        &self.0
    }

    /// That of a component; `None`: of grey or luma.
    pub fn of(&self, component: Option<Component>) -> Option<&Arc<Model>> {
        let at = component.map_or(0, |component| component as usize);
        self.0.get(at)
    }

    /// The luma of the means.
    ///
    /// # Errors
    /// A sentence, if the pictures differ in size.
    pub fn luma(&self) -> Result<Option<Arc<Model>>, String> {
        let [red, green, blue] = &self.0[..] else {
            return Ok(self.0.first().cloned());
        };
        let means = red.mean().iter().zip(green.mean()).zip(blue.mean());
        let luma = |((&r, &g), &b): ((&u32, &u32), &u32)| (77 * r + 150 * g + 29 * b + 128) >> 8;
        let mean: Vec<u32> = means.map(luma).collect();
        let deviation = vec![0; mean.len()];
        let model = Model::new(red.size(), red.bits(), red.frames(), mean, deviation)?;
        Ok(Some(Arc::new(model)))
    }
}

/// A training of each component.
#[derive(Debug)]
pub struct ComponentTraining {
    parts: Vec<Training>,
    /// Finds where frames lie.
    leader: Option<Training>,
    /// Frames that the training takes, those that are left out included.
    wanted: u32,
    /// Frames so far, those that were left out included.
    seen: u32,
    /// The frames that were left out, counted from 1.
    left_out: Vec<u32>,
}

/// A frame of a training, and a comparison with what the other frames trained.
pub struct HeldOut {
    /// The frame as it was read for the training.
    pub frame: ClFrame,
    /// Memory for its packed mask.
    pub mask: ClBuffer,
    /// Compares frames with the others.
    pub others: Components<Reference>,
}

impl Components<Reference> {
    /// With `settings` that align frames: finds them by their luma, and all components follow. `models` are those of the
    /// components.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that do not fit the frames; a failing call.
    pub fn with_alignment(
        self,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
        models: Option<&Models>,
    ) -> Result<Self, ClError> {
        if !self.are_apart() || settings.align == Align::None {
            return Ok(self);
        }
        let settings = leader_settings(settings, models)?;
        let leader = Reference::new(self.context(), &layout.grey(), &settings)?;
        Ok(self.with_leader(leader))
    }

    /// Begins a training with the settings in use.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn training(&self) -> Result<ComponentTraining, ClError> {
        let parts = self.all().iter().map(Reference::training);
        Ok(ComponentTraining {
            parts: parts.collect::<Result<_, _>>()?,
            leader: self.leader().map(Reference::training).transpose()?,
            wanted: (self.all().iter()).fold(1, |most, part| most.max(part.settings.train_frames)),
            seen: 0,
            left_out: Vec::new(),
        })
    }

    /// Whether frames are compared: there are models, and no training.
    pub fn is_comparing(&self) -> bool {
        self.all().iter().all(Reference::is_comparing)
    }

    /// Switches comparisons off: masks are then clear, and nothing is judged.
    pub fn set_blind(&mut self, is_blind: bool) {
        for part in self.all_mut() {
            part.set_blind(is_blind);
        }
    }
}

/// The settings of the one that finds frames by their luma, for components with these models.
fn leader_settings(
    settings: &ReferenceSettings,
    models: Option<&Models>,
) -> Result<ReferenceSettings, ClError> {
    let model = models.map(Models::luma).transpose();
    Ok(ReferenceSettings {
        model: model.map_err(ClError::Refused)?.flatten(),
        ..settings.clone()
    })
}

impl ComponentTraining {
    /// Number of frames that were added.
    pub fn frames(&self) -> u32 {
        self.parts.first().map_or(0, Training::frames)
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

    /// Adds a frame, and waits. `operator` splits it.
    ///
    /// # Errors
    /// The failing call.
    pub fn add(
        &mut self,
        operator: &mut Components<Reference>,
        frame: (&ClFrame, usize),
        meter: &Arc<Meter>,
    ) -> Result<Progress, ClError> {
        self.seen += 1;
        let progress = self.add_parts(operator, frame, meter)?;
        if progress != Progress::Added {
            self.left_out.push(self.seen);
        }
        Ok(progress)
    }

    /// The models of the frames that were added; `None` if those are not more than half of the training, so that they may
    /// be the ones that are wrong.
    ///
    /// # Errors
    /// The failing call.
    pub fn models(&self, meter: &Meter) -> Result<Option<Models>, ClError> {
        if 2 * self.frames() <= self.wanted {
            return Ok(None);
        }
        self.trained(meter).map(Some)
    }

    /// The models of the frames that were added, however many.
    ///
    /// # Errors
    /// The failing call.
    pub(super) fn trained(&self, meter: &Meter) -> Result<Models, ClError> {
        let models = self.parts.iter().map(|part| part.model(meter));
        Ok(Models(models.collect::<Result<_, _>>()?))
    }

    fn add_parts(
        &mut self,
        operator: &mut Components<Reference>,
        (frame, rows): (&ClFrame, usize),
        meter: &Arc<Meter>,
    ) -> Result<Progress, ClError> {
        let mut place = None;
        if let Some(leader) = &mut self.leader {
            let luma = operator.grey(frame, rows, meter)?;
            match leader.add(luma, meter)? {
                Progress::Added => place = leader.last_place(),
                left_out => return Ok(left_out),
            }
        }
        let planes = operator.planes(frame, rows, meter)?;
        for (part, plane) in self.parts.iter_mut().zip(planes) {
            match part.add_at(plane, place.as_ref(), meter)? {
                Progress::Added => {}
                left_out => return Ok(left_out),
            }
        }
        Ok(Progress::Added)
    }

    /// By component the samples of the frame that was added last, as they were added; `None` if the frame was left out.
    ///
    /// # Errors
    /// The failing call.
    pub fn last_samples(
        &mut self,
        operator: &mut Components<Reference>,
        (frame, rows): (&ClFrame, usize),
        meter: &Arc<Meter>,
    ) -> Result<Option<Vec<Vec<u16>>>, ClError> {
        if (self.leader.as_ref()).is_some_and(|leader| leader.last_place().is_none()) {
            return Ok(None);
        }
        let planes = operator.planes(frame, rows, meter)?;
        let parts = self.parts.iter_mut().zip(planes);
        parts
            .map(|(part, plane)| part.last_samples(plane, meter))
            .collect()
    }

    /// A frame of the training by its [`Self::last_samples`], and a comparison like `like` with what the other frames
    /// trained; `None` if there is no other one.
    ///
    /// # Errors
    /// The failing call.
    pub fn without(
        &mut self,
        samples: &[Vec<u16>],
        like: &Components<Reference>,
        meter: &Arc<Meter>,
    ) -> Result<Option<HeldOut>, ClError> {
        let layout = like.layout();
        let mut others = Vec::new();
        for ((part, samples), like) in self.parts.iter_mut().zip(samples).zip(like.all()) {
            match part.settings_without(samples, like, meter)? {
                Some(settings) => others.push(settings),
                None => return Ok(None),
            }
        }
        let models = others.iter().filter_map(|settings| settings.model.clone());
        let models = Models(models.collect());
        let judged = if like.are_apart() {
            JudgedComponents::Each
        } else {
            JudgedComponents::Luma
        };
        let mut settings = others.into_iter();
        let mut likes = like.all().iter();
        let operator = Components::new(like.context(), layout, judged, |layout, _| {
            let (settings, like_part) = (settings.next().zip(likes.next()))
                .ok_or_else(|| ClError::Input("a component was not trained".into()))?;
            Ok(Reference {
                learns_factor: like_part.learns_factor,
                ..Reference::prepare(like.context(), layout, &settings)?
            })
        })?;
        let operator = match like.leader() {
            Some(leader) => {
                let settings = leader_settings(&leader.settings, Some(&models))?;
                operator.with_leader(Reference::prepare(
                    like.context(),
                    &layout.grey(),
                    &settings,
                )?)
            }
            None => operator,
        };
        let mask_bytes = packed_stride(layout.width) * layout.height;
        Ok(Some(HeldOut {
            frame: frame_of(like, samples, meter)?,
            mask: ClBuffer::new(like.context(), mask_bytes, meter)?,
            others: operator,
        }))
    }
}

/// A frame with these samples of its components; of luma each component of the colour has them.
fn frame_of(
    like: &Components<Reference>,
    samples: &[Vec<u16>],
    meter: &Arc<Meter>,
) -> Result<ClFrame, ClError> {
    let layout = like.layout();
    let frame = ClFrame::scratch(like.context(), &layout.first_plane(), meter)?;
    let plane = frame.plane(0)?;
    let mut bytes = vec![0_u8; layout.planes.first().map_or(0, |plane| plane.row_bytes)];
    let colours = if crate::is_colour(layout) { 3 } else { 1 };
    for y in 0..layout.height {
        for (at, component) in layout.components.iter().take(colours).enumerate() {
            let Some(samples) = samples.get(at).or(samples.first()) else {
                continue;
            };
            let row = samples.iter().skip(y * layout.width).take(layout.width);
            for (x, &sample) in row.enumerate() {
                let to = component.offset + x * component.pixel_stride;
                match layout.sample {
                    SampleType::U8 => bytes[to] = sample as u8,
                    SampleType::U16Le => bytes[to..to + 2].copy_from_slice(&sample.to_le_bytes()),
                    SampleType::U16Be => bytes[to..to + 2].copy_from_slice(&sample.to_be_bytes()),
                }
            }
        }
        if let Memory::Buffer(buffer) = plane.memory() {
            buffer.write(
                plane.offset + y * plane.stride,
                &bytes,
                "a frame of a training",
            )?;
        }
    }
    Ok(frame)
}
