//! Writes the mask of a frame to its target.

use std::sync::Arc;

use gst::prelude::*;

use super::caps::MaskForm;
use crate::elements::base_filter::{Frame, Negotiated};
use clinspect_core::ClError;
use clinspect_core::mask::pbm_header;
use clinspect_opencl::frame::{ClFrame, Importer};
use clinspect_opencl::{ClAllocator, ClBuffer, buffer_of, new_plain_pool};
use clinspect_operators::MaskTarget;
use clinspect_results::mask_caps::{bitmask, buffer_size};

/// The target of masks.
pub(super) enum Masks {
    /// Buffers of packed rows.
    Packed,
    /// Buffers with one byte per pixel.
    Grey(Importer),
    /// Buffers of packed rows after this header.
    Pbm(String),
    /// A meta of the frame.
    Meta(MaskPool),
    /// A meta of a GRAY8 picture.
    Picture(Importer, MaskPool),
}

impl Masks {
    /// Masks in a meta of the frame.
    pub fn in_meta(caps: &Negotiated) -> Result<Self, ClError> {
        Ok(Self::Meta(MaskPool::new(caps.allocator, caps.incaps)?))
    }

    /// Masks in a meta of a picture with the negotiated caps.
    pub fn with_pictures(caps: &Negotiated) -> Result<Self, ClError> {
        let masks = MaskPool::new(caps.allocator, caps.incaps)?;
        Ok(Self::Picture(grey_importer(caps)?, masks))
    }

    /// Masks as buffers with the negotiated caps.
    pub fn as_buffers(caps: &Negotiated) -> Result<Self, ClError> {
        let (importer, outcaps) = (caps.importer, caps.outcaps);
        match MaskForm::of(outcaps) {
            Some(MaskForm::Packed) => Ok(Self::Packed),
            Some(MaskForm::Pbm) => {
                let layout = importer.layout();
                Ok(Self::Pbm(pbm_header(layout.width, layout.height)))
            }
            Some(MaskForm::Grey) => Ok(Self::Grey(grey_importer(caps)?)),
            None => Err(ClError::Refused(format!(
                "{outcaps} are not caps of a mask"
            ))),
        }
    }

    /// Calls `mark` with the target of a frame's mask, and of a picture if one is sent; returns the mask if it
    /// travels in a meta.
    pub fn write<R>(
        &self,
        frame: &Frame,
        mark: impl FnOnce(MaskTarget, Option<&ClFrame>) -> Result<R, ClError>,
    ) -> Result<(R, Option<gst::Buffer>), ClError> {
        match self {
            Self::Grey(masks) => {
                let mask = masks.output(frame.target()?)?;
                Ok((mark(MaskTarget::Grey(&mask), None)?, None))
            }
            Self::Packed => {
                let (buffer, offset) = memory_of(frame.target()?)?;
                Ok((mark(MaskTarget::Packed { buffer, offset }, None)?, None))
            }
            Self::Pbm(header) => {
                let (buffer, offset) = memory_of(frame.target()?)?;
                let bytes = header.as_bytes();
                buffer.write(offset, bytes, "a PBM header")?;
                let offset = offset + bytes.len();
                Ok((mark(MaskTarget::Packed { buffer, offset }, None)?, None))
            }
            Self::Meta(pool) => {
                let mask = pool.acquire()?;
                let (buffer, offset) = memory_of(&mask)?;
                let done = mark(MaskTarget::Packed { buffer, offset }, None)?;
                Ok((done, Some(mask)))
            }
            Self::Picture(pictures, pool) => {
                let picture = pictures.output(frame.target()?)?;
                let mask = pool.acquire()?;
                let (buffer, offset) = memory_of(&mask)?;
                let done = mark(MaskTarget::Packed { buffer, offset }, Some(&picture))?;
                Ok((done, Some(mask)))
            }
        }
    }
}

/// Imports output buffers with GRAY8 caps.
fn grey_importer(caps: &Negotiated) -> Result<Importer, ClError> {
    let info = gst_video::VideoInfo::from_caps(caps.outcaps)
        .map_err(|_| ClError::Refused(format!("not raw video caps: {}", caps.outcaps)))?;
    Importer::new(caps.importer.context(), caps.importer.meter(), &info)
}

/// Packed masks for metas.
pub(super) struct MaskPool {
    pool: gst::BufferPool,
    allocator: ClAllocator,
}

impl MaskPool {
    /// An active pool of masks for frames of `caps`.
    fn new(allocator: &ClAllocator, caps: &gst::Caps) -> Result<Self, ClError> {
        let refused = || ClError::Refused(format!("cannot make a mask for frames of {caps}"));
        let mut mask = gst::Caps::new_empty();
        mask.make_mut()
            .append_structure(bitmask(caps.structure(0).ok_or_else(refused)?));
        let size = buffer_size(&mask)
            .and_then(|size| u32::try_from(size).ok())
            .ok_or_else(refused)?;
        let pool = new_plain_pool(allocator, &mask, size, 0)?;
        pool.set_active(true).map_err(|_| refused())?;
        Ok(Self {
            pool,
            allocator: allocator.clone(),
        })
    }

    fn acquire(&self) -> Result<gst::Buffer, ClError> {
        self.pool.acquire_buffer(None).map_err(|_| {
            self.allocator.take_failure().unwrap_or_else(|| {
                ClError::Input(
                    "cannot allocate memory for a mask; stop and start the pipeline".into(),
                )
            })
        })
    }
}

impl Drop for MaskPool {
    fn drop(&mut self) {
        // Buffers in flight keep the pool alive until they return.
        let _ = self.pool.set_active(false);
    }
}

/// The memory of a mask, and the mask's offset in it.
fn memory_of(buffer: &gst::BufferRef) -> Result<(&Arc<ClBuffer>, usize), ClError> {
    let memory = (buffer.n_memory() == 1).then(|| buffer.peek_memory(0));
    let (buffer, offset) = memory
        .and_then(|memory| Some((buffer_of(memory)?, memory.offset())))
        .ok_or_else(|| ClError::Input("the mask is not in one OpenCL memory".into()))?;
    buffer.check()?;
    Ok((buffer, offset))
}
