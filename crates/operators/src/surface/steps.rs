//! The kernels of a comparison of a surface, and what they make of a frame.

use clinspect_core::{
    ClError,
    kernels::surface::{BAND, NOVELTY_BAND, SMOOTH_PIXELS},
    surface::{CELL, STEPS},
    texture::TILE,
};
use clinspect_opencl::{Arg, ClContext, Kernel, NdRange, Program, Submission};

use super::memory::{DeviceModel, ENERGIES, LEVELS, Pictures, Sizes, size_args};
use crate::{source::plain_group, to_i32};

/// A kernel with a work-item per element, or on a CPU per row.
#[derive(Debug)]
pub(super) struct Step {
    kernel: Kernel,
    name: &'static str,
    /// Work-items of a group; `None` for one per row.
    group: Option<[usize; 2]>,
}

impl Step {
    fn new(context: &ClContext, program: &Program, name: &'static str) -> Result<Self, ClError> {
        let kernel = program.kernel(name)?;
        Ok(Self {
            group: (!by_rows(context))
                .then(|| plain_group(context, &kernel))
                .transpose()?,
            kernel,
            name,
        })
    }

    /// Enqueues the kernel over this many elements along x and y.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        args: &[Arg],
        extent: [usize; 2],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let range = match self.group {
            Some(group) => NdRange::cover(extent, group),
            None => NdRange::cover([1, extent[1]], [1, 1]),
        };
        submission.run(&mut self.kernel, self.name, args, &range)
    }
}

/// Whether a work-item makes a row: on a CPU, and on a device that cannot run the work-groups of the other kernels.
pub(super) fn by_rows(context: &ClContext) -> bool {
    let caps = context.caps();
    caps.is_cpu || caps.max_work_group < GROUP[0] * GROUP[1]
}

/// Compiler options of the kernels.
pub(super) fn options(context: &ClContext) -> String {
    format!(" -DBY_ROWS={}", i32::from(by_rows(context)))
}

/// Makes the struct of the kernels; a field has a kernel's name without `surface_`.
macro_rules! steps {
    ($($name:ident)*) => {
        /// The kernels; see `kernels/surface.cl` and `kernels/surface_marks.cl`.
        #[derive(Debug)]
        pub(super) struct Steps {
            $(pub $name: Step,)*
            sides: Sides,
            by_rows: bool,
        }

        impl Steps {
            /// Takes the kernels of a program.
            ///
            /// # Errors
            /// The failing call.
            pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
                Ok(Self {
                    $($name: Step::new(context, program, concat!("surface_", stringify!($name)))?,)*
                    sides: Sides::new(context, program)?,
                    by_rows: by_rows(context),
                })
            }
        }
    };
}

steps! {
    smooth halve energy logs log_sums tile_sums contrast mean_rows means novelty sum
    boxes line noise units mark cell_peaks line_peaks
}

/// How lines are compared with those beside them.
#[derive(Debug)]
enum Sides {
    /// The lines of a direction, which lie in memory.
    ByDirection(Step),
    /// Those of all directions, in local memory.
    AtOnce(Step),
}

/// Rows that a work-group of `surface_sides` takes, and its work-items.
const GROUP_ROWS: usize = 16;
const GROUP: [usize; 2] = [64, 4];

impl Sides {
    fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        if by_rows(context) {
            let step = Step::new(context, program, "surface_side")?;
            return Ok(Self::ByDirection(step));
        }
        let name = "surface_sides";
        Ok(Self::AtOnce(Step {
            kernel: program.kernel(name)?,
            name,
            group: Some(GROUP),
        }))
    }
}

impl Steps {
    /// Enqueues the features of a frame. `source`: the arguments of its plane.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_features(
        &mut self,
        source: [Arg; 3],
        depth: u32,
        sizes: &Sizes,
        pictures: &Pictures,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [columns, rows] = size_args(sizes.cells)?;
        let [tile_columns, tile_rows] = size_args(sizes.tiles)?;
        let [width, height] = size_args(sizes.frame)?;
        let [memory, offset, stride] = source;
        let depth = Arg::I32(depth as i32);
        let smooth = Arg::Mem(&pictures.levels[0]);
        let args = [memory, offset, stride, width, height, depth, smooth];
        let [frame_x, frame_y] = sizes.frame;
        let extent = [frame_x.div_ceil(SMOOTH_PIXELS), frame_y];
        self.smooth.run(&args, extent, submission)?;
        for level in 0..LEVELS {
            let size = sizes.level(level);
            let [width, height] = size_args(size)?;
            let picture = Arg::Mem(&pictures.levels[level]);
            let args = [
                width,
                height,
                Arg::I32(level as i32),
                picture,
                columns,
                rows,
                Arg::Mem(&pictures.energy),
                Arg::Mem(&pictures.means),
            ];
            self.energy.run(&args, sizes.cells, submission)?;
            if let Some(next) = pictures.levels.get(level + 1) {
                let args = [args[0], args[1], picture, Arg::Mem(next)];
                let extent = size.map(|length| length / 2);
                self.halve.run(&args, extent, submission)?;
            }
        }
        let (energy, features) = (Arg::Mem(&pictures.energy), Arg::Mem(&pictures.features));
        let [cells_x, cells_y] = sizes.cells;
        let band = if self.by_rows { 1 } else { BAND };
        let bands = [cells_x, ENERGIES * cells_y.div_ceil(band)];
        let args = [columns, rows, energy, features];
        self.logs.run(&args, bands, submission)?;
        let column_sums = Arg::Mem(&pictures.column_sums);
        let args = [columns, rows, tile_rows, features, column_sums];
        let extent = [cells_x, sizes.tiles[1]];
        self.log_sums.run(&args, extent, submission)?;
        self.sum_tiles(cells_x, TILE / CELL, sizes, pictures, submission)?;
        let (sums, contrast) = (Arg::Mem(&pictures.sums), Arg::Mem(&pictures.contrast));
        let args = [columns, rows, tile_columns, tile_rows, sums, contrast];
        self.contrast.run(&args, sizes.tiles, submission)?;
        let (means, row_sums) = (Arg::Mem(&pictures.means), Arg::Mem(&pictures.row_sums));
        let args = [columns, rows, means, row_sums];
        self.mean_rows.run(&args, sizes.cells, submission)?;
        let args = [
            columns,
            rows,
            tile_columns,
            tile_rows,
            contrast,
            means,
            row_sums,
            features,
        ];
        self.means.run(&args, sizes.cells, submission)
    }

    /// Enqueues the sums of the tiles of `width` columns, of which a tile has `side`.
    fn sum_tiles(
        &mut self,
        width: usize,
        side: usize,
        sizes: &Sizes,
        pictures: &Pictures,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, side] = size_args([width, side])?;
        let [tile_columns, tile_rows] = size_args(sizes.tiles)?;
        let (of_columns, sums) = (Arg::Mem(&pictures.column_sums), Arg::Mem(&pictures.sums));
        let args = [width, side, tile_columns, tile_rows, of_columns, sums];
        self.tile_sums.run(&args, sizes.tiles, submission)
    }

    /// Enqueues the novelty of the cells.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_novelty(
        &mut self,
        model: &DeviceModel,
        sizes: &Sizes,
        pictures: &Pictures,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [columns, rows] = size_args(sizes.cells)?;
        let [tile_columns, tile_rows] = size_args(sizes.tiles)?;
        let args = [
            columns,
            rows,
            tile_columns,
            tile_rows,
            Arg::Mem(&pictures.contrast),
            Arg::Mem(&pictures.features),
            Arg::Mem(&model.means),
            Arg::Mem(&model.weights),
            Arg::Mem(&model.prototypes),
            Arg::Mem(&model.half_norms),
            Arg::Mem(&pictures.distances),
        ];
        let [cells_x, cells_y] = sizes.cells;
        let band = if self.by_rows { 1 } else { NOVELTY_BAND };
        let bands = [cells_x, cells_y.div_ceil(band)];
        self.novelty.run(&args, bands, submission)?;
        let args = [
            columns,
            rows,
            Arg::Mem(&pictures.distances),
            Arg::Mem(&pictures.novelty),
        ];
        self.sum.run(&args, sizes.cells, submission)
    }

    /// Enqueues the unit of lines of each tile, if lines are looked for.
    ///
    /// # Errors
    /// The failing call.
    pub fn make_units(
        &mut self,
        sizes: &Sizes,
        pictures: &Pictures,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let Some(of_lines) = &pictures.lines else {
            return Ok(());
        };
        let [width, height] = size_args(sizes.frame)?;
        let [tile_columns, tile_rows] = size_args(sizes.tiles)?;
        let smooth = Arg::Mem(&pictures.levels[0]);
        let boxes = Arg::Mem(&of_lines.boxes);
        let args = [width, height, smooth, boxes];
        self.boxes.run(&args, sizes.frame, submission)?;
        let column_sums = Arg::Mem(&pictures.column_sums);
        let args = [width, height, tile_rows, smooth, column_sums];
        let extent = [sizes.frame[0], sizes.tiles[1]];
        self.noise.run(&args, extent, submission)?;
        self.sum_tiles(sizes.frame[0], TILE, sizes, pictures, submission)?;
        let sums = Arg::Mem(&pictures.sums);
        let units = Arg::Mem(&of_lines.units);
        let args = [width, height, tile_columns, tile_rows, sums, units];
        self.units.run(&args, sizes.tiles, submission)
    }

    /// Enqueues the comparison of lines with their limits, if they are looked for.
    ///
    /// # Errors
    /// The failing call.
    pub fn compare_lines(
        &mut self,
        limits: Arg,
        sizes: &Sizes,
        pictures: &Pictures,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let Some(of_lines) = &pictures.lines else {
            return Ok(());
        };
        let (units, strongest) = (Arg::Mem(&of_lines.units), Arg::Mem(&pictures.strongest));
        let more = [units, limits, strongest];
        match &mut self.sides {
            Sides::AtOnce(step) => {
                let [width, height] = size_args(sizes.frame)?;
                let [tile_columns, tile_rows] = size_args(sizes.tiles)?;
                let boxes = Arg::Mem(&of_lines.boxes);
                let args = [&[width, height, boxes, tile_columns, tile_rows], &more[..]].concat();
                let [frame_x, frame_y] = sizes.frame;
                let rows = frame_y.div_ceil(GROUP_ROWS) * GROUP[1];
                step.run(&args, [frame_x, rows], submission)
            }
            Sides::ByDirection(_) => {
                let made = (sizes, pictures);
                self.for_lines(Self::side, sizes.frame, &more, made, submission)
            }
        }
    }

    fn side(&mut self) -> &mut Step {
        match &mut self.sides {
            Sides::ByDirection(step) | Sides::AtOnce(step) => step,
        }
    }

    /// Enqueues the lines of each direction, if they are looked for, and behind those of a direction `step` with its
    /// arguments: width, height, steps along x and y, number of the direction, the lines, columns and rows of tiles, then `more`.
    ///
    /// # Errors
    /// The failing call.
    pub fn for_lines(
        &mut self,
        step: fn(&mut Self) -> &mut Step,
        extent: [usize; 2],
        more: &[Arg],
        (sizes, pictures): (&Sizes, &Pictures),
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let Some(of_lines) = &pictures.lines else {
            return Ok(());
        };
        let [width, height] = size_args(sizes.frame)?;
        for (direction, step_px) in STEPS.into_iter().enumerate() {
            let [dx, dy] = step_px.map(Arg::I32);
            let mut args = vec![width, height, dx, dy];
            let boxes = [Arg::Mem(&of_lines.boxes), Arg::Mem(&of_lines.lines)];
            let line_args = [&args[..], &boxes].concat();
            self.line.run(&line_args, sizes.frame, submission)?;
            args.push(Arg::I32(to_i32(direction, "a direction")?));
            args.push(Arg::Mem(&of_lines.lines));
            args.extend(size_args(sizes.tiles)?);
            args.extend_from_slice(more);
            step(self).run(&args, extent, submission)?;
        }
        Ok(())
    }
}
