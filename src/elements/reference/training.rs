//! The model of the element, and its trainings.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gst::{glib::subclass::Signal, prelude::Cast, subclass::prelude::ObjectSubclassIsExt};

use super::{ClReference, file, imp::Operator};
use crate::elements::{
    base_filter::{ClBaseFilterExt, View},
    inspector::{TrainingFrame, colour::ColourSettings},
    last_report::LastReport,
    saver::{Saver, Saving},
};
use clinspect_core::{ClError, layout::FrameLayout, reference::Model};
use clinspect_opencl::Meter;
use clinspect_operators::{Comparison, ComparisonTraining, HeldOut, Models, Progress, Subject};

/// What the signal tells the streaming thread.
#[derive(Default)]
pub struct Requests {
    /// `train` was emitted.
    is_wanted: AtomicBool,
}

/// The model, and the training in progress; kept from frame to frame.
#[derive(Default)]
pub struct Trained {
    model: Option<Models>,
    /// The layout of the frames.
    frames: Option<FrameLayout>,
    /// Their components are judged apart.
    are_apart: bool,
    training: Option<ComparisonTraining>,
    /// Numbers, and samples by component, of frames of the training, from which limits are learned.
    kept: Vec<(u64, Vec<Vec<u16>>)>,
    /// The training that has ended, until the kept frames are judged.
    ended: Option<ComparisonTraining>,
    /// See [`Self::trained_on`].
    trained_on: Option<[u32; 2]>,
    /// The element has decided whether a training begins at the start, which it does once.
    is_started: bool,
    unmatched: LastReport<()>,
    missing: LastReport<()>,
    location: PathBuf,
    /// `location` names a file that does not exist.
    is_absent: bool,
    /// There is a file that cannot be used. A training at the start must not replace this file.
    is_refused: bool,
    saver: Saver,
}

/// The action signal `train`.
pub fn signal() -> Signal {
    Signal::builder("train")
        .action()
        .class_handler(|args| {
            let element = args.first()?.get::<ClReference>().ok()?;
            let requests = &element.imp().requests;
            requests.is_wanted.store(true, Ordering::Relaxed);
            None
        })
        .build()
}

impl Trained {
    /// The model, if frames of the current caps can be compared with it.
    pub fn usable_with(&self, colour: &ColourSettings) -> Option<Models> {
        self.usable(colour.are_apart(self.frames.as_ref()?))
    }

    /// The same where it is known whether components are judged apart.
    fn usable(&self, are_apart: bool) -> Option<Models> {
        let model = self.model.as_ref()?;
        let fits = check_fits(model, self.frames.as_ref()?, are_apart);
        fits.is_ok().then(|| model.clone())
    }

    /// Whether the frame must not be compared: it belongs to a training.
    pub fn is_training(&self) -> bool {
        self.trained_on.is_some() || self.training.is_some()
    }

    /// The next frame trains nothing.
    pub fn leave_frame_out(&mut self) {
        self.trained_on = None;
    }

    /// Frames of the training so far, and all, if this frame belongs to one.
    pub fn trained_on(&self) -> Option<[u32; 2]> {
        self.trained_on
    }

    /// Without a model; `location` is the model's file, if there is one.
    pub fn new(location: PathBuf) -> Self {
        Self {
            location,
            ..Self::default()
        }
    }

    /// The components in force; see [`Self::set_frames`].
    pub fn set_components(&mut self, element: &ClReference, colour: &ColourSettings) {
        if let Some(layout) = self.frames.clone() {
            self.set_frames(element, &layout, colour);
        }
    }

    /// Frames have this layout from now on, and these components. Reads the model from the file if no model fits them.
    pub fn set_frames(
        &mut self,
        element: &ClReference,
        layout: &FrameLayout,
        colour: &ColourSettings,
    ) {
        let are_apart = colour.are_apart(layout);
        let before = self.frames.replace(layout.clone());
        let were_apart = std::mem::replace(&mut self.are_apart, are_apart);
        if before.as_ref() == Some(layout) && were_apart == are_apart {
            return;
        }
        element.revise();
        self.is_refused = false;
        self.kept.clear();
        let (width, height) = (layout.width, layout.height);
        if let (Some(training), Some(before)) = (self.training.take(), before) {
            let (w, h) = (before.width, before.height);
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "the training ended after {} of {} frames, because frames changed from {}x{} to {}x{}, or to \
                     another format or other components; emit train again",
                    training.seen(),
                    training.wanted(),
                    w,
                    h,
                    width,
                    height
                ),
                ["the model before the training stays in force, if there is one"]
            );
        }
        self.missing.clear();
        self.is_absent = false;
        if self.usable(are_apart).is_none() && !self.location.as_os_str().is_empty() {
            self.saver.wait();
            match file::read(
                &self.location,
                [width, height],
                layout.sample.bits(),
                are_apart,
            ) {
                Ok(Some(model)) => {
                    self.model = Some(model);
                    return;
                }
                Ok(None) => self.is_absent = true,
                Err(why) => {
                    self.is_refused = true;
                    self.missing.is_new(());
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Read,
                        ("{}", why),
                        ["frames get the verdict none and a clear mask"]
                    );
                    return;
                }
            }
        }
        let fits = |model: &Models| check_fits(model, layout, are_apart);
        if let Some(Err(why)) = self.model.as_ref().map(fits) {
            self.missing.is_new(());
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "{}; train with these frames, or set location to a model of them",
                    why
                ),
                ["frames get the verdict none and a clear mask"]
            );
        }
    }

    /// Trains with a frame, if a training is wanted or in progress.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn train(
        &mut self,
        element: &ClReference,
        train_frames: u32,
        operator: &mut Comparison,
        view: &View,
    ) -> Result<(), ClError> {
        self.trained_on = None;
        let requests = &element.imp().requests;
        let is_wanted = requests.is_wanted.swap(false, Ordering::Relaxed);
        let is_first = !std::mem::replace(&mut self.is_started, true);
        let has_none = self.model.is_none() && !self.is_refused;
        if is_wanted || (is_first && has_none && train_frames > 0) {
            self.begin(element, train_frames, operator)?;
        }
        let Some(training) = &mut self.training else {
            if !operator.is_comparing() && self.usable(operator.components().are_apart()).is_none()
            {
                self.warn_missing(element);
            }
            return Ok(());
        };
        let progress = training.add(operator, (view.frame, view.rows), view.meter);
        self.trained_on = Some([training.frames(), training.wanted()]);
        match progress {
            Ok(Progress::Added) => {}
            Ok(Progress::Unmatched) => self.warn_left_out(
                element,
                "does not match the first one. Check that all frames show a good part, raise search-range, or lower \
                 match-score",
            ),
            Ok(Progress::Flat(why)) => self.warn_left_out(element, &why),
            Err(error) => return self.give_up(element, error),
        }
        match &self.training {
            Some(training) if training.seen() >= training.wanted() => {
                self.finish(element, view.meter)
            }
            _ => Ok(()),
        }
    }

    /// The training has its frames.
    fn finish(&mut self, element: &ClReference, meter: &Meter) -> Result<(), ClError> {
        let Some(training) = self.training.take() else {
            return Ok(());
        };
        let (used, wanted) = (training.frames(), training.wanted());
        let left_out = in_words(training.left_out());
        match training.models(meter) {
            Ok(Some(models)) => {
                if !left_out.is_empty() {
                    gst::element_warning!(
                        element,
                        gst::StreamError::Format,
                        (
                            "the training used {} of its {} frames, and left out number {} (counted from 1)",
                            used,
                            wanted,
                            left_out
                        )
                    );
                }
                self.missing.clear();
                post(element, &models, training.left_out());
                self.save(element, &models);
                self.model = Some(models);
                element.revise();
                self.ended = Some(training);
            }
            Ok(None) => {
                self.kept.clear();
                gst::element_warning!(
                    element,
                    gst::StreamError::Format,
                    (
                        "the training ended without a model: only {} of its {} frames could be used, and more than half are \
                         needed. It left out number {} (counted from 1). Check that the first frame shows a good part, and \
                         train again",
                        used,
                        wanted,
                        left_out
                    ),
                    ["the model before the training stays in force, if there is one"]
                );
            }
            Err(error) => return self.give_up(element, error),
        }
        Ok(())
    }

    /// A training with these settings is refused, or the device failed.
    fn give_up(&mut self, element: &ClReference, error: ClError) -> Result<(), ClError> {
        let ClError::Refused(why) = error else {
            return Err(error);
        };
        self.training = None;
        self.kept.clear();
        gst::element_warning!(
            element,
            gst::LibraryError::Settings,
            ("the training ended: {}", why),
            ["the model before the training stays in force, if there is one"]
        );
        Ok(())
    }

    /// Warns of the first frame that a training leaves out; its end names all of them.
    fn warn_left_out(&mut self, element: &ClReference, why: &str) {
        let seen = self.training.as_ref().map_or(0, ComparisonTraining::seen);
        if self.unmatched.is_new(()) {
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "frame {} of the training is left out, because it {}",
                    seen,
                    why
                )
            );
        }
    }

    fn begin(
        &mut self,
        element: &ClReference,
        train_frames: u32,
        operator: &Comparison,
    ) -> Result<(), ClError> {
        if train_frames == 0 {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("train-frames is 0, so no training begins; set it to the number of good frames to train with")
            );
            return Ok(());
        }
        self.unmatched.clear();
        self.kept.clear();
        self.ended = None;
        self.training = Some(operator.training()?);
        Ok(())
    }

    /// Writes the model, if a file is named.
    fn save(&mut self, element: &ClReference, model: &Models) {
        if self.location.as_os_str().is_empty() {
            return;
        }
        self.is_refused = false;
        let model = model.clone();
        let saving = Saving {
            path: self.location.clone(),
            subject: "the model",
            message: "clreference-saved".into(),
            write: move |path: &Path| file::write(path, &model),
        };
        self.saver.save(element.upcast_ref(), saving);
    }

    /// Keeps the frame that was added last, unless `most` frames are kept.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn keep_frame(
        &mut self,
        operator: &mut Comparison,
        number: u64,
        subject: Subject,
        most: usize,
    ) -> Result<(), ClError> {
        let training = self.training.as_mut().or(self.ended.as_mut());
        let Some(training) = training.filter(|_| self.kept.len() < most) else {
            return Ok(());
        };
        let frame = (subject.frame, subject.window.height);
        let samples = training.last_samples(operator, frame, subject.meter)?;
        self.kept.extend(samples.map(|samples| (number, samples)));
        Ok(())
    }

    /// Number of the kept frames that [`Self::next_kept_frame`] has not given, after the training.
    pub fn kept_frames(&self) -> usize {
        self.ended.as_ref().map_or(0, |_| self.kept.len())
    }

    /// Forgets these frames.
    pub fn forget_kept_frames(&mut self) {
        // During a training they are those of `learn` before.
        if self.ended.take().is_some() {
            self.kept.clear();
        }
    }

    /// The next of the kept frames, after the training.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn next_kept_frame(
        &mut self,
        operator: &Comparison,
        meter: &Arc<Meter>,
    ) -> Result<Option<TrainingFrame<Operator>>, ClError> {
        let Some(training) = &mut self.ended else {
            return Ok(None);
        };
        while !self.kept.is_empty() {
            let (frame_number, samples) = self.kept.remove(0);
            let held_out = training.without(&samples, operator, meter)?;
            if let Some(HeldOut {
                frame,
                mask,
                others,
            }) = held_out
            {
                return Ok(Some(TrainingFrame {
                    frame_number,
                    frame,
                    height: others.layout().height,
                    mask,
                    operator: Comparison::Frames(others),
                }));
            }
        }
        self.ended = None;
        Ok(None)
    }

    /// Warns at the end of a stream that had too few frames for the training.
    pub fn warn_unfinished(&self, element: &ClReference) {
        if let Some(training) = &self.training {
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "the stream ended after {} of {} frames of the training, so there is no new model; lower \
                     train-frames, or let more good frames pass",
                    training.seen(),
                    training.wanted()
                )
            );
        }
    }

    fn warn_missing(&mut self, element: &ClReference) {
        if self.missing.is_new(()) {
            let absent = if self.is_absent {
                format!(", and the file {} does not exist", self.location.display())
            } else {
                String::new()
            };
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "there is no model of these frames{}; set train-frames and emit the signal train while good \
                     frames pass, or set location to the file of a model",
                    absent
                ),
                ["frames get the verdict none and a clear mask"]
            );
        }
    }
}

/// Why frames of this layout, whose components are judged apart or not, cannot be compared with models.
///
/// # Errors
/// A sentence with both.
fn check_fits(models: &Models, layout: &FrameLayout, are_apart: bool) -> Result<(), String> {
    if are_apart != (models.all().len() > 1) {
        return Err(file::other_components(are_apart));
    }
    let size = [layout.width, layout.height];
    let mut models = models.all().iter();
    models.try_for_each(|model| model.check_fits(size, layout.sample.bits()))
}

/// Numbers of frames, such as "3, 7, 12"; of very many the first.
fn in_words(frames: &[u32]) -> String {
    const MOST: usize = 20;
    let numbers: Vec<_> = frames.iter().take(MOST).map(u32::to_string).collect();
    let more = if frames.len() > MOST { ", …" } else { "" };
    numbers.join(", ") + more
}

/// Posts a message about a new model. The levels are those of grey, or the means of red, green and blue.
fn post(element: &ClReference, models: &Models, left_out: &[u32]) {
    let Some(first) = models.all().first() else {
        return;
    };
    let [width, height] = first.size().map(|v| v as u32);
    let mean = |values: fn(&Model) -> &[u32]| {
        let all = models.all().iter().flat_map(|model| values(model));
        let (sum, count) = all.fold((0_u64, 0_u64), |(sum, n), &v| (sum + u64::from(v), n + 1));
        sum as f64 / 256.0 / count.max(1) as f64
    };
    let fields = gst::Structure::builder("clreference-model")
        .field("frames", first.frames())
        .field("left-out", gst::Array::new(left_out))
        .field("width", width)
        .field("height", height)
        .field("mean-level", mean(Model::mean))
        .field("mean-deviation", mean(Model::deviation))
        .build();
    element.post(gst::message::Element::builder(fields).src(element).build());
}
