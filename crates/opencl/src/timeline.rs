//! The steps of a frame in the order in which the device executed them.

use std::{collections::VecDeque, sync::Arc};

use super::{event::Event, meter::Step};

/// Frames that are remembered: a `queue` after the element may hold as many before one is read.
const FRAMES: usize = 16;
/// Commands of a frame that are remembered.
const STEPS: usize = 16;
/// Uploads that are remembered until a kernel reads the frame.
const UPLOADS: usize = 64;

/// When a step of a frame was executed, in nanoseconds from the start of the frame's first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    /// The step.
    pub step: Step,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// From the end of the steps before it to its start; 0 if the steps overlap.
    pub gap_ns: u64,
    /// Bytes processed or moved.
    pub bytes: u64,
}

/// The steps of one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameTimeline {
    /// The steps, by their start.
    pub steps: Vec<StepSpan>,
    /// From the start of the first step to the end of the last one, ns.
    pub total_ns: u64,
}

impl FrameTimeline {
    /// The timeline of a frame; `None` while a command runs, and if the driver knows no times.
    pub(super) fn of(frame: &Frame) -> Option<Self> {
        let spans = frame.iter().map(|command| {
            if !command.last.has_ended() {
                return None;
            }
            let span = command.first.span_until_ns(&command.last)?;
            Some((command.step, span, command.bytes))
        });
        Self::from_spans(spans.collect::<Option<Vec<_>>>()?)
    }

    /// The timeline of steps with their start and end on the device's clock.
    fn from_spans(mut spans: Vec<(Step, [u64; 2], u64)>) -> Option<Self> {
        spans.sort_by_key(|(_, [start, _], _)| *start);
        let (_, [origin, _], _) = *spans.first()?;
        let mut total_ns = 0;
        let steps = spans
            .into_iter()
            .map(|(step, span, bytes)| {
                let [start_ns, end_ns] = span.map(|time| time - origin);
                let gap_ns = start_ns.saturating_sub(total_ns);
                total_ns = total_ns.max(end_ns);
                StepSpan {
                    step,
                    start_ns,
                    end_ns,
                    gap_ns,
                    bytes,
                }
            })
            .collect();
        Some(Self { steps, total_ns })
    }
}

/// The commands of one step, in one queue.
#[derive(Debug, Clone)]
pub(super) struct Command {
    step: Step,
    first: Arc<Event>,
    last: Arc<Event>,
    bytes: u64,
}

/// The commands of one frame.
pub(super) type Frame = Vec<Command>;

/// The commands of the last frames.
///
/// Uploads and downloads may be made by other threads, before or after this element's work on the
/// frame. An upload belongs to the frame whose kernels wait for it, a download to the frame
/// whose kernels wrote the memory.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The first and the last command, and the bytes.
    uploads: VecDeque<([Arc<Event>; 2], usize)>,
    frames: VecDeque<Frame>,
}

impl Timeline {
    /// The commands that follow belong to the next frame.
    pub fn begin_frame(&mut self) {
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(Frame::new());
    }

    /// Notes an upload by the commands from `first` to `last`; its frame is not known yet.
    pub fn uploaded(&mut self, [first, last]: [&Arc<Event>; 2], bytes: usize) {
        if self.uploads.len() == UPLOADS {
            self.uploads.pop_front();
        }
        self.uploads
            .push_back(([first.clone(), last.clone()], bytes));
    }

    /// Notes kernels of the newest frame, and the uploads that they waited for.
    pub fn computed(
        &mut self,
        [first, last]: [&Arc<Event>; 2],
        waited: &[Arc<Event>],
        bytes: usize,
    ) {
        let mut uploads = Vec::new();
        self.uploads.retain(|upload| {
            let ([first, last], _) = upload;
            // Kernels wait for the part that they read.
            let is_read = waited.iter().any(|event| event.is_between(first, last));
            if is_read {
                uploads.push(upload.clone());
            }
            !is_read
        });
        let Some(frame) = self.frames.back_mut() else {
            return;
        };
        for ([first, last], bytes) in uploads {
            add(frame, Step::Upload, [&first, &last], bytes);
        }
        add(frame, Step::Kernel, [first, last], bytes);
    }

    /// Notes that the result of the newest frame was read.
    pub fn read(&mut self, event: &Arc<Event>, bytes: usize) {
        if let Some(frame) = self.frames.back_mut() {
            add(frame, Step::Download, [event, event], bytes);
        }
    }

    /// Notes that memory which `writer` wrote was moved to the host.
    pub fn downloaded(&mut self, event: &Arc<Event>, writer: Option<&Arc<Event>>, bytes: usize) {
        let Some(writer) = writer else {
            return;
        };
        let wrote = |command: &Command| {
            command.step == Step::Kernel && writer.is_between(&command.first, &command.last)
        };
        let mut frames = self.frames.iter_mut().rev();
        if let Some(frame) = frames.find(|frame| frame.iter().any(wrote)) {
            add(frame, Step::Download, [event, event], bytes);
        }
    }

    /// The commands of the frames, from the newest one.
    pub fn newest_first(&self) -> Vec<Frame> {
        self.frames.iter().rev().cloned().collect()
    }
}

fn add(frame: &mut Frame, step: Step, [first, last]: [&Arc<Event>; 2], bytes: usize) {
    if frame.len() < STEPS {
        frame.push(Command {
            step,
            first: first.clone(),
            last: last.clone(),
            bytes: bytes as u64,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameTimeline, Step, StepSpan};

    #[test]
    fn timeline_counts_from_the_first_start_and_shows_gaps() {
        let spans = vec![
            (Step::Kernel, [1_000_150, 1_000_400], 64),
            (Step::Upload, [1_000_000, 1_000_100], 64),
            // This step overlaps the kernel and ends before it.
            (Step::Download, [1_000_300, 1_000_350], 4),
            (Step::Download, [1_000_410, 1_000_500], 8),
        ];
        let span = |step, start_ns, end_ns, gap_ns, bytes| StepSpan {
            step,
            start_ns,
            end_ns,
            gap_ns,
            bytes,
        };
        let expected = FrameTimeline {
            steps: vec![
                span(Step::Upload, 0, 100, 0, 64),
                span(Step::Kernel, 150, 400, 50, 64),
                span(Step::Download, 300, 350, 0, 4),
                span(Step::Download, 410, 500, 10, 8),
            ],
            total_ns: 500,
        };
        assert_eq!(FrameTimeline::from_spans(spans), Some(expected));
        assert_eq!(FrameTimeline::from_spans(Vec::new()), None);
    }
}
