//! Draws the results over a frame and encodes the picture as JPEG.

use gst::prelude::*;
use gst_video::VideoFormat;
use plan::Properties;

use crate::{
    convert::{converted, square_size},
    frame::jpeg,
    properties,
    state::Picture,
};

/// Quality of the pictures, percent.
const QUALITY: u8 = 80;
/// The element that encodes pictures, of GStreamer's plugins-good. Where it is not installed the crate image does, which takes
/// some ten times as long.
const JPEG_ELEMENT: &str = "jpegenc";
/// Longest time for one picture.
const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(5);
/// Most rows of a picture: the limit of Firefox. libjpeg takes 65 500.
const MOST_ROWS: u32 = 32_767;

/// Pipelines that are made at the first frame, and made again after an error.
#[derive(Default)]
pub struct Encoder {
    overlay: Option<(Properties, Step)>,
    jpeg: Option<Step>,
}

/// A frame at the size of its picture, with its results drawn.
pub struct DrawnFrame {
    buffer: gst::Buffer,
    info: gst_video::VideoInfo,
}

impl Encoder {
    /// The frame with square pixels, reduced to at most `width` px and [`MOST_ROWS`], with its results drawn.
    ///
    /// # Errors
    /// A sentence, if the frame cannot be drawn.
    pub fn draw(
        &mut self,
        buffer: &gst::Buffer,
        caps: &gst::Caps,
        overlay: &Properties,
        width: u32,
    ) -> Result<DrawnFrame, String> {
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|error| error.to_string())?;
        let size = square_size(&info, [width, MOST_ROWS]);
        // Marks have no colour on a grey frame.
        let (mut reduced, info) = converted(buffer, &info, VideoFormat::I420, size)?;
        // The overlay scales the results to the size of the picture.
        if let Some(reduced) = reduced.get_mut() {
            let copied = buffer.copy_into(reduced, gst::BufferCopyFlags::META, ..);
            copied.map_err(|error| error.to_string())?;
            // These tell how the frame lay in its own memory.
            while let Some(meta) = reduced.meta_mut::<gst_video::VideoMeta>() {
                meta.remove().map_err(|error| error.to_string())?;
            }
        }
        let step = self.overlay.take().filter(|(of, _)| of == overlay);
        let mut step = match step {
            Some((_, step)) => step,
            None => Step::start("inspectoverlay", |element| {
                // The page draws the histogram beside the picture, which it would cover in part.
                element.set_property("show-histogram", false);
                properties::apply(overlay, element);
            })?,
        };
        let buffer = step.pass(reduced, &info)?;
        self.overlay = Some((overlay.clone(), step));
        Ok(DrawnFrame { buffer, info })
    }

    /// The picture as JPEG, reduced to at most `width` px.
    ///
    /// # Errors
    /// A sentence, if the picture cannot be encoded.
    pub fn encode(&mut self, drawn: &DrawnFrame, width: u32) -> Result<Picture, String> {
        let DrawnFrame { buffer, info } = drawn;
        let size = square_size(info, [width, MOST_ROWS]);
        if gst::ElementFactory::find(JPEG_ELEMENT).is_none() {
            return jpeg(buffer, info, size, QUALITY).map(Picture::from);
        }
        let (reduced, info) = if size == [info.width(), info.height()] {
            (buffer.clone(), info.clone())
        } else {
            converted(buffer, info, VideoFormat::I420, size)?
        };
        let mut step = match self.jpeg.take() {
            Some(step) => step,
            None => Step::start(JPEG_ELEMENT, |element| {
                element.set_property("quality", i32::from(QUALITY))
            })?,
        };
        let buffer = step.pass(reduced, &info)?;
        self.jpeg = Some(step);
        let map = buffer.map_readable().map_err(|error| error.to_string())?;
        Ok(Picture::copy_from_slice(&map))
    }
}

/// A pipeline of one element that takes a buffer and gives one.
struct Step {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    sink: gst_app::AppSink,
    buffers: u64,
}

impl Step {
    fn start(factory: &str, prepare: impl FnOnce(&gst::Element)) -> Result<Self, String> {
        Self::build(factory, prepare).map_err(|error| error.message.into_owned())
    }

    fn build(
        factory: &str,
        prepare: impl FnOnce(&gst::Element),
    ) -> Result<Self, gst::glib::BoolError> {
        let source = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        let element = gst::ElementFactory::make(factory).build()?;
        prepare(&element);
        let sink = gst_app::AppSink::builder().sync(false).build();
        let pipeline = gst::Pipeline::new();
        let elements = [source.upcast_ref(), &element, sink.upcast_ref()];
        pipeline.add_many(elements)?;
        gst::Element::link_many(elements)?;
        let step = Self {
            pipeline,
            source,
            sink,
            buffers: 0,
        };
        let started = step.pipeline.set_state(gst::State::Playing);
        started.map_err(|_| gst::glib::bool_error!("the pipeline for pictures does not start"))?;
        Ok(step)
    }

    fn pass(
        &mut self,
        mut buffer: gst::Buffer,
        info: &gst_video::VideoInfo,
    ) -> Result<gst::Buffer, String> {
        let caps = info.to_caps().map_err(|error| error.to_string())?;
        if self.source.caps().as_ref() != Some(&caps) {
            self.source.set_caps(Some(&caps));
        }
        // Live and failed frames come in any order, and timestamps must grow.
        let of_buffer = buffer.make_mut();
        of_buffer.set_pts(gst::ClockTime::from_mseconds(self.buffers));
        of_buffer.set_dts(None);
        of_buffer.set_duration(None);
        of_buffer.unset_flags(gst::BufferFlags::DISCONT);
        self.buffers += 1;
        let pushed = self.source.push_buffer(buffer);
        let sample = pushed.ok().and_then(|_| self.sink.try_pull_sample(LIMIT));
        let buffer = sample.and_then(|sample| sample.buffer_owned());
        buffer.ok_or_else(|| self.error())
    }

    fn error(&self) -> String {
        let message =
            (self.pipeline.bus()).and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error]));
        match message.as_ref().map(|message| message.view()) {
            Some(gst::MessageView::Error(error)) => error.error().message().to_owned(),
            _ => "the picture took longer than 5 s".to_owned(),
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
