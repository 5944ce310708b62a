//! The contrast of a repeating pattern, which is learned from a frame that shows it, or from good frames with the limits.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use gst::{glib::subclass::Signal, prelude::*, subclass::prelude::*};

use super::pattern::{Estimated, PATIENCE};
use crate::elements::{
    base_filter::{ClBaseFilter, ClBaseFilterExt, InForce, View},
    last_report::LastReport,
};
use clinspect_core::{ClError, learning::Contrasts, pitch_estimate::LARGEST_TOLERANCE};
use clinspect_opencl::{Meter, frame::ClFrame};
use clinspect_operators::{Components, Contrast, Repeating, Submitted, contrast_q4};

/// Learns the contrast.
#[derive(Default)]
pub struct Presence {
    /// `take-contrast` was called.
    is_wanted: AtomicBool,
}

/// The learned contrast, kept from frame to frame.
#[derive(Default)]
pub struct Learned {
    /// By component, the number of operators with which it was learned, and the pitches of one frame; like the limits, those
    /// of good frames, which are set, count at any pitches.
    contrast: Option<(Contrasts, usize, Option<[f64; 2]>)>,
    /// Frames in which the pattern was not seen.
    unseen: u64,
    warned: LastReport<()>,
}

/// Minimum contrasts for messages, one for each component that is judged.
pub fn in_words(contrasts: impl Iterator<Item = Contrast>) -> String {
    let words = contrasts.map(|contrast| match contrast {
        Contrast::Off => "0".into(),
        Contrast::Known(level) => format!("{level:.3}"),
        Contrast::Unknown => "unknown".into(),
    });
    words.collect::<Vec<String>>().join("/")
}

/// The action signal `take-contrast` of an element; `presence` is its part.
pub fn contrast_signal<T>(presence: fn(&T) -> &Presence) -> Signal
where
    T: ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<gst::Element>>,
{
    Signal::builder("take-contrast")
        .action()
        .class_handler(move |args| {
            let element = args.first()?.get::<gst::Element>().ok()?;
            let element = element.downcast_ref::<T::Type>()?;
            let presence = presence(element.imp());
            presence.is_wanted.store(true, Ordering::Relaxed);
            element.revise();
            None
        })
        .build()
}

impl Learned {
    /// Whether the contrast is known.
    pub fn is_known(&self) -> bool {
        self.contrast.is_some()
    }

    /// The largest contrast of the pattern at about these pitches, grey levels of 8 bits.
    pub fn contrast_of(&self, pitches: [f64; 2]) -> Option<f64> {
        let (contrasts, _, of) = self.contrast?;
        is_about(of, pitches).then(|| contrasts.largest())
    }

    /// The minimum contrasts, unknown if none were learned for about these pitches and as many operators.
    pub fn minimum(&self, pitches: [f64; 2], operators: usize) -> Option<Contrasts> {
        let (contrasts, with, of) = self.contrast?;
        let is_known = is_about(of, pitches) && with == operators;
        is_known.then(|| contrasts.map(|contrast| contrast / 2.0))
    }

    /// Gives the operator in use its minimum contrasts.
    pub fn give<S, O: Submitted + Repeating>(&self, in_force: &mut InForce<S, Components<O>>) {
        let operator = &mut in_force.operator;
        let minimum = self.minimum(operator.pitches(), operator.all().len());
        if operator.set_minimum(minimum) {
            in_force.note_change();
        }
    }
}

impl Presence {
    /// Takes the contrasts of good frames.
    pub fn take<S, O: Submitted + Repeating>(
        (element, estimated): (&ClBaseFilter, &Estimated),
        in_force: &mut InForce<S, Components<O>>,
        learned: &mut Learned,
        contrasts: Contrasts,
    ) {
        let operators = in_force.operator.all().len();
        learned.contrast = Some((contrasts, operators, None));
        estimated.set_contrast(element, contrasts.largest());
        learned.give(in_force);
    }

    /// Forgets the contrast, at new caps.
    pub fn forget(&self, element: &ClBaseFilter, estimated: &Estimated, learned: &mut Learned) {
        *learned = Learned::default();
        estimated.set_contrast(element, 0.0);
    }

    /// Sets the minimum contrast of the comparison before a frame. If it is `wanted` to be learned, and neither the contrasts of
    /// good frames are `set` nor others are known, looks for the pattern in the frame.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn update<S, O: Submitted + Repeating>(
        &self,
        (element, estimated): (&ClBaseFilter, &Estimated),
        (wanted, set, estimated_axes): (Contrast, Option<Contrasts>, [bool; 2]),
        in_force: &mut InForce<S, Components<O>>,
        learned: &mut Learned,
        view: &View,
    ) -> Result<(), ClError> {
        if wanted != Contrast::Unknown {
            self.forget(element, estimated, learned);
            return Ok(());
        }
        let is_wanted = self.is_wanted.swap(false, Ordering::Relaxed);
        if let Some(set) = set {
            Self::take((element, estimated), in_force, learned, set);
            return Ok(());
        }
        let comparison = &mut in_force.operator;
        let pitches = comparison.pitches();
        let operators = comparison.all().len();
        let was_set = learned.contrast.is_some_and(|(_, _, of)| of.is_none());
        if is_wanted || was_set || learned.minimum(pitches, operators).is_none() {
            learned.contrast = None;
        }
        if learned.contrast.is_none() {
            let of = (view.frame, view.rows);
            let contrasts = contrasts_of(comparison, of, estimated_axes, view.meter)?;
            learned.contrast = contrasts.map(|contrasts| (contrasts, operators, Some(pitches)));
            let contrast = learned.contrast_of(pitches);
            estimated.set_contrast(element, contrast.unwrap_or(0.0));
            self.warn(element, learned, pitches);
        }
        learned.give(in_force);
        Ok(())
    }

    /// Warns once if the pattern was not seen in several frames, although a pitch is known.
    fn warn(&self, element: &ClBaseFilter, learned: &mut Learned, pitches: [f64; 2]) {
        if learned.contrast.is_some() {
            learned.unseen = 0;
            learned.warned.clear();
            return;
        }
        learned.unseen += u64::from(pitches != [0.0; 2]);
        if learned.unseen >= PATIENCE && learned.warned.is_new(()) {
            let [x, y] = pitches;
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                (
                    "no pattern that repeats with pitch-x={} and pitch-y={} was seen in {} frames; \
                     check the pitch, the light and the focus, or set min-contrast",
                    x,
                    y,
                    PATIENCE
                ),
                ["frames get the verdict none and a clear mask until the pattern is seen"]
            );
        }
    }
}

/// The contrasts of the pattern in a frame with this number of rows; `None` if no component shows the pattern.
///
/// # Errors
/// A failing OpenCL call.
pub fn contrasts_of<O: Submitted + Repeating>(
    comparison: &mut Components<O>,
    (frame, rows): (&ClFrame, usize),
    estimated_axes: [bool; 2],
    meter: &Arc<Meter>,
) -> Result<Option<Contrasts>, ClError> {
    // A contrast that rounds to 0 could never be missed.
    let seen = |contrast: f64| {
        if contrast_q4(contrast / 2.0) > 0 {
            contrast
        } else {
            0.0
        }
    };
    let contrasts = comparison.learn_contrasts(frame, rows, estimated_axes, meter)?;
    Ok(contrasts
        .map(|contrasts| contrasts.map(seen))
        .filter(|contrasts| contrasts.largest() > 0.0))
}

/// Whether the pattern's contrast at one pair of pitches is that at another: estimates of a natural texture move
/// a little. Contrasts of no pitches in particular are those at any.
fn is_about(before: Option<[f64; 2]>, now: [f64; 2]) -> bool {
    let mut axes = before.into_iter().flatten().zip(now);
    axes.all(|(before, now)| (now - before).abs() <= LARGEST_TOLERANCE * before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_of_another_pitch_or_axis_does_not_count() {
        let learned = Learned {
            contrast: Some((Contrasts([20.0, 8.0, 0.0]), 3, Some([7.0, 0.0]))),
            ..Learned::default()
        };
        for (pitches, is_kept) in [
            ([7.0, 0.0], true),
            ([7.13, 0.0], true),
            ([6.87, 0.0], true),
            ([7.15, 0.0], false),
            ([7.0, 9.0], false),
            ([0.0, 0.0], false),
        ] {
            let known = learned.minimum(pitches, 3) == Some(Contrasts([10.0, 4.0, 0.0]));
            assert_eq!(known, is_kept, "{pitches:?}");
            assert_eq!(learned.minimum(pitches, 1), None);
            let good = Learned {
                contrast: Some((Contrasts([20.0, 8.0, 0.0]), 3, None)),
                ..Learned::default()
            };
            assert!(good.minimum(pitches, 3).is_some(), "{pitches:?}");
        }
    }
}
