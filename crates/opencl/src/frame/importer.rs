//! From a GstBuffer to a frame on the device.

use std::sync::Arc;

use super::{
    Carrier, ClFrame, Plane, PlaneMemory, WebRows, advice_on_packed, layout_of,
    upload::{Mapped, Span, Uploader},
};
use crate::{ClContext, Completion, HostMemory, Meter, Taken, buffer_of};
use clinspect_core::ClError;
use clinspect_core::layout::{FrameLayout, SampleType};

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
    /// [`ClError::Refused`] for a format outside [`super::FORMATS`].
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
                self.meter.count_frame(Taken::Copied);
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
            Some(planes) => (planes, Taken::ZeroCopy),
            None if self.wraps => (self.wrap(buffer, places)?, Taken::Wrapped),
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
            taken: Taken::ZeroCopy,
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
                    (_, end) => Err(self.too_short(size, i, offset, stride, end)),
                }
            })
            .collect()
    }

    /// The error of a plane that does not end inside a buffer of `size` bytes.
    fn too_short(
        &self,
        size: usize,
        index: usize,
        offset: usize,
        stride: usize,
        end: Option<usize>,
    ) -> ClError {
        if let (Some(carrier), Some(end)) = (&self.carrier, end) {
            return ClError::Input(carrier.too_short(size, end));
        }
        let plane = &self.layout.planes[index];
        let may_be_packed = self.carrier.is_none() && self.layout.sample == SampleType::U16Le;
        let advice = if may_be_packed {
            advice_on_packed([self.layout.width, self.layout.height], size)
        } else {
            String::new()
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
        self.meter.count_frame(Taken::Copied);
        let planes = places.iter().zip(&spans).map(|(place, span)| Plane {
            memory: PlaneMemory::Ours(memory.clone()),
            offset: span.start,
            stride: place.stride,
        });
        Ok(ClFrame {
            planes: planes.collect(),
            taken: Taken::Copied,
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
