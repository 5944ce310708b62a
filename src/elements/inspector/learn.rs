//! The threshold is learned from good frames.

use std::sync::atomic::{AtomicBool, Ordering};

use gst::{glib::subclass::Signal, prelude::*, subclass::prelude::*};

use super::{Comparing, InspectorImpl};
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, Frame, InForce},
    structure::structure,
};
use clinspect_core::{ClError, threshold::Reached};
use clinspect_operators::Inspection;

const MOST_FRAMES: u32 = 100_000;
const PIXELS: f64 = 1e6;
const MAX_MARGIN: f64 = 65_535.0;

/// How the threshold is learned.
#[derive(Debug, Clone, Copy)]
pub(super) struct LearnSettings {
    frames: u32,
    rate: f64,
    margin: f64,
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self {
            frames: 25,
            rate: 1.0,
            margin: 0.5,
        }
    }
}

structure!(LearnSettings, "learn" {
    uint(
        "frames", "Frames",
        "Number of good frames; strips of a web count as frames",
        1..=MOST_FRAMES
    ) = frames;
    double(
        "rate", "Rate",
        "Judged pixels of the good frames that the learned threshold may mark, per million",
        0.0..=PIXELS
    ) = rate;
    double(
        "margin", "Margin",
        "Grey levels that are added to the learned threshold",
        0.0..=MAX_MARGIN
    ) = margin;
});

/// What an inspector knows of learning a threshold.
#[derive(Default)]
pub(super) struct LearnThreshold {
    /// `learn-threshold` was emitted.
    is_wanted: AtomicBool,
}

/// The good frames so far, kept from frame to frame.
pub(super) struct GoodFrames<S> {
    frames: u32,
    reached: Reached,
    /// The settings under which the frames were counted; `None` while no threshold is learned.
    settings: Option<S>,
}

impl<S> Default for GoodFrames<S> {
    fn default() -> Self {
        Self {
            frames: 0,
            reached: Reached::default(),
            settings: None,
        }
    }
}

/// A learned threshold.
pub(super) struct Learned {
    /// Grey levels.
    pub threshold: f64,
    frames: u32,
    judged: u64,
    of: LearnSettings,
}

/// The action signal `learn-threshold` of an inspector.
pub fn signal<T: InspectorImpl>() -> Signal {
    Signal::builder("learn-threshold")
        .action()
        .class_handler(|args| {
            let element = args.first()?.get::<gst::Element>().ok()?;
            let element = element.downcast_ref::<T::Type>()?;
            let learning = &element.imp().inspector().learning;
            learning.is_wanted.store(true, Ordering::Relaxed);
            None
        })
        .build()
}

impl LearnThreshold {
    /// New caps: learns from the new frames if a threshold was being learned.
    pub fn begin_again<S>(&self, good: &mut GoodFrames<S>) {
        if good.settings.is_some() {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
        *good = GoodFrames::default();
    }

    /// The warning at the end of a stream that had too few frames; `None` if no threshold is learned.
    pub fn why_unfinished<S>(
        &self,
        settings: &LearnSettings,
        good: &GoodFrames<S>,
    ) -> Option<String> {
        let is_wanted = self.is_wanted.load(Ordering::Relaxed);
        (is_wanted || good.settings.is_some()).then(|| {
            format!(
                "the stream ended after {} of {} judged frames of learn-threshold, so the threshold did not change; \
                 lower frames in the property learn, or let more good frames pass",
                if is_wanted { 0 } else { good.frames },
                settings.frames
            )
        })
    }

    /// Counts a frame that was judged. Returns the threshold after the last one.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn count<C: Comparing>(
        &self,
        of: LearnSettings,
        in_force: &mut InForce<C::Settings, C::Operator>,
        good: &mut GoodFrames<C::Settings>,
        frame: &Frame,
    ) -> Result<Option<Learned>, ClError> {
        let is_new = self.is_wanted.swap(false, Ordering::Relaxed);
        if !is_new && good.settings.is_none() {
            return Ok(None);
        }
        let settings = C::counted_under(&in_force.settings);
        // Counts of different comparisons do not add up.
        if is_new || good.settings.as_ref() != Some(&settings) {
            *good = GoodFrames {
                settings: Some(settings),
                ..GoodFrames::default()
            };
        }
        let subject = frame.subject();
        if !(in_force.operator).count_reached(subject, &mut good.reached)? {
            return Ok(None);
        }
        good.frames += 1;
        if good.frames < of.frames {
            return Ok(None);
        }
        let GoodFrames {
            frames, reached, ..
        } = std::mem::take(good);
        let threshold = reached.threshold(of.rate, of.margin);
        Ok(threshold.map(|threshold| Learned {
            threshold,
            frames,
            judged: reached.judged(),
            of,
        }))
    }
}

impl Learned {
    /// Notifies listeners of the property `threshold`, and posts the message `<message>-learned`.
    pub fn post(&self, element: &ClBaseFilter, message: &str) {
        element.notify("threshold");
        let fields = gst::Structure::builder(format!("{message}-learned"))
            .field("threshold", self.threshold)
            .field("frames", self.frames)
            .field("judged-pixels", self.judged)
            .field("rate", self.of.rate)
            .field("margin", self.of.margin)
            .build();
        let message = gst::message::Element::builder(fields).src(element);
        element.post(message.build());
    }
}
