//! Reads a part of a frame where the pixels of its cut lie; kernel `reference_part`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::FrameLayout,
    place::{Cut, Light, Motion},
};
use clinspect_opencl::{Arg, Kernel, Meter, NdRange, frame::ClFrame};

use super::Base;
use crate::{source::target_args, to_i32};

const PART: &str = "reference_part";

/// The kernel, and the frame that it writes.
#[derive(Debug)]
pub(crate) struct PartReader {
    kernel: Kernel,
    group: [usize; 2],
    /// Samples of a pixel.
    channels: usize,
    /// Of the frame that is read through a motion.
    base: Base,
    read: ClFrame,
}

/// The kernels' arguments `along_x`, `along_y`, `columns` and `rows`.
pub(super) fn motion_args(motion: &Motion, size: [usize; 2]) -> Result<[Arg<'static>; 4], ClError> {
    let [c, a, b, f, d, e] = motion.coefficients;
    let low = |shift: i64| (shift & ((1 << 20) - 1)) as i32;
    let line = |c: i64, a: i64, b: i64| [low(c), a as i32, b as i32, (c >> 20) as i32];
    let [columns, rows] = size;
    Ok([
        Arg::I32x4(line(c, a, b)),
        Arg::I32x4(line(f, d, e)),
        Arg::I32(to_i32(columns, "columns")?),
        Arg::I32(to_i32(rows, "rows")?),
    ])
}

impl PartReader {
    /// Of frames like those of `base`.
    pub fn new(base: &Base, cut: &Cut) -> Result<Self, ClError> {
        let layout: FrameLayout = base.layout.of_size(cut.size);
        let channels = layout.planes.first().map_or(1, |plane| plane.lanes.len());
        let own = Base {
            size: cut.size,
            layout: Arc::new(layout),
            ..base.clone()
        };
        let (kernel, group) = base.kernel(PART)?;
        Ok(Self {
            kernel,
            group,
            channels,
            read: ClFrame::scratch(&own.context, &own.layout, &Meter::new(false))?,
            base: own,
        })
    }

    /// What kernels need that process the frame.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The frame as it was read last.
    pub fn frame(&self) -> &ClFrame {
        &self.read
    }

    /// Enqueues the reading of a part of a frame, as in the light of the training. Waits until the device has the commands.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        (frame_base, frame): (&Base, &ClFrame),
        motion: &Motion,
        light: &Light,
        meter: &Meter,
    ) -> Result<(), ClError> {
        let mut args = frame_base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend(motion_args(motion, self.base.size)?);
        args.push(Arg::I32(to_i32(self.channels, "samples")?));
        let Light {
            gain,
            slope: [by_x, by_y],
            offset,
        } = *light;
        args.extend([
            // Gains are at most 4.
            Arg::I32x4([gain as i32, by_x as i32, by_y as i32, self.base.highest()]),
            // The kernel's argument has a sign.
            Arg::U64(offset as u64),
        ]);
        args.extend(target_args(self.read.plane(0)?, 0)?);
        let range = NdRange::cover(self.base.size, self.group);
        let mut submission = self.base.context.submit(meter, self.base.bytes());
        submission.run(&mut self.kernel, PART, &args, &range)?;
        submission.enqueued()?;
        Ok(())
    }
}
