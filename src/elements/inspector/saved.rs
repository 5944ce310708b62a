//! The file of learned limits.

use std::path::Path;

use gst::{prelude::*, subclass::prelude::*};

use super::{
    Comparing, InspectorImpl, InspectorStream,
    learn::{Learning, NewLimits},
};
use crate::elements::{base_filter::InForce, lock, saver::Saving};
use clinspect_core::ClError;
use clinspect_core::components::COMPONENTS;
use clinspect_core::learning::{Contrasts, Demand, Good, Learner, MOST, UNITS};
use clinspect_models::{ArrayRef, ModelError, ModelFile};
use clinspect_operators::{Inspection, Limit};

/// The name of the element, and those of the limits with semicolons between them: code points.
const ELEMENT: &str = "element";
const NAMES: &str = "names";
const BETWEEN: &str = ";";
/// Width and height of the frames, and bits of their samples.
const SIZE: &str = "size";
const BITS: &str = "bits";
/// In 1/1024.
const LIMITS: &str = "limits";
/// Number of good frames that were wanted.
const FRAMES: &str = "frames";
/// The low and the high word of each frame's number.
const NUMBERS: &str = "numbers";
/// Of each frame, for each limit: the lowest limit at which it passes, and the mean over tiles, in 1/1024.
const PEAKS: &str = "peaks";
const TYPICALS: &str = "typicals";
/// Of each frame by component the contrast of its pattern, in 1/1024.
const CONTRASTS: &str = "contrasts";
/// In `typicals`: the quantity has no tiles.
const NONE: u32 = u32::MAX;

/// The limits that an element learned, and from what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Saved {
    pub limits: Vec<f64>,
    pub learner: Learner,
}

/// What a file must fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    /// The name of the element's kind.
    pub element: &'a str,
    pub size: [usize; 2],
    pub bits: u32,
    pub limits: &'a [Limit],
}

/// The file of limits of frames with this size and these bits.
fn saved_of<C: Comparing>(limits: &[Limit], (size, bits): ([usize; 2], u32)) -> Of<'_> {
    Of {
        element: C::Element::MESSAGE,
        size,
        bits,
        limits,
    }
}

impl<C: Comparing> InspectorStream<C> {
    /// Reads the learned limits, if there is a file of them. Returns whether there is a file, usable or not.
    pub(super) fn read_limits(&mut self) -> Result<bool, ClError> {
        let learn = lock(&self.element.inspector().reporting)
            .learn
            .usable()
            .clone();
        if !learn.has_location() {
            return Ok(false);
        }
        self.saver.wait();
        let InForce {
            operator, settings, ..
        } = self.live.in_force()?;
        let limits = operator.limits();
        let path = learn.location();
        let read = match self.own.together() {
            Some(together) => together
                .read(path, settings)
                .map(|values| values.map(|values| (values, None))),
            None => saved_of::<C>(&limits, self.frames)
                .read(path)
                .map(|saved| saved.map(|saved| (saved.limits, Some(saved.learner)))),
        };
        match read {
            Ok(None) => Ok(false),
            Ok(Some((values, learner))) => {
                let contrasts = learner.as_ref().map(Learner::contrasts).unwrap_or_default();
                if let Some(learner) = learner {
                    self.limits = Some(Learning::from_file(learner));
                }
                let values = limits.iter().copied().zip(values);
                self.set_limits(&values.collect::<Vec<_>>());
                let in_force = self.live.in_force()?;
                self.own.set_contrasts(&self.element, in_force, contrasts);
                let wanted = self.own.settings(&self.element);
                self.live.switch(wanted, |refused, in_force| {
                    C::restore(&self.element, refused, in_force);
                })?;
                Ok(true)
            }
            Err(why) => {
                let element = self.element.obj();
                gst::element_warning!(
                    element,
                    gst::ResourceError::Read,
                    ("{}", why),
                    ["the limits are those of the properties"]
                );
                Ok(true)
            }
        }
    }

    /// Writes the learned limits, if a file is named.
    pub(super) fn save_limits(&mut self, learned: &NewLimits) -> Result<(), ClError> {
        let learn = &self.reporting.learn;
        let Some(learning) = self.limits.as_ref().filter(|_| learn.has_location()) else {
            return Ok(());
        };
        let saved = Saved {
            limits: learned.values().map(|(_, value)| value).collect(),
            learner: learning.learner().clone(),
        };
        let InForce {
            operator, settings, ..
        } = self.live.in_force()?;
        let limits = operator.limits();
        let frames = self.frames;
        let saving = Saving {
            path: learn.location().into(),
            subject: "the set of learned limits",
            message: format!("{}-limits-saved", C::Element::MESSAGE),
            write: match self.own.together() {
                Some(together) => together.writer(settings, saved.limits),
                None => {
                    Box::new(move |path: &Path| saved_of::<C>(&limits, frames).write(path, &saved))
                }
            },
        };
        self.saver.save(self.element.obj().upcast_ref(), saving);
        Ok(())
    }
}

impl Of<'_> {
    fn names(&self) -> String {
        let names: Vec<String> = self.limits.iter().map(Limit::full_name).collect();
        names.join(BETWEEN)
    }

    /// Reads the limits; `None` if there is no file yet.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read(&self, path: &Path) -> Result<Option<Saved>, String> {
        let file = match ModelFile::open(path) {
            Err(error) if error.is_missing() => return Ok(None),
            file => file.map_err(text)?,
        };
        let saved = self.read_file(&file).map_err(|why| {
            format!(
                "the limits in the file {} are not used: {why}; learn again, or name another file",
                path.display()
            )
        })?;
        Ok(Some(saved))
    }

    fn read_file(&self, file: &ModelFile) -> Result<Saved, String> {
        let words = |array| Ok::<_, String>(file.array::<1>(array).map_err(text)?.samples);
        let letters = |array| {
            let letters = words(array)?.into_iter().map(char::from_u32);
            let text: Option<String> = letters.collect();
            text.ok_or_else(|| format!("the array '{array}' is no text"))
        };
        let (element, names) = (letters(ELEMENT)?, letters(NAMES)?);
        if element != self.element {
            return Err(format!(
                "they are of the element {element:?}, not of {}",
                self.element
            ));
        }
        let (size, bits) = (words(SIZE)?, file.scalar(BITS).map_err(text)?);
        let [width, height] = self.size;
        if size[..] != self.size.map(|v| v as u32) || bits != self.bits {
            return Err(format!(
                "they are of frames of {size:?} pixels with {bits}-bit samples, but frames are {width}x{height} with \
                 {}-bit samples",
                self.bits
            ));
        }
        let own = self.names();
        if names != own {
            return Err(format!(
                "they are the limits {names:?}, but the properties need {own:?}"
            ));
        }
        let count = self.limits.len();
        let values = words(LIMITS)?;
        if values.len() != count {
            return Err(format!(
                "there are {} limits with {count} names",
                values.len()
            ));
        }
        let limits: Vec<f64> = values
            .into_iter()
            .map(|units| f64::from(units) / UNITS)
            .collect();
        for (limit, value) in self.limits.iter().zip(&limits) {
            if *value > limit.most {
                return Err(format!(
                    "the limit {}={value} is above {}",
                    limit.full_name(),
                    limit.most
                ));
            }
        }
        let table = |array| file.array::<2>(array).map_err(text);
        let (numbers, peaks, typicals) = (table(NUMBERS)?, table(PEAKS)?, table(TYPICALS)?);
        let [frames, _] = numbers.shape;
        let contrasts = table(CONTRASTS)?;
        let wanted = file.scalar(FRAMES).map_err(text)? as usize;
        if numbers.shape != [frames, 2]
            || peaks.shape != [frames, count]
            || typicals.shape != [frames, count]
            || contrasts.shape != [frames, COMPONENTS]
            || wanted < frames
        {
            return Err("the numbers of frames and limits contradict each other".into());
        }
        let mut learner = Learner::new(wanted);
        let each = (numbers.samples.chunks_exact(2))
            .zip(peaks.samples.chunks_exact(count))
            .zip(typicals.samples.chunks_exact(count))
            .zip(contrasts.samples.as_chunks::<COMPONENTS>().0);
        for (((number, peaks), typicals), contrasts) in each {
            let demands = peaks.iter().zip(typicals).map(|(&peak, &typical)| Demand {
                peak: f64::from(peak) / UNITS,
                typical: (typical != NONE).then_some(f64::from(typical) / UNITS),
            });
            let number = number
                .iter()
                .rev()
                .fold(0, |n, &word| n << 32 | u64::from(word));
            let contrasts = Contrasts(contrasts.map(|units| f64::from(units) / UNITS));
            learner.add(number, &demands.collect::<Vec<_>>(), contrasts);
        }
        Ok(Saved { limits, learner })
    }

    /// Writes the limits.
    ///
    /// # Errors
    /// A sentence that names the file; the file before is unchanged.
    pub fn write(&self, path: &Path, saved: &Saved) -> Result<(), String> {
        let letters = |text: &str| -> Vec<u32> { text.chars().map(u32::from).collect() };
        let units = |value: f64| (value.min(MOST) * UNITS).round() as u32;
        let good = saved.learner.good();
        let each = || good.iter().flat_map(|Good { demands, .. }| demands);
        let (element, names) = (letters(self.element), letters(&self.names()));
        let limits: Vec<u32> = saved.limits.iter().map(|&limit| units(limit)).collect();
        let peaks: Vec<u32> = each().map(|demand| units(demand.peak)).collect();
        let typicals: Vec<u32> = each()
            .map(|demand| demand.typical.map_or(NONE, units))
            .collect();
        let numbers: Vec<u32> = (good.iter())
            .flat_map(|good| [good.frame as u32, (good.frame >> 32) as u32])
            .collect();
        let contrasts: Vec<u32> = (good.iter())
            .flat_map(|good| good.contrasts.0.map(units))
            .collect();
        let size = self.size.map(|v| v as u32);
        let table = [good.len(), self.limits.len()];
        let (element_len, names_len, limits_len) = ([element.len()], [names.len()], [limits.len()]);
        let (numbers_len, contrasts_len, bits, wanted) = (
            [good.len(), 2],
            [good.len(), COMPONENTS],
            [self.bits],
            [saved.learner.wanted() as u32],
        );
        let array = |name, shape, samples| ArrayRef {
            name,
            shape,
            samples,
        };
        let arrays = [
            array(ELEMENT, &element_len[..], &element[..]),
            array(NAMES, &names_len, &names),
            array(SIZE, &[2], &size),
            array(BITS, &[], &bits),
            array(LIMITS, &limits_len, &limits),
            array(FRAMES, &[], &wanted),
            array(NUMBERS, &numbers_len, &numbers),
            array(PEAKS, &table, &peaks),
            array(TYPICALS, &table, &typicals),
            array(CONTRASTS, &contrasts_len, &contrasts),
        ];
        clinspect_models::write(path, &arrays).map_err(text)
    }
}

fn text(error: ModelError) -> String {
    error.to_string()
}
