//! [`Carrier`]: frames that are rows of bytes until they are unpacked.

use clinspect_core::{
    ClError,
    unpack::{Encoding, Packing},
};

/// Rows of these sources begin at multiples of this, bytes.
const PADDING: usize = 4;

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
                .checked_next_multiple_of(PADDING)
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
    /// samples. The size says which padding a buffer has.
    pub(super) fn stride(&self, size: usize) -> i32 {
        let [width, height] = self.samples;
        let usual = self.info.stride()[0];
        let row = self.row_bytes.next_multiple_of(PADDING);
        let deep = self.encoding.sample().map_or(row, |sample| {
            (width as usize).next_multiple_of(PADDING) * sample.bytes()
        });
        let possible = [usual as usize, row, deep, self.row_bytes];
        let fits = |stride: &usize| stride.checked_mul(height as usize) == Some(size);
        let fitting = possible.into_iter().find(fits);
        fitting.map_or(usual, |stride| i32::try_from(stride).unwrap_or(usual))
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
            [row, row.next_multiple_of(PADDING)]
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
