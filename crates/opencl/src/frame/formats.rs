//! The formats that frames may have, and how their samples lie in a buffer.

use std::sync::LazyLock;

use clinspect_core::{
    ClError,
    layout::{Component, FrameLayout, SampleType},
    unpack::{Encoding, Packing},
};

/// Longest row of a plane, bytes: far beyond any camera. Kernels are warmed up with rows of the
/// frame's length, and caps alone must not cause an allocation of gigabytes.
const MAX_ROW_BYTES: usize = 1 << 22;

/// Raw formats whose components are whole bytes, then grey of two bytes: the formats that can be filtered
/// and counted.
pub static FORMATS: LazyLock<Vec<gst_video::VideoFormat>> = LazyLock::new(|| {
    let mut formats: Vec<gst_video::VideoFormat> = gst_video::VideoFormat::iter_raw()
        .filter(|&format| sample_type(format).is_some())
        .filter(|&format| {
            gst_video::VideoInfo::builder(format, 64, 64)
                .build()
                .is_ok_and(|info| layout_of(&info).is_ok())
        })
        .collect();
    // The formats of most cameras come first in negotiation.
    formats.sort_by_key(|format| match format {
        gst_video::VideoFormat::Gray8 => 0,
        gst_video::VideoFormat::Rgb => 1,
        gst_video::VideoFormat::Gray16Le | gst_video::VideoFormat::Gray16Be => 3,
        &format if depth_of(format) > 8 => 4,
        _ => 2,
    });
    formats
});

/// Formats with a plane of adjacent grey or luma samples: the formats that can be compared with
/// themselves.
pub static LUMA_FORMATS: LazyLock<Vec<gst_video::VideoFormat>> = LazyLock::new(|| {
    FORMATS
        .iter()
        .copied()
        .filter(|&format| {
            let info = gst_video::VideoFormatInfo::from_format(format);
            (info.is_gray() || info.is_yuv())
                && info.pixel_stride()[0]
                    == sample_type(format).map_or(0, |sample| sample.bytes() as i32)
        })
        .collect()
});

/// Formats of red, green and blue in one plane, some with alpha or a byte of padding.
pub static COLOUR_FORMATS: LazyLock<Vec<gst_video::VideoFormat>> = LazyLock::new(|| {
    let mut formats = FORMATS.clone();
    formats.retain(|&format| {
        let info = gst_video::VideoFormatInfo::from_format(format);
        info.is_rgb() && info.n_planes() == 1
    });
    formats
});

/// Formats of grey, and of red, green and blue: the formats whose samples are proportional to light.
pub static FLAT_FORMATS: LazyLock<Vec<gst_video::VideoFormat>> = LazyLock::new(|| {
    let mut formats = FORMATS.clone();
    formats.retain(|&format| {
        let info = gst_video::VideoFormatInfo::from_format(format);
        info.is_gray() || info.is_rgb()
    });
    formats
});

fn sample_type(format: gst_video::VideoFormat) -> Option<SampleType> {
    let info = gst_video::VideoFormatInfo::from_format(format);
    let plain =
        !(info.is_complex() || info.is_tiled() || info.has_palette() || info.has_subtiles());
    let unshifted = info.shift().iter().all(|&shift| shift == 0);
    if info.n_components() == 0 || !plain || !unshifted {
        return None;
    }
    if info.is_gray() {
        return grey_sample(info.depth(), info.pixel_stride(), info.is_le());
    }
    let whole_bytes = info.depth().iter().all(|&depth| depth == 8);
    whole_bytes.then_some(SampleType::U8)
}

/// How grey samples are stored. Those of 9 to 15 bits fill the lower bits of two bytes (`GRAY10_LE16`, which GStreamer
/// has since 1.26).
fn grey_sample(depth: &[u32], pixel_stride: &[i32], is_le: bool) -> Option<SampleType> {
    match (depth, pixel_stride) {
        ([8], [1, ..]) => Some(SampleType::U8),
        ([9..=16], [2, ..]) if is_le => Some(SampleType::U16Le),
        ([9..=16], [2, ..]) => Some(SampleType::U16Be),
        _ => None,
    }
}

/// Bits that the samples of a format fill.
pub fn depth_of(format: gst_video::VideoFormat) -> u32 {
    let info = gst_video::VideoFormatInfo::from_format(format);
    info.depth().first().copied().unwrap_or(0)
}

/// The layout of a frame of these caps.
///
/// # Errors
/// [`ClError::Refused`] for a format outside [`FORMATS`], for sizes of 0 or with strides that
/// overflow, and for rows of over 4 MiB.
pub fn layout_of(info: &gst_video::VideoInfo) -> Result<FrameLayout, ClError> {
    let format = info.format();
    let refused = || ClError::Refused(format!("the format {format} is not supported"));
    let sample = sample_type(format).ok_or_else(refused)?;
    let description = info.format_info();
    let components = (0..description.n_components() as usize)
        .map(|c| Component {
            plane: description.plane()[c] as usize,
            offset: description.poffset()[c] as usize,
            pixel_stride: description.pixel_stride()[c].max(0) as usize,
            width: description.scale_width(c as u8, info.width()) as usize,
            height: description.scale_height(c as u8, info.height()) as usize,
            w_sub: description.w_sub()[c],
            h_sub: description.h_sub()[c],
        })
        .collect();
    let layout = FrameLayout::new(
        info.width() as usize,
        info.height() as usize,
        sample,
        components,
    )
    .ok_or_else(refused)?;
    // GStreamer keeps strides in 32 bits and accepts frames whose strides overflow them. It accepts
    // empty frames too.
    let is_empty = info.width() == 0 || info.height() == 0;
    let fits = layout
        .planes
        .iter()
        .zip(info.stride())
        .all(|(plane, &stride)| {
            usize::try_from(stride).is_ok_and(|stride| plane.row_bytes <= stride)
        });
    if layout.planes.iter().any(|p| p.row_bytes > MAX_ROW_BYTES) {
        return Err(ClError::Refused(format!(
            "frames {} pixels wide are not supported: a row may have {MAX_ROW_BYTES} bytes",
            info.width()
        )));
    }
    if is_empty || !fits {
        return Err(ClError::Refused(format!(
            "frames of {}x{} {format} are not supported",
            info.width(),
            info.height()
        )));
    }
    Ok(layout)
}

/// Rows of these sources begin at multiples of this, bytes.
const CARRIER_PADDING: usize = 4;

/// How the bytes of packed samples or of a Bayer picture lie in a buffer. The caps of such frames name no raw format,
/// or a wrong one: aravis labels packed samples `GRAY16_LE`.
#[derive(Debug, Clone)]
pub struct Carrier {
    encoding: Encoding,
    /// The encoding's name, for errors.
    name: String,
    /// Width and height, samples.
    samples: [u32; 2],
    /// The format of the caps, if they name a raw one.
    format: Option<gst_video::VideoFormat>,
    /// Bytes of a row without padding.
    row_bytes: usize,
    /// Grey pictures with a pixel per byte.
    info: gst_video::VideoInfo,
}

impl Carrier {
    /// Frames of `samples` (width and height) in an encoding, whose `name` errors say. A GstVideoMeta must name the size
    /// in samples, and `format` if there is one.
    ///
    /// # Errors
    /// [`ClError::Refused`] for rows that end inside a byte, and for frames that are too large.
    pub fn new(
        (encoding, name): (Encoding, String),
        samples: [u32; 2],
        format: Option<gst_video::VideoFormat>,
        fps: gst::Fraction,
    ) -> Result<Self, ClError> {
        let [width, height] = samples;
        let row_bytes = encoding.row_bytes(width as usize)?;
        let too_large =
            || ClError::Refused(format!("frames of {width}x{height} samples are too large"));
        let stride = match encoding {
            Encoding::Packed(_) => row_bytes,
            Encoding::Bayer { .. } => row_bytes
                .checked_next_multiple_of(CARRIER_PADDING)
                .ok_or_else(too_large)?,
        };
        let size = stride.checked_mul(height as usize).ok_or_else(too_large)?;
        let row = u32::try_from(row_bytes).map_err(|_| too_large())?;
        let stride = i32::try_from(stride).map_err(|_| too_large())?;
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, row, height)
            .offset(&[0])
            .stride(&[stride])
            .size(size)
            .fps(fps)
            .build()
            .map_err(|_| too_large())?;
        Ok(Self {
            encoding,
            name,
            samples,
            format,
            row_bytes,
            info,
        })
    }

    /// The rows as a grey picture with a pixel per byte; its size and stride are those of a buffer without a
    /// GstVideoMeta.
    pub fn info(&self) -> &gst_video::VideoInfo {
        &self.info
    }

    /// What the samples are.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Width and height, samples.
    pub fn samples(&self) -> [u32; 2] {
        self.samples
    }

    /// The format that a GstVideoMeta must name.
    pub(super) fn format(&self) -> Option<gst_video::VideoFormat> {
        self.format
    }

    /// Bytes between the rows of a buffer of `size` bytes without a GstVideoMeta, in 32 bits as GStreamer keeps them.
    /// aravis pads each row to a multiple of four bytes, whatever the format; GStreamer's Bayer elements pad to four
    /// samples. The size says which padding a buffer has. Some cameras send data behind the rows, so a buffer that is too
    /// short for the usual padding has rows that follow each other directly.
    pub(super) fn stride(&self, size: usize) -> i32 {
        let [width, height] = self.samples;
        let usual = self.info.stride()[0];
        let row = self.row_bytes.next_multiple_of(CARRIER_PADDING);
        let deep = self.encoding.sample().map_or(row, |sample| {
            (width as usize).next_multiple_of(CARRIER_PADDING) * sample.bytes()
        });
        let possible = [usual as usize, row, deep, self.row_bytes];
        let fits = |stride: &usize| stride.checked_mul(height as usize) == Some(size);
        let is_short = size < usual as usize * (height as usize - 1) + self.row_bytes;
        let default = if is_short {
            self.row_bytes
        } else {
            usual as usize
        };
        let stride = possible.into_iter().find(fits).unwrap_or(default);
        i32::try_from(stride).unwrap_or(usual)
    }

    /// Why a buffer of `size` bytes is too short, and what to do.
    pub(super) fn too_short(&self, size: usize, needed: usize) -> String {
        let [width, height] = self.samples;
        let others = packings_of([width as usize, height as usize], size);
        let advice = match self.encoding {
            Encoding::Packed(_) => match naming(&others) {
                Some(packings) => format!("this is the length of frames with {packings}"),
                None => "set packing to the camera's PixelFormat, and correct width and height in the caps".into(),
            },
            Encoding::Bayer { .. } if others.is_empty() => {
                "correct format, width and height in the caps".into()
            }
            Encoding::Bayer { .. } => {
                "this is the length of packed Bayer samples: set the camera's PixelFormat to an unpacked \
                 one, such as BayerRG8 or BayerRG12"
                    .into()
            }
        };
        format!(
            "the frame holds {size} bytes, but {width}x{height} samples of {} need {needed}; {advice}",
            self.name
        )
    }
}

/// The packings whose frames of `samples` have `size` bytes, with or without padding.
fn packings_of([width, height]: [usize; 2], size: usize) -> Vec<Packing> {
    let mut packings = Packing::ALL.to_vec();
    packings.retain(|packing| {
        packing.row_bytes(width).is_ok_and(|row| {
            [row, row.next_multiple_of(CARRIER_PADDING)]
                .iter()
                .any(|stride| stride.checked_mul(height) == Some(size))
        })
    });
    packings
}

/// "packing=mono12p or packing=mono12packed"; `None` for none.
fn naming(packings: &[Packing]) -> Option<String> {
    let names = packings
        .iter()
        .map(|packing| format!("packing={}", packing.name().to_lowercase()));
    names.reduce(|all, next| format!("{all} or {next}"))
}

/// What to do if a buffer that should hold 16-bit grey samples has the length of packed ones; "" if it has not.
pub(super) fn advice_on_packed(samples: [usize; 2], size: usize) -> String {
    let packings = packings_of(samples, size);
    naming(&packings).map_or_else(String::new, |packings| {
        format!(
            "; this is the length of packed samples: put clunpack {packings} before this element, as the camera's \
             PixelFormat says"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_samples_of_two_bytes_may_fill_fewer_bits() {
        // Depth, distance and order of bytes as GStreamer 1.26 describes these formats.
        let gray10_le16 = grey_sample(&[10], &[2, 0, 0, 0], true);
        assert_eq!(gray10_le16, Some(SampleType::U16Le));
        let gray10_le32 = grey_sample(&[10], &[0, 0, 0, 0], true);
        assert_eq!(gray10_le32, None);
        assert_eq!(grey_sample(&[16], &[2], false), Some(SampleType::U16Be));
        assert_eq!(grey_sample(&[8], &[1], false), Some(SampleType::U8));
        assert_eq!(grey_sample(&[4], &[2], true), None);
    }

    #[test]
    fn formats_of_this_gstreamer() {
        gst::init().expect("GStreamer");
        use gst_video::VideoFormat as Format;
        let sample = |format| sample_type(format).map(|sample| (sample, depth_of(format)));
        assert_eq!(sample(Format::Gray8), Some((SampleType::U8, 8)));
        assert_eq!(sample(Format::Gray16Le), Some((SampleType::U16Le, 16)));
        assert_eq!(sample(Format::Gray16Be), Some((SampleType::U16Be, 16)));
        assert_eq!(sample(Format::Gray10Le32), None);
        assert_eq!(sample(Format::I42010le), None);
        // Known since 1.26.
        let gray10_le16 = Format::from_string("GRAY10_LE16");
        if gray10_le16 != Format::Unknown {
            assert_eq!(sample(gray10_le16), Some((SampleType::U16Le, 10)));
            assert!(FORMATS.contains(&gray10_le16));
        }
    }
}
