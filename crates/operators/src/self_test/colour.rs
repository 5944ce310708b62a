//! The self-test of the kernels that split pixels into components, and join their masks.

use std::sync::Arc;

use clinspect_core::{ClError, layout::FrameLayout, mask::packed_stride};
use clinspect_opencl::{ClContext, Memory, Meter, frame::ClFrame};

use super::{
    KnownAnswer, Picture, Trial, Wrong, first_wrong_pixel, picture::noise, reduced, wrong_count,
};
use crate::colour::{Join, Splitter};

/// The test frame is at least this long along each axis.
const LEAST: usize = 64;

impl Trial {
    /// Tests the split of frames of `layout` into components, their luma, and the union of masks.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn colour(&self, layout: &FrameLayout) -> Result<(), ClError> {
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            let size = [small.width, small.height];
            let meter = Meter::new(false);
            let bytes = packed_stride(size[0]) * size[1];
            let of_noise = |component: usize| {
                let byte = |at| noise(2, component, at, 0) & noise(3, component, at, 0);
                (0..bytes).map(|at| byte(at) as u8).collect()
            };
            let planes = (0..3).map(|_| ClFrame::grey(context, size, &meter));
            Ok(Test {
                context: context.clone(),
                splitter: Splitter::new(context, small)?,
                planes: planes.collect::<Result<_, _>>()?,
                luma: ClFrame::grey(context, size, &meter)?,
                join: Join::new(context, size[0], 0)?,
                masks: [0, 1, 2].map(of_noise),
                size,
            })
        };
        self.run(
            reduced(layout, [LEAST; 2]),
            make,
            "the split into components and the union of masks",
        )
    }
}

struct Test {
    context: Arc<ClContext>,
    splitter: Splitter,
    planes: Vec<ClFrame>,
    luma: ClFrame,
    join: Join,
    /// Packed masks of red, green and blue.
    masks: [Vec<u8>; 3],
    size: [usize; 2],
}

const NAMES: [&str; 4] = ["red", "green", "blue", "luma"];

impl KnownAnswer for Test {
    /// Red, green, blue and luma.
    type Answer = [Vec<u32>; 4];

    fn draw(&self, picture: &mut Picture, round: u64) {
        picture.fill(|component, x, y| noise(round, component, x, y) & 0xff);
    }

    fn answer(&self, picture: &Picture) -> Self::Answer {
        let [red, green, blue] = [0, 1, 2].map(|component| picture.component(component).values());
        let luma = red.iter().zip(&green).zip(&blue);
        let luma = luma.map(|((r, g), b)| (77 * r + 150 * g + 29 * b + 128) >> 8);
        let luma = luma.collect();
        [red, green, blue, luma]
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        _picture: &Picture,
        answer: &Self::Answer,
    ) -> Result<Option<Wrong>, ClError> {
        let meter = Meter::new(false);
        let one = std::slice::from_ref(&self.luma);
        for planes in [&self.planes, one] {
            (self.splitter).run(&self.context, frame, planes, self.size, &meter)?;
        }
        let [width, _] = self.size;
        let planes = self.planes.iter().chain(one).zip(answer).zip(NAMES);
        for ((plane, wanted), name) in planes {
            let plane = plane.plane(0)?;
            let Memory::Buffer(buffer) = plane.memory() else {
                continue;
            };
            let wrong = buffer.read_with(|bytes| {
                let rows = bytes.chunks(plane.stride).zip(wanted.chunks(width));
                rows.enumerate().find_map(|(y, (got, wanted))| {
                    let x = got
                        .iter()
                        .zip(wanted)
                        .position(|(&g, &w)| u32::from(g) != w)?;
                    Some(Wrong {
                        place: format!("x={x} y={y} of {name}"),
                        got: got[x].into(),
                        wanted: wanted[x].into(),
                    })
                })
            })?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        self.compare_masks(&meter)
    }
}

impl Test {
    fn compare_masks(&mut self, meter: &Arc<Meter>) -> Result<Option<Wrong>, ClError> {
        let [width, rows] = self.size;
        let (got, count) = (self.join).join_masks(&self.context, &self.masks, rows, meter)?;
        let [red, green, blue] = &self.masks;
        let union = red.iter().zip(green).zip(blue);
        let union: Vec<u8> = union.map(|((r, g), b)| r | g | b).collect();
        let marked: u32 = union.iter().map(|byte| byte.count_ones()).sum();
        let wrong = first_wrong_pixel(width, &got, &union);
        Ok(wrong.or_else(|| wrong_count(count.into(), marked.into())))
    }
}
