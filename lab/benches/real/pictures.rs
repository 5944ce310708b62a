//! Grey pictures.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use gst::prelude::*;
use gst_video::prelude::*;

/// A picture of 8-bit samples without padding.
#[derive(Clone, Debug)]
pub struct Grey {
    pub size: [usize; 2],
    pub samples: Vec<u8>,
}

impl Grey {
    /// Reads a PNG picture.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn png(path: &Path) -> Result<Self> {
        let picture = image::open(path).with_context(|| path.display().to_string())?;
        let picture = picture.into_luma8();
        Ok(Self {
            size: [picture.width() as usize, picture.height() as usize],
            samples: picture.into_raw(),
        })
    }

    /// Reads a JPEG picture with GStreamer.
    ///
    /// # Errors
    /// The file or the element jpegdec is missing.
    pub fn jpeg(path: &Path) -> Result<Self> {
        let description = "filesrc name=source ! jpegdec ! videoconvert ! video/x-raw,format=GRAY8 ! \
                           appsink name=sink sync=false";
        let pipeline = gst::parse::launch(description)?
            .downcast::<gst::Pipeline>()
            .map_err(|_| anyhow!("no pipeline: {description}"))?;
        let source = pipeline.by_name("source").context("no filesrc")?;
        source.set_property("location", path);
        let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>();
        let sink = sink.context("no appsink")?;
        let about = || format!("reading {}", path.display());
        let read = pipeline.set_state(gst::State::Playing).with_context(about);
        let sample = read.and_then(|_| sink.pull_sample().with_context(about));
        pipeline.set_state(gst::State::Null)?;
        let sample = sample?;
        let caps = sample.caps().context("a picture without caps")?;
        let info = gst_video::VideoInfo::from_caps(caps)?;
        let buffer = sample.buffer().context("a sample without a buffer")?;
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
        let size = [frame.width() as usize, frame.height() as usize];
        let stride = usize::try_from(frame.plane_stride()[0])?;
        let rows = frame.plane_data(0)?.chunks(stride).take(size[1]);
        Ok(Self {
            size,
            samples: rows
                .flat_map(|row| row[..size[0]].iter().copied())
                .collect(),
        })
    }

    /// The rows from `first` on, `height` of them.
    #[must_use]
    pub fn rows(&self, first: usize, height: usize) -> Self {
        let [width, _] = self.size;
        Self {
            size: [width, height],
            samples: self.samples[first * width..(first + height) * width].to_vec(),
        }
    }

    /// Enlarged `scale` times by cubic interpolation.
    #[must_use]
    pub fn enlarged(&self, scale: usize) -> Self {
        let [width, height] = self.size.map(|side| side as u32);
        let small = image::GrayImage::from_raw(width, height, self.samples.clone());
        let filter = image::imageops::FilterType::CatmullRom;
        let size = self.size.map(|side| side * scale);
        let large = small.map(|small| {
            image::imageops::resize(&small, size[0] as u32, size[1] as u32, filter).into_raw()
        });
        Self {
            size,
            samples: large.unwrap_or_default(),
        }
    }

    /// The columns from `first` on, `width` of them.
    #[must_use]
    pub fn columns(&self, first: usize, width: usize) -> Self {
        let rows = self.samples.chunks(self.size[0]);
        Self {
            size: [width, self.size[1]],
            samples: rows
                .flat_map(|row| row[first..first + width].iter().copied())
                .collect(),
        }
    }
}
