//! Lists the defects of a mask.

use std::sync::Arc;

use super::{
    PitchThreshold,
    mask::{MaskTarget, packed_mask},
};
use crate::{
    lister::{self, DeviceMask},
    source::source_args,
    to_i32,
};
use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
};
use clinspect_opencl::{Arg, Meter, frame::ClFrame};

impl PitchThreshold {
    /// Lists the defects that close with the frame and the mask of the last [`Self::run`]. The frame is
    /// the next strip of the web whose open defects `finder` holds; `ends`: the web ends with this strip.
    /// A frame that is no strip is a web of its own: reset the finder before, and pass `true`.
    ///
    /// # Errors
    /// The failing call; the open defects then lack the differences of this strip.
    pub fn list(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
        ends: bool,
        meter: &Arc<Meter>,
    ) -> Result<Listed, ClError> {
        let window = self.window;
        let (width, height) = (self.width, window.rows);
        let packed = packed_mask(target, &self.packed).filter(|_| self.marked.pixels > 0);
        let Some((buffer, offset)) = packed else {
            finder.pass(width, height, limits, ends);
            return Ok(finder.list(&[]));
        };
        let [src, src_offset, src_stride] = source_args(frame.plane(0)?, None, 0)?;
        // Without a search the comparisons stand in for the table, which the kernel does not read.
        let (tiles, tile_rows, table) = match &self.presence {
            Some(presence) => (
                presence.tiles_arg()?,
                presence.rows_arg()?,
                Arg::Mem(presence.table()),
            ),
            None => (
                Arg::I32x4([1; 4]),
                Arg::I32x4([0; 4]),
                Arg::Mem(&self.comparisons),
            ),
        };
        let frame_args = [
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(window.height, "a height")?),
            Arg::I32(to_i32(window.first, "a row")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(self.comparison_list.len(), "comparisons")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            tiles,
            tile_rows,
            table,
            Arg::I32(i32::from(self.marked.missing > 0)),
        ];
        // Without coarser levels the comparisons stand in for their memory, which the kernel does not read.
        let levels = match &self.scales {
            Some(scales) => scales.difference_args()?,
            None => {
                let none = Arg::Mem(&self.comparisons);
                [none, none, Arg::I32(0), none, none]
            }
        };
        let mask = DeviceMask {
            buffer,
            offset,
            size: [width, height],
            pixels: self.marked.pixels,
        };
        let args: [&[Arg]; 2] = [&frame_args, &levels];
        let web = (finder, limits, ends);
        self.lister.list(&self.context, mask, args, web, meter)
    }

    /// Compiles the kernel that lists need, and runs it once.
    pub(super) fn warm_up_list(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        self.marked.pixels = 1;
        let target = MaskTarget::Grey(frame);
        lister::warm_up(self.packed.clone().as_deref(), |finder, limits| {
            self.list(frame, target, finder, limits, true, meter)
        })
    }
}
