//! The request pad that takes masks.

use std::{sync::LazyLock, time::Duration};

use gst::{glib::prelude::*, subclass::prelude::*};

use super::{
    bits::MaskFormat, imp::InspectOverlay, mask_queue::MaskQueue, matching::TimedMask, planes,
};
use clinspect_core::mask::packed_stride;
use clinspect_results::mask_caps::{BITMASK, bitmask_template};

/// Name of the pad and of its template.
pub(super) const NAME: &str = "mask";

/// The pad's template.
pub(super) fn template() -> Option<gst::PadTemplate> {
    let mut caps = bitmask_template();
    let grey = gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Gray8)
        .build();
    caps.make_mut().append(grey);
    gst::PadTemplate::new(
        NAME,
        gst::PadDirection::Sink,
        gst::PadPresence::Request,
        &caps,
    )
    .ok()
}

/// What the mask pad's stream is.
#[derive(Debug, Default)]
pub(super) struct MaskInput {
    format: Option<MaskFormat>,
    segment: gst::FormattedSegment<gst::ClockTime>,
    /// The seek that the last flush was for.
    pub flushed: Option<gst::Seqnum>,
}

impl MaskInput {
    fn set_caps(&mut self, caps: &gst::CapsRef) -> Result<(), String> {
        self.format = None;
        self.format = Some(format_of(caps)?);
        Ok(())
    }

    fn running_time(&self, time: Option<gst::ClockTime>) -> Option<gst::ClockTime> {
        self.segment.to_running_time(time?)
    }

    /// The mask with its time. `None` where it has none, or lies outside its segment.
    fn timed(&self, buffer: gst::Buffer) -> Option<TimedMask> {
        Some(TimedMask {
            start: self.running_time(buffer.pts())?,
            duration: buffer.duration(),
            format: self.format.clone()?,
            buffer,
        })
    }
}

fn format_of(caps: &gst::CapsRef) -> Result<MaskFormat, String> {
    let structure = caps.structure(0).ok_or("caps without a structure")?;
    if structure.name() != BITMASK {
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|error| error.to_string())?;
        if !planes::are_sound(&info) {
            return Err(format!("{caps} is too wide for a mask"));
        }
        return Ok(MaskFormat::Grey(info));
    }
    let number = |name: &str| -> Result<usize, String> {
        let n = structure.get::<i32>(name).ok();
        n.and_then(|n| usize::try_from(n).ok())
            .filter(|&n| n > 0)
            .ok_or_else(|| format!("no {name} in {caps}"))
    };
    let (width, height, stride) = (number("width")?, number("height")?, number("stride")?);
    if stride < packed_stride(width) {
        return Err(format!("rows of {caps} are shorter than their width"));
    }
    Ok(MaskFormat::packed(width, height, stride))
}

/// Makes the pad.
pub(super) fn new(template: &gst::PadTemplate) -> gst::Pad {
    gst::Pad::builder_from_template(template)
        .name(NAME)
        .chain_function(|_, parent, buffer| {
            InspectOverlay::catch_panic_pad_function(
                parent,
                || Err(gst::FlowError::Error),
                |overlay| chain(overlay, buffer),
            )
        })
        .event_function(|_, parent, event| {
            InspectOverlay::catch_panic_pad_function(
                parent,
                || false,
                |overlay| take_event(overlay, &event),
            )
        })
        .activatemode_function(|_, parent, _, active| {
            // A new pad is activated before it has a parent.
            let overlay = parent.and_then(|parent| parent.downcast_ref::<super::InspectOverlay>());
            if let Some(overlay) = overlay {
                overlay.imp().masks().open_pad(active);
            }
            Ok(())
        })
        .build()
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectoverlaymask",
        gst::DebugColorFlags::empty(),
        Some("Mask pad of inspectoverlay"),
    )
});

fn chain(
    overlay: &InspectOverlay,
    buffer: gst::Buffer,
) -> Result<gst::FlowSuccess, gst::FlowError> {
    let mask = {
        let input = overlay.mask_input();
        if input.format.is_none() {
            return Err(gst::FlowError::NotNegotiated);
        }
        input.timed(buffer)
    };
    let Some(mask) = mask else {
        overlay.warn_once("a mask without a timestamp in its segment belongs to no frame");
        return Ok(gst::FlowSuccess::Ok);
    };
    gst::trace!(CAT, imp = overlay, "mask of {}", mask.start);
    let patience = Duration::from_nanos(overlay.settings().mask_timeout.nseconds());
    overlay
        .masks()
        .push(mask, patience, || overlay.frames_have_failed())
}

/// Nothing is sent on: the source pad's stream is that of the frames.
fn take_event(overlay: &InspectOverlay, event: &gst::Event) -> bool {
    use gst::EventView;
    let masks: &MaskQueue = overlay.masks();
    match event.view() {
        EventView::StreamStart(_) => masks.begin(),
        EventView::Caps(event) => {
            if let Err(why) = overlay.mask_input().set_caps(event.caps()) {
                gst::error!(CAT, imp = overlay, "{why}");
                return false;
            }
        }
        EventView::Segment(event) => {
            let segment = event.segment().downcast_ref::<gst::ClockTime>();
            overlay.mask_input().segment = segment.cloned().unwrap_or_default();
            if segment.is_none() {
                overlay.warn_once("masks without times belong to no frame");
            }
        }
        EventView::Gap(event) => {
            let (start, duration) = event.get();
            let end = start + duration.unwrap_or_default();
            let end = overlay.mask_input().running_time(Some(end));
            if let Some(end) = end {
                masks.skip_to(end);
            }
        }
        EventView::FlushStart(event) => {
            overlay.mask_input().flushed = Some(event.seqnum());
            masks.open_pad(false);
        }
        EventView::FlushStop(_) => {
            overlay.mask_input().segment = gst::FormattedSegment::default();
            masks.open_pad(true);
        }
        EventView::Eos(_) => masks.end(),
        _ => {}
    }
    true
}
