//! The frames in the pipeline: their numbers, and when they came and went.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Records when frames came and went, and numbers them so that results can be matched.
#[derive(Debug, Clone, Default)]
pub struct Passages(Arc<Mutex<Under>>);

#[derive(Debug, Default)]
struct Under {
    /// Whether to keep the frames of the source until their results come.
    keeps_originals: bool,
    next: u64,
    /// Offset of the last frame as the source set it.
    offset: Option<u64>,
    last_entered: Option<Instant>,
    frames: BTreeMap<u64, Passage>,
}

/// One frame in the pipeline.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The frame as the source sent it, if originals are kept.
    pub original: Option<gst::Buffer>,
    /// When the frame reached clgaussian.
    pub entered: Instant,
    /// When the frame's last result came.
    pub left: Option<Instant>,
}

impl Passages {
    /// Numbers frames from 0; with `keeps_originals` each passage holds the source's frame.
    pub fn new(keeps_originals: bool) -> Self {
        Self(Arc::new(Mutex::new(Under {
            keeps_originals,
            ..Under::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Under> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a frame last reached clgaussian.
    pub fn last_entered(&self) -> Option<Instant> {
        self.lock().last_entered
    }

    /// Forgets frames whose results will not come; returns their count. Numbering continues.
    pub fn forget(&self) -> u64 {
        let mut under = self.lock();
        under.last_entered = None;
        under.offset = None;
        std::mem::take(&mut under.frames).len() as u64
    }

    /// Numbers a frame that reaches clgaussian.
    pub fn enter(&self, buffer: &mut gst::Buffer) {
        let mut under = self.lock();
        let now = Instant::now();
        let number = under.next;
        let offset = Some(buffer.offset()).filter(|&at| at != gst::ffi::GST_BUFFER_OFFSET_NONE);
        // A gap in the source's numbers ends a web; it would not be seen in ours.
        if let (Some(before), Some(offset)) = (under.offset, offset)
            && before.checked_add(1) != Some(offset)
        {
            buffer.make_mut().set_flags(gst::BufferFlags::DISCONT);
        }
        under.offset = offset;
        // Frames that this program made have their number already; setting it would copy them.
        if buffer.offset() != number {
            buffer.make_mut().set_offset(number);
        }
        let original = under.keeps_originals.then(|| buffer.clone());
        under.next += 1;
        under.last_entered = Some(now);
        under.frames.insert(
            number,
            Passage {
                original,
                entered: now,
                left: None,
            },
        );
    }

    /// Notes that a result of the frame came.
    pub fn leave(&self, number: u64) {
        if let Some(passage) = self.lock().frames.get_mut(&number) {
            passage.left = Some(Instant::now());
        }
    }

    /// Removes and returns a frame's passage.
    pub fn take(&self, number: u64) -> Option<Passage> {
        self.lock().frames.remove(&number)
    }
}

impl Passage {
    /// Time from entering to the last result.
    pub fn latency(&self) -> Duration {
        self.left.map_or(Duration::ZERO, |left| left - self.entered)
    }
}
