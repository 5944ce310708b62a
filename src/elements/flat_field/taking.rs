//! References while frames are averaged.

use std::{path::Path, sync::Arc};

use super::references::{self, References};
use clinspect_core::{
    flat_field::{Reference, check_saturation},
    layout::FrameLayout,
};
use clinspect_operators::FrameSums;

/// Which reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dark,
    White,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::White => "white",
        }
    }
}

/// Frames are being averaged.
#[derive(Debug)]
pub struct Taking {
    pub kind: Kind,
    pub sums: FrameSums,
    /// Number of frames.
    pub wanted: u64,
    /// The frames' layout.
    pub layout: Arc<FrameLayout>,
}

/// A reference that was taken, for the message.
#[derive(Debug)]
pub struct ReferenceSummary {
    kind: Kind,
    frames: u64,
    /// Least, mean and largest value, grey levels.
    range: [f64; 3],
    samples: u64,
    bad: u64,
    saturated: f64,
    /// Grey levels; `None` without a white reference.
    target: Option<f64>,
}

impl Taking {
    /// The warning at the end of a stream that had too few frames.
    pub fn why_unfinished(&self) -> String {
        format!(
            "the stream ended after {} of {} frames of the {} reference, so it was not taken; lower average-frames, \
             or let more frames pass",
            self.sums.frames(),
            self.wanted,
            self.kind.name()
        )
    }

    /// Ends the average: checks the reference, writes the file, and puts the reference in force.
    ///
    /// # Errors
    /// A sentence that says why the reference cannot be used; nothing has changed.
    pub fn finish(
        &self,
        reference: Reference,
        in_force: &mut References,
        [target, min_range]: [f64; 2],
        location: &Path,
    ) -> Result<ReferenceSummary, String> {
        let (kind, saturated) = (self.kind, self.sums.saturated());
        if kind == Kind::White {
            check_saturation(saturated)?;
        }
        let (range, shape) = (reference.range(), reference.shape);
        let mut next = in_force.clone();
        match kind {
            Kind::Dark => next.dark = Some(reference.into()),
            Kind::White => next.white = Some(reference.into()),
        }
        // References of frames of another size.
        next.dark.take_if(|dark| dark.shape != shape);
        next.white.take_if(|white| white.shape != shape);
        let correction = next.correction(target, min_range)?;
        if !location.as_os_str().is_empty() {
            references::write(location, &next)?;
        }
        *in_force = next;
        Ok(ReferenceSummary {
            kind,
            frames: self.sums.frames(),
            range,
            samples: shape.len() as u64,
            bad: correction.as_ref().map_or(0, |c| c.bad as u64),
            saturated,
            target: correction.map(|c| f64::from(c.target) / 256.0),
        })
    }
}

impl ReferenceSummary {
    /// The reference in words.
    pub fn summary(&self) -> String {
        let [least, mean, largest] = self.range;
        format!(
            "{} reference of {} frames: {least:.1} to {largest:.1}, mean {mean:.1} grey levels; {} of {} \
             samples bad, {:.2} % saturated",
            self.kind.name(),
            self.frames,
            self.bad,
            self.samples,
            100.0 * self.saturated
        )
    }

    /// Writes the fields of the message.
    pub fn write(&self, fields: &mut gst::StructureRef) {
        let [least, mean, largest] = self.range;
        fields.set("kind", self.kind.name());
        fields.set("frames", self.frames as u32);
        fields.set("least", least);
        fields.set("mean", mean);
        fields.set("largest", largest);
        fields.set("samples", self.samples);
        fields.set("bad-samples", self.bad);
        fields.set("saturated", self.saturated);
        if let Some(target) = self.target {
            fields.set("target", target);
        }
    }
}
