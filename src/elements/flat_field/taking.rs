//! References: in force, and while frames are averaged.

use std::{path::Path, sync::Arc};

use super::file;
use clinspect_core::{
    flat_field::{Correction, Reference, check_saturation},
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

/// The references in force; shared, because the settings are copied for each frame.
#[derive(Debug, Clone, Default)]
pub struct References {
    pub dark: Option<Arc<Reference>>,
    pub white: Option<Arc<Reference>>,
}

impl PartialEq for References {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Option<Arc<Reference>>, b: &Option<Arc<Reference>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same(&self.dark, &other.dark) && same(&self.white, &other.white)
    }
}

/// A number of grey levels in 1/256 grey level.
fn fixed(levels: f64) -> u32 {
    (256.0 * levels).round() as u32
}

impl References {
    /// The correction with these references; `None` without a white one.
    ///
    /// # Errors
    /// A sentence that says why they cannot be used.
    pub fn correction(&self, target: f64, min_range: f64) -> Result<Option<Correction>, String> {
        let Some(white) = &self.white else {
            return Ok(None);
        };
        // A dark reference of frames of another size is no longer in force.
        let dark = self
            .dark
            .as_deref()
            .filter(|dark| dark.shape == white.shape);
        // A target that rounds to 0 would stand for the mean.
        let target = if target > 0.0 {
            fixed(target).max(1)
        } else {
            0
        };
        Correction::new(dark, white, target, fixed(min_range)).map(Some)
    }

    /// The warning that frames are not corrected. `absent` is the file of references if it does not exist.
    pub fn why_unchanged(&self, absent: Option<&Path>) -> String {
        if self.white.is_some() {
            return "the white reference was taken of frames of another size: frames pass unchanged; emit take-white"
                .into();
        }
        let absent = absent.map_or_else(String::new, |path| {
            format!(", and the file {} does not exist", path.display())
        });
        format!(
            "there is no white reference{absent}: frames pass unchanged; emit take-dark while no light reaches the \
             sensor, then take-white over an even white surface, or set location to a file of references"
        )
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
pub struct Taken {
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
    ) -> Result<Taken, String> {
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
            file::write(location, &next)?;
        }
        *in_force = next;
        Ok(Taken {
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

impl Taken {
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
