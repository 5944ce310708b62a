//! Matches masks with frames by time.

/// Timestamps at most this far apart count as equal, unless durations show that frames are closer:
/// containers and networks round to milliseconds.
const TOLERANCE: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// The running time of a mask or a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub start: gst::ClockTime,
    /// How long the mask is valid, or the frame is shown.
    pub duration: Option<gst::ClockTime>,
}

/// Comparisons of a mask's time with a frame's time.
impl Span {
    fn tolerance(&self, frame: Self) -> gst::ClockTime {
        let shorter = [self.duration, frame.duration].into_iter().flatten().min();
        shorter.map_or(TOLERANCE, |duration| TOLERANCE.min(duration / 4))
    }

    /// Whether the mask starts at or before the frame.
    pub fn has_begun(&self, frame: Self) -> bool {
        self.start <= frame.start.saturating_add(self.tolerance(frame))
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

#[cfg(test)]
mod tests {
    use super::*;

    const US: gst::ClockTime = gst::ClockTime::USECOND;

    /// Whether a mask (start, duration) covers a frame (start, duration); us, 0 = unknown.
    fn covers(mask: [u64; 2], frame: [u64; 2]) -> bool {
        let [mask, frame] = [mask, frame].map(|[start, duration]| Span {
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
