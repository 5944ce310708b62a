//! Reads frames where the pixels of a model lie; kernel `reference_warp`.

use clinspect_core::{
    ClError,
    reference::{Nodes, Warp},
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, NdRange, frame::ClFrame};

use super::{BLOCK, Base};
use crate::{source::target_args, to_i32};

const WARP: &str = "reference_warp";

/// Local shifts at nodes, along x and y.
#[derive(Debug)]
struct DeviceNodes(Mem);

impl DeviceNodes {
    /// The kernels' arguments `along_x`, `along_y`, `nodes`, `columns` and `rows`.
    fn args(&self, warp: &Warp) -> Result<[Arg<'_>; 5], ClError> {
        let [c, a, b, f, d, e] = warp.coefficients;
        let [columns, rows] = match &warp.nodes {
            Some(nodes) => [
                to_i32(nodes.columns, "tiles")?,
                to_i32(nodes.rows, "tiles")?,
            ],
            None => [0, 0],
        };
        Ok([
            Arg::I32x4([c, a, b, 0]),
            Arg::I32x4([f, d, e, 0]),
            Arg::Mem(&self.0),
            Arg::I32(columns),
            Arg::I32(rows),
        ])
    }
}

/// The kernel, and the frame that it writes.
#[derive(Debug)]
pub(super) struct Warper {
    kernel: Kernel,
    group: [usize; 2],
    nodes: DeviceNodes,
    aligned: ClFrame,
}

impl Warper {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(WARP)?;
        let [columns, rows] = Nodes::tiles(base.size);
        let nodes = (base.context).device_memory(columns * rows * size_of::<[i32; 2]>())?;
        Ok(Self {
            kernel,
            group,
            nodes: DeviceNodes(nodes),
            aligned: ClFrame::scratch(&base.context, &base.layout, &Meter::new(false))?,
        })
    }

    /// The frame that was read last.
    pub fn aligned(&self) -> &ClFrame {
        &self.aligned
    }

    /// The kernels' arguments `along_x`, `along_y`, `nodes`, `columns` and `rows` for the frame that was read last.
    pub fn warp_args(&self, warp: &Warp) -> Result<[Arg<'_>; 5], ClError> {
        self.nodes.args(warp)
    }

    /// Enqueues the reading of a frame.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        base: &Base,
        frame: &ClFrame,
        warp: &Warp,
        meter: &Meter,
    ) -> Result<(), ClError> {
        let context = &base.context;
        if let Some(Nodes { u, v, .. }) = &warp.nodes {
            let pairs: Vec<[i32; 2]> = u.iter().zip(v).map(|(&u, &v)| [u, v]).collect();
            context.write(
                &self.nodes.0,
                0,
                bytemuck::cast_slice(&pairs),
                "local shifts",
            )?;
        }
        let [width, height] = base.size;
        let (item_pixels, range) = if context.caps().is_cpu {
            (
                width.next_multiple_of(BLOCK),
                NdRange::tiles([1, height], 1),
            )
        } else {
            (1, NdRange::cover([width, height], self.group))
        };
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend(self.nodes.args(warp)?);
        args.push(Arg::I32(to_i32(item_pixels, "pixels")?));
        args.extend(target_args(self.aligned.plane(0)?, 0)?);
        let mut submission = context.submit(meter, base.bytes());
        submission.run(&mut self.kernel, WARP, &args, &range)?;
        submission.enqueued()?;
        Ok(())
    }
}
