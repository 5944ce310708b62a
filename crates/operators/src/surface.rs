//! Comparison of a surface with what good frames have shown; kernels in `kernels/surface*.cl`.

mod demands;
mod file;
mod judged;
mod memory;
mod settings;
mod steps;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed, MeasuredDefect},
    ignored::Ignored,
    layout::FrameLayout,
    learning::{Demand, Rule},
    sight::Sight,
    surface::{
        BORDER_CELLS, CELL, CHANNEL_BITS, CHANNEL_NAMES, CHANNELS, FEATURES, Features, Model,
        ROWS_ABOVE, ROWS_BELOW,
    },
    texture::{MAX_THRESHOLD, TILE, threshold_q8},
    window::{Reach, Window},
};
use clinspect_opencl::{
    Arg, ClContext, Mem, Memory, Meter, ProgramSource, Submission, frame::ClFrame,
};

use crate::{
    MaskTarget, WARM_UP_ROWS,
    depth::effective_depth,
    inspection::{Basis, Inspection, JudgedPixels, Limit, Marked, PackedMask, Picture, Subject},
    lister::{Lister, unpack_channel},
    marker::Marker,
    sample_options,
    source::{PlaneImages, source_args},
    submitted::{self, Submitted},
    to_i32, upload,
};
pub use file::{read_surface, write_surface};
use judged::Judged;
use memory::{DeviceModel, ENERGIES, Pictures, Sizes, feature_plane, size_args};
pub use settings::{LearnedSurface, SurfaceSettings};
use steps::Steps;

/// Two counters of marked pixels.
const COUNTERS: usize = 2;
/// The factor that a limit learned from good frames lies above the tiles' mean, less 1.
const MARGIN: f64 = 0.3;
/// A limit that marks nothing.
const NO_LIMIT: u32 = u32::MAX;

/// A comparison of a surface for frames of one layout.
#[derive(Debug)]
pub struct Surface {
    context: Arc<ClContext>,
    settings: SurfaceSettings,
    steps: Steps,
    marker: Marker,
    pictures: Pictures,
    /// Rows of the largest frame that the pictures hold.
    most_rows: usize,
    sizes: Sizes,
    images: Option<PlaneImages>,
    model: Option<DeviceModel>,
    /// Limits of the channels in 1/256, on the host and on the device.
    limits: Option<[u32; CHANNELS]>,
    limit_memory: Mem,
    /// The limits on the device, if they are tried.
    trial: Option<[u32; CHANNELS]>,
    judged: Judged,
    /// Of the tiles of the last mark: the contrast, and the unit of lines if they are looked for.
    contrasts: Vec<u32>,
    units: Vec<u32>,
    /// A cell is judged.
    has_cells: bool,
    /// The pictures are those of a frame.
    has_frame: bool,
    depth: u32,
    sample_bytes: usize,
}

/// The limits on the device: those of channels that are not in use mark nothing.
fn device_limits(limits: [Option<u32>; CHANNELS]) -> [u32; CHANNELS] {
    limits.map(|limit| limit.unwrap_or(NO_LIMIT))
}

/// Columns and rows of the cells of the processed rows that novelty judges, in scan order.
fn judged_cells(
    judged: &Judged,
    [columns, rows]: [usize; 2],
) -> impl Iterator<Item = [usize; 2]> + '_ {
    let inner = |length: usize| BORDER_CELLS..length.saturating_sub(BORDER_CELLS);
    let processed = judged.window.span();
    let first = (processed.start / CELL).max(BORDER_CELLS);
    let end = processed.end.div_ceil(CELL).min(inner(rows).end);
    let cells = (first..end).flat_map(move |row| inner(columns).map(move |column| [column, row]));
    cells.filter(|cell| {
        let [x, y] = cell.map(|at| at * CELL + CELL / 2);
        judged.is_judged(x, y)
    })
}

impl Surface {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once. Plane 0 is judged.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings under which no pixel of the frame can be judged; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &SurfaceSettings,
    ) -> Result<Self, ClError> {
        let operator = Self::prepare(context, layout, settings)?;
        let meter = Meter::new(false);
        let small = if settings.line_scan {
            // A strip may have less rows than a frame needs.
            layout.of_rows(WARM_UP_ROWS)
        } else {
            layout.cut(WARM_UP_ROWS)
        };
        let warm_settings = SurfaceSettings {
            rois: Vec::new(),
            ignored: None,
            line_scan: false,
            ..settings.clone()
        };
        let mut warm = Self::prepare(context, &small, &warm_settings)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        let subject = Subject::whole(&input, small.height, &meter);
        warm.mark(subject, MaskTarget::Grey(&output))?;
        warm.peaks(&meter)?;
        submitted::warm_up_list(&mut warm, subject)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &SurfaceSettings,
    ) -> Result<Self, ClError> {
        settings.check()?;
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let (width, height) = (layout.width, layout.height);
        let images = settings
            .image
            .then(|| PlaneImages::new(context, &layout.first_plane()))
            .transpose()?;
        let options = sample_options(layout.sample, settings.image) + &steps::options(context);
        let program = context.program(ProgramSource::Surface, &options)?;
        let sizes = Sizes::new(width, height);
        let limits = settings.limits_q8()?.map(device_limits);
        let judged = Judged::new(context, &program, [width, height], settings)?;
        let has_cells = judged_cells(&judged, sizes.cells).next().is_some();
        let has_lines = settings.channels.has_lines();
        let tiles = sizes.tiles[0] * sizes.tiles[1];
        Ok(Self {
            steps: Steps::new(context, &program)?,
            marker: Marker::new(context, &program, COUNTERS, !context.caps().is_cpu)?,
            pictures: Pictures::new(context, &sizes, has_lines)?,
            most_rows: height,
            sizes,
            images,
            model: (settings.model.as_ref())
                .map(|model| DeviceModel::new(context, model))
                .transpose()?,
            limits,
            limit_memory: upload(context, &limits.unwrap_or([NO_LIMIT; CHANNELS]), "limits")?,
            trial: None,
            contrasts: vec![0; tiles],
            units: vec![0; if has_lines { tiles } else { 0 }],
            has_cells,
            judged,
            has_frame: false,
            depth,
            sample_bytes: layout.sample.bytes(),
            settings: settings.clone(),
            context: context.clone(),
        })
    }

    /// Takes another model, such as that of the other half of good frames.
    ///
    /// # Errors
    /// The failing call.
    pub fn set_model(&mut self, model: &Model) -> Result<(), ClError> {
        self.model = Some(DeviceModel::new(&self.context, model)?);
        Ok(())
    }

    /// Whether the values of all channels in use are known.
    fn can_compare(&self) -> bool {
        self.model.is_some() || !self.settings.channels.novelty
    }

    /// Whether all is known that frames are judged by.
    pub fn is_complete(&self) -> bool {
        self.can_compare() && self.limits.is_some()
    }

    /// Whether pixels are judged.
    fn is_judging(&self) -> bool {
        let is_judged = self.has_cells || self.settings.channels.has_lines();
        is_judged && self.can_compare() && self.marking().is_some()
    }

    /// The limits on the device.
    fn marking(&self) -> Option<&[u32; CHANNELS]> {
        self.trial.as_ref().or(self.limits.as_ref())
    }

    fn uses_novelty(&self) -> bool {
        self.settings.channels.novelty && self.model.is_some()
    }

    /// Takes the window of a strip: rows of whole tiles.
    fn take(&mut self, window: &Window) -> Result<(), ClError> {
        let window = window.whole(TILE);
        if window == self.judged.window {
            return Ok(());
        }
        let (width, height) = (self.sizes.frame[0], window.height);
        let has_lines = self.settings.channels.has_lines();
        if height > self.most_rows {
            // Later strips have more rows above.
            self.most_rows = height + 2 * TILE;
            let sizes = Sizes::new(width, self.most_rows);
            self.pictures = Pictures::new(&self.context, &sizes, has_lines)?;
        }
        self.sizes = Sizes::new(width, height);
        let tiles = self.sizes.tiles[0] * self.sizes.tiles[1];
        self.contrasts.resize(tiles, 0);
        self.units.resize(if has_lines { tiles } else { 0 }, 0);
        self.has_frame = false;
        self.judged.take(&self.context, &window)?;
        self.find_cells();
        Ok(())
    }

    /// Notes whether a cell is judged.
    fn find_cells(&mut self) {
        self.has_cells = (judged_cells(&self.judged, self.sizes.cells).next()).is_some();
    }

    /// Number of cells of a window that novelty judges.
    ///
    /// # Errors
    /// The failing call.
    pub fn count_cells(&mut self, window: &Window) -> Result<usize, ClError> {
        if window.is_web {
            self.take(window)?;
        }
        Ok(judged_cells(&self.judged, self.sizes.cells).count())
    }

    /// Features of the judged cells of the frame of the last mark, in scan order.
    ///
    /// # Errors
    /// The failing read.
    pub fn features(&self) -> Result<Vec<Features>, ClError> {
        let [columns, rows] = self.sizes.cells;
        let plane = feature_plane([columns, rows]);
        let mut planes = vec![0_i16; FEATURES * plane];
        if self.has_frame {
            let bytes = bytemuck::cast_slice_mut(&mut planes);
            (self.context).read(&self.pictures.features, 0, bytes, "features")?;
        }
        let features = judged_cells(&self.judged, self.sizes.cells)
            .map(|[column, row]| {
                let cell = row * columns + column;
                let [x, y] = [column, row].map(|cell| cell * CELL);
                // A kernel takes the contrast off where it needs the difference. Both are from 0 to 5400.
                let contrast = self.contrasts[self.sizes.tile_of(x, y)] as i16;
                std::array::from_fn(|i| {
                    let less = if i < ENERGIES { contrast } else { 0 };
                    planes[i * plane + cell] - less
                })
            })
            .collect();
        Ok(features)
    }

    /// Enqueues the marks.
    fn mark_pixels(
        &mut self,
        mask: Memory,
        mask_offset: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let [width, _] = size_args(self.sizes.frame)?;
        let [columns, rows] = size_args(self.sizes.cells)?;
        // What is not judged is not marked: neither lines without limits, nor those beside a novelty without a model.
        let is_judging = self.is_judging();
        let uses_novelty = is_judging && self.uses_novelty();
        let judged = self.judged.args(&self.limit_memory)?;
        let (steps, pictures, sizes) = (&mut self.steps, &self.pictures, &self.sizes);
        let strongest = Arg::Mem(&pictures.strongest);
        let limits = Arg::Mem(&self.limit_memory);
        if is_judging {
            steps.compare_lines(limits, sizes, pictures, submission)?;
        }
        let uses_lines = is_judging && pictures.lines.is_some();
        let processed = self.judged.window.span();
        let cell_rows = processed.start / CELL..processed.end.div_ceil(CELL);
        let first = to_i32(processed.start, "a row")?;
        let end = to_i32(processed.end, "a row")?;
        let mut args = vec![width, Arg::I32(first), Arg::I32(end), columns, rows];
        args.push(Arg::Mem(&pictures.novelty));
        args.extend([uses_novelty, uses_lines].map(|uses| Arg::I32(uses.into())));
        args.extend([limits, strongest]);
        args.extend_from_slice(&judged);
        args.extend([Arg::Writes(mask), Arg::U64(mask_offset as u64)]);
        args.extend(self.marker.counter_args()?);
        let extent = [sizes.frame[0].div_ceil(8), cell_rows.len()];
        steps.mark.run(&args, extent, submission)
    }

    /// Limits by channel from those of [`Inspection::limits`]; an infinite one marks nothing.
    fn tried(&self, values: &[f64]) -> [u32; CHANNELS] {
        let mut limits = [NO_LIMIT; CHANNELS];
        for (channel, &value) in self.settings.channels.numbers().zip(values) {
            limits[channel] = threshold_q8(value).unwrap_or(NO_LIMIT);
        }
        limits
    }
}

impl Submitted for Surface {
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker) {
        (&self.context, &mut self.marker)
    }

    fn mask_size(&self, window: &Window) -> (usize, usize) {
        let width = self.sizes.frame[0];
        (width, width * window.height * self.sample_bytes)
    }

    fn look(&mut self, subject: Subject, _leader: Option<&Self>) -> Result<(), ClError> {
        // All frames have the window that the operator was made for.
        if subject.window.is_web {
            self.take(&subject.window)?;
        }
        Ok(())
    }

    fn submit<'a>(
        &'a mut self,
        Subject { frame, window, .. }: Subject<'a>,
        (mask, mask_offset): PackedMask<'a>,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        self.marker.clean(submission)?;
        if let Some(images) = &mut self.images {
            images.update(frame, submission)?;
        }
        let image = self.images.as_ref().and_then(|images| images.get(0));
        let plane = frame.plane(0)?;
        // Frames begin with a whole tile; strips are not read as images.
        let skipped = window.first - self.judged.window.first;
        let source = source_args(plane, image, skipped * plane.stride)?;
        let (steps, pictures, sizes) = (&mut self.steps, &self.pictures, &self.sizes);
        steps.make_features(source, self.depth, sizes, pictures, submission)?;
        if let Some(model) = self
            .model
            .as_ref()
            .filter(|_| self.settings.channels.novelty)
        {
            steps.make_novelty(model, sizes, pictures, submission)?;
        }
        steps.make_units(sizes, pictures, submission)?;
        self.has_frame = true;
        self.mark_pixels(Memory::Buffer(mask), mask_offset, submission)
    }

    fn reads(&mut self) -> Vec<(&Mem, &mut [u8])> {
        let pictures = &self.pictures;
        let contrasts = bytemuck::cast_slice_mut(&mut self.contrasts);
        let mut reads = vec![
            self.marker.lister.results.read(),
            (&pictures.contrast, contrasts),
        ];
        if let Some(of_lines) = &pictures.lines {
            let units = bytemuck::cast_slice_mut(&mut self.units);
            reads.push((&of_lines.units, units));
        }
        reads
    }

    fn with_difference_args(
        &mut self,
        _subject: Subject,
        mask: PackedMask,
        _is_missing: bool,
        measure: impl FnOnce(&mut Lister, &Arc<ClContext>, [&[Arg]; 2]) -> Result<(), ClError>,
    ) -> Result<(), ClError> {
        let [width, _] = size_args(self.sizes.frame)?;
        let args = [
            width,
            Arg::I32(to_i32(self.judged.window.first, "a row")?),
            Arg::Mem(&self.pictures.strongest),
            Arg::U64(0),
            width,
            Arg::Mem(&self.limit_memory),
            // No pixel is marked but by a channel: the mask stands in for that of the channels' own pixels.
            Arg::Reads(Memory::Buffer(mask.0)),
            Arg::I32(0),
        ];
        measure(&mut self.marker.lister, &self.context, [&args, &[]])
    }

    fn complete(&self, defect: &mut MeasuredDefect) {
        unpack_channel(defect, CHANNEL_BITS, |channel| {
            let limit = *self.marking()?.get(channel)?;
            Some(f64::from(limit) / 256.0)
        });
    }
}

impl Inspection for Surface {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        submitted::mark(self, subject, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        submitted::list(self, subject, mask, finder, limits)
    }

    fn draw(&mut self, _: Subject, _: Picture, _: &ClFrame) -> Result<(), ClError> {
        Err(ClError::Refused(
            "a surface is compared with no picture, so there is none to draw".into(),
        ))
    }

    fn limits(&self) -> Vec<Limit> {
        let limit = |channel: usize| Limit {
            name: CHANNEL_NAMES[channel],
            component: None,
            most: MAX_THRESHOLD,
            step: 1.0 / 256.0,
            rule: Rule {
                margin: MARGIN,
                allowed: 0.0,
            },
        };
        self.settings.channels.numbers().map(limit).collect()
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        let peaks = self.peaks(subject.meter)?;
        let numbers = self.settings.channels.numbers();
        Ok(peaks.map(|peaks| {
            let demand = |channel: usize| Demand {
                peak: peaks[channel][0],
                typical: Some(peaks[channel][1]),
            };
            numbers.map(demand).collect()
        }))
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.trial = values.map(|values| self.tried(values));
        let limits = *self.marking().unwrap_or(&[NO_LIMIT; CHANNELS]);
        let bytes = bytemuck::cast_slice(&limits);
        (self.context).write(&self.limit_memory, 0, bytes, "limits")
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        let limits = match values {
            Some(values) => Some(self.tried(values)),
            None => self.limits,
        };
        match limits {
            Some(limits) if self.has_frame && self.can_compare() => Ok(self.see(&limits)),
            _ => Ok(Vec::new()),
        }
    }

    fn basis(&self) -> Basis {
        let judged = if self.is_judging() {
            self.judged.count
        } else {
            0
        };
        Basis {
            judged: JudgedPixels::all(judged),
            ignored: self.judged.ignored().cloned(),
            ..Basis::default()
        }
    }

    fn set_ignored(&mut self, pixels: &Arc<Ignored>) -> Result<(), ClError> {
        self.judged.set_ignored(&self.context, pixels)?;
        self.find_cells();
        Ok(())
    }

    fn reach(&self) -> Reach {
        Reach {
            both: ROWS_BELOW,
            above: ROWS_ABOVE,
            ..Reach::default()
        }
    }
}
