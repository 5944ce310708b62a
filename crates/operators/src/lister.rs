//! Lists the defects of a mask that lies on the device.

mod run_differences;
mod set_words;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    mask::packed_stride,
};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Memory, Meter, Program};

use run_differences::RunDifferences;
use set_words::SetWords;

/// Working memory.
#[derive(Debug)]
pub(crate) struct Lister {
    differences: RunDifferences,
    /// Where masks cross a bus to the host.
    set_words: Option<SetWords>,
}

/// A packed mask on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceMask<'a> {
    pub buffer: &'a ClBuffer,
    /// Offset of the first row, bytes.
    pub offset: usize,
    /// Width and height, px.
    pub size: [usize; 2],
    /// Number of marked pixels.
    pub pixels: u64,
}

/// Marks a pixel in the packed mask of a warm-up frame, which has no defect, and lists it with `list`.
///
/// # Errors
/// The failing call.
pub(crate) fn warm_up(
    packed: Option<&ClBuffer>,
    list: impl FnOnce(&mut Finder, &Limits) -> Result<Listed, ClError>,
) -> Result<(), ClError> {
    if let Some(packed) = packed {
        packed.write(0, &[0x80], "a mask to warm up with")?;
    }
    let limits = Limits {
        min_area: 0,
        merge_distance: 0,
        max_defects: 1,
        max_runs: usize::MAX,
        max_defect_rows: u32::MAX,
    };
    list(&mut Finder::default(), &limits).map(drop)
}

impl Lister {
    /// Prepares lists with the kernels of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        Ok(Self {
            differences: RunDifferences::new(context, program)?,
            set_words: has_bus
                .then(|| SetWords::new(context, program))
                .transpose()?,
        })
    }

    /// Lists the defects that close with this mask. `frame_args` are the arguments of kernel `run_differences` before
    /// the mask, `more_args` those between the mask and the runs. `ends`: the web ends with this mask.
    ///
    /// The host reads only the mask. The device sums the differences, so the frame is not transferred.
    ///
    /// # Errors
    /// The failing call; open defects then lack the differences of this mask.
    pub fn list(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        [frame_args, more_args]: [&[Arg]; 2],
        (finder, limits, ends): (&mut Finder, &Limits, bool),
        meter: &Arc<Meter>,
    ) -> Result<Listed, ClError> {
        let [width, height] = mask.size;
        let stride = packed_stride(width);
        let read = match &mut self.set_words {
            Some(set_words) => set_words.read(context, mask, [stride, height], meter)?,
            None => None,
        };
        let runs = match read {
            Some(mask) => finder.scan_rows(mask.bytes, stride, width, mask.is_set, limits, ends),
            None => mask.buffer.read_with(|bytes| {
                let bytes = bytes.get(mask.offset..).unwrap_or(&[]);
                finder.scan(bytes, stride, width, height, limits, ends)
            })?,
        };
        let mask_args = [
            Arg::Reads(Memory::Buffer(mask.buffer)),
            Arg::U64(mask.offset as u64),
        ];
        let args = [frame_args, &mask_args, more_args].concat();
        let measured = self.differences.run(context, &args, runs, meter)?;
        Ok(finder.list(measured))
    }
}
