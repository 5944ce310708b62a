//! Lists the defects of a mask.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
};
use clinspect_opencl::{Arg, Meter, frame::ClFrame};

use super::Reference;
use crate::{MaskTarget, lister::DeviceMask, pitch_threshold::packed_mask};

impl Reference {
    /// Lists the defects of the frame and the mask of the last [`Self::run`]. The host reads only the packed mask.
    ///
    /// # Errors
    /// The failing call.
    pub fn list(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<Listed, ClError> {
        let base = &self.base;
        let [width, height] = base.size;
        let packed = packed_mask(target, &self.packed).filter(|_| self.marked.pixels > 0);
        let (Some((buffer, offset)), Some(model), Some(reading)) =
            (packed, &self.model, &self.reading)
        else {
            finder.pass(width, height, limits, true);
            return Ok(finder.list(&[]));
        };
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([
            reading.shift_arg(),
            reading.level_arg(base),
            Arg::Mem(&model.mean),
        ]);
        let mask = DeviceMask {
            buffer,
            offset,
            size: base.size,
            pixels: self.marked.pixels,
        };
        let web = (finder, limits, true);
        self.lister
            .list(&base.context, mask, [&args, &[]], web, meter)
    }

    /// Runs the kernel that lists need once.
    pub(super) fn warm_up_list(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        // The frame of zeros has no defect, so mark one pixel.
        if let Some(packed) = &self.packed {
            packed.write(0, &[0x80], "a mask to warm up with")?;
        }
        self.marked.pixels = 1;
        let limits = Limits {
            min_area: 0,
            merge_distance: 0,
            max_defects: 1,
            max_runs: usize::MAX,
            max_defect_rows: u32::MAX,
        };
        let mut finder = Finder::default();
        self.list(frame, MaskTarget::Grey(frame), &mut finder, &limits, meter)
            .map(|_| ())
    }
}
