//! A feed of strips: what a line camera sees of a web of cloth.

use crate::{
    common::cloth::ClothWeb,
    failure::Failure,
    feed::{self, Feed},
    settings::Strips,
    source::Feeding,
};

/// Cuts the web into strips.
pub struct WebFeed {
    web: ClothWeb,
    rows: u64,
    /// Strips to send; 0 = no end.
    strips: u64,
    info: gst_video::VideoInfo,
    caps: gst::Caps,
    /// The samples of a strip.
    samples: Vec<u8>,
}

impl WebFeed {
    /// A feed of strips, from the web's first row on.
    ///
    /// # Errors
    /// A web that cannot be drawn.
    pub fn new(strips: &Strips, feeding: &Feeding) -> Result<Self, Failure> {
        let too_large = || Failure::Usage("the strip is too large for a video frame".into());
        let width = u32::try_from(strips.spec.width).map_err(|_| too_large())?;
        let rate = gst::Fraction::approximate_f64(feeding.fps).filter(|_| feeding.fps > 0.0);
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, width, strips.rows)
            .fps(rate.unwrap_or_else(|| gst::Fraction::new(0, 1)))
            .build()
            .map_err(|_| too_large())?;
        Ok(Self {
            web: ClothWeb::new(strips.spec, strips.seed).map_err(Failure::Usage)?,
            rows: u64::from(strips.rows),
            strips: feeding.frames,
            caps: info.to_caps().map_err(|_| too_large())?,
            info,
            samples: Vec::new(),
        })
    }
}

impl Feed for WebFeed {
    fn caps(&self) -> Option<gst::Caps> {
        Some(self.caps.clone())
    }

    fn next(
        &mut self,
        index: u64,
        pool: Option<&gst::BufferPool>,
    ) -> Result<Option<(gst::Buffer, gst::Caps)>, String> {
        if self.strips > 0 && index == self.strips {
            return Ok(None);
        }
        self.samples.clear();
        for row in index * self.rows..(index + 1) * self.rows {
            self.web.row(row, &mut self.samples);
        }
        let buffer = feed::buffer(&self.info, pool)?;
        let rows = (&self.samples[..], self.info.height() as usize);
        let buffer = feed::fill(buffer, &self.info, rows)?;
        Ok(Some((buffer, self.caps.clone())))
    }
}
