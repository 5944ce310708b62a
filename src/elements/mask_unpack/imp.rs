//! Implementation of `clmaskunpack`.

use std::sync::{LazyLock, Mutex, MutexGuard};

use atomic_refcell::AtomicRefCell;
use gst::{glib, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};
use gst_video::prelude::*;

use crate::elements::{
    debug_category, element_class, last_report::LastReport, lock, pad_templates,
};
use clinspect_core::mask::{packed_stride, unpack_row};
use clinspect_results::DefectResult;
use clinspect_results::mask_caps::{BITMASK, bitmask_template, with_size};

struct State {
    stride: usize,
    info: gst_video::VideoInfo,
}

impl State {
    /// Width and height, px.
    fn size(&self) -> (u32, u32) {
        (self.info.width(), self.info.height())
    }

    /// Checks that `len` bytes hold a mask; the error says what is missing.
    fn check(&self, len: usize) -> Result<(), String> {
        let (width, height) = (self.info.width() as usize, self.info.height() as usize);
        let needed = self
            .stride
            .checked_mul(height.saturating_sub(1))
            .and_then(|bytes| bytes.checked_add(packed_stride(width)))
            .ok_or_else(|| {
                format!(
                    "a mask of {height} rows of {} bytes is too large",
                    self.stride
                )
            })?;
        if len < needed {
            return Err(format!(
                "the mask holds {len} bytes, but {width}x{height} pixels with a stride of {} need {needed}; \
                 send complete masks with caps of their size and stride",
                self.stride
            ));
        }
        Ok(())
    }
}

/// Instance of `clmaskunpack`.
#[derive(Default)]
pub struct ClMaskUnpack {
    state: AtomicRefCell<Option<State>>,
    /// The results from the last event, for the next mask. A flush clears them from another thread.
    announced: Mutex<Option<DefectResult>>,
    /// Caps whose refusal was posted: upstream may try them again.
    refused: Mutex<LastReport<gst::Caps>>,
}

impl ClMaskUnpack {
    fn announced(&self) -> MutexGuard<'_, Option<DefectResult>> {
        lock(&self.announced)
    }

    /// The results from the last event, if they belong to this mask with `marked` set bits.
    ///
    /// The results must come right before their mask. After a gap (DISCONT) it is unknown whether
    /// the gap was before the event or between the event and a lost mask: the mask then goes
    /// without results, since they may belong to another mask.
    fn results_for(&self, mask: &gst::BufferRef, marked: u64) -> Option<DefectResult> {
        let result = self.announced().take()?;
        let size = self.state.borrow().as_ref().map(State::size)?;
        let why = if mask.flags().contains(gst::BufferFlags::DISCONT) {
            "there was a gap before this mask"
        } else if !DefectResult::read(mask).is_empty() {
            "the mask has results of its own"
        } else if size != (result.width, result.height) || marked != result.defect_pixels {
            "they belong to another mask"
        } else {
            return Some(result);
        };
        let frame = result.frame_number;
        gst::debug!(
            CAT,
            imp = self,
            "ignoring the results of frame {frame}: {why}"
        );
        None
    }
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clmaskunpack", "Packed mask to GRAY8"));

fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&bitmask_template(), &grey_template()));
    TEMPLATES.as_ref()
}

element_class!(
    ClMaskUnpack: gst_base::BaseTransform,
    "GstClMaskUnpack",
    templates(),
    "Mask unpacker",
    "Filter/Converter/Video",
    "Unpacks a 1-bit mask to GRAY8 (0 and 255)",
);

impl ObjectImpl for ClMaskUnpack {}
fn grey_template() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Gray8)
        .build()
}

impl BaseTransformImpl for ClMaskUnpack {
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.state.borrow_mut() = None;
        *self.announced() = None;
        lock(&self.refused).clear();
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if DefectResult::is_event(&event) {
            let result = DefectResult::from_event(&event);
            if result.is_none() {
                gst::debug!(CAT, imp = self, "ignoring a malformed event: {event:?}");
            }
            // If two events follow each other, the mask of the first one is lost. The event is not
            // forwarded, since its results become a meta.
            *self.announced() = result;
            return true;
        }
        if matches!(
            event.type_(),
            gst::EventType::FlushStop | gst::EventType::StreamStart
        ) {
            *self.announced() = None;
        }
        self.parent_sink_event(event)
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let mut other = gst::Caps::new_empty();
        for structure in caps.iter() {
            let structure = if direction == gst::PadDirection::Sink {
                let mut grey = with_size("video/x-raw", structure);
                grey.set("format", "GRAY8");
                grey
            } else {
                // Rows may have more padding than the width needs.
                let mut packed = with_size(BITMASK, structure);
                packed.set("stride", gst::IntRange::new(1, i32::MAX));
                packed.set("bit-order", "msb-first");
                packed
            };
            other.make_mut().append_structure(structure);
        }
        Some(match filter {
            Some(filter) => filter.intersect_with_mode(&other, gst::CapsIntersectMode::First),
            None => other,
        })
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(outcaps)
            .map_err(|_| gst::loggable_error!(CAT, "not raw video caps: {outcaps}"))?;
        let stride = incaps
            .structure(0)
            .and_then(|s| s.get::<i32>("stride").ok())
            .and_then(|stride| usize::try_from(stride).ok())
            .ok_or_else(|| gst::loggable_error!(CAT, "no stride in {incaps}"))?;
        let least = packed_stride(info.width() as usize);
        if stride < least {
            let why = format!(
                "stride={stride} is less than the {least} bytes that rows of {} pixels need; \
                 correct the stride in the caps",
                info.width()
            );
            if lock(&self.refused).is_new(incaps.clone()) {
                gst::element_imp_error!(self, gst::StreamError::Format, ("{}", why));
            }
            return Err(gst::loggable_error!(CAT, "{why}"));
        }
        // GStreamer's own calculation overflows near the largest width.
        if usize::try_from(info.stride()[0]).map_or(true, |s| s < info.width() as usize) {
            return Err(gst::loggable_error!(
                CAT,
                "{outcaps} is too wide for a frame"
            ));
        }
        lock(&self.refused).clear();
        *self.state.borrow_mut() = Some(State { stride, info });
        Ok(())
    }

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        inbuf: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        // Check before an output frame is allocated: a few bytes must not cause an allocation of
        // gigabytes.
        if let Some(state) = &*self.state.borrow()
            && let Err(why) = state.check(inbuf.size())
        {
            gst::element_imp_error!(self, gst::StreamError::Failed, ("{}", why));
            return Err(gst::FlowError::Error);
        }
        self.parent_submit_input_buffer(is_discont, inbuf)
    }

    fn unit_size(&self, caps: &gst::Caps) -> Option<usize> {
        let structure = caps.structure(0)?;
        if structure.name() == BITMASK {
            let stride = usize::try_from(structure.get::<i32>("stride").ok()?).ok()?;
            let height = usize::try_from(structure.get::<i32>("height").ok()?).ok()?;
            stride.checked_mul(height)
        } else {
            Some(gst_video::VideoInfo::from_caps(caps).ok()?.size())
        }
    }

    fn transform_size(
        &self,
        _direction: gst::PadDirection,
        _caps: &gst::Caps,
        _size: usize,
        othercaps: &gst::Caps,
    ) -> Option<usize> {
        self.unit_size(othercaps)
    }

    fn transform_meta<'a>(
        &self,
        _outbuf: &mut gst::BufferRef,
        _meta: gst::MetaRef<'a, gst::Meta>,
        _inbuf: &'a gst::BufferRef,
    ) -> bool {
        true
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let failed = |why: String| {
            gst::element_imp_error!(self, gst::StreamError::Failed, ("{}", why));
            gst::FlowError::Error
        };
        let state = self.state.borrow();
        let state = state.as_ref().ok_or(gst::FlowError::NotNegotiated)?;
        let (width, height) = (state.info.width() as usize, state.info.height() as usize);
        let packed = inbuf
            .map_readable()
            .map_err(|_| failed("the mask cannot be read".into()))?;
        // The mapped size may be smaller than the buffer's size.
        state.check(packed.len()).map_err(failed)?;
        let marked = {
            let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(outbuf, &state.info)
                .map_err(|_| failed("the output frame cannot be written".into()))?;
            let out_stride = frame.plane_stride()[0] as usize;
            let out = frame
                .plane_data_mut(0)
                .map_err(|_| failed("the output frame has no plane".into()))?;
            let mut marked = 0;
            for (bits, row) in packed
                .chunks(state.stride)
                .zip(out.chunks_mut(out_stride))
                .take(height)
            {
                let len = width.min(row.len());
                unpack_row(bits, &mut row[..len]);
                marked += row[..len].iter().filter(|&&pixel| pixel != 0).count() as u64;
            }
            marked
        };
        if let Some(result) = self.results_for(inbuf, marked) {
            result
                .attach(outbuf)
                .map_err(|error| failed(format!("cannot attach a meta to the frame: {error}")))?;
        }
        Ok(gst::FlowSuccess::Ok)
    }
}
