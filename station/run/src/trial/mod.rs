//! Inspections of given frames, beside the running cameras: what settings say about frames that were kept, and what
//! an analyzer learns from good ones.
//!
//! The frames are those of a camera behind `clunpack` and before `clflatfield` and `clgaussian`.

mod chain;
mod flat_field;
pub mod folder;
mod mask;
mod settings;
mod table;
mod teach;

use clinspect_results::{HistogramResult, report::Report};
use gst::prelude::*;
use plan::CameraConfig;
use serde::Serialize;

use crate::{
    frame::Frame,
    pipeline::{changes, is_same_chain},
};
use chain::Chain;
pub use flat_field::{Reference, TakenReference, take};
pub use mask::Mask;
pub use settings::files_of;
pub use table::{Counts, Row, Table, table, table_of};
pub use teach::{Demands, Limit, TeachResult, teach};

/// Properties for which no kernel is compiled: the next frame is judged by a new value. While a kernel is compiled, frames
/// are judged by the value before, which must not be taken for the new one.
const LIVE: [&str; 13] = [
    "threshold",
    "scale-factors",
    "thresholds",
    "deviation-factor",
    "component-limits",
    "contrasts",
    "min-area",
    "merge-distance",
    "classes",
    "fail",
    "limits",
    "rois",
    "ignore",
];

/// A pipeline of its own that judges single frames with a camera's settings. It never writes a file of the camera, and
/// learns nothing: limits or a model that are not known give the verdict `none`.
pub struct Trial {
    config: CameraConfig,
    /// `None` after an error; the next frame makes it anew.
    chain: Option<Chain>,
    /// Settings that were in force before those whose first frame is still to come.
    before: Option<CameraConfig>,
    frames: u64,
}

/// What was found in a frame.
#[derive(Debug, Clone)]
pub struct TrialResult {
    /// The results. The time is that of the trial, and the frame number counts from 0.
    pub report: Report,
    /// The marked pixels.
    pub mask: Mask,
    /// The counts of the samples.
    pub histogram: Option<HistogramResult>,
    /// The last warning that an element posted with this frame.
    pub warning: Option<String>,
}

/// What the analyzer has estimated from the frames; 0 is unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Estimates {
    /// Pitch along x, px.
    pub pitch_x: f64,
    /// Pitch along y, px.
    pub pitch_y: f64,
    /// Vectors of a pattern at an angle, px; empty if there are none.
    pub lattice: Vec<f64>,
    /// Contrast of the pattern, grey levels of 8 bits.
    pub contrast: f64,
}

impl Trial {
    /// Starts the pipeline for frames of this format and size. Others may follow.
    ///
    /// # Errors
    /// A sentence if an element is missing, or refuses its settings or the frames.
    pub fn start(config: &CameraConfig, info: &gst_video::VideoInfo) -> Result<Self, String> {
        let config = settings::of_trial(config);
        let chain = Chain::start(&config)?;
        let caps = info.to_caps().map_err(|error| error.to_string())?;
        let first = chain.parts.first().map(|part| &part.element);
        let pad = first.and_then(|first| first.static_pad("sink"));
        let takes = |pad: &gst::Pad| pad.query_accept_caps(&caps);
        if !pad.as_ref().is_some_and(takes) {
            let format = info.format();
            return Err(format!("the elements that inspect take no {format} frames"));
        }
        Ok(Self {
            config,
            chain: Some(chain),
            before: None,
            frames: 0,
        })
    }

    /// Inspects a frame, and waits for its result.
    ///
    /// # Errors
    /// A sentence: an element failed, it refuses the last change of settings (those before are then in force again), or
    /// there is no result within 60 s.
    pub fn judge(&mut self, frame: &Frame) -> Result<TrialResult, String> {
        let number = self.frames;
        self.frames += 1;
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => Chain::start(&self.config)?,
        };
        chain.warning = None;
        // After an error the chain is dropped. New settings that fail with their first frame are not tried again.
        let judged = chain.judge(frame, number);
        if judged.is_err()
            && let Some(old) = self.before.take()
        {
            self.config = old;
        }
        let mut judged = judged?;
        chain.messages.clear();
        // Limits that are not known are not being learned either.
        for inspection in &mut judged.report.inspections {
            inspection.learning = None;
        }
        let refused = self.refused(&chain, judged.warning.as_deref());
        self.chain = Some(chain);
        match refused {
            Some(why) => Err(why),
            None => Ok(judged),
        }
    }

    /// Takes back the last change if an element refused a part of it, and tells why.
    fn refused(&mut self, chain: &Chain, warning: Option<&str>) -> Option<String> {
        let old = self.before.take()?;
        let changes = changes(&chain.parts, &old, &self.config)?;
        let refused = changes.iter().find(|change| !change.is_in_force())?;
        let why = warning.unwrap_or("the element gives no reason");
        let text = format!("{} is refused: {why}", refused.name());
        for change in &changes {
            change.take_back();
        }
        self.config = old;
        Some(text)
    }

    /// Changes the settings; the next frame is judged by them. Limits and regions change in the running pipeline. Other
    /// changes need a new one, which takes some milliseconds, or seconds if the driver compiles kernels; what was
    /// estimated from the frames is then unknown again.
    ///
    /// # Errors
    /// A sentence if an element refuses them; those before stay in force. Some are refused only with the next frame.
    pub fn change(&mut self, config: &CameraConfig) -> Result<(), String> {
        let new = settings::of_trial(config);
        if let Some(chain) = &self.chain
            && is_same_chain(&self.config, &new)
            && settings::limits_file(&self.config) == settings::limits_file(&new)
            && let Some(changes) = changes(&chain.parts, &self.config, &new)
            && changes.iter().all(|change| LIVE.contains(&change.name()))
        {
            for change in &changes {
                change.apply();
            }
            if let Err(why) = chain.check() {
                for change in &changes {
                    change.take_back();
                }
                return Err(why);
            }
        } else {
            let next = Chain::start(&new)?;
            next.check()?;
            self.chain = Some(next);
        }
        let old = std::mem::replace(&mut self.config, new);
        // If no frame came since the last change, the settings before that one were in force.
        self.before.get_or_insert(old);
        Ok(())
    }

    /// What the analyzer has estimated so far.
    pub fn estimates(&self) -> Estimates {
        let analyzer = self.chain.as_ref().map(|chain| &chain.analyzer);
        let analyzer = analyzer.filter(|analyzer| analyzer.has_property("estimates"));
        let Some(analyzer) = analyzer else {
            return Estimates::default();
        };
        let estimates: gst::Structure = analyzer.property("estimates");
        let of = |name: &str| estimates.get(name).unwrap_or_default();
        let lattice: Option<gst::Array> = estimates.get("lattice").ok();
        let lattice = lattice.iter().flat_map(|of| of.iter());
        Estimates {
            lattice: lattice.filter_map(|number| number.get().ok()).collect(),
            pitch_x: of("pitch-x"),
            pitch_y: of("pitch-y"),
            contrast: of("contrast"),
        }
    }
}
