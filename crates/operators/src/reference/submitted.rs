//! The commands of a comparison with a trained picture, for submissions with those of others.

use std::sync::Arc;

use clinspect_core::{ClError, components::MeasuredDefect, window::Window};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Memory, Meter, Submission};

use super::Reference;
use crate::{
    MaskTarget, Subject, inspection::PackedMask, lister::Lister, marker::Marker,
    submitted::Submitted,
};

impl Submitted for Reference {
    // Marks are opened and moved.
    const MEASURES_AHEAD: bool = false;

    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker) {
        (&self.base.context, &mut self.marker)
    }

    fn mask_size(&self, _window: &Window) -> (usize, usize) {
        (self.base.size[0], self.base.bytes())
    }

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

    fn with_difference_args(
        &mut self,
        subject: Subject,
        _mask: PackedMask,
        _is_missing: bool,
        measure: impl FnOnce(&mut Lister, &Arc<ClContext>, [&[Arg]; 2]) -> Result<(), ClError>,
    ) -> Result<(), ClError> {
        let (Some(model), Some(reading)) = (&self.model, &self.reading) else {
            return Ok(());
        };
        let base = &self.base;
        let frame = model.reader.aligned(subject.frame, reading);
        let [src, offset, stride, width, _] = base.frame_args(frame.plane(0)?)?;
        let (level, mean) = (reading.level_arg(base), Arg::Mem(&model.mean));
        let args = [src, offset, stride, width, level, mean];
        measure(&mut self.marker.lister, &base.context, [&args, &[]])
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
