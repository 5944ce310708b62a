//! The steps of a frame in an operator that marks pixels: look, submit, finish, and list.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed, MeasuredDefect, Run, RunDifference},
    mask::packed_stride,
    window::Window,
};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Mem, Memory, Meter, Submission};

use crate::{
    Inspection, MaskTarget,
    frame_results::HostMask,
    inspection::{Marked, PackedMask, Subject},
    lister::{Ahead, DeviceMask, Lister},
    marker::{Marker, packed_mask},
};

/// What became of marks that were submitted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finished {
    /// The pixels that are marked.
    pub marked: Marked,
    /// Pixels that were marked after the submission.
    pub late: u64,
    /// Pixels that were marked in the mask of missing pixels and were clear there before.
    pub newly_missing: u64,
}

/// An operator whose commands can be submitted together with those of others: nobody waits between them.
///
/// [`Inspection::mark`] is [`Self::look`], [`Self::submit`], a read of [`Self::counters`], and [`Self::finish`].
pub trait Submitted: Inspection + Send {
    /// Whether marks can be measured before they are known: nothing changes them afterwards but [`Self::finish`].
    const MEASURES_AHEAD: bool = true;

    /// The device, and what marks.
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker);

    /// Width of a mask in pixels, and bytes that the kernels process of a frame.
    fn mask_size(&self, window: &Window) -> (usize, usize);

    /// Gets ready for [`Self::submit`]: sends the device what has changed since the last frame, and finds out how to read
    /// the frame, which may take a look at it. `leader` has looked at the frame's luma, which decides where the frame lies.
    ///
    /// # Errors
    /// The failing call.
    fn look(&mut self, _subject: Subject, _leader: Option<&Self>) -> Result<(), ClError> {
        Ok(())
    }

    /// Enqueues the marks of a frame. Makes no call that waits for the device, because the submission holds the device's
    /// order.
    ///
    /// # Errors
    /// The failing call.
    fn submit<'a>(
        &'a mut self,
        subject: Subject<'a>,
        mask: PackedMask<'a>,
        submission: &mut Submission,
    ) -> Result<(), ClError>;

    /// What the host reads of each frame when the commands have ended, and where to: the counters, the runs if they were
    /// collected, and what else the operator needs.
    fn reads(&mut self) -> Vec<(&Mem, &mut [u8])> {
        let (_, marker) = self.marker();
        vec![marker.lister.results.read()]
    }

    /// The memory of the counters that [`Self::finish`] needs, and their number.
    fn counters(&mut self) -> (&Mem, usize) {
        let (_, marker) = self.marker();
        (marker.counters(), marker.count)
    }

    /// Takes the counters after the commands have ended. Marks late what the counters tell to mark; pixels without the
    /// pattern are also marked in the mask `missing`, if there is one.
    ///
    /// # Errors
    /// The failing call.
    fn finish(
        &mut self,
        _subject: Subject,
        _mask: PackedMask,
        counts: &[u32],
        _missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let (_, marker) = self.marker();
        let mut finished = Finished::default();
        finished.marked.pixels = marker.counted(counts, 0);
        marker.finish(finished.marked);
        Ok(finished)
    }

    /// The commands have failed: the frame may be counted in part.
    fn fail(&mut self) {
        let (_, marker) = self.marker();
        marker.fail();
    }

    /// Calls `measure` with the arguments of kernel `run_differences` before and behind the mask; does not call it if the
    /// frame was not compared. `is_missing`: there are tiles without the pattern.
    ///
    /// # Errors
    /// The failing call.
    fn with_difference_args(
        &mut self,
        subject: Subject,
        mask: PackedMask,
        is_missing: bool,
        measure: impl FnOnce(&mut Lister, &Arc<ClContext>, [&[Arg]; 2]) -> Result<(), ClError>,
    ) -> Result<(), ClError>;

    /// The differences of the pixels in runs that the last frame's mask has.
    ///
    /// # Errors
    /// The failing call.
    fn measure(
        &mut self,
        subject: Subject,
        mask: PackedMask,
        runs: &[Run],
    ) -> Result<&[RunDifference], ClError> {
        let (_, marker) = self.marker();
        let is_missing = marker.marked.missing > 0;
        let mut is_measured = false;
        self.with_difference_args(subject, mask, is_missing, |lister, context, args| {
            is_measured = true;
            (lister.measure(context, mask, args, runs, subject.meter)).map(drop)
        })?;
        let (_, marker) = self.marker();
        Ok(if is_measured {
            marker.lister.results()
        } else {
            &[]
        })
    }

    /// Changes the marks of a frame before they are sent, those of all components together: they are opened, or moved to
    /// where they lie in the frame. Waits, and returns how many there are then.
    ///
    /// # Errors
    /// The failing call.
    fn change(
        &mut self,
        _target: MaskTarget,
        _mask: PackedMask,
        count: u64,
        _meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        Ok(count)
    }

    /// The marks that are listed, if they are not those of the mask.
    fn own_marks(&self) -> Option<Arc<ClBuffer>> {
        None
    }

    /// Completes a defect that was listed from [`Self::measure`].
    fn complete(&self, _defect: &mut MeasuredDefect) {}
}

/// [`Inspection::mark`].
///
/// # Errors
/// The failing call.
pub(crate) fn mark<O: Submitted>(
    operator: &mut O,
    subject: Subject,
    target: MaskTarget,
) -> Result<Marked, ClError> {
    let result = write_mask(operator, subject, target);
    if result.is_err() {
        operator.fail();
    }
    result
}

/// What is read, in messages.
const COUNT: &str = "the pixel count";

/// Writes the mask of a frame, waits, and counts.
///
/// # Errors
/// The failing call.
pub(crate) fn write_mask<O: Submitted>(
    operator: &mut O,
    subject: Subject,
    target: MaskTarget,
) -> Result<Marked, ClError> {
    let (width, processed) = operator.mask_size(&subject.window);
    let size = [width, subject.window.rows];
    let is_grey = matches!(target, MaskTarget::Grey(_));
    let (context, marker) = operator.marker();
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
    marker.lister.results.begin();
    operator.look(subject, None)?;
    let memory = Memory::Buffer(mask.0);
    let reading = context.together(|| {
        let mut submission = context.submit(subject.meter, processed);
        operator.submit(subject, mask, &mut submission)?;
        let (_, marker) = operator.marker();
        (marker.expand).run(memory, target, size, &mut submission)?;
        match std::mem::take(&mut marker.lister.ahead) {
            Ahead::Wanted(room) if O::MEASURES_AHEAD => {
                let marks = DeviceMask::of(mask, size);
                operator.with_difference_args(subject, mask, false, |lister, context, args| {
                    lister.collect(context, marks, args, room, &mut submission)
                })?;
            }
            _ => {}
        }
        let reads = operator.reads();
        let parts = reads.iter().map(|(memory, out)| (*memory, 0, out.len()));
        submission.begin_reads(&parts.collect::<Vec<_>>(), COUNT)
    })?;
    let mut outs: Vec<_> = operator.reads().into_iter().map(|(_, out)| out).collect();
    reading.finish(&mut outs, COUNT)?;
    let (_, marker) = operator.marker();
    let counts = marker.lister.results.counters();
    let finished = operator.finish(subject, mask, &counts, None)?;
    let mut marked = finished.marked;
    marked.pixels = operator.change(target, mask, marked.pixels, subject.meter)?;
    let (_, marker) = operator.marker();
    marker.marked = marked;
    marker.lister.take_collected(finished.late == 0);
    if finished.late > 0 && is_grey {
        let bytes = packed_stride(width) * size[1];
        let mut submission = context.submit(subject.meter, bytes);
        (marker.expand).run(memory, target, size, &mut submission)?;
        submission.send()?.wait("the mask")?;
    }
    Ok(marked)
}

/// [`Inspection::list`].
///
/// # Errors
/// The failing call.
pub(crate) fn list<O: Submitted>(
    operator: &mut O,
    subject: Subject,
    target: MaskTarget,
    finder: &mut Finder,
    limits: &Limits,
) -> Result<Listed, ClError> {
    let (width, _) = operator.mask_size(&subject.window);
    let size = [width, subject.window.rows];
    let ends = subject.window.ends_web();
    let own = operator.own_marks();
    let (_, marker) = operator.marker();
    let (packed, pixels) = (marker.packed.clone(), marker.marked.pixels);
    let mask = match &own {
        Some(own) => Some((&**own, 0)),
        None => packed_mask(target, &packed),
    };
    let mut listed = match mask.filter(|_| pixels > 0) {
        None => {
            finder.pass(size[0], size[1], limits, ends);
            finder.list(&[])
        }
        Some((buffer, offset)) => {
            let mask = DeviceMask {
                buffer,
                offset,
                size,
                pixels,
            };
            list_marks(operator, subject, mask, (finder, limits, ends))?
        }
    };
    for defect in &mut listed.defects {
        operator.complete(defect);
    }
    Ok(listed)
}

/// Lists the defects of a mask. `ends`: the web ends with this mask.
///
/// # Errors
/// The failing call.
fn list_marks<O: Submitted>(
    operator: &mut O,
    subject: Subject,
    mask: DeviceMask,
    (finder, limits, ends): (&mut Finder, &Limits, bool),
) -> Result<Listed, ClError> {
    let (_, marker) = operator.marker();
    if !matches!(marker.lister.ahead, Ahead::Measured) && marker.lister.collects(&mask) {
        collect(operator, subject, mask)?;
    }
    let (_, Marker { lister, .. }) = operator.marker();
    let web = (&mut *finder, limits, ends);
    let listed = if let Some(HostMask { bytes, is_set }) = lister.measured_mask(mask.size) {
        let width = mask.size[0];
        let stride = packed_stride(width);
        let runs = web.0.scan_rows(bytes, stride, width, is_set, limits, ends);
        let measured = lister.measured(runs);
        finder.list(&measured)
    } else {
        let runs = mask.scan(web)?;
        let measured = operator.measure(subject, (mask.buffer, mask.offset), runs)?;
        finder.list(measured)
    };
    let (_, Marker { lister, .. }) = operator.marker();
    lister.note_listed();
    Ok(listed)
}

/// Collects and measures the runs of a mask, and waits; the frame may not be compared, and then has none.
///
/// # Errors
/// The failing call.
fn collect<O: Submitted>(
    operator: &mut O,
    subject: Subject,
    mask: DeviceMask,
) -> Result<(), ClError> {
    let (context, marker) = operator.marker();
    let context = context.clone();
    let is_missing = marker.marked.missing > 0;
    let bytes = packed_stride(mask.size[0]) * mask.size[1];
    let mut submission = context.submit(subject.meter, bytes);
    marker.clean(&mut submission)?;
    // After a failure the counters are unknown.
    marker.is_clean = false;
    let packed = (mask.buffer, mask.offset);
    operator.with_difference_args(subject, packed, is_missing, |lister, context, args| {
        lister.collect(context, mask, args, mask.pixels as usize, &mut submission)
    })?;
    let (_, marker) = operator.marker();
    if matches!(marker.lister.ahead, Ahead::Submitted) {
        let (memory, out) = marker.lister.results.read();
        submission.read(memory, 0, out, "runs of a mask")?;
        marker.lister.take_collected(true);
    }
    marker.is_clean = true;
    Ok(())
}

/// Compiles the kernel that lists need, and runs it once: marks a pixel in the packed mask of a warm-up frame, which has no
/// defect, and lists it.
///
/// # Errors
/// The failing call.
pub(crate) fn warm_up_list<O: Submitted>(
    operator: &mut O,
    subject: Subject,
) -> Result<(), ClError> {
    let (_, marker) = operator.marker();
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
    (list(operator, subject, target, &mut Finder::default(), &limits)).map(drop)
}
