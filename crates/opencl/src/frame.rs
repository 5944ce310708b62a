//! [`ClFrame`]: a video frame on the device, in any kind of memory, and how it gets there.

mod copiers;
mod formats;
mod upload;
mod web_rows;

pub use formats::{
    COLOUR_FORMATS, Carrier, FLAT_FORMATS, FORMATS, LUMA_FORMATS, depth_of, layout_of,
};
pub use web_rows::WebRows;

use std::sync::Arc;

use crate::{
    ClBuffer, ClContext, Completion, HostMemory, ImportPath, Memory, Meter, Rows, buffer_of,
};
use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
};
use formats::advice_on_packed;
use upload::{Mapped, Source, Span, Uploader};

/// The strides of planes that are made here are multiples of this, bytes: the fastest kernels need it.
const ROW_ALIGNMENT: usize = 64;

#[derive(Debug)]
enum PlaneMemory {
    Ours(Arc<ClBuffer>),
    Host(Arc<HostMemory>),
}

/// One plane on the device.
#[derive(Debug)]
pub struct Plane {
    memory: PlaneMemory,
    /// Bytes from the start of the memory object to the plane's first row.
    pub offset: usize,
    /// Bytes between rows.
    pub stride: usize,
}

impl Plane {
    /// The plane's memory for a kernel argument.
    pub fn memory(&self) -> Memory<'_> {
        match &self.memory {
            PlaneMemory::Ours(buffer) => Memory::Buffer(buffer),
            PlaneMemory::Host(host) => Memory::Host(host),
        }
    }

    /// Length of the memory object in bytes, if it starts at the device's own alignment.
    pub fn aligned_len(&self) -> Option<usize> {
        match &self.memory {
            PlaneMemory::Ours(buffer) => Some(buffer.size()),
            PlaneMemory::Host(_) => None,
        }
    }
}

/// A frame on the device.
#[derive(Debug)]
pub struct ClFrame {
    planes: Vec<Plane>,
    taken: ImportPath,
    /// The source's memory, if an upload reads it in place.
    source: Option<Source>,
}

impl ClFrame {
    /// The planes, in the format's order.
    pub fn planes(&self) -> &[Plane] {
        &self.planes
    }

    /// Plane `index`.
    ///
    /// # Errors
    /// [`ClError::Input`] if there is no such plane.
    pub fn plane(&self, index: usize) -> Result<&Plane, ClError> {
        self.planes
            .get(index)
            .ok_or_else(|| ClError::Input(format!("the frame has no plane {index}")))
    }

    /// How the frame reached the device.
    pub fn taken(&self) -> ImportPath {
        self.taken
    }

    /// Waits until the device has read the frame from the source's memory, if it does that. The
    /// source may overwrite its memory once the frame is sent.
    ///
    /// # Errors
    /// The upload or the wait has failed.
    pub fn wait_for_upload(&mut self) -> Result<(), ClError> {
        self.source.as_mut().map_or(Ok(()), Source::wait)
    }

    /// A frame of one plane of bytes for the results of kernels, with rows at multiples of 64 bytes.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn grey(
        context: &Arc<ClContext>,
        [width, height]: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<Self, ClError> {
        let stride = width.max(1).next_multiple_of(ROW_ALIGNMENT);
        let bytes = stride.checked_mul(height.max(1)).ok_or_else(|| {
            ClError::Refused(format!("frames of {width}x{height} pixels are too large"))
        })?;
        let plane = Plane {
            memory: PlaneMemory::Ours(Arc::new(ClBuffer::new(context, bytes, meter)?)),
            offset: 0,
            stride,
        };
        Ok(Self {
            planes: vec![plane],
            taken: ImportPath::ZeroCopy,
            source: None,
        })
    }

    /// A frame of zeros without padding, for the warm-up of kernels: a warm-up must not depend on
    /// what the memory held before.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn scratch(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        meter: &Arc<Meter>,
    ) -> Result<Self, ClError> {
        let mut planes = Vec::with_capacity(layout.planes.len());
        for plane in &layout.planes {
            let (row, rows) = (plane.row_bytes.max(1), plane.rows.max(1));
            // Round up to whole words, since the fill works on words.
            let size = row
                .checked_mul(rows)
                .and_then(|bytes| bytes.checked_next_multiple_of(size_of::<u32>()))
                .ok_or_else(|| {
                    ClError::Refused(format!(
                        "{rows} rows of {row} bytes are too large for memory"
                    ))
                })?;
            let buffer = ClBuffer::new(context, size, meter)?;
            buffer.zero("a frame to warm up with")?;
            planes.push(Plane {
                memory: PlaneMemory::Ours(Arc::new(buffer)),
                offset: 0,
                stride: plane.row_bytes,
            });
        }
        Ok(Self {
            planes,
            taken: ImportPath::ZeroCopy,
            source: None,
        })
    }
}

impl ClFrame {
    /// A copy of plane 0 of a frame of `layout` in memory of its own, without padding. Waits for it.
    ///
    /// # Errors
    /// The device is out of memory; the failing call.
    pub fn copy_of_first_plane(
        &self,
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        meter: &Arc<Meter>,
    ) -> Result<Self, ClError> {
        let first = layout.first_plane();
        let copy = Self::scratch(context, &first, meter)?;
        fn rows(plane: &Plane) -> Rows<'_> {
            Rows {
                memory: plane.memory(),
                offset: plane.offset,
                stride: plane.stride,
            }
        }
        for (plane, to) in first.planes.iter().zip(&copy.planes) {
            let from = self.plane(0)?;
            let mut submission = context.submit(meter, plane.row_bytes * plane.rows);
            submission.copy(rows(from), rows(to), plane.row_bytes, plane.rows)?;
            submission.send()?.wait("a copy of a frame")?;
        }
        Ok(copy)
    }
}

/// Planes of an uploaded frame start at multiples of this, bytes.
const PLANE_ALIGNMENT: usize = 256;

/// Brings frames of one format and size to the device.
#[derive(Debug)]
pub struct Importer {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    info: gst_video::VideoInfo,
    /// What the rows of bytes carry, if frames are not raw video.
    carrier: Option<Carrier>,
    layout: Arc<FrameLayout>,
    uploader: Box<Uploader>,
    /// Frames in other memory are read in place.
    wraps: bool,
}

/// A mapped part of a frame, and where planes start in it.
struct MappedPart {
    mapped: Mapped,
    /// Index of the plane, and bytes from the start of the part.
    planes: Vec<(usize, usize)>,
}

/// Where a plane lies in a GstBuffer, after the checks.
#[derive(Debug, Clone, Copy)]
struct PlaneBytes {
    offset: usize,
    stride: usize,
    len: usize,
}

impl PlaneBytes {
    /// The one memory of the buffer that holds the plane, and the plane's offset in that memory.
    fn memory_of(&self, buffer: &gst::BufferRef) -> Option<(usize, usize)> {
        buffer
            .find_memory(self.offset..self.offset + self.len)
            .filter(|(range, _)| range.len() == 1)
            .map(|(range, skip)| (range.start, skip))
    }
}

impl Importer {
    /// An importer for frames of `info`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a format outside [`FORMATS`].
    pub fn new(
        context: &Arc<ClContext>,
        meter: &Arc<Meter>,
        info: &gst_video::VideoInfo,
    ) -> Result<Self, ClError> {
        Ok(Self {
            context: context.clone(),
            meter: meter.clone(),
            info: info.clone(),
            carrier: None,
            layout: Arc::new(layout_of(info)?),
            uploader: Box::new(Uploader::new(context, meter)),
            wraps: context.caps().shares_host_memory,
        })
    }

    /// An importer for frames of packed samples or Bayer pictures: rows of bytes.
    ///
    /// # Errors
    /// [`ClError::Refused`] for frames that are too large.
    pub fn carrying(
        context: &Arc<ClContext>,
        meter: &Arc<Meter>,
        carrier: Carrier,
    ) -> Result<Self, ClError> {
        let mut importer = Self::new(context, meter, carrier.info())?;
        importer.carrier = Some(carrier);
        Ok(importer)
    }

    /// Uploads frames even if host and device share memory, for tests and measurements.
    #[must_use]
    pub fn that_uploads(mut self) -> Self {
        self.wraps = false;
        self
    }

    /// The frames' format and size.
    pub fn info(&self) -> &gst_video::VideoInfo {
        &self.info
    }

    /// What the rows of bytes carry; `None` if frames are raw video.
    pub fn carrier(&self) -> Option<&Carrier> {
        self.carrier.as_ref()
    }

    /// The frames' layout.
    pub fn layout(&self) -> &Arc<FrameLayout> {
        &self.layout
    }

    /// The device's context.
    pub fn context(&self) -> &Arc<ClContext> {
        &self.context
    }

    /// The counters of the frames.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Brings a frame to the device: uses OpenCL memory of this context in place, wraps host memory
    /// where host and device share memory, and uploads any other frame.
    ///
    /// # Errors
    /// [`ClError::Input`] for a frame that is shorter than its caps or its GstVideoMeta say, or
    /// that cannot be mapped; a failing OpenCL call.
    pub fn import(&mut self, buffer: &gst::BufferRef) -> Result<ClFrame, ClError> {
        let places = self.places(buffer)?;
        match self.in_place(buffer, &places)? {
            Some(frame) => Ok(frame),
            None => self.upload(buffer, &places),
        }
    }

    /// Appends a strip to the rows of its web on the device. Rows before the web's row `keep` may be dropped. The
    /// strip that is inspected next needs the rows before the web's row `needed`: an upload of this strip sends
    /// these first. Returns the strip, and the command that brings its last row.
    ///
    /// # Errors
    /// See [`Self::import`].
    pub fn import_strip(
        &mut self,
        buffer: &gst::BufferRef,
        rows: &mut WebRows,
        keep: u64,
        needed: u64,
    ) -> Result<(ClFrame, Completion), ClError> {
        let places = self.places(buffer)?;
        let strides: Vec<usize> = places.iter().map(|place| place.stride).collect();
        let frame = match self.in_place(buffer, &places)? {
            Some(frame) => frame,
            None if rows.has_strides(&strides) => {
                let (parts, spans) = self.spans(buffer, &places)?;
                let uploaded = rows.upload(&mut self.uploader, parts, &spans, keep, needed)?;
                self.meter.count_frame(ImportPath::Copied);
                return Ok(uploaded);
            }
            None => self.upload(buffer, &places)?,
        };
        let copied = rows.append(&frame, keep)?;
        Ok((frame, copied))
    }

    /// The frame in memory that the device uses in place; `None` if it must be uploaded.
    fn in_place(
        &self,
        buffer: &gst::BufferRef,
        places: &[PlaneBytes],
    ) -> Result<Option<ClFrame>, ClError> {
        let own = places.iter().map(|place| self.own_plane(buffer, place));
        let own: Option<Vec<Plane>> = own.collect::<Result<_, _>>()?;
        let (planes, taken) = match own {
            Some(planes) => (planes, ImportPath::ZeroCopy),
            None if self.wraps => (self.wrap(buffer, places)?, ImportPath::Wrapped),
            None => return Ok(None),
        };
        self.meter.count_frame(taken);
        Ok(Some(ClFrame {
            planes,
            taken,
            source: None,
        }))
    }

    /// The output frame in a buffer of OpenCL memory.
    ///
    /// # Errors
    /// [`ClError::Input`] for any other memory.
    pub fn output(&self, buffer: &gst::BufferRef) -> Result<ClFrame, ClError> {
        let places = self.places(buffer)?;
        let planes = places
            .iter()
            .map(|place| {
                self.own_plane(buffer, place)?.ok_or_else(|| {
                    ClError::Input("the output frame is not in OpenCL memory".into())
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(ClFrame {
            planes,
            taken: ImportPath::ZeroCopy,
            source: None,
        })
    }

    /// Whether every plane lies inside the buffer, without bringing the frame to the device.
    ///
    /// # Errors
    /// [`ClError::Input`] for a frame that is shorter than its caps or its GstVideoMeta say.
    pub fn check(&self, buffer: &gst::BufferRef) -> Result<(), ClError> {
        self.places(buffer).map(drop)
    }

    /// Offsets and strides of the planes, checked against the buffer's size.
    fn places(&self, buffer: &gst::BufferRef) -> Result<Vec<PlaneBytes>, ClError> {
        let size = buffer.size();
        let planes = &self.layout.planes;
        let (offsets, strides): (Vec<usize>, Vec<i32>) =
            if let Some(meta) = buffer.meta::<gst_video::VideoMeta>() {
                let count = meta.n_planes() as usize;
                let (size, format) = match &self.carrier {
                    Some(carrier) => (carrier.samples(), carrier.format()),
                    None => (
                        [self.info.width(), self.info.height()],
                        Some(self.info.format()),
                    ),
                };
                if count != planes.len()
                    || format.is_some_and(|format| meta.format() != format)
                    || [meta.width(), meta.height()] != size
                {
                    return Err(ClError::Input(format!(
                        "the frame's GstVideoMeta has {} planes of {}x{} {}, but its caps have {} \
                         planes of {}x{} {}",
                        count,
                        meta.width(),
                        meta.height(),
                        meta.format(),
                        planes.len(),
                        size[0],
                        size[1],
                        format.map_or("", |format| format.to_str().as_str()),
                    )));
                }
                (meta.offset().to_vec(), meta.stride().to_vec())
            } else if let Some(carrier) = &self.carrier {
                (vec![0], vec![carrier.stride(size)])
            } else if self.is_tight(size) {
                (vec![0], vec![planes[0].row_bytes as i32])
            } else {
                (self.info.offset().to_vec(), self.info.stride().to_vec())
            };
        planes
            .iter()
            .enumerate()
            .map(|(i, plane)| {
                let (Some(&offset), Some(&stride)) = (offsets.get(i), strides.get(i)) else {
                    return Err(ClError::Input(format!("the frame lacks plane {i}")));
                };
                let stride = usize::try_from(stride)
                    .ok()
                    .filter(|&s| s > 0 && (s >= plane.row_bytes || plane.rows <= 1))
                    .ok_or_else(|| {
                        ClError::Input(format!(
                            "plane {i} of the frame has a stride of {stride} bytes for rows of {}",
                            plane.row_bytes
                        ))
                    })?;
                let len = stride
                    .checked_mul(plane.rows.saturating_sub(1))
                    .and_then(|n| n.checked_add(plane.row_bytes));
                let end = len.and_then(|len| offset.checked_add(len));
                match (len, end) {
                    (Some(len), Some(end)) if end <= size => Ok(PlaneBytes {
                        offset,
                        stride,
                        len,
                    }),
                    (_, end) => {
                        let has_meta = buffer.meta::<gst_video::VideoMeta>().is_some();
                        Err(self.too_short(size, i, (offset, stride, end), has_meta))
                    }
                }
            })
            .collect()
    }

    /// Whether the rows of a grey frame follow each other directly, because a buffer of `size` bytes without a GstVideoMeta is too
    /// short for rows that begin at multiples of four bytes. The SDKs of cameras send such frames.
    fn is_tight(&self, size: usize) -> bool {
        let [plane] = &self.layout.planes[..] else {
            return false;
        };
        let padded = usize::try_from(self.info.stride()[0]).ok();
        let padded = padded.and_then(|stride| stride.checked_mul(plane.rows.saturating_sub(1)));
        let is_short = padded.is_none_or(|rows| size < rows + plane.row_bytes);
        self.layout.components.len() == 1 && is_short && size >= self.layout.bytes()
    }

    /// What to do with a frame whose rows seem to follow each other directly; "" if `size` bytes are too few for that.
    fn advice_on_tight(&self, size: usize) -> String {
        if size < self.layout.bytes() {
            return String::new();
        }
        let mut offset = 0;
        let places: Vec<String> = (self.layout.planes.iter())
            .map(|plane| {
                let place = format!("stride {} and offset {offset}", plane.row_bytes);
                offset += plane.row_bytes * plane.rows;
                place
            })
            .collect();
        format!(
            ". They are enough for rows that follow each other directly: attach a GstVideoMeta with {}, or send frames whose \
             width is a multiple of 4",
            places.join(", ")
        )
    }

    /// The error of a plane that does not end inside a buffer of `size` bytes.
    fn too_short(
        &self,
        size: usize,
        index: usize,
        (offset, stride, end): (usize, usize, Option<usize>),
        has_meta: bool,
    ) -> ClError {
        if let (Some(carrier), Some(end)) = (&self.carrier, end) {
            return ClError::Input(carrier.too_short(size, end));
        }
        let plane = &self.layout.planes[index];
        let may_be_packed = self.carrier.is_none() && self.layout.sample == SampleType::U16Le;
        let advice = if may_be_packed {
            advice_on_packed([self.layout.width, self.layout.height], size)
        } else if has_meta {
            String::new()
        } else {
            self.advice_on_tight(size)
        };
        ClError::Input(format!(
            "the frame holds {size} bytes, but plane {index} ({} rows of {} bytes, {stride} apart, from byte {offset}) \
             does not end inside them{advice}",
            plane.rows, plane.row_bytes
        ))
    }

    /// The plane in place, if it lies in one OpenCL memory of this context.
    ///
    /// # Errors
    /// The failure of an earlier unmap of the memory.
    fn own_plane(
        &self,
        buffer: &gst::BufferRef,
        place: &PlaneBytes,
    ) -> Result<Option<Plane>, ClError> {
        let Some((index, skip)) = place.memory_of(buffer) else {
            return Ok(None);
        };
        let memory = buffer.peek_memory(index);
        let Some(ours) =
            buffer_of(memory).filter(|ours| ours.context().shares_memory_with(&self.context))
        else {
            return Ok(None);
        };
        ours.check()?;
        Ok(Some(Plane {
            memory: PlaneMemory::Ours(ours.clone()),
            offset: memory.offset() + skip,
            stride: place.stride,
        }))
    }

    /// Maps each memory that holds planes for reading; returns the mappings with the places of
    /// their planes.
    fn map(
        &self,
        buffer: &gst::BufferRef,
        places: &[PlaneBytes],
    ) -> Result<Vec<MappedPart>, ClError> {
        let unreadable = || ClError::Input("the frame's memory cannot be read".into());
        let mut groups: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
        for (plane, place) in places.iter().enumerate() {
            let Some((index, skip)) = place.memory_of(buffer) else {
                // The plane spans several memories: GStreamer merges them into one.
                let flags = gst::BufferCopyFlags::MEMORY | gst::BufferCopyFlags::MERGE;
                let mapped = buffer
                    .copy_region(flags, ..)
                    .ok()
                    .and_then(|merged| merged.into_mapped_buffer_readable().ok())
                    .ok_or_else(unreadable)?;
                return Ok(vec![MappedPart {
                    mapped: Mapped::Buffer(mapped),
                    planes: places.iter().map(|p| p.offset).enumerate().collect(),
                }]);
            };
            match groups.iter_mut().find(|(known, _)| *known == index) {
                Some((_, members)) => members.push((plane, skip)),
                None => groups.push((index, vec![(plane, skip)])),
            }
        }
        groups
            .into_iter()
            .map(|(index, planes)| {
                let mapped = buffer
                    .memory(index)
                    .and_then(|memory| memory.into_mapped_memory_readable().ok())
                    .ok_or_else(unreadable)?;
                let mapped = Mapped::Memory(mapped);
                Ok(MappedPart { mapped, planes })
            })
            .collect()
    }

    fn wrap(&self, buffer: &gst::BufferRef, places: &[PlaneBytes]) -> Result<Vec<Plane>, ClError> {
        let mut planes: Vec<(usize, Plane)> = Vec::with_capacity(places.len());
        for part in self.map(buffer, places)? {
            let host: Arc<HostMemory> = Arc::new(HostMemory::new(&self.context, part.mapped)?);
            planes.extend(part.planes.into_iter().map(|(plane, skip)| {
                let memory = PlaneMemory::Host(host.clone());
                (
                    plane,
                    Plane {
                        memory,
                        offset: skip,
                        stride: places[plane].stride,
                    },
                )
            }));
        }
        planes.sort_by_key(|(index, _)| *index);
        Ok(planes.into_iter().map(|(_, plane)| plane).collect())
    }

    /// Uploads a frame with its own strides, from the source's memory if that is pinned, else from
    /// a copy.
    fn upload(
        &mut self,
        buffer: &gst::BufferRef,
        places: &[PlaneBytes],
    ) -> Result<ClFrame, ClError> {
        let (parts, mut spans) = self.spans(buffer, places)?;
        let mut size = 0;
        let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
        for span in &mut spans {
            span.start = size;
            size += span.len.next_multiple_of(PLANE_ALIGNMENT);
            match joined.last().and_then(|last| last.joined(span)) {
                Some(both) => {
                    joined.pop();
                    joined.push(both);
                }
                None => joined.push(*span),
            }
        }
        let (memory, source) = self.uploader.upload(parts, &joined, size)?;
        self.meter.count_frame(ImportPath::Copied);
        let planes = places.iter().zip(&spans).map(|(place, span)| Plane {
            memory: PlaneMemory::Ours(memory.clone()),
            offset: span.start,
            stride: place.stride,
        });
        Ok(ClFrame {
            planes: planes.collect(),
            taken: ImportPath::Copied,
            source,
        })
    }

    /// Maps a frame for an upload: the parts, and the span of each plane, with 0 as its place on the device.
    fn spans(
        &self,
        buffer: &gst::BufferRef,
        places: &[PlaneBytes],
    ) -> Result<(Vec<Mapped>, Vec<Span>), ClError> {
        let mut parts = Vec::new();
        let mut spans = Vec::with_capacity(places.len());
        for part in self.map(buffer, places)? {
            spans.extend(part.planes.iter().map(|&(plane, skip)| {
                let span = Span {
                    part: parts.len(),
                    skip,
                    start: 0,
                    len: places[plane].len,
                };
                (plane, span)
            }));
            parts.push(part.mapped);
        }
        spans.sort_by_key(|(plane, _)| *plane);
        Ok((parts, spans.into_iter().map(|(_, span)| span).collect()))
    }
}
