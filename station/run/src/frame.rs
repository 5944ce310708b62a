//! A frame in memory of its own: from a buffer or a picture file, and as PNG or JPEG.

use std::io::Cursor;

use clinspect_pictures::Picture;
use gst_video::{VideoFormat, VideoFrameExt};
use image::{DynamicImage, codecs::jpeg::JpegEncoder};
use png::{BitDepth, ColorType, Compression, Filter, PixelDimensions, Unit};

use crate::convert::{converted, square_size};

/// Width of the pictures that people look at, px.
pub const PICTURE_WIDTH: u32 = 1280;
/// Width of a small picture in a list, px.
pub const THUMBNAIL_WIDTH: u32 = 160;
/// Quality of JPEG pictures, percent.
const QUALITY: u8 = 85;
/// Most rows of a JPEG picture: the limit of Firefox.
const MOST_ROWS: u32 = 32_767;

/// A frame's pixels in system memory, and what they are.
#[derive(Debug)]
pub struct Frame {
    buffer: gst::Buffer,
    info: gst_video::VideoInfo,
    rate: gst::Fraction,
}

/// What the pixels are, without what tells cameras and files apart: an object is the same in both.
fn plain(info: &gst_video::VideoInfo) -> Result<gst_video::VideoInfo, gst::glib::BoolError> {
    let colorimetry = info.colorimetry();
    let plain = gst_video::VideoInfo::builder(info.format(), info.width(), info.height());
    let plain = plain.par(info.par());
    match info.is_yuv() {
        true => plain.colorimetry(&colorimetry).build(),
        false => plain.build(),
    }
}

/// The pixels as a JPEG picture of this size. `quality`: percent.
///
/// # Errors
/// A sentence if GStreamer cannot convert the format, or if the picture cannot be encoded.
pub fn jpeg(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    size: [u32; 2],
    quality: u8,
) -> Result<Vec<u8>, String> {
    let (rgb, info) = converted(buffer, info, VideoFormat::Rgb, size)?;
    let [width, height] = size;
    let pixels = packed(&rgb, &info)?;
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, quality)
        .encode(&pixels, width, height, image::ExtendedColorType::Rgb8)
        .map_err(|error| error.to_string())?;
    Ok(jpeg)
}

impl Frame {
    /// Copies the pixels; strides become those of the caps. The planes must lie in the buffer.
    ///
    /// # Errors
    /// A sentence if the buffer cannot be read.
    pub fn copy_of(buffer: &gst::Buffer, info: &gst_video::VideoInfo) -> Result<Self, String> {
        let unreadable = |_| format!("GStreamer cannot read the {} frame", info.format());
        // Such as Bayer pictures, whose size GStreamer does not know.
        if info.size() == 0 {
            return Err(format!(
                "frames of the format {} have no pixels that can be read",
                info.format()
            ));
        }
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
        let frame = frame.map_err(unreadable)?;
        let rate = info.fps();
        let info = &plain(info).map_err(|error| error.to_string())?;
        let copy = gst::Buffer::with_size(info.size()).map_err(|error| error.to_string())?;
        let copy = gst_video::VideoFrame::from_buffer_writable(copy, info);
        let mut copy = copy.map_err(|_| "no memory for a copy of the frame".to_owned())?;
        let copied = frame.copy(&mut copy.as_mut_video_frame_ref());
        copied.map_err(|error| error.to_string())?;
        Ok(Self {
            buffer: copy.into_buffer(),
            info: info.clone(),
            rate,
        })
    }

    /// Frames per second of the camera; 0/1 if it is not known.
    pub fn rate(&self) -> gst::Fraction {
        self.rate
    }

    /// Reads a PNG, PNM or JPEG picture, upright as viewers show it. Grey of 8 and 16 bits and RGB of 8 bits keep every
    /// bit: they become GRAY8, GRAY16_LE and RGB. RGB of 16 bits loses the lower eight, and transparency is left out.
    ///
    /// # Errors
    /// A sentence if the bytes are no such picture, or if it takes more than 256 MiB.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let Picture {
            pixels: picture,
            is_turned,
            ..
        } = clinspect_pictures::decode(bytes)?;
        let [width, height] = [picture.width(), picture.height()];
        let (format, pixels) = match picture {
            DynamicImage::ImageLuma8(grey) => (VideoFormat::Gray8, grey.into_raw()),
            DynamicImage::ImageLumaA8(_) => (VideoFormat::Gray8, picture.into_luma8().into_raw()),
            DynamicImage::ImageLuma16(_) | DynamicImage::ImageLumaA16(_) => {
                let samples = picture.into_luma16().into_raw();
                let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes());
                (VideoFormat::Gray16Le, bytes.collect())
            }
            _ => (VideoFormat::Rgb, picture.into_rgb8().into_raw()),
        };
        let refused = |error: gst::glib::BoolError| error.to_string();
        let info = gst_video::VideoInfo::builder(format, width, height);
        let info = match pixel_shape(bytes) {
            Some(shape) if is_turned => info.par(gst::Fraction::new(shape.denom(), shape.numer())),
            Some(shape) => info.par(shape),
            None => info,
        };
        let info = info.build().map_err(refused)?;
        let mut buffer = gst::Buffer::with_size(info.size()).map_err(refused)?;
        if let Some(buffer) = buffer.get_mut() {
            let mut map = buffer.map_writable().map_err(refused)?;
            let row = pixels.len() / (height.max(1) as usize);
            let stride = usize::try_from(info.stride()[0]).map_err(|error| error.to_string())?;
            for (to, from) in map.chunks_mut(stride.max(1)).zip(pixels.chunks(row.max(1))) {
                if let Some(to) = to.get_mut(..from.len()) {
                    to.copy_from_slice(from);
                }
            }
        }
        Ok(Self {
            buffer,
            info,
            rate: gst::Fraction::new(0, 1),
        })
    }

    /// The pixels, in the layout of [`Self::info`].
    pub fn buffer(&self) -> &gst::Buffer {
        &self.buffer
    }

    /// The pixels as a buffer with this timestamp.
    pub fn into_buffer(self, pts: Option<gst::ClockTime>) -> gst::Buffer {
        let mut buffer = self.buffer;
        buffer.make_mut().set_pts(pts);
        buffer
    }

    /// Format and size.
    pub fn info(&self) -> &gst_video::VideoInfo {
        &self.info
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.info.size()
    }

    /// Whether both have the same pixels.
    pub fn has_pixels_of(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|frame| frame.buffer.map_readable().ok());
        self.info == other.info
            && own
                .zip(others)
                .is_some_and(|(own, others)| own.as_slice() == others.as_slice())
    }

    /// The frame as a JPEG picture with square pixels, reduced to at most `width` px.
    ///
    /// # Errors
    /// A sentence if GStreamer cannot convert the format, or if the picture cannot be encoded.
    pub fn jpeg(&self, width: u32) -> Result<Vec<u8>, String> {
        let size = square_size(&self.info, [width, MOST_ROWS]);
        jpeg(&self.buffer, &self.info, size, QUALITY)
    }

    /// The frame as a PNG file with these texts by their keys, which viewers show among the picture's properties. GRAY8, GRAY16
    /// and RGB keep every bit; other formats become RGB of 8 bits.
    ///
    /// # Errors
    /// A sentence if GStreamer cannot convert the format.
    pub fn png(&self, texts: &[(&str, String)]) -> Result<Vec<u8>, String> {
        let (info, grey) = (&self.info, ColorType::Grayscale);
        match info.format() {
            VideoFormat::Gray8 | VideoFormat::Gray16Le | VideoFormat::Gray16Be => {
                self.encode(&self.buffer, info, grey, texts)
            }
            VideoFormat::Rgb => self.encode(&self.buffer, info, ColorType::Rgb, texts),
            _ => {
                let size = [info.width(), info.height()];
                let (rgb, info) = converted(&self.buffer, info, VideoFormat::Rgb, size)?;
                self.encode(&rgb, &info, ColorType::Rgb, texts)
            }
        }
    }

    /// The first plane of a buffer with the pixels of the frame.
    fn encode(
        &self,
        buffer: &gst::BufferRef,
        info: &gst_video::VideoInfo,
        colour: ColorType,
        texts: &[(&str, String)],
    ) -> Result<Vec<u8>, String> {
        let format = info.format();
        let is_wide = matches!(format, VideoFormat::Gray16Le | VideoFormat::Gray16Be);
        let [width, height] = [info.width(), info.height()];
        let mut pixels = packed(buffer, info)?;
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
        let written = (texts.iter())
            .try_for_each(|(key, text)| encoder.add_text_chunk((*key).to_owned(), text.clone()))
            .and_then(|()| {
                let mut writer = encoder.write_header()?;
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

/// The rows of the first plane, without padding.
fn packed(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Result<Vec<u8>, String> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
    let frame = frame.map_err(|error| error.to_string())?;
    let [width, height] = [info.width(), info.height()].map(|side| side as usize);
    let row = width * usize::try_from(info.comp_pstride(0)).unwrap_or(1);
    let stride = usize::try_from(frame.plane_stride()[0]).map_err(|error| error.to_string())?;
    let data = frame.plane_data(0).map_err(|error| error.to_string())?;
    let mut pixels = Vec::with_capacity(row * height);
    for line in data.chunks(stride.max(1)).take(height) {
        pixels.extend_from_slice(line.get(..row).ok_or("the frame is too short")?);
    }
    Ok(pixels)
}

/// Width to height of a pixel in a PNG file that says it.
fn pixel_shape(png: &[u8]) -> Option<gst::Fraction> {
    let reader = png::Decoder::new(Cursor::new(png)).read_info().ok()?;
    // With a unit it is a resolution, which tells nothing of the camera.
    let PixelDimensions { xppu, yppu, unit } = reader.info().pixel_dims?;
    if unit != Unit::Unspecified {
        return None;
    }
    let [wide, high] = [yppu, xppu].map(|side| i32::try_from(side).ok().filter(|side| *side > 0));
    Some(gst::Fraction::new(wide?, high?))
}
