//! Finds where frames lie in a model.

use clinspect_core::{
    ClError,
    reference::{self, Freedom, JudgedArea, Model, Step, Warp},
};
use clinspect_opencl::{Meter, frame::ClFrame};

use super::{Align, Base, ReferenceSettings, blocks::BlockSums};

/// Where a frame was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PartPlace {
    /// Where the pixels of the model lie in the frame.
    pub warp: Warp,
    /// The correlation there, 0 to 1.
    pub score: f64,
    /// How far the samples are from the model there, grey levels; 0 if unknown.
    pub misfit: f64,
    /// How the motion was found.
    pub step: Step,
}

impl Default for PartPlace {
    /// A frame that is compared where it is.
    fn default() -> Self {
        Self {
            warp: Warp::default(),
            score: 1.0,
            misfit: 0.0,
            step: Step::None,
        }
    }
}

impl PartPlace {
    /// A pixel along x, to warm kernels up.
    pub fn moved() -> Self {
        let warp = Warp {
            coefficients: [1 << 20, 0, 0, 0, 0, 0],
            nodes: None,
        };
        Self {
            warp,
            ..Self::default()
        }
    }
}

/// Finds the motion of frames.
#[derive(Debug)]
pub(super) struct Aligner {
    aligner: reference::Aligner,
    blocks: BlockSums,
}

impl Aligner {
    pub fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Model,
        judged: &JudgedArea,
    ) -> Result<Self, ClError> {
        let freedom = match settings.align {
            Align::None | Align::Translation => Freedom::Shift,
            Align::Affine | Align::Any => Freedom::Affine,
            Align::Local => Freedom::Local,
        };
        let aligner = reference::Aligner::new(
            &model.block_sums(base.depth),
            base.size,
            settings.search_range as usize,
            freedom,
            |x, y| judged.is_judged(x, y),
        );
        Ok(Self {
            aligner: aligner.map_err(ClError::Refused)?,
            blocks: BlockSums::new(base)?,
        })
    }

    /// See [`reference::Aligner::has_structure`].
    pub fn has_structure(&self) -> bool {
        self.aligner.has_structure()
    }

    /// Finds a frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn find(
        &mut self,
        base: &Base,
        frame: &ClFrame,
        meter: &Meter,
    ) -> Result<PartPlace, ClError> {
        let sums = self.blocks.of(base, frame, meter)?;
        let found = self.aligner.find(sums);
        Ok(PartPlace {
            warp: found.warp,
            score: found.score,
            misfit: found.misfit,
            step: found.step,
        })
    }
}
