//! How strips of a web pass an element.

use gst::{prelude::*, subclass::prelude::*};
use gst_base::subclass::base_transform::InputBuffer;
use gst_base::{
    prelude::*,
    subclass::{base_transform::PrepareOutputBufferSuccess, prelude::*},
};

use super::{
    ClBaseFilterExt,
    imp::{ClBaseFilter, ForCaps, Running},
    stream::{Buffers, Frame, FrameStream, Learning, View, before_caps},
    web::{QueueEntry, Reason, Strip, Web},
};
use crate::elements::lock;
use clinspect_core::ClError;
use clinspect_opencl::frame::Importer;

impl ClBaseFilter {
    /// Adds a strip to the web, and sends the strips that it completes.
    pub(super) fn take_strip(
        &self,
        buffer: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let broken = self.with_web(|web| web.breaks(&buffer)).flatten();
        let mut lost = 0;
        if let Some((reason, buffers)) = broken {
            self.end_web(reason)?;
            lost = buffers;
        }
        lost += self.with_web(Web::take_skipped).unwrap_or(0);
        let added = self.with_strips(|stream, importer, web| {
            stream.follow(self.revision())?;
            let (reach, learning) = (stream.reach(), stream.learning());
            let keeps_memory = self.obj().is_in_place();
            let begun = web.add(importer, buffer, &reach, learning, keeps_memory)?;
            if begun.is_some() {
                stream.begin_web();
            }
            Ok(begun.map(|reason| (reason, web.number())))
        });
        let added = added.map_err(|error| {
            if matches!(error, ClError::Input(_)) {
                // The rows before are good: only this buffer cannot be read.
                let _ = self.end_web(Reason::Discont);
            }
            self.failed(&error, 1)
        })?;
        if let Some((reason, number)) = added {
            self.post_web(reason, number, lost);
        }
        let sent = self.send_ready(false);
        let released = self.with_web(Web::release_source).unwrap_or(Ok(()));
        self.post_latency();
        match released {
            // After this result an error was posted already.
            Err(error) if sent != Err(gst::FlowError::Error) => Err(self.failed(&error, 0)),
            _ => sent,
        }
    }

    /// The parent class dropped a strip because it was late: the one behind it does not continue the web.
    pub(super) fn skip_strip(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.with_web(Web::skip);
        self.end_web(Reason::Discont)
    }

    /// Ends the web: sends what is held. Strips behind one that downstream refuses are dropped.
    pub(super) fn end_web(&self, reason: Reason) -> Result<gst::FlowSuccess, gst::FlowError> {
        let sent = self.send_ready(true);
        for event in self.with_web(|web| web.end(reason)).unwrap_or_default() {
            self.parent_sink_event(event);
        }
        sent
    }

    /// What an event does to the web and what is held. Returns the event, unless it is held, and the events that
    /// go behind it.
    pub(super) fn pass_web(&self, event: gst::Event) -> (Option<gst::Event>, Vec<gst::Event>) {
        let ends = match event.view() {
            gst::EventView::Eos(_) | gst::EventView::StreamStart(_) => Some(Reason::Start),
            gst::EventView::Gap(gap) if gap.gap_flags().contains(gst::GapFlags::DATA) => {
                Some(Reason::Discont)
            }
            gst::EventView::FlushStop(_) => return (Some(event), self.flush_web()),
            gst::EventView::Caps(_) => return (Some(event), Vec::new()),
            _ => None,
        };
        match ends {
            None => (self.hold(event), Vec::new()),
            Some(reason) => {
                // The failure of a push is upstream's to see at its next buffer.
                let _ = self.end_web(reason);
                (Some(event), Vec::new())
            }
        }
    }

    /// Drops what is held, and returns the events that outlive a flush.
    fn flush_web(&self) -> Vec<gst::Event> {
        let mut events = (self.with_web(|web| web.end(Reason::Flush))).unwrap_or_default();
        events.retain(|event| event.is_sticky() && event.type_() != gst::EventType::Segment);
        events
    }

    /// Holds an event if strips are held before it; returns it otherwise.
    fn hold(&self, event: gst::Event) -> Option<gst::Event> {
        if !event.is_serialized() {
            return Some(event);
        }
        // Only the streaming thread, which brings serialized events, changes what is held.
        if self.with_web(|web| web.holds()) != Some(true) {
            return Some(event);
        }
        self.with_web(|web| web.hold_event(event));
        None
    }

    /// Prepares for a query that waits until all data is consumed downstream; returns whether strips remain,
    /// whose rows from below have not come. Sources ask to have their memory back, so that is given.
    pub(super) fn drain_web(&self) -> bool {
        let holds = self.with_web(|web| {
            web.give_memory_back();
            web.holds()
        });
        holds == Some(true)
    }

    /// Posts the message that the latency has changed, if the number of held strips has.
    pub(super) fn post_latency(&self) {
        let now = self.held_frames().filter(|(frames, _)| *frames > 0);
        // Compiling kernels occupies the stream for seconds, so queries read a copy.
        if std::mem::replace(&mut *lock(&self.delay), now) != now {
            self.obj()
                .post(gst::message::Latency::builder().src(&*self.obj()).build());
        }
    }

    /// Frames by which the held strips delay the stream.
    fn held_frames(&self) -> Option<(u64, gst::Fraction)> {
        let running = lock(&self.running);
        let Running {
            stream, for_caps, ..
        } = running.as_ref()?;
        let ForCaps { importer, web, .. } = for_caps.as_ref()?;
        let held = web.as_ref()?.most_held(&stream.reach(), stream.learning());
        Some((held, importer.info().fps()))
    }

    fn with_web<R>(&self, act: impl FnOnce(&mut Web) -> R) -> Option<R> {
        let mut running = lock(&self.running);
        let (_, for_caps) = running.as_mut()?.parts().ok()?;
        for_caps.web.as_mut().map(act)
    }

    /// Calls `act` with the subclass's part, the importer of strips and the web.
    fn with_strips<R>(
        &self,
        act: impl FnOnce(&mut dyn FrameStream, &mut Importer, &mut Web) -> Result<R, ClError>,
    ) -> Result<R, ClError> {
        self.with_running(|running| {
            let (stream, ForCaps { importer, web, .. }) = running.parts()?;
            act(stream, importer, web.as_mut().ok_or_else(before_caps)?)
        })
    }

    /// Posts an error, and ends the web: the rows or the defects of a strip are missing. `strips` are lost beside
    /// those that are held.
    fn failed(&self, error: &ClError, strips: u64) -> gst::FlowError {
        self.faults.post(&self.obj(), error, self.task());
        self.lose_web(strips);
        gst::FlowError::Error
    }

    /// Ends the web without the strips that are held, and without `strips` more.
    fn lose_web(&self, strips: u64) {
        for event in self.with_web(|web| web.fail(strips)).unwrap_or_default() {
            self.parent_sink_event(event);
        }
    }

    /// Sends the strips and events whose time has come, in order.
    fn send_ready(&self, ends: bool) -> Result<gst::FlowSuccess, gst::FlowError> {
        loop {
            match self.next(ends)? {
                None => return Ok(gst::FlowSuccess::Ok),
                Some(QueueEntry::Event(event)) => {
                    self.parent_sink_event(event);
                }
                Some(QueueEntry::Strip(strip)) => {
                    self.send_strip(strip, ends)?;
                }
            }
        }
    }

    fn next(&self, ends: bool) -> Result<Option<QueueEntry>, gst::FlowError> {
        if self.with_web(|web| web.holds()) != Some(true) {
            return Ok(None);
        }
        let next = self.with_strips(|stream, importer, web| {
            if stream.learning() != Learning::Off
                && let Some((frame, rows)) = web.learn_from(ends)?
            {
                stream.learn(&View {
                    frame: &frame,
                    rows,
                    is_web: true,
                    meter: importer.meter(),
                })?;
            }
            Ok(web.take(&stream.reach(), ends, stream.learning()))
        });
        next.map_err(|error| self.failed(&error, 0))
    }

    fn send_strip(&self, mut strip: Strip, ends: bool) -> Result<gst::FlowSuccess, gst::FlowError> {
        let output = if self.obj().is_in_place() {
            let mut buffer = std::mem::take(&mut strip.buffer);
            let event = self.process_strip(&strip, Buffers::InPlace(buffer.make_mut()), ends)?;
            self.push_event(event);
            buffer
        } else {
            let prepared = self.prepare_output_buffer(InputBuffer::Readable(&strip.buffer));
            let Ok(PrepareOutputBufferSuccess::Buffer(mut output)) = prepared else {
                // The error was posted; without its strip the web cannot go on.
                self.lose_web(1);
                return Err(prepared.err().unwrap_or(gst::FlowError::Error));
            };
            let buffers = Buffers::Pair(&strip.buffer, output.make_mut());
            let event = self.process_strip(&strip, buffers, ends)?;
            self.push_event(event);
            output
        };
        self.obj().src_pad().push(output)
    }

    fn process_strip(
        &self,
        strip: &Strip,
        buffers: Buffers,
        ends: bool,
    ) -> Result<Option<gst::Event>, gst::FlowError> {
        self.count_flags(buffers.input());
        let done = self.with_strips(|stream, importer, web| {
            let (input, window) = web.around(strip, &stream.reach(), ends)?;
            let mut frame = Frame::new(input, window, importer, buffers);
            frame.web = web.number();
            frame.is_corrupted = web.is_corrupted(window.web_row, window.height);
            if frame.is_corrupted {
                frame.output().set_flags(gst::BufferFlags::CORRUPTED);
            }
            stream.process(&mut frame)
        });
        done.map_err(|error| self.failed(&error, 1))
    }

    /// Posts a message that a web begins.
    fn post_web(&self, reason: Reason, number: u64, lost: u64) {
        let element = self.obj();
        let factory = element
            .factory()
            .map_or_else(String::new, |factory| factory.name().into());
        let fields = gst::Structure::builder(format!("{factory}-web"))
            .field("web", number)
            .field("reason", reason.name())
            .field("lost-buffers", lost)
            .build();
        element.post(
            gst::message::Element::builder(fields)
                .src(&*element)
                .build(),
        );
    }
}
