//! A feed of simulated frames, panels or labels, with the defects planted in each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use gstclinspect::results::DefectResult;

use crate::{
    common::{
        label::{LabelFrame, LabelGenerator},
        panel::{PanelFrame, PanelGenerator},
        planted::Planted,
    },
    failure::Failure,
    feed::{self, Feed},
    settings::{Labels, Panels, Sequence},
    source::Feeding,
};

/// A simulated frame and its ground truth.
#[derive(Debug)]
pub struct Shown {
    samples: Vec<u8>,
    height: usize,
    /// The defects, by the name of their kind.
    pub planted: Vec<Planted<&'static str>>,
}

impl From<PanelFrame> for Shown {
    fn from(frame: PanelFrame) -> Self {
        let planted = frame.planted.into_iter().map(|defect| {
            let name = defect.kind.name();
            defect.of_kind(name)
        });
        Self {
            samples: frame.samples,
            height: frame.height,
            planted: planted.collect(),
        }
    }
}

impl From<LabelFrame> for Shown {
    fn from(frame: LabelFrame) -> Self {
        let planted = frame.planted.into_iter().map(|misprint| {
            let name = misprint.kind.name();
            misprint.of_kind(name)
        });
        Self {
            samples: frame.samples,
            height: frame.height,
            planted: planted.collect(),
        }
    }
}

/// Defects planted in the frames in flight, by frame number.
#[derive(Debug, Clone, Default)]
pub struct Truth(Arc<Mutex<HashMap<u64, Arc<Shown>>>>);

impl Truth {
    fn note(&self, number: u64, frame: &Arc<Shown>) {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.insert(number, frame.clone());
    }

    /// Removes and returns the frame shown as number `frame`; `None` if the source is not simulated.
    pub fn take(&self, frame: u64) -> Option<Arc<Shown>> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&frame)
    }
}

/// How far the frame's pixels lie from those of the mask, px: an aligned frame was read elsewhere.
pub fn shift(result: &DefectResult) -> [isize; 2] {
    let alignment = result.alignment.unwrap_or_default();
    [alignment.shift_x, alignment.shift_y].map(|shift| shift.round() as isize)
}

/// Whether the mask has a pixel on the defect.
pub fn is_found<K>(defect: &Planted<K>, marked: impl Fn(usize, usize) -> bool) -> bool {
    defect.pixels().any(|(x, y)| marked(x, y))
}

impl Sequence {
    /// Defects to plant in frame `index`: the last of each `bad_every` frames after the training is bad.
    fn planted(&self, index: u64) -> usize {
        match index.checked_sub(self.good) {
            Some(index) if (index + 1).is_multiple_of(self.bad_every) => self.defects,
            _ => 0,
        }
    }
}

/// Shows simulated frames.
pub struct SimulatedFeed {
    /// Makes a frame with so many defects.
    make: Box<dyn FnMut(usize) -> Shown + Send>,
    sequence: Sequence,
    /// Frames made before the start; empty if each frame is made when it is shown.
    ready: Vec<Arc<Shown>>,
    feeding: Feeding,
    info: gst_video::VideoInfo,
    caps: gst::Caps,
}

impl SimulatedFeed {
    /// A feed of panel frames.
    ///
    /// # Errors
    /// A panel that cannot be drawn or is too large for a video frame.
    pub fn panels(panels: &Panels, feeding: &Feeding) -> Result<Self, Failure> {
        let spec = panels.spec;
        let mut generator = PanelGenerator::new(spec, panels.seed).map_err(Failure::Usage)?;
        let format = if spec.bit_depth > 8 {
            gst_video::VideoFormat::Gray16Le
        } else {
            gst_video::VideoFormat::Gray8
        };
        let make = move |defects| generator.next_random(defects).into();
        let size = [spec.width, spec.height];
        Self::new(Box::new(make), (format, size), panels.sequence, feeding)
    }

    /// A feed of labels.
    ///
    /// # Errors
    /// A label that cannot be drawn.
    pub fn labels(labels: &Labels, feeding: &Feeding) -> Result<Self, Failure> {
        let spec = labels.spec;
        let mut generator = LabelGenerator::new(spec, labels.seed).map_err(Failure::Usage)?;
        let make = move |defects| generator.next_random(defects).into();
        let kind = (gst_video::VideoFormat::Gray8, [spec.width, spec.height]);
        Self::new(Box::new(make), kind, labels.sequence, feeding)
    }

    fn new(
        mut make: Box<dyn FnMut(usize) -> Shown + Send>,
        (format, size): (gst_video::VideoFormat, [usize; 2]),
        sequence: Sequence,
        feeding: &Feeding,
    ) -> Result<Self, Failure> {
        let too_large = || Failure::Usage("the simulated frame is too large".into());
        let side = |len: usize| u32::try_from(len).map_err(|_| too_large());
        let (width, height) = (side(size[0])?, side(size[1])?);
        let rate = if feeding.fps > 0.0 {
            gst::Fraction::approximate_f64(feeding.fps)
        } else {
            None
        };
        let info = gst_video::VideoInfo::builder(format, width, height)
            .fps(rate.unwrap_or_else(|| gst::Fraction::new(0, 1)))
            .build()
            .map_err(|_| too_large())?;
        let caps = info.to_caps().map_err(|_| too_large())?;
        // Whole rounds of good and bad frames, and the frames of the training before them: frames that
        // come again would teach too small deviations.
        let distinct = sequence.distinct.next_multiple_of(sequence.bad_every);
        let distinct = match (sequence.distinct, feeding.frames) {
            (0, _) => 0,
            (_, 0) => sequence.good + distinct,
            (_, frames) => (sequence.good + distinct).min(frames),
        };
        let ready = (0..distinct)
            .map(|index| Arc::new(make(sequence.planted(index))))
            .collect();
        Ok(Self {
            make,
            sequence,
            ready,
            feeding: feeding.clone(),
            info,
            caps,
        })
    }

    fn frame(&mut self, index: u64) -> Arc<Shown> {
        let ready = self.ready.len() as u64;
        if ready == 0 {
            return Arc::new((self.make)(self.sequence.planted(index)));
        }
        let at = match index.checked_sub(ready) {
            None => index,
            // Fewer frames than the training needs are not shown again.
            Some(over) => self.sequence.good + over % (ready - self.sequence.good).max(1),
        };
        self.ready[at as usize].clone()
    }
}

impl Feed for SimulatedFeed {
    fn caps(&self) -> Option<gst::Caps> {
        Some(self.caps.clone())
    }

    fn next(
        &mut self,
        index: u64,
        pool: Option<&gst::BufferPool>,
    ) -> Result<Option<(gst::Buffer, gst::Caps)>, String> {
        if self.feeding.frames > 0 && index == self.feeding.frames {
            return Ok(None);
        }
        let frame = self.frame(index);
        let rows = (&frame.samples[..], frame.height);
        let buffer = feed::fill(feed::buffer(&self.info, pool)?, &self.info, rows)?;
        self.feeding.truth.note(index, &frame);
        Ok(Some((buffer, self.caps.clone())))
    }
}
