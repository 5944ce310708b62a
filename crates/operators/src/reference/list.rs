//! Lists the defects of a mask.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
};
use clinspect_opencl::{Arg, Meter, frame::ClFrame};

use super::Reference;
use crate::{
    MaskTarget,
    lister::{self, DeviceMask},
    pitch_threshold::packed_mask,
};

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
        self.marked.pixels = 1;
        let target = MaskTarget::Grey(frame);
        lister::warm_up(self.packed.clone().as_deref(), |finder, limits| {
            self.list(frame, target, finder, limits, meter)
        })
    }
}
