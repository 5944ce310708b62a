//! Frames as cameras send them: packed samples and Bayer pictures of random samples.

use std::sync::Arc;

use clinspect_core::unpack::{Demosaic, Encoding, Output, Packing, Pattern};
use clinspect_opencl::{ClContext, Meter};

use crate::{
    frames::{INPUT_POISON, Owner, foreign_memory, our_memory},
    oracle::{
        Geometry, SampleKind,
        unpack::{Bayer, sample},
    },
};

/// How rows lie in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Without padding.
    Dense,
    /// At multiples of four bytes, as aravis sends them.
    InFours,
    /// Described by a GstVideoMeta: bytes before the first row, and between the rows.
    Described {
        /// Before the first row.
        before: usize,
        /// Behind each row.
        padding: usize,
    },
}

/// A frame as a camera sends it.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What the samples are.
    pub encoding: Encoding,
    /// Width and height.
    pub size: [usize; 2],
    /// The rows without padding.
    pub bytes: Vec<u8>,
}

impl Encoded {
    /// A frame of random bytes.
    pub fn random(encoding: Encoding, size: [usize; 2], seed: u64) -> Self {
        use rand::{Rng, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0; encoding.row_bytes(size[0]).expect("whole bytes") * size[1]];
        random.fill(&mut bytes[..]);
        Self {
            encoding,
            size,
            bytes,
        }
    }

    /// Bytes of a row without padding.
    pub fn row_bytes(&self) -> usize {
        self.encoding.row_bytes(self.size[0]).expect("whole bytes")
    }

    /// The name of the Bayer format, or `GRAY16_LE`, which labels packed samples.
    pub fn format(&self) -> String {
        match self.encoding {
            Encoding::Packed(_) => "GRAY16_LE".into(),
            Encoding::Bayer {
                pattern, bits: 8, ..
            } => pattern.name().into(),
            Encoding::Bayer {
                pattern,
                bits,
                big_endian,
            } => {
                let order = if big_endian { "be" } else { "le" };
                format!("{}{bits}{order}", pattern.name())
            }
        }
    }

    /// Caps as a camera's source sends them.
    pub fn caps(&self) -> gst::Caps {
        let media = match self.encoding {
            Encoding::Packed(_) => "video/x-raw",
            Encoding::Bayer { .. } => "video/x-bayer",
        };
        gst::Caps::builder(media)
            .field("format", self.format())
            .field("width", self.size[0] as i32)
            .field("height", self.size[1] as i32)
            .field("framerate", gst::Fraction::new(25, 1))
            .build()
    }

    /// The element with the properties that this frame needs.
    pub fn element(&self) -> String {
        match self.encoding {
            Encoding::Packed(packing) => {
                format!("clunpack packing={}", packing.name().to_lowercase())
            }
            Encoding::Bayer { .. } => "clunpack".into(),
        }
    }

    /// The frame as a buffer, with `behind` more bytes at its end.
    pub fn buffer(
        &self,
        device: &Arc<ClContext>,
        owner: Owner,
        rows: Rows,
        behind: usize,
    ) -> gst::Buffer {
        let row = self.row_bytes();
        let (before, stride) = match rows {
            Rows::Dense => (0, row),
            Rows::InFours => (0, row.next_multiple_of(4)),
            Rows::Described { before, padding } => (before, row + padding),
        };
        let mut bytes = vec![INPUT_POISON; before + stride * self.size[1] + behind];
        for (y, samples) in self.bytes.chunks_exact(row).enumerate() {
            bytes[before + y * stride..][..row].copy_from_slice(samples);
        }
        let memory = match owner {
            Owner::Ours => our_memory(device, &Meter::new(false), &bytes, 0),
            _ => foreign_memory(&bytes, 1),
        };
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().expect("a new buffer");
        writable.append_memory(memory);
        if matches!(rows, Rows::Described { .. }) {
            let format = match self.encoding {
                Encoding::Packed(_) => gst_video::VideoFormat::Gray16Le,
                Encoding::Bayer { .. } => gst_video::VideoFormat::Encoded,
            };
            add_meta(writable, format, self.size, before, stride as i32);
        }
        buffer
    }

    /// The unpacked frame by the reference, in GStreamer's own layout of `output`, with the padding of
    /// `padding_of`.
    pub fn unpacked(&self, demosaic: Demosaic, output: Output, padding_of: &[u8]) -> Vec<u8> {
        let [width, height] = self.size;
        let stride = (width * output.pixel_bytes()).next_multiple_of(4);
        let mut bytes = padding_of.to_vec();
        assert_eq!(bytes.len(), stride * height, "the size of the output");
        for y in 0..height {
            for x in 0..width {
                let at = y * stride + x * output.pixel_bytes();
                let pixel = self.pixel(demosaic, output, x, y);
                bytes[at..at + pixel.len()].copy_from_slice(&pixel);
            }
        }
        bytes
    }

    /// The bytes of an unpacked pixel.
    fn pixel(&self, demosaic: Demosaic, output: Output, x: usize, y: usize) -> Vec<u8> {
        let row = self.row_bytes();
        let to_byte = |value: u32| (value >> (self.encoding.bits() - 8)) as u8;
        let grey = |value: u32| match output {
            Output::Gray16Le => (value as u16).to_le_bytes().to_vec(),
            _ => vec![to_byte(value)],
        };
        let (pattern, bits, depth) = match self.encoding {
            Encoding::Packed(packing) => {
                return grey(sample(&self.bytes[y * row..], packing.name(), x));
            }
            Encoding::Bayer {
                pattern,
                bits,
                big_endian,
            } => {
                let depth = match (bits, big_endian) {
                    (8, _) => SampleKind::U8,
                    (_, false) => SampleKind::U16Le,
                    (_, true) => SampleKind::U16Be,
                };
                (pattern, bits, depth)
            }
        };
        let geometry = Geometry {
            offset: 0,
            stride: row,
            pixel_stride: depth.size(),
            width: self.size[0],
            height: self.size[1],
            depth,
        };
        let picture = Bayer {
            samples: geometry.samples(&self.bytes),
            bits,
            pattern: pattern.name(),
            gradient: demosaic == Demosaic::Gradient,
        };
        if !output.is_colour() {
            return grey(picture.luma(x, y));
        }
        let [red, green, blue] = picture.pixel(x, y).map(to_byte);
        match output {
            Output::Bgr => vec![blue, green, red],
            Output::Rgbx => vec![red, green, blue, 255],
            _ => vec![red, green, blue],
        }
    }
}

/// A GstVideoMeta of one plane, without GStreamer's own checks.
pub fn add_meta(
    buffer: &mut gst::BufferRef,
    format: gst_video::VideoFormat,
    [width, height]: [usize; 2],
    offset: usize,
    stride: i32,
) {
    use gst::glib::translate::IntoGlib;
    let (offsets, strides) = ([offset, 0, 0, 0], [stride, 0, 0, 0]);
    // SAFETY: the buffer is writable, and the arrays hold GST_VIDEO_MAX_PLANES entries, as the function reads them.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
            buffer.as_mut_ptr(),
            gst_video::ffi::GST_VIDEO_FRAME_FLAG_NONE,
            format.into_glib(),
            width as u32,
            height as u32,
            1,
            &raw const offsets,
            &raw const strides,
        );
        assert!(!meta.is_null());
    }
}

/// Every packing, and every Bayer format.
pub fn encodings() -> Vec<Encoding> {
    let packed = Packing::ALL.map(Encoding::Packed);
    let stored = [8, 10, 12, 14, 16]
        .into_iter()
        .flat_map(|bits| [(bits, false), (bits, true)])
        .filter(|&(bits, big_endian)| bits > 8 || !big_endian);
    let bayer = stored.flat_map(|(bits, big_endian)| {
        Pattern::ALL.map(|pattern| Encoding::Bayer {
            pattern,
            bits,
            big_endian,
        })
    });
    packed.into_iter().chain(bayer).collect()
}
