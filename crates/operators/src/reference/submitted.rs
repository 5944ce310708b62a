//! The commands of a comparison with a trained picture, for submissions with those of others.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{MeasuredDefect, Run, RunDifference},
    window::Window,
};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Mem, Memory, Meter, Submission};

use super::Reference;
use crate::{
    Marked, MaskTarget, Subject,
    inspection::{Finished, PackedMask, Submitted},
    marker::{Marker, Marks},
};

impl Marks for Reference {
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker) {
        (&self.base.context, &mut self.marker)
    }

    fn mask_size(&self, _window: &Window) -> (usize, usize) {
        (self.base.size[0], self.base.bytes())
    }
}

impl Submitted for Reference {
    fn look(&mut self, subject: Subject, leader: Option<&Self>) -> Result<(), ClError> {
        if self.is_trial {
            return Ok(());
        }
        let Some(leader) = leader else {
            return self.find(subject.frame, subject.meter);
        };
        self.reading = None;
        let found = leader.reading.as_ref().map(|reading| reading.found.clone());
        if let (Some(model), Some(found)) = (self.model.as_mut().filter(|_| !self.is_blind), found)
        {
            self.reading = Some(model.reader.read_at(subject.frame, found, subject.meter)?);
        }
        Ok(())
    }

    fn submit<'a>(
        &'a mut self,
        subject: Subject<'a>,
        (mask, offset): PackedMask<'a>,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let mask = (Memory::Buffer(mask), offset);
        let (model, reading) = (self.model.as_ref(), self.reading.as_ref());
        let frame = match (model, reading) {
            (Some(model), Some(reading)) => model.reader.aligned(subject.frame, reading),
            _ => subject.frame,
        };
        let own = (&self.base, &mut self.marker);
        (self.comparer).mark(own, model, frame, reading, mask, submission)
    }

    fn counters(&self) -> (&Mem, usize) {
        self.marker.counted()
    }

    fn finish(
        &mut self,
        _subject: Subject,
        _mask: PackedMask,
        counts: &[u32],
        _missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let count = counts.get(self.marker.slot).copied();
        let marked = Marked {
            pixels: count.unwrap_or(0).into(),
            missing: 0,
        };
        self.marker.finish(marked);
        Ok(Finished {
            marked,
            ..Finished::default()
        })
    }

    fn fail(&mut self) {
        self.marker.fail();
    }

    fn measure(
        &mut self,
        subject: Subject,
        mask: PackedMask,
        runs: &[Run],
    ) -> Result<&[RunDifference], ClError> {
        let (Some(model), Some(reading)) = (&self.model, &self.reading) else {
            return Ok(&[]);
        };
        let base = &self.base;
        let frame = model.reader.aligned(subject.frame, reading);
        let [src, offset, stride, width, _] = base.frame_args(frame.plane(0)?)?;
        let (level, mean) = (reading.level_arg(base), Arg::Mem(&model.mean));
        let args: [&[Arg]; 2] = [&[src, offset, stride, width, level, mean], &[]];
        (self.marker.lister).measure(&base.context, mask, args, runs, subject.meter)
    }

    fn change(
        &mut self,
        target: MaskTarget,
        mask: PackedMask,
        count: u64,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        if count == 0 || !self.has_own_marks() {
            return Ok(count);
        }
        self.change_marks(target, mask, count, meter)
    }

    fn own_marks(&self) -> Option<Arc<ClBuffer>> {
        let marks = self.marks.as_ref().filter(|_| self.has_own_marks());
        marks.map(|marks| marks.own().clone())
    }

    fn complete(&self, defect: &mut MeasuredDefect) {
        if let Some(reading) = &self.reading {
            reading.warp().place(defect, self.base.size);
        }
    }
}
