//! A feed of panel frames, with the defects planted in each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    common::panel::{PanelFrame, PanelGenerator, PlantedDefect},
    failure::Failure,
    feed::{self, Feed},
    options::Panels,
    source::Feeding,
};

/// Defects planted in the frames in flight, by frame number.
#[derive(Debug, Clone, Default)]
pub struct Truth(Arc<Mutex<HashMap<u64, Arc<PanelFrame>>>>);

impl Truth {
    fn note(&self, frame: u64, panel: &Arc<PanelFrame>) {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.insert(frame, panel.clone());
    }

    /// Removes and returns the frame shown as number `frame`; `None` if the source is not a panel.
    pub fn take(&self, frame: u64) -> Option<Arc<PanelFrame>> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&frame)
    }
}

/// Whether the mask has a pixel on the defect.
pub fn is_found(defect: &PlantedDefect, marked: impl Fn(usize, usize) -> bool) -> bool {
    defect.pixels().any(|(x, y)| marked(x, y))
}

/// Defects to plant in frame `index`: the last of each `bad_every` frames is bad.
fn planted(index: u64, bad_every: u64, defects: usize) -> usize {
    if (index + 1).is_multiple_of(bad_every) {
        defects
    } else {
        0
    }
}

/// Shows panel frames.
pub struct PanelFeed {
    generator: PanelGenerator,
    /// Defects planted in a bad frame.
    defects: usize,
    /// One in this many frames is bad.
    bad_every: u64,
    /// Frames made before the start; empty if each frame is made when it is shown.
    ready: Vec<Arc<PanelFrame>>,
    feeding: Feeding,
    info: gst_video::VideoInfo,
    caps: gst::Caps,
}

impl PanelFeed {
    /// A feed of frames; makes the first ones.
    ///
    /// # Errors
    /// A panel that cannot be drawn or is too large for a video frame.
    pub fn new(panels: &Panels, feeding: &Feeding) -> Result<Self, Failure> {
        let mut generator =
            PanelGenerator::new(panels.spec, panels.seed).map_err(Failure::Usage)?;
        let defects = |index| planted(index, panels.bad_every, panels.defects);
        let format = if panels.spec.bit_depth > 8 {
            gst_video::VideoFormat::Gray16Le
        } else {
            gst_video::VideoFormat::Gray8
        };
        let too_large = || Failure::Usage("the panel frame is too large".into());
        let side = |len: usize| u32::try_from(len).map_err(|_| too_large());
        let (width, height) = (side(panels.spec.width)?, side(panels.spec.height)?);
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
        // Whole rounds of good and bad frames.
        let distinct = panels.distinct.next_multiple_of(panels.bad_every);
        let distinct = match feeding.frames {
            0 => distinct,
            frames => distinct.min(frames),
        };
        let ready = (0..distinct)
            .map(|index| Arc::new(generator.next_random(defects(index))))
            .collect();
        Ok(Self {
            generator,
            defects: panels.defects,
            bad_every: panels.bad_every,
            ready,
            feeding: feeding.clone(),
            info,
            caps,
        })
    }

    fn frame(&mut self, index: u64) -> Arc<PanelFrame> {
        match self.ready.len() as u64 {
            0 => {
                let defects = planted(index, self.bad_every, self.defects);
                Arc::new(self.generator.next_random(defects))
            }
            count => self.ready[(index % count) as usize].clone(),
        }
    }
}

impl Feed for PanelFeed {
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
