//! Finds where frames lie in a model.

use clinspect_core::{
    ClError,
    reference::{self, Freedom, JudgedArea, Model, Step, Warp},
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, NdRange, frame::ClFrame};

use super::{Align, BLOCK, Base, ReferenceSettings};
use crate::to_i32;

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
    kernel: Kernel,
    group: [usize; 2],
    aligner: reference::Aligner,
    out: Mem,
    sums: Vec<u16>,
}

const BLOCKS: &str = "reference_blocks";
/// Side of a block whose samples are summed, px.
const SIDE: usize = 4;

impl Aligner {
    pub fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Model,
        judged: &JudgedArea,
    ) -> Result<Self, ClError> {
        let freedom = match settings.align {
            Align::None | Align::Translation => Freedom::Shift,
            Align::Affine => Freedom::Affine,
            Align::Local => Freedom::Local,
        };
        let sums = model.block_sums(base.depth);
        let aligner = reference::Aligner::new(
            &sums,
            base.size,
            settings.search_range as usize,
            freedom,
            |x, y| judged.is_judged(x, y),
        );
        let (kernel, group) = base.kernel(BLOCKS)?;
        Ok(Self {
            kernel,
            group,
            aligner: aligner.map_err(ClError::Refused)?,
            out: (base.context).device_memory(sums.len() * size_of::<u16>())?,
            sums,
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
        let [src, offset, stride, ..] = base.frame_args(frame.plane(0)?)?;
        let [across, down] = base.size.map(|n| n / SIDE);
        let (item_blocks, range) = if base.context.caps().is_cpu {
            let blocks = across.next_multiple_of(BLOCK / SIDE);
            (blocks, NdRange::tiles([1, down], 1))
        } else {
            (1, NdRange::cover([across, down], self.group))
        };
        let args = [
            src,
            offset,
            stride,
            Arg::I32(to_i32(across, "blocks")?),
            Arg::I32(to_i32(down, "blocks")?),
            Arg::I32(to_i32(item_blocks, "blocks")?),
            Arg::I32(base.depth.saturating_sub(8) as i32),
            Arg::Mem(&self.out),
        ];
        let mut submission = base.context.submit(meter, base.bytes());
        submission.run(&mut self.kernel, BLOCKS, &args, &range)?;
        let bytes = bytemuck::cast_slice_mut(&mut self.sums);
        submission.read(&self.out, 0, bytes, "sums of the frame")?;
        let found = self.aligner.find(&self.sums);
        Ok(PartPlace {
            warp: found.warp,
            score: found.score,
            misfit: found.misfit,
            step: found.step,
        })
    }
}
