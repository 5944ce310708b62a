//! The masks of the pad `mask`, and their assignment to frames.

use gst_base::prelude::*;

use super::{bits::MaskFormat, matching::Span};
use clinspect_results::mask_caps::{BITMASK, bitmask_template};

/// Name of the pad and its template.
pub(super) const PAD: &str = "mask";

/// The pad's template.
pub(super) fn template() -> Option<gst::PadTemplate> {
    let mut caps = bitmask_template();
    let grey = gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Gray8)
        .build();
    caps.make_mut().append(grey);
    let (sink, request) = (gst::PadDirection::Sink, gst::PadPresence::Request);
    gst::PadTemplate::new(PAD, sink, request, &caps).ok()
}

/// The layout of masks with these caps.
///
/// # Errors
/// A sentence if the caps are not valid for a mask.
pub(super) fn format_of(caps: &gst::CapsRef) -> Result<MaskFormat, String> {
    let structure = caps.structure(0).ok_or("the caps are empty")?;
    let is_grey = structure.name() != BITMASK;
    let fields = if is_grey {
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|error| error.to_string())?;
        [
            info.width() as i32,
            info.height() as i32,
            info.stride().first().copied().unwrap_or(0),
        ]
    } else {
        ["width", "height", "stride"].map(|name| structure.get(name).unwrap_or(0))
    };
    let [width, height, stride] = fields.map(|n| usize::try_from(n).unwrap_or(0));
    let format = MaskFormat {
        size: [width, height],
        stride,
        is_grey,
    };
    if width == 0 || height == 0 || stride < format.row_len() {
        return Err(format!(
            "width, height or stride of {caps} is not valid for a mask"
        ));
    }
    Ok(format)
}

/// A mask and its time.
#[derive(Debug, Clone)]
pub(super) struct TimedMask {
    pub time: Span,
    /// Layout of the buffer.
    pub format: MaskFormat,
    /// The mask, with its metas.
    pub buffer: gst::Buffer,
}

/// The masks up to the time of the last frame.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// Format of the next masks; `None` before caps.
    pub format: Option<MaskFormat>,
    /// The newest mask that is not later than the last frame.
    newest: Option<TimedMask>,
}

impl Masks {
    /// Drops the masks after a flush.
    pub fn flush(&mut self) {
        self.newest = None;
    }

    /// The frame's mask, and whether no other mask can come for it. The mask is the newest one that
    /// has begun at the frame's time, if it covers the frame. Removes earlier masks from the pad.
    /// Calls `warn` for masks without a time.
    pub fn of_frame(
        &mut self,
        frame: Span,
        pad: &gst_base::AggregatorPad,
        warn: impl Fn(&str),
    ) -> (Option<TimedMask>, bool) {
        let is_final = loop {
            let Some(buffer) = pad.peek_buffer() else {
                // After a mask with the frame's own time, the next one belongs to a later frame.
                let is_same = (self.newest.as_ref()).is_some_and(|mask| mask.time.is_same(frame));
                break is_same || pad.is_eos();
            };
            match self.timed(pad, buffer) {
                None => warn("a mask without caps or without a timestamp in its segment"),
                Some(mask) if !mask.time.has_begun(frame) => break true,
                // GstAggregator turns a gap event into an empty buffer.
                Some(mask) if mask.buffer.flags().contains(gst::BufferFlags::GAP) => {
                    self.newest = None;
                    if mask.time.covers(frame) {
                        break true;
                    }
                }
                Some(mask) => self.newest = Some(mask),
            }
            pad.drop_buffer();
        };
        self.newest.take_if(|mask| !mask.time.covers(frame));
        (self.newest.clone(), is_final)
    }

    fn timed(&self, pad: &gst_base::AggregatorPad, buffer: gst::Buffer) -> Option<TimedMask> {
        let segment = pad.segment();
        let segment = segment.downcast_ref::<gst::ClockTime>()?;
        Some(TimedMask {
            time: Span {
                start: segment.to_running_time(buffer.pts())?,
                duration: buffer.duration(),
            },
            format: self.format.clone()?,
            buffer,
        })
    }
}
