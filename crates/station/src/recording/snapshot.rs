//! A copy of a frame, and its PNG.

use gst_video::{VideoFormat, VideoFrameExt};
use png::{BitDepth, ColorType, Compression, Filter, PixelDimensions, Unit};

use crate::convert::converted;

/// A copy of a frame's pixels in memory of its own.
pub struct Snapshot {
    buffer: gst::Buffer,
    info: gst_video::VideoInfo,
}

impl Snapshot {
    /// Copies the pixels; strides become those of the caps.
    ///
    /// # Errors
    /// A sentence if the buffer cannot be read.
    pub fn of(buffer: &gst::Buffer, info: &gst_video::VideoInfo) -> Result<Self, String> {
        let unreadable = |_| format!("GStreamer cannot read the {} frame", info.format());
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
        let frame = frame.map_err(unreadable)?;
        let copy = gst::Buffer::with_size(info.size()).map_err(|error| error.to_string())?;
        let copy = gst_video::VideoFrame::from_buffer_writable(copy, info);
        let mut copy = copy.map_err(|_| "no memory for a copy of the frame".to_owned())?;
        let copied = frame.copy(&mut copy.as_mut_video_frame_ref());
        copied.map_err(|error| error.to_string())?;
        Ok(Self {
            buffer: copy.into_buffer(),
            info: info.clone(),
        })
    }

    /// The pixels as a buffer with this timestamp.
    pub fn into_buffer(self, pts: Option<gst::ClockTime>) -> gst::Buffer {
        let mut buffer = self.buffer;
        buffer.make_mut().set_pts(pts);
        buffer
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.info.size()
    }

    /// The frame as a PNG file. GRAY8, GRAY16 and RGB keep every bit; other formats become RGB of 8
    /// bits.
    ///
    /// # Errors
    /// A sentence if GStreamer cannot convert the format.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let (info, grey) = (&self.info, ColorType::Grayscale);
        match info.format() {
            VideoFormat::Gray8 | VideoFormat::Gray16Le | VideoFormat::Gray16Be => {
                self.encode(&self.buffer, info, grey)
            }
            VideoFormat::Rgb => self.encode(&self.buffer, info, ColorType::Rgb),
            _ => {
                let size = [info.width(), info.height()];
                let (rgb, info) = converted(&self.buffer, info, VideoFormat::Rgb, size)?;
                self.encode(&rgb, &info, ColorType::Rgb)
            }
        }
    }

    /// The first plane of a buffer with the pixels of the frame.
    fn encode(
        &self,
        buffer: &gst::BufferRef,
        info: &gst_video::VideoInfo,
        colour: ColorType,
    ) -> Result<Vec<u8>, String> {
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
        let frame = frame.map_err(|error| error.to_string())?;
        let format = info.format();
        let is_wide = matches!(format, VideoFormat::Gray16Le | VideoFormat::Gray16Be);
        let [width, height] = [info.width(), info.height()];
        let row = width as usize * usize::try_from(info.comp_pstride(0)).unwrap_or(1);
        let stride = usize::try_from(frame.plane_stride()[0]).map_err(|error| error.to_string())?;
        let data = frame.plane_data(0).map_err(|error| error.to_string())?;
        let mut pixels = Vec::with_capacity(row * height as usize);
        for line in data.chunks(stride.max(1)).take(height as usize) {
            pixels.extend_from_slice(line.get(..row).ok_or("the frame is too short")?);
        }
        // Samples of 16 bits have their high byte first in a PNG.
        if format == VideoFormat::Gray16Le {
            pixels
                .chunks_exact_mut(2)
                .for_each(|sample| sample.reverse());
        }
        let mut png = Vec::with_capacity(pixels.len() / 2);
        let mut encoder = png::Encoder::new(&mut png, width, height);
        encoder.set_color(colour);
        encoder.set_depth(if is_wide {
            BitDepth::Sixteen
        } else {
            BitDepth::Eight
        });
        encoder.set_compression(Compression::Fast);
        encoder.set_filter(Filter::Adaptive);
        encoder.set_pixel_dims(self.pixel_shape());
        let writer = encoder.write_header();
        let written = writer.and_then(|mut writer| {
            writer.write_image_data(&pixels)?;
            writer.finish()
        });
        written.map_err(|error| error.to_string())?;
        Ok(png)
    }

    /// The shape of a pixel that is not square. Every pixel is kept, and viewers show the picture in proportion.
    fn pixel_shape(&self) -> Option<PixelDimensions> {
        let pixel = self.info.par();
        let [wide, high] = [pixel.numer(), pixel.denom()].map(|side| u32::try_from(side).ok());
        let (wide, high) = wide.zip(high).filter(|(w, h)| *w > 0 && *h > 0 && w != h)?;
        // Pixels that are twice as wide are half as many in the same width.
        Some(PixelDimensions {
            xppu: high,
            yppu: wide,
            unit: Unit::Unspecified,
        })
    }
}
