//! The commands of a comparison with a trained picture, for submissions with those of others.

use clinspect_core::{
    ClError,
    components::{Run, RunDifference},
};
use clinspect_opencl::{Arg, Mem, Memory, Submission};

use super::{Counters, Reference};
use crate::{
    Marked, Subject,
    inspection::{Finished, PackedMask, Submitted},
};

impl Submitted for Reference {
    fn look(&mut self, subject: Subject, leader: Option<&Self>) -> Result<(), ClError> {
        let Some(leader) = leader else {
            return self.find(subject.frame, subject.meter);
        };
        self.reading = None;
        let place = leader.reading.as_ref();
        if let (Some(model), Some(place)) = (self.model.as_mut().filter(|_| !self.is_blind), place)
        {
            let reading = model
                .reader
                .read_at(subject.frame, place.place(), subject.meter)?;
            self.reading = Some(reading);
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
        (self.marker).mark(&self.base, model, subject.frame, reading, mask, submission)
    }

    fn counters(&self) -> (&Mem, usize) {
        (&self.marker.counters, Counters::default().len())
    }

    fn finish(
        &mut self,
        _subject: Subject,
        _mask: PackedMask,
        counts: &[u32],
        _missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let slot = self.marker.slot;
        self.marker.slot = 1 - slot;
        self.marked = Marked {
            pixels: counts.get(slot).copied().unwrap_or(0).into(),
            missing: 0,
        };
        Ok(Finished {
            marked: self.marked,
            ..Finished::default()
        })
    }

    fn fail(&mut self) {
        self.marked = Marked::default();
        self.marker.is_clean = false;
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
        let mut args = base.frame_args(subject.frame.plane(0)?)?.to_vec();
        args.extend([
            reading.shift_arg(),
            reading.level_arg(base),
            Arg::Mem(&model.mean),
        ]);
        let args: [&[Arg]; 2] = [&args, &[]];
        (self.lister).measure(&base.context, mask, args, runs, subject.meter)
    }
}
