//! Masks that came before their frames, and frames that wait for their masks.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::matching::{FrameTime, TimedMask};

/// Masks that are kept; one more blocks its sender.
pub(super) const CAPACITY: usize = 8;
/// How often a blocked sender looks whether frames still go on.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct State {
    masks: VecDeque<TimedMask>,
    /// No mask of an earlier running time is to come.
    reached: Option<gst::ClockTime>,
    /// The mask stream has ended.
    eos: bool,
    /// The mask pad takes nothing.
    pad_closed: bool,
    /// Frames are not to wait.
    frames_closed: bool,
    /// Seeks that have not reached both streams yet.
    seeks: usize,
    /// A frame waited in vain, and nothing has come since.
    silent: bool,
    /// A frame is on its way through the element or downstream of it.
    frame_under_way: bool,
    /// No frame comes any more.
    frames_over: bool,
}

impl State {
    fn clear(&mut self) {
        self.masks.clear();
        self.reached = None;
        self.eos = false;
        self.silent = false;
    }

    /// Takes away what no frame from here on needs; whether anything went.
    fn forget_before(&mut self, frame: FrameTime) -> bool {
        let before = self.masks.len();
        while let Some(first) = self.masks.front() {
            let next_holds = self.masks.get(1).is_some_and(|next| next.has_begun(frame));
            let is_over = first.has_begun(frame) && !first.covers(frame);
            if !next_holds && !is_over {
                break;
            }
            self.masks.pop_front();
        }
        self.masks.len() != before
    }
}

/// Masks between the thread that brings them and the one that shows them.
#[derive(Debug, Default)]
pub(super) struct MaskQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl MaskQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Adds a mask. Where there are [`CAPACITY`] it waits; where meanwhile no frame comes for
    /// `patience`, the oldest mask goes: what blocks here may be what holds the frames up.
    /// `frames_have_failed` tells whether the frames' way downstream is closed.
    ///
    /// # Errors
    /// The pad takes nothing, or the stream had ended.
    pub fn push(
        &self,
        mask: TimedMask,
        patience: Duration,
        frames_have_failed: impl Fn() -> bool,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut state = self.lock();
        let mut since = Instant::now();
        while state.masks.len() >= CAPACITY && !state.pad_closed {
            let rest = if state.frame_under_way && !frames_have_failed() {
                since = Instant::now();
                LOOK
            } else {
                patience.saturating_sub(since.elapsed())
            };
            if rest.is_zero() {
                state.masks.pop_front();
                break;
            }
            let waited = self.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.pad_closed {
            return Err(gst::FlowError::Flushing);
        }
        if state.eos {
            return Err(gst::FlowError::Eos);
        }
        state.reached = Some(mask.start);
        state.silent = false;
        if !state.frames_over {
            state.masks.push_back(mask);
        }
        drop(state);
        self.changed.notify_all();
        Ok(gst::FlowSuccess::Ok)
    }

    /// The mask of a frame, waited for until it comes, until it is known that it will not come,
    /// or for at most `limit`.
    pub fn take(&self, frame: FrameTime, limit: Duration) -> Option<TimedMask> {
        let begin = Instant::now();
        let mut state = self.lock();
        loop {
            if state.frames_closed {
                return None;
            }
            // Until both streams are at the new place, what is known is of the old one.
            if state.seeks == 0 {
                if state.pad_closed {
                    return None;
                }
                if state.forget_before(frame) {
                    self.changed.notify_all();
                }
                if let Some(first) = state.masks.front() {
                    return first.covers(frame).then(|| first.clone());
                }
                let is_over = state.reached.is_some_and(|reached| reached > frame.start);
                if is_over || state.eos || state.silent {
                    return None;
                }
            }
            let Some(rest) = limit.checked_sub(begin.elapsed()).filter(|r| !r.is_zero()) else {
                state.silent = true;
                return None;
            };
            let waited = self.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A seek is on its way to the streams; frames wait until it has reached both.
    pub fn begin_seek(&self) {
        self.change(|state| state.seeks += 1);
    }

    /// A seek has reached the streams.
    pub fn end_seek(&self) {
        self.change(|state| state.seeks = state.seeks.saturating_sub(1));
    }

    /// No mask comes before this running time.
    pub fn skip_to(&self, time: gst::ClockTime) {
        self.change(|state| {
            state.reached = state.reached.max(Some(time));
            state.silent = false;
        });
    }

    /// No mask comes any more.
    pub fn end(&self) {
        self.change(|state| state.eos = true);
    }

    /// A stream of masks begins, after an end too.
    pub fn begin(&self) {
        self.change(|state| state.eos = false);
    }

    /// The pad takes masks from here on, or none; what was there is gone.
    pub fn open_pad(&self, open: bool) {
        self.change(|state| {
            state.clear();
            state.pad_closed = !open;
        });
    }

    /// Frames may wait from here on, or none may.
    pub fn open_frames(&self, open: bool) {
        self.change(|state| state.frames_closed = !open);
    }

    /// Frames begin anew: masks of earlier ones are gone.
    pub fn restart_frames(&self) {
        self.change(|state| {
            state.masks.clear();
            state.reached = None;
            state.silent = false;
            state.frames_closed = false;
            state.frame_under_way = false;
            state.frames_over = false;
        });
    }

    /// Frames have ended, and masks are of no use; or they begin.
    pub fn set_frames_over(&self, over: bool) {
        self.change(|state| {
            state.frames_over = over;
            if over {
                state.masks.clear();
            }
        });
    }

    /// Whether a frame is on its way through the element or downstream of it.
    pub fn set_frame_under_way(&self, under_way: bool) {
        self.change(|state| state.frame_under_way = under_way);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::inspect_overlay::bits::MaskFormat;

    /// What ends a wait, and its name.
    type Waker = (&'static str, fn(&MaskQueue));

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(30);

    fn ms(n: u64) -> gst::ClockTime {
        gst::ClockTime::from_mseconds(n)
    }

    fn mask(start: gst::ClockTime, duration: Option<gst::ClockTime>) -> TimedMask {
        gst::init().ok();
        TimedMask {
            start,
            duration,
            format: MaskFormat::packed(1, 1, 1),
            buffer: gst::Buffer::new(),
        }
    }

    fn push(
        queue: &MaskQueue,
        mask: TimedMask,
        patience: Duration,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        queue.push(mask, patience, || false)
    }

    fn at(start: gst::ClockTime) -> FrameTime {
        FrameTime {
            start,
            duration: None,
        }
    }

    /// When the mask that a frame gets is of.
    fn taken(queue: &MaskQueue, frame: gst::ClockTime) -> Option<gst::ClockTime> {
        queue.take(at(frame), SHORT).map(|mask| mask.start)
    }

    #[test]
    fn frames_get_masks_of_their_own_time() {
        let queue = MaskQueue::default();
        for n in [0, 40, 120] {
            assert!(push(&queue, mask(ms(n), None), SHORT).is_ok());
        }
        assert_eq!(taken(&queue, ms(0)), Some(ms(0)));
        assert_eq!(taken(&queue, ms(41)), Some(ms(40)));
        // Left out by its sender; the next one is there.
        assert_eq!(taken(&queue, ms(80)), None);
        assert_eq!(taken(&queue, ms(120)), Some(ms(120)));
    }

    #[test]
    fn of_masks_that_overlap_the_newer_holds_once_it_has_begun() {
        let queue = MaskQueue::default();
        // The first says that it holds for longer than it does.
        for n in [0, 40] {
            assert!(push(&queue, mask(ms(n), Some(ms(1000))), SHORT).is_ok());
        }
        assert_eq!(taken(&queue, ms(20)), Some(ms(0)));
        assert_eq!(taken(&queue, ms(60)), Some(ms(40)));
    }

    #[test]
    fn mask_that_lasts_holds_for_several_frames_until_the_next() {
        let queue = MaskQueue::default();
        let lasting = |n| mask(ms(n), Some(ms(100)));
        assert!(push(&queue, lasting(0), SHORT).is_ok());
        for n in [0, 33, 66] {
            assert_eq!(taken(&queue, ms(n)), Some(ms(0)), "{n}");
        }
        assert!(push(&queue, lasting(100), SHORT).is_ok());
        assert_eq!(taken(&queue, ms(100)), Some(ms(100)));
        assert_eq!(taken(&queue, ms(133)), Some(ms(100)));
    }

    #[test]
    fn silent_sender_is_waited_for_once() {
        let queue = MaskQueue::default();
        let begin = Instant::now();
        assert_eq!(taken(&queue, ms(0)), None);
        assert!(begin.elapsed() >= SHORT);
        let begin = Instant::now();
        for n in 1..100 {
            assert_eq!(taken(&queue, ms(n)), None);
        }
        assert!(begin.elapsed() < 50 * SHORT);
        assert!(push(&queue, mask(ms(100), None), SHORT).is_ok());
        assert_eq!(taken(&queue, ms(100)), Some(ms(100)));
        let begin = Instant::now();
        assert_eq!(taken(&queue, ms(200)), None);
        assert!(begin.elapsed() >= SHORT);
    }

    #[test]
    fn full_queue_blocks_while_a_frame_is_under_way_and_else_drops_the_oldest() {
        let queue = Arc::new(MaskQueue::default());
        let send = |n: u64| assert!(push(&queue, mask(ms(10 * n), None), SHORT).is_ok());
        for n in 0..CAPACITY as u64 {
            send(n);
        }
        let begin = Instant::now();
        send(CAPACITY as u64);
        assert!(begin.elapsed() >= SHORT);
        assert_eq!(taken(&queue, ms(0)), None);

        queue.set_frame_under_way(true);
        let sender = queue.clone();
        let pushed = std::thread::spawn(move || {
            let mask = mask(ms(10 * (CAPACITY as u64 + 1)), None);
            push(&sender, mask, SHORT)
        });
        std::thread::sleep(4 * SHORT);
        assert!(!pushed.is_finished());
        // A later frame makes room.
        assert_eq!(taken(&queue, ms(20)), Some(ms(20)));
        assert!(matches!(pushed.join(), Ok(Ok(_))));
    }

    #[test]
    fn everything_that_ends_a_wait_wakes_it() {
        let wakes: [Waker; 5] = [
            ("end of stream", |queue| queue.end()),
            ("a gap", |queue| queue.skip_to(ms(40))),
            ("a closed pad", |queue| queue.open_pad(false)),
            ("a stop", |queue| queue.open_frames(false)),
            ("a later mask", |queue| {
                assert!(push(queue, mask(ms(40), None), SHORT).is_ok());
            }),
        ];
        for (what, wake) in wakes {
            let queue = Arc::new(MaskQueue::default());
            let waiting = queue.clone();
            let frame = std::thread::spawn(move || waiting.take(at(ms(20)), LONG).is_none());
            std::thread::sleep(SHORT);
            let begin = Instant::now();
            wake(&queue);
            assert!(matches!(frame.join(), Ok(true)), "{what}");
            assert!(begin.elapsed() < LONG / 4, "{what}");
        }
    }

    #[test]
    fn closed_pad_and_the_end_of_frames_free_a_blocked_sender_at_once() {
        type End = (fn(&MaskQueue), Result<gst::FlowSuccess, gst::FlowError>);
        let ends: [End; 2] = [
            (|queue| queue.open_pad(false), Err(gst::FlowError::Flushing)),
            (
                |queue| queue.set_frames_over(true),
                Ok(gst::FlowSuccess::Ok),
            ),
        ];
        for (end, wanted) in ends {
            let queue = Arc::new(MaskQueue::default());
            for n in 0..CAPACITY as u64 {
                assert!(push(&queue, mask(ms(n), None), LONG).is_ok());
            }
            let sender = queue.clone();
            let pushed = std::thread::spawn(move || push(&sender, mask(ms(99), None), LONG));
            std::thread::sleep(SHORT);
            assert!(!pushed.is_finished());
            let begin = Instant::now();
            end(&queue);
            assert_eq!(pushed.join().ok(), Some(wanted));
            assert!(begin.elapsed() < LONG / 4, "{wanted:?}");
        }
    }
}
