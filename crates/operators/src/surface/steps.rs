//! The kernels of a comparison of a surface, and what they make of a frame.

use clinspect_core::{ClError, surface::STEPS};
use clinspect_opencl::{Arg, ClContext, Kernel, NdRange, Program, Submission};

use super::memory::{DeviceModel, LEVELS, Pictures, Sizes, size_args};
use crate::{source::plain_group, to_i32};

/// A kernel with a work-item per element.
#[derive(Debug)]
pub(super) struct Step {
    kernel: Kernel,
    name: &'static str,
    group: [usize; 2],
}

impl Step {
    fn new(context: &ClContext, program: &Program, name: &'static str) -> Result<Self, ClError> {
        let kernel = program.kernel(name)?;
        Ok(Self {
            group: plain_group(context, &kernel)?,
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
        let range = NdRange::cover(extent, self.group);
        submission.run(&mut self.kernel, self.name, args, &range)
    }
}

/// Makes the struct of the kernels; a field has a kernel's name without `surface_`.
macro_rules! steps {
    ($($name:ident)*) => {
        /// The kernels; see `kernels/surface.cl` and `kernels/surface_marks.cl`.
        #[derive(Debug)]
        pub(super) struct Steps {
            $(pub $name: Step,)*
        }

        impl Steps {
            /// Takes the kernels of a program.
            ///
            /// # Errors
            /// The failing call.
            pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
                Ok(Self {
                    $($name: Step::new(context, program, concat!("surface_", stringify!($name)))?,)*
                })
            }
        }
    };
}

steps! {
    smooth halve energy logs cell_sums contrast mean_rows features novelty sum
    boxes line noise noise_sums units first side mark cell_peaks line_peaks
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
        self.smooth.run(&args, sizes.frame, submission)?;
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
        let cells = [columns, rows];
        let tiles = [tile_columns, tile_rows];
        let features = Arg::Mem(&pictures.features);
        let run = |step: &mut Step, head: &[&[Arg]], tail: &[Arg], extent, s: &mut Submission| {
            step.run(&[&head.concat(), tail].concat(), extent, s)
        };
        let tail = [Arg::Mem(&pictures.energy), features];
        run(&mut self.logs, &[&cells], &tail, sizes.cells, submission)?;
        let both: [&[Arg]; 2] = [&cells, &tiles];
        let tail = [features, Arg::Mem(&pictures.sums)];
        run(&mut self.cell_sums, &both, &tail, sizes.tiles, submission)?;
        let tail = [Arg::Mem(&pictures.sums), Arg::Mem(&pictures.contrast)];
        run(&mut self.contrast, &both, &tail, sizes.tiles, submission)?;
        let tail = [Arg::Mem(&pictures.means), Arg::Mem(&pictures.row_sums)];
        run(
            &mut self.mean_rows,
            &[&cells],
            &tail,
            sizes.cells,
            submission,
        )?;
        let tail = [
            Arg::Mem(&pictures.contrast),
            Arg::Mem(&pictures.means),
            Arg::Mem(&pictures.row_sums),
            features,
        ];
        run(&mut self.features, &both, &tail, sizes.cells, submission)
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
        let args = [
            columns,
            rows,
            Arg::Mem(&pictures.features),
            Arg::Mem(&model.weights),
            Arg::Mem(&model.prototypes),
            Arg::Mem(&pictures.distances),
        ];
        self.novelty.run(&args, sizes.cells, submission)?;
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
        let column_sums = Arg::Mem(&of_lines.column_sums);
        let args = [width, height, tile_rows, smooth, column_sums];
        let extent = [sizes.frame[0], sizes.tiles[1]];
        self.noise.run(&args, extent, submission)?;
        let sums = Arg::Mem(&pictures.sums);
        let args = [width, tile_columns, tile_rows, column_sums, sums];
        self.noise_sums.run(&args, sizes.tiles, submission)?;
        let units = Arg::Mem(&of_lines.units);
        let args = [width, height, tile_columns, tile_rows, sums, units];
        self.units.run(&args, sizes.tiles, submission)
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
