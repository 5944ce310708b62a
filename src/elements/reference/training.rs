//! The model of the element, and its trainings.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gst::{glib::subclass::Signal, prelude::Cast, subclass::prelude::ObjectSubclassIsExt};

use super::{ClReference, file};
use crate::elements::{
    base_filter::{ClBaseFilterExt, View},
    inspector::Kept,
    last_report::LastReport,
    saver::{Saver, Saving},
};
use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
    reference::Model,
};
use clinspect_opencl::Meter;
use clinspect_operators::{HeldOut, Progress, Reference, Subject, Training};

/// What the signal tells the streaming thread.
#[derive(Default)]
pub struct Requests {
    /// `train` was emitted.
    is_wanted: AtomicBool,
}

/// The model, and the training in progress; kept from frame to frame.
#[derive(Default)]
pub struct Trained {
    model: Option<Arc<Model>>,
    /// Size and samples of the frames.
    frames: Option<([usize; 2], SampleType)>,
    training: Option<Training>,
    /// Numbers and samples of frames of the training, from which limits are learned.
    kept: Vec<(u64, Vec<u16>)>,
    /// The training that has ended, until the kept frames are judged.
    ended: Option<Training>,
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
    pub fn usable(&self) -> Option<Arc<Model>> {
        let (size, sample) = self.frames?;
        let model = self.model.as_ref()?;
        (model.check_fits(size, sample.bits()).is_ok()).then(|| model.clone())
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

    /// Frames have this layout from now on. Reads the model from the file if no model fits them.
    pub fn set_frames(&mut self, element: &ClReference, layout: &FrameLayout) {
        let frames = ([layout.width, layout.height], layout.sample);
        let before = self.frames.replace(frames);
        if before == Some(frames) {
            return;
        }
        let ([width, height], _) = frames;
        if let (Some(training), Some(([w, h], _))) = (self.training.take(), before) {
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "the training ended after {} of {} frames, because frames changed from {}x{} to {}x{} or to \
                     another format; emit train again",
                    training.frames(),
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
        if self.usable().is_none() && !self.location.as_os_str().is_empty() {
            self.saver.wait();
            match file::read(&self.location, [width, height], layout.sample.bits()) {
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
        let fits = |model: &Arc<Model>| model.check_fits([width, height], layout.sample.bits());
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
        operator: &Reference,
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
            if !operator.is_comparing() && self.usable().is_none() {
                self.warn_missing(element);
            }
            return Ok(());
        };
        let progress = training.add(view.frame, view.meter);
        self.trained_on = Some([training.frames(), training.wanted()]);
        match progress {
            Ok(Progress::Added) => {}
            Ok(Progress::Unmatched) => {
                if self.unmatched.is_new(()) {
                    gst::element_warning!(
                        element,
                        gst::StreamError::Format,
                        ("a frame of the training does not match the first one, and is left out; check that all \
                             frames show a good part, raise search-range, or lower match-score")
                    );
                }
            }
            Ok(Progress::Done(model)) => {
                self.ended = self.training.take();
                self.missing.clear();
                post(element, &model);
                self.save(element, &model);
                self.model = Some(model);
            }
            Err(ClError::Refused(why)) => {
                self.training = None;
                self.kept.clear();
                gst::element_warning!(
                    element,
                    gst::LibraryError::Settings,
                    ("the training ended: {}", why),
                    ["the model before the training stays in force, if there is one"]
                );
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn begin(
        &mut self,
        element: &ClReference,
        train_frames: u32,
        operator: &Reference,
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
        self.training = Some(operator.training()?);
        Ok(())
    }

    /// Writes the model, if a file is named.
    fn save(&mut self, element: &ClReference, model: &Arc<Model>) {
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
        number: u64,
        subject: Subject,
        most: usize,
    ) -> Result<(), ClError> {
        let training = self.training.as_mut().or(self.ended.as_mut());
        let Some(training) = training.filter(|_| self.kept.len() < most) else {
            return Ok(());
        };
        let samples = training.last_samples(subject.frame, subject.meter)?;
        self.kept.extend(samples.map(|samples| (number, samples)));
        Ok(())
    }

    /// The next of the kept frames, after the training.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn next_kept_frame(
        &mut self,
        operator: &Reference,
        meter: &Arc<Meter>,
    ) -> Result<Option<Kept<Box<Reference>>>, ClError> {
        let Some(training) = &mut self.ended else {
            return Ok(None);
        };
        while !self.kept.is_empty() {
            let (frame_number, samples) = self.kept.remove(0);
            if let Some(HeldOut { frame, others }) = training.without(&samples, operator, meter)? {
                return Ok(Some(Kept {
                    frame_number,
                    frame,
                    operator: Box::new(others),
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
                    training.frames(),
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

/// Posts a message about a new model.
fn post(element: &ClReference, model: &Model) {
    let [width, height] = model.size().map(|v| v as u32);
    let mean = |values: &[u32]| {
        let sum: u64 = values.iter().map(|&v| u64::from(v)).sum();
        sum as f64 / 256.0 / values.len() as f64
    };
    let fields = gst::Structure::builder("clreference-model")
        .field("frames", model.frames())
        .field("width", width)
        .field("height", height)
        .field("mean-level", mean(model.mean()))
        .field("mean-deviation", mean(model.deviation()))
        .build();
    element.post(gst::message::Element::builder(fields).src(element).build());
}
