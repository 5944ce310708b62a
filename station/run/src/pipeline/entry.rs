//! The camera's frames before the elements that change them: recordings and the set-up need these.

use std::{collections::VecDeque, sync::Arc};

use gst::prelude::*;
use machine::locks::Mutex;

use crate::{frame::Frame, state::Camera};

/// Most bytes of frames that wait for their results.
const WAITING_BYTES: usize = 256 << 20;

/// The frames that have entered the inspection and have no results yet.
#[derive(Default)]
pub struct Entry {
    waiting: Mutex<WaitingFrames>,
}

#[derive(Default)]
struct WaitingFrames {
    info: Option<gst_video::VideoInfo>,
    frames: VecDeque<gst::Buffer>,
}

/// How a frame is kept until its results come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepMode {
    /// Not at all: the frame behind the analyzer has the same pixels.
    No,
    /// As it is: it is needed for a moment.
    Reference,
    /// As a copy: an analyzer of webs holds strips, and a camera has few buffers.
    Copy,
}

impl Entry {
    /// Watches the pad before the first element that inspects. The camera's tap gets frames there.
    pub fn watch(pad: &gst::Pad, camera: &Arc<Camera>, keep: KeepMode) -> Arc<Self> {
        let entry = Arc::new(Self::default());
        let (mine, camera) = (entry.clone(), camera.clone());
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        pad.add_probe(kinds, move |_, info| {
            match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => {
                    let mut waiting = mine.waiting.lock();
                    if let Some(info) = &waiting.info {
                        camera.tap.offer(buffer, info);
                    }
                    waiting.keep(buffer, keep);
                }
                Some(gst::PadProbeData::Event(event)) => {
                    if let gst::EventView::Caps(caps) = event.view() {
                        let mut waiting = mine.waiting.lock();
                        waiting.info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                        waiting.frames.clear();
                    }
                }
                _ => {}
            }
            gst::PadProbeReturn::Ok
        });
        entry
    }

    /// The frame whose results have this timestamp, as it came; `None` if it is not kept. Frames before it are
    /// forgotten: they got no results.
    pub fn take(&self, pts: Option<gst::ClockTime>) -> Option<(gst::Buffer, gst_video::VideoInfo)> {
        let mut waiting = self.waiting.lock();
        let at = waiting.frames.iter().position(|frame| frame.pts() == pts)?;
        waiting.frames.drain(..at);
        let frame = waiting.frames.pop_front()?;
        Some((frame, waiting.info.clone()?))
    }
}

impl WaitingFrames {
    fn keep(&mut self, buffer: &gst::Buffer, keep: KeepMode) {
        let kept = match (keep, &self.info) {
            (KeepMode::Reference, _) => buffer.clone(),
            (KeepMode::Copy, Some(info)) => match Frame::copy_of(buffer, info) {
                Ok(copy) => copy.into_buffer(buffer.pts()),
                Err(_) => return,
            },
            _ => return,
        };
        self.frames.push_back(kept);
        let mut bytes: usize = self.frames.iter().map(|frame| frame.size()).sum();
        while bytes > WAITING_BYTES && self.frames.len() > 1 {
            bytes -= self.frames.pop_front().map_or(0, |frame| frame.size());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pts: u64) -> gst::Buffer {
        let mut buffer = gst::Buffer::from_mut_slice(vec![u8::try_from(pts).unwrap_or(0); 64]);
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(gst::ClockTime::from_mseconds(pts));
        }
        buffer
    }

    #[test]
    fn results_get_the_frame_of_their_time_and_later_frames_wait_on() {
        gst::init().expect("GStreamer");
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 8, 8);
        let entry = Entry::default();
        entry.waiting.lock().info = info.build().ok();
        for keep in [KeepMode::Reference, KeepMode::Copy] {
            for pts in 1..=4 {
                entry.waiting.lock().keep(&frame(pts), keep);
            }
            let take = |pts: u64| {
                let (buffer, _) = entry.take(Some(gst::ClockTime::from_mseconds(pts)))?;
                let map = buffer.map_readable().ok()?;
                map.first().copied()
            };
            assert_eq!(take(2), Some(2), "{keep:?}");
            assert_eq!(take(1), None, "frames before it are forgotten");
            assert_eq!(take(3), Some(3));
            assert_eq!(take(4), Some(4));
            assert_eq!(entry.waiting.lock().frames.len(), 0);
        }
    }

    #[test]
    fn frames_that_never_get_results_are_bounded() {
        gst::init().expect("GStreamer");
        let mut waiting = WaitingFrames::default();
        let large = gst::Buffer::with_size(WAITING_BYTES / 4).expect("memory");
        for _ in 0..10 {
            waiting.keep(&large, KeepMode::Reference);
        }
        assert_eq!(waiting.frames.len(), 4);
    }
}
