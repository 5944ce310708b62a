//! What operators share that mark pixels: the mask of a frame is written and counted, and its defects are listed.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    mask::packed_stride,
    window::Window,
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, NdRange, Program, Submission,
};

use crate::{
    MaskTarget,
    inspection::{Marked, Subject, Submitted},
    lister::{Ahead, DeviceMask, HostMask, Lister},
    source::{plain_group, target_args},
    to_i32, to_u32,
};

/// The counters and masks of an operator that marks pixels by itself, and its list of their defects.
#[derive(Debug)]
pub(crate) struct Marker {
    pub lister: Lister,
    pub expand: Expand,
    /// Two counters of each kind: the commands of a frame count in those at `slot`, and clear the others for the next frame.
    pub counters: Mem,
    /// Number of the counters.
    count: usize,
    pub slot: usize,
    /// The counters at `slot` are zero.
    pub is_clean: bool,
    /// The result of the last frame.
    pub marked: Marked,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    pub packed: Option<Arc<ClBuffer>>,
}

/// Most counters of a [`Marker`].
const MOST_COUNTERS: usize = 6;

impl Marker {
    /// Prepares `count` counters, and the kernels of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        count: usize,
        has_bus: bool,
    ) -> Result<Self, ClError> {
        Ok(Self {
            lister: Lister::new(context, program, has_bus)?,
            expand: Expand::new(context, program)?,
            counters: counters(context, count)?,
            count,
            slot: 0,
            is_clean: true,
            marked: Marked::default(),
            packed: None,
        })
    }

    /// Clears the counters, unless the last frame left them clear.
    ///
    /// # Errors
    /// The failing call.
    pub fn clean(&mut self, submission: &mut Submission) -> Result<(), ClError> {
        if !std::mem::replace(&mut self.is_clean, true) {
            let bytes = self.count * size_of::<u32>();
            submission.zero(&self.counters, bytes, "the pixel counters")?;
        }
        Ok(())
    }

    /// The counters and their number, for [`Submitted::counters`].
    pub fn counted(&self) -> (&Mem, usize) {
        (&self.counters, self.count)
    }

    /// The kernels' arguments `counters` and `slot`.
    ///
    /// # Errors
    /// None in practice: a slot is 0 or 1.
    pub fn counter_args(&self) -> Result<[Arg<'_>; 2], ClError> {
        Ok([
            Arg::Mem(&self.counters),
            Arg::U32(to_u32(self.slot, "a counter")?),
        ])
    }

    /// The frame has this result, and the next frame counts in the other counters.
    pub fn finish(&mut self, marked: Marked) {
        self.marked = marked;
        self.slot = 1 - self.slot;
    }

    /// The frame may be counted in part.
    pub fn fail(&mut self) {
        self.marked = Marked::default();
        self.is_clean = false;
    }
}

/// `count` counters, set to zero.
///
/// # Errors
/// The failing call.
pub(crate) fn counters(context: &ClContext, count: usize) -> Result<Mem, ClError> {
    let bytes = count * size_of::<u32>();
    let mem = context.device_memory(bytes)?;
    context.zero(&mem, bytes, "the pixel counters")?;
    Ok(mem)
}

/// The memory of a frame's packed mask, and the offset of its first row; `own` if the target is not
/// packed.
pub(crate) fn packed_mask<'a>(
    target: MaskTarget<'a>,
    own: &'a Option<Arc<ClBuffer>>,
) -> Option<(&'a ClBuffer, usize)> {
    match target {
        MaskTarget::Packed { buffer, offset } => Some((buffer, offset)),
        MaskTarget::Grey(_) => own.as_ref().map(|buffer| (&**buffer, 0)),
    }
}

/// The kernel that expands a packed mask to a byte per pixel.
#[derive(Debug)]
pub(crate) struct Expand {
    kernel: Kernel,
    group: [usize; 2],
}

impl Expand {
    /// Takes the kernel from a program for buffers.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let kernel = program.kernel("mask_expand")?;
        Ok(Self {
            group: plain_group(context, &kernel)?,
            kernel,
        })
    }

    /// Expands the packed mask if the target has a byte per pixel.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        mask: Memory,
        target: MaskTarget,
        [width, height]: [usize; 2],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let MaskTarget::Grey(out) = target else {
            return Ok(());
        };
        let stride = packed_stride(width);
        let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
        let args = [
            Arg::Reads(mask),
            Arg::U32(to_u32(stride, "a stride")?),
            dst,
            dst_offset,
            dst_stride,
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ];
        let range = NdRange::cover([stride, height], self.group);
        submission.run(&mut self.kernel, "mask_expand", &args, &range)
    }
}

/// An operator that marks the pixels of frames by itself, and lists them.
pub(crate) trait Marks: Submitted {
    /// The device, and what marks.
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker);

    /// Width of a mask in pixels, and bytes that the kernels process of a frame.
    fn mask_size(&self, window: &Window) -> (usize, usize);

    /// Enqueues the measurement of marks before they are known; see [`Lister::measure_ahead`].
    ///
    /// # Errors
    /// The failing call.
    fn measure_ahead(
        &mut self,
        _subject: Subject,
        _mask: DeviceMask,
        _submission: &mut Submission,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// [`Inspection::mark`](crate::Inspection::mark).
    ///
    /// # Errors
    /// The failing call.
    fn mark_frame(&mut self, subject: Subject, target: MaskTarget) -> Result<Marked, ClError> {
        let result = self.write_mask(subject, target);
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Writes the mask of a frame, waits, and counts.
    ///
    /// # Errors
    /// The failing call.
    fn write_mask(&mut self, subject: Subject, target: MaskTarget) -> Result<Marked, ClError> {
        let (width, processed) = self.mask_size(&subject.window);
        let size = [width, subject.window.rows];
        let is_grey = matches!(target, MaskTarget::Grey(_));
        let (context, marker) = self.marker();
        let context = context.clone();
        if is_grey {
            let bytes = packed_stride(width) * size[1];
            let suffices = |packed: &Arc<ClBuffer>| packed.size() >= bytes;
            if !marker.packed.as_ref().is_some_and(suffices) {
                let packed = ClBuffer::new(&context, bytes, subject.meter)?;
                marker.packed = Some(Arc::new(packed));
            }
        }
        let packed = marker.packed.clone();
        let mask = packed_mask(target, &packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        self.look(subject, None)?;
        let mut submission = context.submit(subject.meter, processed);
        self.submit(subject, mask, &mut submission)?;
        let memory = Memory::Buffer(mask.0);
        let (_, marker) = self.marker();
        (marker.expand).run(memory, target, size, &mut submission)?;
        match marker.lister.ahead {
            Ahead::Wanted(_) => {
                self.measure_ahead(subject, DeviceMask::of(mask, size), &mut submission)?;
            }
            _ => marker.lister.ahead = Ahead::Off,
        }
        let (_, marker) = self.marker();
        let is_ahead = matches!(marker.lister.ahead, Ahead::Submitted(_));
        let mut counts = [0_u32; MOST_COUNTERS];
        let counted = bytemuck::cast_slice_mut(&mut counts[..marker.count]);
        let counters = (&marker.counters, counted);
        if is_ahead {
            let mut reads = marker.lister.reads_ahead(counters);
            submission.read_all(&mut reads, "the pixel count")?;
        } else {
            submission.read_all(&mut [counters], "the pixel count")?;
        }
        let finished = self.finish(subject, mask, &counts, None)?;
        let mut marked = finished.marked;
        marked.pixels = self.change(target, mask, marked.pixels, subject.meter)?;
        let (_, marker) = self.marker();
        marker.marked = marked;
        if is_ahead {
            marker.lister.take_ahead(finished.late == 0);
        }
        if finished.late > 0 && is_grey {
            let bytes = packed_stride(width) * size[1];
            let mut submission = context.submit(subject.meter, bytes);
            (marker.expand).run(memory, target, size, &mut submission)?;
            submission.send()?.wait("the mask")?;
        }
        Ok(marked)
    }

    /// [`Inspection::list`](crate::Inspection::list).
    ///
    /// # Errors
    /// The failing call.
    fn list_frame(
        &mut self,
        subject: Subject,
        target: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let (width, _) = self.mask_size(&subject.window);
        let size = [width, subject.window.rows];
        let ends = subject.window.ends_web();
        let own = self.own_marks();
        let (_, marker) = self.marker();
        let (packed, pixels) = (marker.packed.clone(), marker.marked.pixels);
        let mask = match &own {
            Some(own) => Some((&**own, 0)),
            None => packed_mask(target, &packed),
        };
        let Some((buffer, offset)) = mask.filter(|_| pixels > 0) else {
            finder.pass(size[0], size[1], limits, ends);
            return Ok(finder.list(&[]));
        };
        let mask = DeviceMask {
            buffer,
            offset,
            size,
            pixels,
        };
        self.list_marks(subject, mask, (finder, limits, ends))
    }

    /// Lists the defects of a mask. `ends`: the web ends with this mask.
    ///
    /// # Errors
    /// The failing call.
    fn list_marks(
        &mut self,
        subject: Subject,
        mask: DeviceMask,
        (finder, limits, ends): (&mut Finder, &Limits, bool),
    ) -> Result<Listed, ClError> {
        let (context, Marker { lister, .. }) = self.marker();
        let web = (&mut *finder, limits, ends);
        let mut listed = if let Some(HostMask { bytes, is_set }) = lister.measured_mask(mask.size) {
            let width = mask.size[0];
            let stride = packed_stride(width);
            let runs = web.0.scan_rows(bytes, stride, width, is_set, limits, ends);
            let measured = lister.measured(runs);
            finder.list(&measured)
        } else {
            let runs = lister.scanner.scan(context, mask, web, subject.meter)?;
            let measured = self.measure(subject, (mask.buffer, mask.offset), runs)?;
            finder.list(measured)
        };
        let (_, Marker { lister, .. }) = self.marker();
        lister.note_listed(lister.scanner.count());
        for defect in &mut listed.defects {
            self.complete(defect);
        }
        Ok(listed)
    }

    /// Compiles the kernel that lists need, and runs it once: marks a pixel in the packed mask of a warm-up frame, which has no
    /// defect, and lists it.
    ///
    /// # Errors
    /// The failing call.
    fn warm_up_list(&mut self, subject: Subject) -> Result<(), ClError> {
        let (_, marker) = self.marker();
        marker.marked.pixels = 1;
        if let Some(packed) = &marker.packed {
            packed.write(0, &[0x80], "a mask to warm up with")?;
        }
        let limits = Limits {
            min_area: 0,
            merge_distance: 0,
            max_defects: 1,
            max_runs: usize::MAX,
            max_defect_rows: u32::MAX,
        };
        let target = MaskTarget::Grey(subject.frame);
        (self.list_frame(subject, target, &mut Finder::default(), &limits)).map(drop)
    }
}
