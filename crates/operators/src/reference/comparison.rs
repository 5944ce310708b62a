//! A comparison of whole frames, or of the parts in them.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    ignored::Ignored,
    learning::Demand,
    sight::Sight,
    window::Reach,
};
use clinspect_opencl::{Meter, frame::ClFrame};

use super::{
    ComponentTraining, HeldOut, Models, PartTraining, Parts, Progress, Reference,
    part_training::PartsPlan,
};
use crate::{
    MaskTarget,
    colour::Components,
    inspection::{Basis, Inspection, Limit, Marked, Picture, Subject},
};

/// Compares frames with trained pictures.
#[derive(Debug)]
pub enum Comparison {
    /// Whole frames.
    Frames(Components<Reference>),
    /// Parts, and how they are trained.
    Parts(Box<Parts>, Box<PartsPlan>),
    /// No part was trained yet; nothing is judged.
    Untrained(Components<Reference>, Box<PartsPlan>),
}

/// A training of whole frames, or of parts.
#[derive(Debug)]
pub enum ComparisonTraining {
    /// Of whole frames.
    Frames(Box<ComponentTraining>),
    /// Of parts.
    Parts(Box<PartTraining>),
}

impl Comparison {
    fn inner(&self) -> &dyn Inspection {
        match self {
            Self::Frames(frames) | Self::Untrained(frames, _) => frames,
            Self::Parts(parts, _) => &**parts,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Inspection {
        match self {
            Self::Frames(frames) | Self::Untrained(frames, _) => frames,
            Self::Parts(parts, _) => &mut **parts,
        }
    }

    /// The comparison of a whole frame, or of a part as it is read from a frame.
    pub fn components(&self) -> &Components<Reference> {
        match self {
            Self::Frames(frames) | Self::Untrained(frames, _) => frames,
            Self::Parts(parts, _) => parts.comparison(),
        }
    }

    /// Begins a training with the settings in use.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn training(&self) -> Result<ComparisonTraining, ClError> {
        let (frames, plan) = match self {
            Self::Frames(frames) => {
                return Ok(ComparisonTraining::Frames(Box::new(frames.training()?)));
            }
            Self::Untrained(frames, plan) => ((frames.context(), frames.layout()), plan),
            Self::Parts(parts, plan) => (parts.frames(), plan),
        };
        let (context, layout) = frames;
        let training = PartTraining::new(context, layout, (**plan).clone());
        Ok(ComparisonTraining::Parts(Box::new(training)))
    }

    /// Whether frames are compared: there are models, and no training.
    pub fn is_comparing(&self) -> bool {
        match self {
            Self::Frames(frames) => frames.is_comparing(),
            Self::Parts(parts, _) => parts.is_comparing(),
            Self::Untrained(..) => false,
        }
    }

    /// Switches comparisons off: masks are then clear, and nothing is judged.
    pub fn set_blind(&mut self, is_blind: bool) {
        match self {
            Self::Frames(frames) | Self::Untrained(frames, _) => frames.set_blind(is_blind),
            Self::Parts(parts, _) => parts.set_blind(is_blind),
        }
    }
}

impl ComparisonTraining {
    /// Number of frames that were added.
    pub fn frames(&self) -> u32 {
        match self {
            Self::Frames(training) => training.frames(),
            Self::Parts(training) => training.frames(),
        }
    }

    /// Number of frames so far, those that were left out included.
    pub fn seen(&self) -> u32 {
        match self {
            Self::Frames(training) => training.seen(),
            Self::Parts(training) => training.seen(),
        }
    }

    /// Number of frames that the training takes, those that are left out included.
    pub fn wanted(&self) -> u32 {
        match self {
            Self::Frames(training) => training.wanted(),
            Self::Parts(training) => training.wanted(),
        }
    }

    /// The frames that were left out, counted from 1.
    pub fn left_out(&self) -> &[u32] {
        match self {
            Self::Frames(training) => training.left_out(),
            Self::Parts(training) => training.left_out(),
        }
    }

    /// Adds a frame of so many rows, and waits. `comparison` splits it.
    ///
    /// # Errors
    /// The failing call.
    pub fn add(
        &mut self,
        comparison: &mut Comparison,
        (frame, rows): (&ClFrame, usize),
        meter: &Arc<Meter>,
    ) -> Result<Progress, ClError> {
        match (self, comparison) {
            (Self::Frames(training), Comparison::Frames(frames)) => {
                training.add(frames, (frame, rows), meter)
            }
            (Self::Parts(training), _) => training.add(frame, meter),
            (Self::Frames(_), _) => Err(changed()),
        }
    }

    /// The models of the frames that were added; `None` if those are not more than half of the training, so that they may
    /// be the ones that are wrong.
    ///
    /// # Errors
    /// The failing call.
    pub fn models(&self, meter: &Meter) -> Result<Option<Models>, ClError> {
        match self {
            Self::Frames(training) => training.models(meter),
            Self::Parts(training) => training.models(meter),
        }
    }

    /// By component the samples of the frame or part that was added last; `None` if the frame was left out.
    ///
    /// # Errors
    /// The failing call.
    pub fn last_samples(
        &mut self,
        comparison: &mut Comparison,
        frame: (&ClFrame, usize),
        meter: &Arc<Meter>,
    ) -> Result<Option<Vec<Vec<u16>>>, ClError> {
        match (self, comparison) {
            (Self::Frames(training), Comparison::Frames(frames)) => {
                training.last_samples(frames, frame, meter)
            }
            (Self::Parts(training), _) => training.last_samples(meter),
            (Self::Frames(_), _) => Err(changed()),
        }
    }

    /// A frame or part of the training by its [`Self::last_samples`], and a comparison like `like` with what the others trained;
    /// `None` if there is no other one.
    ///
    /// # Errors
    /// The failing call.
    pub fn without(
        &mut self,
        samples: &[Vec<u16>],
        like: &Comparison,
        meter: &Arc<Meter>,
    ) -> Result<Option<HeldOut>, ClError> {
        match (self, like) {
            (Self::Frames(training), _) => training.without(samples, like.components(), meter),
            (Self::Parts(training), Comparison::Parts(parts, _)) => {
                training.without(samples, Some(parts.comparison()), meter)
            }
            // The comparison with the new model is still being built.
            (Self::Parts(training), _) => training.without(samples, None, meter),
        }
    }
}

fn changed() -> ClError {
    ClError::Refused(
        "align changed between frames and parts during the training; train again".into(),
    )
}

impl Inspection for Comparison {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        self.inner_mut().mark(subject, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        self.inner_mut().list(subject, mask, finder, limits)
    }

    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError> {
        self.inner_mut().draw(subject, picture, out)
    }

    fn limits(&self) -> Vec<Limit> {
        self.inner().limits()
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        self.inner_mut().demands(subject)
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.inner_mut().try_limits(values)
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        self.inner_mut().sights(values)
    }

    fn sees_all_alike(&self) -> bool {
        self.inner().sees_all_alike()
    }

    fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        self.inner_mut().mean_level()
    }

    fn set_ignored(&mut self, pixels: &Arc<Ignored>) -> Result<(), ClError> {
        self.inner_mut().set_ignored(pixels)
    }

    fn basis(&self) -> Basis {
        self.inner().basis()
    }

    fn reach(&self) -> Reach {
        self.inner().reach()
    }
}
