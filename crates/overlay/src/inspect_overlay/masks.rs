//! The masks of the pad `mask`, matched with frames by time.

use gst_base::prelude::*;

use super::bits::MaskFormat;
use clinspect_results::mask_caps::{BITMASK, bitmask_template};

/// Name of the pad and its template.
pub(super) const PAD: &str = "mask";
/// Timestamps at most this far apart count as equal, unless durations show that frames are closer:
/// containers and networks round to milliseconds.
const TOLERANCE: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// Frames and masks further apart do not wait for each other: one of the two times is wrong.
const FURTHEST: gst::ClockTime = gst::ClockTime::from_seconds(10);

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

/// The running time of a mask or a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeSpan {
    pub start: gst::ClockTime,
    /// How long the mask is valid, or the frame is shown.
    pub duration: Option<gst::ClockTime>,
}

/// Comparisons of a mask's time with a frame's time.
impl TimeSpan {
    fn tolerance(&self, frame: Self) -> gst::ClockTime {
        let shorter = [self.duration, frame.duration].into_iter().flatten().min();
        shorter.map_or(TOLERANCE, |duration| TOLERANCE.min(duration / 4))
    }

    /// Whether the mask starts at or before the frame.
    pub fn has_begun(&self, frame: Self) -> bool {
        self.start <= frame.start.saturating_add(self.tolerance(frame))
    }

    /// Whether this time lies so far ahead of the other that one of both is wrong.
    pub fn is_far_ahead(&self, other: Self) -> bool {
        self.start > other.start.saturating_add(FURTHEST)
    }

    /// Whether the mask has the frame's own time.
    pub fn is_same(&self, frame: Self) -> bool {
        let apart = self.start.max(frame.start) - self.start.min(frame.start);
        apart <= self.tolerance(frame)
    }

    /// Whether the mask belongs to the frame: it has the same time, or is still valid.
    pub fn covers(&self, frame: Self) -> bool {
        let end = self.start.saturating_add(self.duration.unwrap_or_default());
        let holds = frame.start.saturating_add(self.tolerance(frame)) < end;
        self.is_same(frame) || (self.start <= frame.start && holds)
    }
}

/// A mask and its time.
#[derive(Debug, Clone)]
pub(super) struct TimedMask {
    pub time: TimeSpan,
    /// Layout of the buffer.
    pub format: MaskFormat,
    /// The mask, with its metas.
    pub buffer: gst::Buffer,
}

/// The running time of a buffer. A buffer that begins before its segment and reaches into it, as the first one after a seek
/// between two frames does, begins with the segment.
pub(super) fn running_time(
    segment: &gst::FormattedSegment<gst::ClockTime>,
    buffer: &gst::BufferRef,
) -> Option<gst::ClockTime> {
    let pts = buffer.pts()?;
    let end = pts + buffer.duration().unwrap_or(gst::ClockTime::ZERO);
    let start = segment.start().filter(|&start| pts < start && start < end);
    segment.to_running_time(start.unwrap_or(pts))
}

/// The masks up to the time of the last frame.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// Format of the next masks; `None` before caps.
    pub format: Option<MaskFormat>,
    /// The newest mask that is not later than the last frame.
    newest: Option<TimedMask>,
    /// A mask that lies so far ahead of the frames that the masks behind it are looked at, too.
    ahead: Option<TimedMask>,
    /// The time of the frame that waits.
    waiting: Option<gst::ClockTime>,
}

impl Masks {
    /// Drops the masks after a flush.
    pub fn flush(&mut self) {
        (self.newest, self.ahead, self.waiting) = (None, None, None);
    }

    /// The frame's mask, and whether no other mask can come for it. The mask is the newest one that
    /// has begun at the frame's time, if it covers the frame. Removes earlier masks from the pad.
    /// Calls `warn` for masks without a time.
    pub fn of_frame(
        &mut self,
        frame: TimeSpan,
        pad: &gst_base::AggregatorPad,
        warn: impl Fn(&str),
    ) -> (Option<TimedMask>, bool) {
        let is_new = self.waiting.replace(frame.start) != Some(frame.start);
        // A mask that was far ahead, and is not any more.
        let ahead = self.ahead.take_if(|mask| !mask.time.is_far_ahead(frame));
        if let Some(mask) = ahead {
            if !mask.time.has_begun(frame) {
                self.ahead = Some(mask);
                return (None, true);
            }
            self.newest = Some(mask);
        }
        let is_final = loop {
            let Some(buffer) = pad.peek_buffer() else {
                // After a mask with the frame's own time, the next one belongs to a later frame.
                let is_same = (self.newest.as_ref()).is_some_and(|mask| mask.time.is_same(frame));
                break is_same || self.ahead.is_some() || pad.is_eos();
            };
            match self.timed(pad, buffer) {
                None => warn("a mask without caps or without a timestamp in its segment"),
                Some(mask) if mask.time.is_far_ahead(frame) => {
                    warn("a mask lies more than ten seconds ahead of the frames");
                    self.ahead = Some(mask);
                }
                Some(mask) if !mask.time.has_begun(frame) => break true,
                // Masks come for other times than the frame's.
                Some(mask) if !is_new && frame.is_far_ahead(mask.time) => {
                    warn("a frame lies more than ten seconds ahead of the masks");
                    // The mask may belong to the next frame.
                    return (None, true);
                }
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
        // The next frame may have an earlier time again.
        self.newest
            .take_if(|mask| !mask.time.covers(frame) && !frame.is_far_ahead(mask.time));
        let mask = self.newest.as_ref().filter(|mask| mask.time.covers(frame));
        (mask.cloned(), is_final)
    }

    fn timed(&self, pad: &gst_base::AggregatorPad, buffer: gst::Buffer) -> Option<TimedMask> {
        let segment = pad.segment();
        let segment = segment.downcast_ref::<gst::ClockTime>()?;
        Some(TimedMask {
            time: TimeSpan {
                start: running_time(segment, &buffer)?,
                duration: buffer.duration(),
            },
            format: self.format.clone()?,
            buffer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: gst::ClockTime = gst::ClockTime::USECOND;

    /// Whether a mask (start, duration) covers a frame (start, duration); us, 0 = unknown.
    fn covers(mask: [u64; 2], frame: [u64; 2]) -> bool {
        let [mask, frame] = [mask, frame].map(|[start, duration]| TimeSpan {
            start: US * start,
            duration: (duration > 0).then(|| US * duration),
        });
        // A mask that covers a frame has begun.
        assert!(mask.has_begun(frame) || !mask.covers(frame));
        mask.covers(frame)
    }

    #[test]
    fn masks_cover_frames_of_their_time_and_while_they_last() {
        for (mask, frame, wanted) in [
            ([40_000, 0], [40_000, 0], true),
            // Rounded to a millisecond in transit.
            ([40_000, 0], [41_000, 0], true),
            ([41_000, 0], [40_000, 0], true),
            ([40_000, 0], [41_001, 0], false),
            ([40_000, 0], [38_999, 0], false),
            // One mask for three frames.
            ([0, 100_000], [33_333, 33_333], true),
            ([0, 100_000], [66_666, 33_333], true),
            ([0, 100_000], [100_000, 33_333], false),
            // A rounded end does not reach the next frame.
            ([0, 33_334], [33_333, 33_333], false),
            ([0, 100_000], [99_999, 33_333], false),
            // 2000 frames a second.
            ([0, 500], [500, 500], false),
            ([500, 500], [0, 500], false),
            ([500, 0], [400, 500], true),
            ([500, 0], [300, 500], false),
        ] {
            assert_eq!(covers(mask, frame), wanted, "{mask:?} {frame:?}");
        }
    }
}
