//! A copy of a frame, and its PNG.

use gst_video::{VideoFormat, VideoFrameExt};
use image::{
    ExtendedColorType, ImageEncoder,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};

/// A copy of a frame's pixels in memory of its own.
pub(super) struct Snapshot {
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
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(&self.buffer, &self.info);
        let frame = frame.map_err(|error| error.to_string())?;
        match self.info.format() {
            VideoFormat::Gray8 => encode(&frame, 1, ExtendedColorType::L8),
            VideoFormat::Gray16Le | VideoFormat::Gray16Be => {
                encode(&frame, 2, ExtendedColorType::L16)
            }
            VideoFormat::Rgb => encode(&frame, 3, ExtendedColorType::Rgb8),
            format => {
                let failed = |error| format!("GStreamer cannot convert {format} to RGB: {error}");
                let rgb = gst_video::VideoInfo::builder(
                    VideoFormat::Rgb,
                    self.info.width(),
                    self.info.height(),
                )
                .build()
                .map_err(failed)?;
                let converter = gst_video::VideoConverter::new(&self.info, &rgb, None);
                let target = gst::Buffer::with_size(rgb.size()).map_err(failed)?;
                let target = gst_video::VideoFrame::from_buffer_writable(target, &rgb);
                let mut target = target.map_err(|_| "no memory for a picture".to_owned())?;
                let converter = converter.map_err(failed)?;
                converter.frame_ref(&frame, &mut target.as_mut_video_frame_ref());
                encode(&target.as_video_frame_ref(), 3, ExtendedColorType::Rgb8)
            }
        }
    }
}

/// The first plane of a frame with `pixel` bytes a pixel.
fn encode(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    pixel: usize,
    colour: ExtendedColorType,
) -> Result<Vec<u8>, String> {
    let [width, height] = [frame.width(), frame.height()];
    let row = width as usize * pixel;
    let stride = usize::try_from(frame.plane_stride()[0]).map_err(|error| error.to_string())?;
    let data = frame.plane_data(0).map_err(|error| error.to_string())?;
    let mut pixels = Vec::with_capacity(row * height as usize);
    for line in data.chunks(stride.max(1)).take(height as usize) {
        pixels.extend_from_slice(line.get(..row).ok_or("the frame is too short")?);
    }
    // The crate takes samples of 16 bits in the order of the machine.
    if colour == ExtendedColorType::L16 {
        let is_little = frame.format() == VideoFormat::Gray16Le;
        for sample in pixels.chunks_exact_mut(2) {
            let bytes = [sample[0], sample[1]];
            let level = if is_little {
                u16::from_le_bytes(bytes)
            } else {
                u16::from_be_bytes(bytes)
            };
            sample.copy_from_slice(&level.to_ne_bytes());
        }
    }
    let mut png = Vec::with_capacity(pixels.len() / 2);
    PngEncoder::new_with_quality(&mut png, CompressionType::Fast, FilterType::Adaptive)
        .write_image(&pixels, width, height, colour)
        .map_err(|error| error.to_string())?;
    Ok(png)
}
