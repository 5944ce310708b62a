//! Draws the results over a frame and encodes the picture as JPEG.

use gst::prelude::*;

use crate::{config::Properties, state::Picture};

/// Quality of the pictures, percent.
const QUALITY: i32 = 80;
/// Longest time for one picture.
const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(5);

/// A pipeline that is made at the first frame, and made again after an error.
#[derive(Default)]
pub struct Encoder(Option<Running>);

struct Running {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    size: gst::Element,
    sink: gst_app::AppSink,
    overlay: Properties,
    width: i32,
    caps: Option<gst::Caps>,
    pictures: u64,
}

impl Encoder {
    /// The frame as a picture of at most `width` px.
    ///
    /// # Errors
    /// A sentence, if the frame cannot be drawn or encoded.
    pub fn encode(
        &mut self,
        buffer: &gst::Buffer,
        caps: &gst::Caps,
        overlay: &Properties,
        width: i32,
    ) -> Result<Picture, String> {
        let is_same = |running: &Running| running.overlay == *overlay && running.width == width;
        let mut running = match self.0.take().filter(is_same) {
            Some(running) => running,
            None => Running::start(overlay, width).map_err(|error| error.message.into_owned())?,
        };
        let picture = running.encode(buffer, caps)?;
        self.0 = Some(running);
        Ok(picture)
    }
}

impl Running {
    fn start(overlay: &Properties, width: i32) -> Result<Self, gst::glib::BoolError> {
        let make = |name| gst::ElementFactory::make(name).build();
        let source = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        // Marks have no colour on a grey frame.
        let convert = make("videoconvert")?;
        let colour = make("capsfilter")?;
        let i420 = gst::Caps::builder("video/x-raw").field("format", "I420");
        colour.set_property("caps", i420.build());
        let draw = make("inspectoverlay")?;
        overlay.apply(&draw);
        let scale = make("videoscale")?;
        let size = make("capsfilter")?;
        let encode = make("jpegenc")?;
        encode.set_property("quality", QUALITY);
        let sink = gst_app::AppSink::builder().sync(false).build();
        let pipeline = gst::Pipeline::new();
        let elements = [
            source.upcast_ref(),
            &convert,
            &colour,
            &draw,
            &scale,
            &size,
            &encode,
            sink.upcast_ref(),
        ];
        pipeline.add_many(elements)?;
        gst::Element::link_many(elements)?;
        let running = Self {
            pipeline,
            source,
            size,
            sink,
            overlay: overlay.clone(),
            width,
            caps: None,
            pictures: 0,
        };
        let started = running.pipeline.set_state(gst::State::Playing);
        started.map_err(|_| gst::glib::bool_error!("the pipeline for pictures does not start"))?;
        Ok(running)
    }

    fn encode(&mut self, buffer: &gst::Buffer, caps: &gst::Caps) -> Result<Picture, String> {
        if self.caps.as_ref() != Some(caps) {
            self.size.set_property("caps", scaled(caps, self.width));
            self.source.set_caps(Some(caps));
            self.caps = Some(caps.clone());
        }
        // Live and failed frames come in any order, and timestamps must grow.
        let mut buffer = buffer.copy();
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(gst::ClockTime::from_mseconds(self.pictures));
            buffer.set_dts(None);
            buffer.set_duration(None);
            buffer.unset_flags(gst::BufferFlags::DISCONT);
        }
        self.pictures += 1;
        let pushed = self.source.push_buffer(buffer);
        let sample = pushed.ok().and_then(|_| self.sink.try_pull_sample(LIMIT));
        let buffer = sample.as_ref().and_then(|sample| sample.buffer());
        let Some(map) = buffer.and_then(|buffer| buffer.map_readable().ok()) else {
            return Err(self.error());
        };
        Ok(Picture::copy_from_slice(&map))
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

impl Drop for Running {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Caps of the picture: any format, no wider than `most`.
fn scaled(caps: &gst::Caps, most: i32) -> gst::Caps {
    let structure = caps.structure(0);
    let number = |name| structure.and_then(|fields| fields.get::<i32>(name).ok());
    let size = number("width").zip(number("height"));
    let caps = gst::Caps::builder("video/x-raw");
    match size {
        Some((width, height)) if width > most => {
            let height = i64::from(height) * i64::from(most) / i64::from(width);
            let height = i32::try_from(height.max(1)).unwrap_or(1);
            caps.field("width", most).field("height", height).build()
        }
        _ => caps.build(),
    }
}
