//! Events from downstream that concern the masks' source as well as the frames'.

use std::sync::LazyLock;

use gst::{event::StreamStart, subclass::prelude::*};
use gst_base::prelude::*;

use super::imp::InspectOverlay;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectoverlayseek",
        gst::DebugColorFlags::empty(),
        Some("Seeks of inspectoverlay"),
    )
});

/// Sends an event upstream to the frames, and where the masks have a source of their own, which it
/// does not reach that way, to the masks. The frames' answer counts.
pub(super) fn send_upstream(
    overlay: &InspectOverlay,
    event: gst::Event,
    to_frames: impl FnOnce(gst::Event) -> bool,
) -> bool {
    let masks = overlay.mask_pad().filter(|pad| pad.is_linked());
    let Some(masks) = masks else {
        return to_frames(event);
    };
    match event.view() {
        gst::EventView::Seek(seek) => {
            let is_flushing = seek.get().1.contains(gst::SeekFlags::FLUSH);
            // Frames of the new place wait until the masks are there, too. Not where nothing is
            // flushed: the seek itself waits then until the frame that is here has gone on.
            if is_flushing {
                overlay.masks().begin_seek();
            }
            let is_done = to_frames(event.clone());
            if is_done {
                seek_masks(overlay, &masks, event, is_flushing);
            }
            if is_flushing {
                overlay.masks().end_seek();
            }
            is_done
        }
        gst::EventView::Latency(_) => {
            masks.push_event(event.clone());
            to_frames(event)
        }
        // QoS, navigation, key units, caps: of the frames only.
        _ => to_frames(event),
    }
}

/// The frames' source has taken a seek; the masks' source has, too, where it is the same.
fn seek_masks(overlay: &InspectOverlay, masks: &gst::Pad, event: gst::Event, is_flushing: bool) {
    let is_seeked = if is_flushing {
        overlay.mask_input().flushed == Some(event.seqnum())
    } else {
        // Nothing has come yet; but sources, and demuxers with several pads, tell their group.
        let group = |pad: &gst::Pad| pad.sticky_event::<StreamStart>(0)?.group_id();
        let frames = group(overlay.obj().sink_pad());
        frames.is_some() && frames == group(masks)
    };
    if is_seeked {
        gst::debug!(CAT, imp = overlay, "masks are of the frames' source");
    } else if masks.push_event(event) {
        gst::debug!(CAT, imp = overlay, "masks have been sought, too");
    } else {
        gst::debug!(CAT, imp = overlay, "the source of the masks cannot seek");
    }
}
