//! Joins what the operators of the components have marked.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{COMPONENTS, Finder, Limits, Listed, Run, RunDifference},
    mask::packed_stride,
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, NdRange, ProgramSource, Submission,
    frame::ClFrame,
};

use crate::{
    MaskTarget, Subject,
    inspection::{Marked, Picture},
    lister::{DeviceMask, Scanner},
    marker::{Expand, packed_mask},
    source::{plain_group, target_args},
    submitted::{Finished, Submitted},
    to_i32, to_u32,
};

/// Counters of marked pixels, which take turns.
const SLOTS: usize = 2;
const WORD: usize = size_of::<u32>();
/// Work-items per work-group on a GPU.
const GROUP: usize = 64;
/// Work-items per compute unit of a CPU, in work-groups of one.
const ITEMS_PER_UNIT: usize = 4;
/// Most work-items on a CPU for a list of runs. PoCL would compile the kernel again for more than 65534.
const MOST_CPU_ITEMS: usize = 256;

/// The masks of the components, and what joins them.
#[derive(Debug)]
pub(crate) struct Join {
    join: Kernel,
    pixels: Kernel,
    picture: Kernel,
    picture_group: [usize; 2],
    expand: Expand,
    scanner: Scanner,
    /// Most work-items of a join on a CPU; `None`: one per word, in work-groups of `group`.
    items: Option<usize>,
    group: usize,
    width: usize,
    /// Counters of a component.
    words: usize,
    /// The mask of each component, and one of the pixels without the pattern.
    masks: Vec<Arc<ClBuffer>>,
    missing: Option<Arc<ClBuffer>>,
    /// The mask of missing pixels may have marks.
    has_missing: bool,
    /// Counters of marked pixels; then those of the components.
    counts: Mem,
    slot: usize,
    is_clean: bool,
    marked: Marked,
    /// Marked pixels of each component.
    marked_by: [u64; COMPONENTS],
    /// Memory for a packed mask that is then expanded; allocated at first use.
    packed: Option<Arc<ClBuffer>>,
    pictures: Vec<ClFrame>,
}

/// Defects that the operators of their components have completed.
fn completed<O: Submitted>(mut listed: Listed, parts: &[O]) -> Listed {
    for defect in &mut listed.defects {
        if let Some(part) = parts.get(defect.component.unwrap_or(0)) {
            part.complete(defect);
        }
    }
    listed
}

impl Join {
    pub fn new(context: &ClContext, width: usize, words: usize) -> Result<Self, ClError> {
        let program = context.program(ProgramSource::Colour, "")?;
        let picture = program.kernel("colour_picture")?;
        let join = program.kernel("colour_join")?;
        let caps = context.caps();
        Ok(Self {
            items: caps.is_cpu.then_some(caps.compute_units * ITEMS_PER_UNIT),
            group: GROUP.min(context.kernel_work_group(&join)?),
            join,
            pixels: program.kernel("colour_pixels")?,
            picture_group: plain_group(context, &picture)?,
            picture,
            expand: Expand::new(context, &program)?,
            scanner: Scanner::new(context, &program, !context.caps().is_cpu)?,
            width,
            words,
            masks: Vec::new(),
            missing: None,
            has_missing: false,
            counts: context.device_memory((SLOTS + COMPONENTS * words) * WORD)?,
            slot: 0,
            is_clean: false,
            marked: Marked::default(),
            marked_by: [0; COMPONENTS],
            packed: None,
            pictures: Vec::new(),
        })
    }

    /// Memory for the masks of `rows` rows.
    fn hold(
        &mut self,
        context: &Arc<ClContext>,
        rows: usize,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        // The kernel reads whole words.
        let bytes = (packed_stride(self.width) * rows).next_multiple_of(WORD);
        let new = || ClBuffer::new(context, bytes, meter).map(Arc::new);
        let suffices = |buffer: &Arc<ClBuffer>| buffer.size() >= bytes;
        if self.masks.len() != COMPONENTS || !self.masks.iter().all(suffices) {
            self.masks = (0..COMPONENTS).map(|_| new()).collect::<Result<_, _>>()?;
        }
        if matches!(target, MaskTarget::Grey(_)) && !self.packed.as_ref().is_some_and(suffices) {
            self.packed = Some(new()?);
        }
        if !self.missing.as_ref().is_some_and(suffices) {
            self.missing = Some(new()?);
            self.has_missing = true;
        }
        if let Some(missing) = self.missing.as_ref().filter(|_| self.has_missing) {
            missing.zero("the mask of missing pixels")?;
            self.has_missing = false;
        }
        Ok(())
    }

    /// Marks a frame with the operators of its components, and waits once, unless marks follow late.
    ///
    /// # Errors
    /// The failing call.
    pub fn mark<O: Submitted>(
        &mut self,
        context: &Arc<ClContext>,
        parts: &mut [O],
        planes: &[ClFrame],
        subject: Subject,
        target: MaskTarget,
    ) -> Result<Marked, ClError> {
        self.marked = Marked::default();
        let result = self.mark_parts(context, parts, planes, subject, target);
        match &result {
            Ok(marked) => self.marked = *marked,
            // The frame may be counted in part.
            Err(_) => (self.is_clean, self.has_missing) = (false, true),
        }
        result
    }

    fn mark_parts<O: Submitted>(
        &mut self,
        context: &Arc<ClContext>,
        parts: &mut [O],
        planes: &[ClFrame],
        subject: Subject,
        target: MaskTarget,
    ) -> Result<Marked, ClError> {
        let (rows, meter) = (subject.window.rows, subject.meter);
        self.hold(context, rows, target, meter)?;
        let bytes = COMPONENTS * self.width * rows;
        let mut submission = context.submit(meter, bytes);
        if !self.is_clean {
            self.is_clean = true;
            submission.zero(&self.counts, SLOTS * WORD, "the pixel counters")?;
        }
        for ((part, frame), mask) in parts.iter_mut().zip(planes).zip(&self.masks) {
            part.submit(Subject { frame, ..subject }, (mask, 0), &mut submission)?;
        }
        let counts = self.join(parts, target, rows, submission)?;
        let mut marked = Marked {
            pixels: counts[self.slot].into(),
            missing: 0,
        };
        self.slot = 1 - self.slot;
        let mut is_late = false;
        let of_parts = counts[SLOTS..].chunks(self.words.max(1));
        let missing = self.missing.as_deref().map(|missing| (missing, 0));
        let all = parts.iter_mut().zip(planes).zip(&self.masks);
        for (at, (((part, frame), mask), counts)) in all.zip(of_parts).enumerate() {
            let subject = Subject { frame, ..subject };
            let Finished {
                marked: by_part,
                late,
                newly_missing,
            } = part.finish(subject, (mask, 0), counts, missing)?;
            is_late |= late > 0;
            self.has_missing |= newly_missing > 0;
            marked.missing += newly_missing;
            if let Some(pixels) = self.marked_by.get_mut(at) {
                *pixels = by_part.pixels;
            }
        }
        if is_late {
            let submission = context.submit(meter, bytes);
            let counts = self.join(parts, target, rows, submission)?;
            marked.pixels = counts[self.slot].into();
            self.slot = 1 - self.slot;
        }
        let packed = self.packed.clone();
        if let (Some(part), Some(mask)) = (parts.first_mut(), packed_mask(target, &packed)) {
            marked.pixels = part.change(target, mask, marked.pixels, meter)?;
        }
        Ok(marked)
    }

    /// Joins the masks, waits, and returns all counters.
    fn join<O: Submitted>(
        &mut self,
        parts: &mut [O],
        target: MaskTarget,
        rows: usize,
        mut submission: Submission,
    ) -> Result<Vec<u32>, ClError> {
        let counters = parts.iter_mut().map(|part| part.counters().0);
        let counters: Vec<&Mem> = counters.collect();
        self.enqueue(&counters, target, rows, &mut submission)?;
        let mut counts = vec![0; SLOTS + COMPONENTS * self.words];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counts, 0, bytes, "the pixel count")?;
        Ok(counts)
    }

    fn enqueue(
        &mut self,
        counters: &[&Mem],
        target: MaskTarget,
        rows: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let (mask, offset) = packed_mask(target, &self.packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let bytes = packed_stride(self.width) * rows;
        let words = bytes.div_ceil(WORD);
        let (item_words, range) = match self.items {
            Some(items) => {
                let item_words = words.div_ceil(items).max(1);
                (item_words, NdRange::groups(words.div_ceil(item_words), 1))
            }
            None => (1, NdRange::groups(words.div_ceil(self.group), self.group)),
        };
        let mask = Memory::Buffer(mask);
        let mut args: Vec<Arg> = (self.masks.iter())
            .map(|mask| Arg::Reads(Memory::Buffer(mask)))
            .collect();
        args.extend([
            Arg::Writes(mask),
            Arg::U64(offset as u64),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::U32(to_u32(item_words, "words")?),
        ]);
        args.extend(counters.iter().map(|counters| Arg::Mem(counters)));
        args.extend([
            Arg::U32(to_u32(self.words, "counters")?),
            Arg::Mem(&self.counts),
            Arg::U32(to_u32(self.slot, "a counter")?),
        ]);
        submission.run(&mut self.join, "colour_join", &args, &range)?;
        (self.expand).run(mask, target, [self.width, rows], submission)
    }

    /// Lists the defects of the mask of the last frame.
    ///
    /// # Errors
    /// The failing call.
    pub fn list<O: Submitted>(
        &mut self,
        context: &Arc<ClContext>,
        parts: &mut [O],
        planes: &[ClFrame],
        (subject, target): (Subject, MaskTarget),
        (finder, limits): (&mut Finder, &Limits),
    ) -> Result<Listed, ClError> {
        let (window, meter) = (subject.window, subject.meter);
        let size = [self.width, window.rows];
        let own = parts.first().and_then(O::own_marks);
        let packed = match &own {
            Some(own) => Some((&**own, 0)),
            None => packed_mask(target, &self.packed),
        };
        let packed = packed.filter(|_| self.marked.pixels > 0);
        let Some((buffer, offset)) = packed else {
            finder.pass(size[0], size[1], limits, window.ends_web());
            return Ok(completed(finder.list(&[]), parts));
        };
        let mask = DeviceMask {
            buffer,
            offset,
            size,
            pixels: self.marked.pixels,
        };
        let web = (&mut *finder, limits, window.ends_web());
        let runs = self.scanner.scan(context, mask, web, meter)?;
        let mut differences: [Vec<RunDifference>; COMPONENTS] = Default::default();
        for (at, of_part) in differences.iter_mut().enumerate() {
            let (Some(part), Some(frame), Some(mask)) =
                (parts.get_mut(at), planes.get(at), self.masks.get(at))
            else {
                continue;
            };
            *of_part = if self.marked_by[at] > 0 {
                part.measure(Subject { frame, ..subject }, (mask, 0), runs)?
                    .to_vec()
            } else {
                vec![RunDifference::default(); runs.len()]
            };
        }
        let pixels = count_pixels(
            &mut self.pixels,
            context,
            (self.width, &self.masks),
            runs,
            meter,
        )?;
        let listed = finder.list_components(&differences, &pixels);
        Ok(completed(listed, parts))
    }

    /// Draws a picture of the frame of the last mark.
    ///
    /// # Errors
    /// The failing call.
    pub fn draw<O: Submitted>(
        &mut self,
        context: &Arc<ClContext>,
        parts: &mut [O],
        planes: &[ClFrame],
        (subject, picture): (Subject, Picture),
        out: &ClFrame,
    ) -> Result<(), ClError> {
        let size = [self.width, subject.window.rows];
        self.hold_pictures(context, size, subject.meter)?;
        for ((part, frame), out) in parts.iter_mut().zip(planes).zip(&self.pictures) {
            part.draw(Subject { frame, ..subject }, picture, out)?;
        }
        self.draw_one(context, picture, out, size, subject.meter)
    }

    fn hold_pictures(
        &mut self,
        context: &Arc<ClContext>,
        size: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let has_rows = (self.pictures.iter()).all(|picture| super::split::holds(picture, size));
        if self.pictures.len() != COMPONENTS || !has_rows {
            let pictures = (0..COMPONENTS).map(|_| ClFrame::grey(context, size, meter));
            self.pictures = pictures.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn draw_one(
        &mut self,
        context: &Arc<ClContext>,
        picture: Picture,
        out: &ClFrame,
        [width, height]: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let mut args = Vec::new();
        let mut stride = 0;
        for picture in &self.pictures {
            let plane = picture.plane(0)?;
            stride = plane.stride;
            args.push(Arg::Reads(plane.memory()));
        }
        args.extend([
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::I32(i32::from(picture == Picture::Model)),
        ]);
        args.extend(target_args(out.plane(0)?, 0)?);
        args.extend([
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ]);
        let range = NdRange::cover([width, height], self.picture_group);
        let mut submission = context.submit(meter, width * height);
        submission.run(&mut self.picture, "colour_picture", &args, &range)?;
        submission.send()?.wait("the picture")
    }

    /// Joins masks of `rows` rows. Returns the mask and the number of marked pixels.
    ///
    /// # Errors
    /// The failing call.
    pub fn join_masks(
        &mut self,
        context: &Arc<ClContext>,
        masks: &[Vec<u8>; COMPONENTS],
        rows: usize,
        meter: &Arc<Meter>,
    ) -> Result<(Vec<u8>, u32), ClError> {
        let bytes = packed_stride(self.width) * rows;
        let out = ClBuffer::new(context, bytes, meter)?;
        let target = MaskTarget::Packed {
            buffer: &out,
            offset: 0,
        };
        self.hold(context, rows, target, meter)?;
        for (buffer, mask) in self.masks.iter().zip(masks) {
            buffer.write(0, mask, "a mask of a component")?;
        }
        let none = context.device_memory(self.words.max(1) * WORD)?;
        let mut submission = context.submit(meter, bytes);
        submission.zero(&self.counts, SLOTS * WORD, "the pixel counters")?;
        self.enqueue(&[&none; COMPONENTS], target, rows, &mut submission)?;
        let mut counts = [0_u32; SLOTS];
        let read = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counts, 0, read, "the pixel count")?;
        let joined = out.read_with(|joined| joined.get(..bytes).unwrap_or(joined).to_vec())?;
        Ok((joined, counts[self.slot]))
    }

    /// Runs each kernel once.
    ///
    /// # Errors
    /// The failing call.
    pub fn warm_up(
        &mut self,
        context: &Arc<ClContext>,
        planes: &[ClFrame],
        size: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let [_, rows] = size;
        let Some(out) = planes.first() else {
            return Ok(());
        };
        let target = MaskTarget::Grey(out);
        self.hold(context, rows, target, meter)?;
        let none = context.device_memory(self.words.max(1) * WORD)?;
        let mut submission = context.submit(meter, size[0] * rows);
        submission.zero(&self.counts, SLOTS * WORD, "the pixel counters")?;
        self.enqueue(&[&none; COMPONENTS], target, rows, &mut submission)?;
        submission.send()?.wait("a mask to warm up with")?;
        let run = Run {
            x1: 1,
            ..Run::default()
        };
        count_pixels(
            &mut self.pixels,
            context,
            (self.width, &self.masks),
            &[run],
            meter,
        )?;
        self.hold_pictures(context, size, meter)?;
        self.draw_one(context, Picture::Model, out, size, meter)
    }
}

/// By run the marked pixels of each component.
fn count_pixels(
    kernel: &mut Kernel,
    context: &Arc<ClContext>,
    (width, masks): (usize, &[Arc<ClBuffer>]),
    runs: &[Run],
    meter: &Meter,
) -> Result<Vec<[u32; COMPONENTS]>, ClError> {
    let mut pixels = vec![[0; COMPONENTS]; runs.len()];
    if runs.is_empty() {
        return Ok(pixels);
    }
    let memory = crate::upload(context, runs, "runs of defects")?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut pixels);
    let out = context.device_memory(bytes.len())?;
    let mut args = vec![Arg::I32(to_i32(width, "a width")?)];
    args.extend(masks.iter().map(|mask| Arg::Reads(Memory::Buffer(mask))));
    args.extend([
        Arg::Mem(&memory),
        Arg::U32(to_u32(runs.len(), "runs")?),
        Arg::Mem(&out),
    ]);
    let range = if context.caps().is_cpu {
        NdRange::groups(runs.len().min(MOST_CPU_ITEMS), 1)
    } else {
        let group = GROUP.min(context.kernel_work_group(kernel)?);
        NdRange::groups(runs.len().div_ceil(group), group)
    };
    let mut submission = context.submit(meter, bytes.len());
    submission.run(kernel, "colour_pixels", &args, &range)?;
    submission.read(&out, 0, bytes, "pixels of runs")?;
    Ok(pixels)
}
