//! Frames in all memory layouts that an element may receive: strides, offsets, padding, several
//! memories, unaligned bases; OpenCL memory and memory of other elements.

use std::sync::Arc;

use clinspect_opencl::frame::{ClFrame, Importer};
use clinspect_opencl::{ClAllocator, ClContext, Meter};
use gst::prelude::*;

use crate::{
    content::{Content, Picture},
    oracle::{Geometry, SampleKind, Samples, put},
};

/// Padding bytes of an input; no test's picture depends on them.
pub const INPUT_POISON: u8 = 0xa5;
/// Bytes of an output before it is written.
pub const OUTPUT_POISON: u8 = 0x5a;

/// The owner of a frame's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// OpenCL memory of our allocator.
    Ours,
    /// Ordinary memory of another element.
    Foreign,
    /// The first memory of the buffer is OpenCL memory, the others are not.
    Mixed,
}

/// The distribution of a frame's bytes over memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// One memory.
    Whole,
    /// A memory per plane.
    Planes,
    /// Two memories, split in the middle of the bytes, hence inside a plane.
    Middle,
}

/// The distance of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// GStreamer's own, with its plane offsets and without a GstVideoMeta.
    Default,
    /// This many bytes more than a row.
    Padded(usize),
    /// The next multiple.
    Multiple(usize),
}

/// The memory layout of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// Owner of the memory.
    pub owner: Owner,
    /// Its memories.
    pub split: Split,
    /// The distance of rows.
    pub stride: Stride,
    /// Poisoned bytes before each plane.
    pub before: usize,
    /// Bytes by which each memory starts past an aligned address.
    pub base: usize,
}

const fn arrangement(
    owner: Owner,
    split: Split,
    stride: Stride,
    before: usize,
    base: usize,
) -> Arrangement {
    Arrangement {
        owner,
        split,
        stride,
        before,
        base,
    }
}

/// The layout from a source that uses the plugin's pool.
pub const PLAIN: Arrangement = arrangement(Owner::Ours, Split::Whole, Stride::Default, 0, 0);
/// Padded rows, unaligned planes and base, in OpenCL memory.
pub const PADDED: Arrangement = arrangement(Owner::Ours, Split::Whole, Stride::Padded(13), 7, 3);
/// All layouts of an input.
pub const ARRANGEMENTS: [Arrangement; 11] = [
    PLAIN,
    arrangement(Owner::Foreign, Split::Whole, Stride::Default, 0, 0),
    PADDED,
    arrangement(Owner::Foreign, Split::Whole, Stride::Padded(13), 7, 1),
    arrangement(Owner::Ours, Split::Planes, Stride::Padded(5), 0, 5),
    arrangement(Owner::Foreign, Split::Planes, Stride::Padded(0), 2, 1),
    arrangement(Owner::Ours, Split::Middle, Stride::Padded(3), 1, 0),
    arrangement(Owner::Foreign, Split::Middle, Stride::Padded(0), 0, 3),
    arrangement(Owner::Mixed, Split::Planes, Stride::Padded(1), 3, 1),
    arrangement(Owner::Ours, Split::Whole, Stride::Multiple(4096), 0, 0),
    arrangement(Owner::Foreign, Split::Whole, Stride::Multiple(4096), 16, 15),
];
/// The layouts that an output may have: OpenCL memory, each plane in one memory.
pub const OUTPUT_ARRANGEMENTS: [Arrangement; 4] = [
    PLAIN,
    PADDED,
    arrangement(Owner::Ours, Split::Planes, Stride::Padded(5), 1, 5),
    arrangement(Owner::Ours, Split::Whole, Stride::Multiple(4096), 0, 0),
];

/// Position of a plane's rows in the frame's bytes.
#[derive(Clone, Copy, Debug)]
struct Plane {
    offset: usize,
    stride: usize,
    row: usize,
    rows: usize,
}

/// A frame's bytes, and the position of its components.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Format and size.
    pub info: gst_video::VideoInfo,
    /// Memory layout.
    pub arrangement: Arrangement,
    /// The buffer's bytes, padding included.
    pub bytes: Vec<u8>,
    planes: Vec<Plane>,
}

impl Frame {
    /// A frame with every byte poisoned.
    pub fn poisoned(
        format: gst_video::VideoFormat,
        [width, height]: [usize; 2],
        arrangement: Arrangement,
        poison: u8,
    ) -> Self {
        let info = gst_video::VideoInfo::builder(format, width as u32, height as u32)
            .build()
            .expect("GStreamer knows the format");
        let mut end = 0;
        let mut planes = Vec::new();
        for index in 0..info.n_planes() as usize {
            let (row, rows) = plane_size(&info, index);
            let (offset, stride) = match arrangement.stride {
                Stride::Default => (info.offset()[index], info.stride()[index] as usize),
                Stride::Padded(padding) => (end + arrangement.before, row + padding),
                Stride::Multiple(of) => (end + arrangement.before, row.next_multiple_of(of)),
            };
            // The last row has no padding: the memory may end right after it.
            end = offset + stride * (rows - 1) + row;
            planes.push(Plane {
                offset,
                stride,
                row,
                rows,
            });
        }
        if arrangement.stride == Stride::Default {
            end = info.size();
        }
        Self {
            info,
            arrangement,
            bytes: vec![poison; end],
            planes,
        }
    }

    /// An input frame that shows `content`, with poisoned padding.
    pub fn showing(
        format: gst_video::VideoFormat,
        size: [usize; 2],
        arrangement: Arrangement,
        content: Content,
        bit_depth: u32,
    ) -> Self {
        let mut frame = Self::poisoned(format, size, arrangement, INPUT_POISON);
        let bits = 8 * frame.kind().size() as u32;
        let depth = if bit_depth == 0 { bits } else { bit_depth };
        let seed = (size[0] * 1009 + size[1]) as u64;
        let picture = Picture::new(content, size, depth, bits, seed);
        for component in 0..frame.component_count() {
            let geometry = frame.geometry(component);
            for y in 0..geometry.height {
                for x in 0..geometry.width {
                    let value = picture.sample(component, x, y);
                    put(&mut frame.bytes, &geometry, x, y, value);
                }
            }
        }
        frame
    }

    /// Format, size and memory layout, for messages.
    pub fn describe(&self) -> String {
        let [width, height] = self.size();
        format!(
            "{} {width}x{height} in {:?}",
            self.info.format(),
            self.arrangement
        )
    }

    /// Width and height, px.
    pub fn size(&self) -> [usize; 2] {
        [self.info.width() as usize, self.info.height() as usize]
    }

    /// How samples are stored.
    pub fn kind(&self) -> SampleKind {
        match self.info.format() {
            gst_video::VideoFormat::Gray16Le => SampleKind::U16Le,
            gst_video::VideoFormat::Gray16Be => SampleKind::U16Be,
            _ => SampleKind::U8,
        }
    }

    /// Components of the format.
    pub fn component_count(&self) -> usize {
        self.info.n_components() as usize
    }

    /// Position of a component's samples in the frame's bytes.
    pub fn geometry(&self, component: usize) -> Geometry {
        let description = self.info.format_info();
        let plane = self.planes[description.plane()[component] as usize];
        Geometry {
            offset: plane.offset + description.poffset()[component] as usize,
            stride: plane.stride,
            pixel_stride: description.pixel_stride()[component] as usize,
            width: description.scale_width(component as u8, self.info.width()) as usize,
            height: description.scale_height(component as u8, self.info.height()) as usize,
            depth: self.kind(),
        }
    }

    /// A component, in the form that the references read.
    pub fn component(&self, component: usize) -> Samples<'_> {
        self.geometry(component).samples(&self.bytes)
    }

    /// Whether the format has padding inside its pixels (the `x` of RGBx).
    pub fn has_pixel_padding(&self) -> bool {
        let per_pixel = self.info.format_info().pixel_stride()[0] as usize;
        self.planes.len() == 1 && self.info.is_rgb() && per_pixel > self.component_count()
    }

    /// Sets every component's samples (row-major) and the bytes of padding inside pixels.
    pub fn set(&mut self, components: &[Vec<u32>], padding_of: &Self) {
        if self.has_pixel_padding() {
            for (to, from) in self.planes.clone().iter().zip(&padding_of.planes) {
                for y in 0..to.rows {
                    let (at, source) = (to.offset + y * to.stride, from.offset + y * from.stride);
                    self.bytes[at..at + to.row]
                        .copy_from_slice(&padding_of.bytes[source..source + from.row]);
                }
            }
        }
        for (component, values) in components.iter().enumerate() {
            let geometry = self.geometry(component);
            for (at, &value) in values.iter().enumerate() {
                let (x, y) = (at % geometry.width, at / geometry.width);
                put(&mut self.bytes, &geometry, x, y, value);
            }
        }
    }

    /// The frame as a buffer.
    pub fn buffer(&self, device: &Arc<ClContext>, meter: &Arc<Meter>) -> gst::Buffer {
        let cuts = match self.arrangement.split {
            Split::Whole => vec![self.bytes.len()],
            Split::Middle => vec![self.bytes.len() / 2, self.bytes.len()],
            Split::Planes => {
                let mut ends: Vec<usize> = self.planes[1..].iter().map(|p| p.offset).collect();
                ends.push(self.bytes.len());
                ends
            }
        };
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().expect("a new buffer");
        let mut start = 0;
        for (index, end) in cuts.into_iter().enumerate() {
            let part = &self.bytes[start..end];
            let ours = match self.arrangement.owner {
                Owner::Ours => true,
                Owner::Foreign => false,
                Owner::Mixed => index == 0,
            };
            if !part.is_empty() {
                writable.append_memory(if ours {
                    our_memory(device, meter, part, self.arrangement.base)
                } else {
                    foreign_memory(part, self.arrangement.base)
                });
            }
            start = end;
        }
        if self.arrangement.stride != Stride::Default {
            self.add_meta(writable);
        }
        buffer
    }

    /// Describes the frame's layout in a GstVideoMeta.
    pub fn add_meta(&self, buffer: &mut gst::BufferRef) {
        let offsets: Vec<usize> = self.planes.iter().map(|p| p.offset).collect();
        let strides: Vec<i32> = self.planes.iter().map(|p| p.stride as i32).collect();
        add_video_meta(buffer, &self.info, &offsets, &strides);
    }

    /// The frame on the device.
    pub fn import(&self, device: &Arc<ClContext>) -> ClFrame {
        let meter = Meter::new(false);
        Importer::new(device, &meter, &self.info)
            .and_then(|mut importer| importer.import(&self.buffer(device, &meter)))
            .unwrap_or_else(|error| panic!("{} is not accepted: {error}", self.describe()))
    }

    /// The frame on the device as an output, and the buffer to read it from.
    pub fn output(&self, device: &Arc<ClContext>) -> (ClFrame, gst::Buffer) {
        let meter = Meter::new(false);
        let buffer = self.buffer(device, &meter);
        let frame = Importer::new(device, &meter, &self.info)
            .and_then(|importer| importer.output(&buffer))
            .unwrap_or_else(|error| {
                panic!("{} is not accepted as an output: {error}", self.describe())
            });
        (frame, buffer)
    }
}

/// Bytes of a plane's row that hold pixels, and number of rows.
fn plane_size(info: &gst_video::VideoInfo, plane: usize) -> (usize, usize) {
    let description = info.format_info();
    let members = (0..description.n_components())
        .filter(|&c| description.plane()[c as usize] == plane as u32);
    let sizes: Vec<(usize, usize)> = members
        .map(|c| {
            let samples = description.scale_width(c as u8, info.width()) as usize;
            let row = samples * description.pixel_stride()[c as usize] as usize;
            (
                row,
                description.scale_height(c as u8, info.height()) as usize,
            )
        })
        .collect();
    (
        sizes.iter().map(|s| s.0).max().expect("a component"),
        sizes.iter().map(|s| s.1).max().expect("a component"),
    )
}

/// A GstVideoMeta with these offsets and strides, valid or not.
pub fn add_video_meta(
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    offsets: &[usize],
    strides: &[i32],
) {
    gst_video::VideoMeta::add_full(
        buffer,
        gst_video::VideoFrameFlags::empty(),
        info.format(),
        info.width(),
        info.height(),
        offsets,
        strides,
    )
    .expect("a video meta");
}

/// Memory of our allocator that starts `base` bytes into its OpenCL buffer.
pub fn our_memory(
    device: &Arc<ClContext>,
    meter: &Arc<Meter>,
    bytes: &[u8],
    base: usize,
) -> gst::Memory {
    let params = gst::AllocationParams::new(gst::MemoryFlags::empty(), 0, base, 0);
    let mut memory = ClAllocator::new(device, meter)
        .alloc(bytes.len(), Some(&params))
        .expect("OpenCL memory");
    memory
        .get_mut()
        .expect("new memory")
        .map_writable()
        .expect("a writing map")
        .copy_from_slice(bytes);
    memory
}

/// Ordinary memory that starts `base` bytes past a multiple of 64.
pub fn foreign_memory(bytes: &[u8], base: usize) -> gst::Memory {
    struct Shifted(Vec<u8>, std::ops::Range<usize>);
    impl AsRef<[u8]> for Shifted {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1.clone()]
        }
    }
    let mut storage = vec![INPUT_POISON; bytes.len() + 128];
    let start = (storage.as_ptr() as usize).next_multiple_of(64) - storage.as_ptr() as usize + base;
    let range = start..start + bytes.len();
    storage[range.clone()].copy_from_slice(bytes);
    gst::Memory::from_slice(Shifted(storage, range))
}

/// A buffer's bytes, fetched from the device.
pub fn read(buffer: &gst::Buffer) -> Vec<u8> {
    buffer.map_readable().expect("a reading map").to_vec()
}

/// Fails at the first byte that differs, and names its position in the frame.
#[track_caller]
pub fn assert_same(actual: &[u8], expected: &Frame, about: impl FnOnce() -> String) {
    if actual == expected.bytes {
        return;
    }
    let differ = |i: &usize| actual.get(*i) != expected.bytes.get(*i);
    let first = (0..actual.len().max(expected.bytes.len())).find(differ);
    let first = first.expect("a difference");
    let all = (0..actual.len()).filter(differ).count();
    let place = expected.planes.iter().enumerate().find_map(|(i, p)| {
        let at = first.checked_sub(p.offset)?;
        let (row, byte) = (at / p.stride, at % p.stride);
        let part = if byte < p.row { "byte" } else { "padding byte" };
        (row < p.rows).then(|| format!("plane {i}, row {row}, {part} {byte}"))
    });
    panic!(
        "{}: {all} bytes differ, the first at {first} ({}): {:?} instead of {:?}",
        about(),
        place.unwrap_or_else(|| "outside every plane".into()),
        actual.get(first),
        expected.bytes.get(first),
    );
}
