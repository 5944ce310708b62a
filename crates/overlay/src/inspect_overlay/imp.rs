//! Implementation of `inspectoverlay`: waits for masks, draws on frames.

use std::{
    ops::ControlFlow,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{AGGREGATOR_FLOW_NEED_DATA, AggregatorPad, prelude::*, subclass::prelude::*};

use super::{
    masks::{self, Masks, TimeSpan, TimedMask, running_time},
    output::Output,
    painter, planes,
    properties::{self, Settings},
};

/// Latency that a mask pad adds to a live pipeline unless `latency` is set: the time for the
/// inspection.
const INSPECTION: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// A live frame waits this long and the latency at most, whatever its timestamp says.
const LONGEST_WAIT: gst::ClockTime = gst::ClockTime::from_seconds(1);

/// Flags of a pad that takes caps without a framerate, as filters of GstBaseTransform do: caps that fit the template are
/// enough, and need not have all of its fields.
const WITHOUT_RATE: gst::PadFlags = gst::PadFlags::ACCEPT_INTERSECT;

/// State of the streaming thread.
#[derive(Default)]
struct State {
    /// Caps of the frames.
    frames: Option<(gst::Caps, gst_video::VideoInfo)>,
    output: Option<Output>,
    masks: Masks,
}

/// Instance of `inspectoverlay`.
pub struct InspectOverlay {
    settings: Mutex<Settings>,
    state: Mutex<State>,
    /// The pad `sink`.
    frames: AggregatorPad,
    /// Running times: of the frame that waits, and of the clock when the frame was seen first.
    waits: Mutex<Option<[gst::ClockTime; 2]>>,
    /// Whether a warning was logged since the start; later ones are debug messages.
    warned: AtomicBool,
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectoverlay",
        gst::DebugColorFlags::empty(),
        Some("Inspection overlay"),
    )
});

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InspectOverlay {
    fn mask_pad(&self) -> Option<AggregatorPad> {
        self.obj().static_pad(masks::PAD)?.downcast().ok()
    }

    /// Logs why something is not drawn. The frames continue.
    fn warn(&self, why: &str) {
        if self.warned.swap(true, Ordering::Relaxed) {
            gst::debug!(CAT, imp = self, "not drawn: {why}");
        } else {
            gst::warning!(CAT, imp = self, "not drawn: {why}");
        }
    }

    /// Warns if only masks are linked. gst-launch-1.0 may link packed masks to the mask pad by
    /// itself, and the pipeline then never starts.
    fn warn_of_masks_alone(&self) {
        let has_masks = self.mask_pad().is_some_and(|pad| pad.is_linked());
        if has_masks && !self.frames.is_linked() {
            gst::element_imp_warning!(
                self,
                gst::CoreError::Pad,
                (
                    "{0}.mask is linked but {0}.sink is not: link the frames to {0}.sink too, \
                     or set output=frame at clpitchthreshold instead",
                    self.obj().name()
                )
            );
        }
    }

    /// Sets an unlinked mask pad to EOS, because GstAggregator waits for every pad that is not at
    /// EOS.
    fn end_unlinked(&self) {
        if let Some(pad) = self.mask_pad().filter(|pad| !pad.is_linked()) {
            self.parent_sink_event(&pad, gst::event::Eos::new());
        }
    }

    /// When the wait of a live frame ends: at its own time, which a wrong timestamp must not put off for long. A frame
    /// without a time does not wait.
    fn due(&self, frame: &gst::BufferRef) -> gst::ClockTime {
        let Some(time) = self.running_time(frame) else {
            return gst::ClockTime::ZERO;
        };
        let Some(now) = self.obj().current_running_time() else {
            return time;
        };
        let mut waits = lock(&self.waits);
        let [_, since] = *match &mut *waits {
            Some(wait) if wait[0] == time => wait,
            other => other.insert([time, now]),
        };
        time.min(since + LONGEST_WAIT)
    }

    fn running_time(&self, frame: &gst::BufferRef) -> Option<gst::ClockTime> {
        let segment = self.frames.segment();
        running_time(segment.downcast_ref::<gst::ClockTime>()?, frame)
    }

    /// The frame's mask, and whether a mask was expected. `None` if the mask may still come, unless
    /// the frame `is_due`.
    fn mask(
        &self,
        state: &mut State,
        frame: &gst::BufferRef,
        is_due: bool,
    ) -> Option<(Option<TimedMask>, bool)> {
        let Some(pad) = self.mask_pad().filter(|pad| pad.is_linked()) else {
            return Some((None, false));
        };
        let Some(start) = self.running_time(frame) else {
            self.warn("a frame without a timestamp in its segment gets no mask");
            return Some((None, true));
        };
        let time = TimeSpan {
            start,
            duration: frame.duration(),
        };
        let (mask, is_final) = state.masks.of_frame(time, &pad, |why| self.warn(why));
        gst::trace!(CAT, imp = self, "frame of {start}: mask {}", mask.is_some());
        (is_final || is_due).then_some((mask, true))
    }

    /// The frame with its overlay. The frame is unchanged if there is nothing to draw or drawing
    /// fails.
    fn overlaid(
        &self,
        state: &mut State,
        mut frame: gst::Buffer,
        (mask, mask_expected): (Option<TimedMask>, bool),
        settings: &Settings,
    ) -> gst::Buffer {
        let Some(output) = &state.output else {
            return frame;
        };
        let (info, colours) = (&output.drawn, &output.colours);
        let overlay = painter::draw(
            info,
            colours,
            settings,
            &frame,
            mask.as_ref(),
            mask_expected,
        );
        for fault in &overlay.faults {
            self.warn(fault);
        }
        if !overlay.is_empty()
            && let Err(why) = output.put(&overlay, &mut frame)
        {
            self.warn(&why);
        }
        frame
    }

    /// Whether every source can seek. GstAggregator ends a flush only when all its pads were
    /// flushed, which never happens if one source refuses.
    fn is_seekable(&self) -> bool {
        self.obj().sink_pads().iter().all(|pad| {
            let mut query = gst::query::Seeking::new(gst::Format::Time);
            let is_unused = *pad != self.frames && !pad.is_linked();
            is_unused || pad.peer_query(&mut query) && query.result().0
        })
    }

    fn seek(&self, event: gst::Event, seek: &gst::event::Seek) -> bool {
        let (_, flags, _, start, ..) = seek.get();
        if start.format() != gst::Format::Time || !self.is_seekable() {
            gst::info!(CAT, imp = self, "refusing {event:?}: a source cannot seek");
            return false;
        }
        // A pad without a peer counts as flushed, and from then on as at EOS.
        let unlinked = self.mask_pad().filter(|pad| !pad.is_linked());
        if let Some(pad) = unlinked.filter(|_| flags.contains(gst::SeekFlags::FLUSH)) {
            let stop = gst::event::FlushStop::builder(true).seqnum(seek.seqnum());
            self.parent_sink_event(&pad, stop.build());
            self.end_unlinked();
        }
        self.parent_src_event(event)
    }
}

#[glib::object_subclass]
impl ObjectSubclass for InspectOverlay {
    const NAME: &'static str = "GstInspectOverlay";
    type Type = super::InspectOverlay;
    type ParentType = gst_base::Aggregator;

    fn with_class(class: &Self::Class) -> Self {
        Self {
            settings: Mutex::default(),
            state: Mutex::default(),
            frames: glib::Object::builder()
                .property("name", "sink")
                .property("direction", gst::PadDirection::Sink)
                .property("template", class.pad_template("sink"))
                .build(),
            waits: Mutex::default(),
            warned: AtomicBool::default(),
        }
    }
}

impl ObjectImpl for InspectOverlay {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::param_specs);
        PROPERTIES.as_ref()
    }

    fn constructed(&self) {
        self.parent_constructed();
        // The output caps are the input caps.
        let flags = gst::PadFlags::PROXY_CAPS | WITHOUT_RATE;
        self.frames.set_pad_flags(flags);
        if let Err(error) = self.obj().add_pad(&self.frames) {
            gst::error!(CAT, imp = self, "{error}");
        }
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        gst::info!(CAT, imp = self, "{} = {value:?}", pspec.name());
        properties::set(&mut lock(&self.settings), pspec.name(), value);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        properties::get(&lock(&self.settings), pspec)
    }
}

impl GstObjectImpl for InspectOverlay {}

impl ElementImpl for InspectOverlay {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Inspection overlay",
                "Filter/Effect/Video",
                "Draws defects, histograms and verdict over the picture",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst_video::VideoCapsBuilder::new()
                .format_list(super::formats())
                .build();
            let always = |name, direction| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).ok()
            };
            let sink = always("sink", gst::PadDirection::Sink);
            let src = always("src", gst::PadDirection::Src);
            [sink, src, masks::template()]
                .into_iter()
                .flatten()
                .collect()
        });
        TEMPLATES.as_ref()
    }

    fn request_new_pad(
        &self,
        template: &gst::PadTemplate,
        name: Option<&str>,
        caps: Option<&gst::Caps>,
    ) -> Option<gst::Pad> {
        if self.mask_pad().is_some() {
            gst::warning!(CAT, imp = self, "the element already has a mask pad");
            return None;
        }
        let pad = self.parent_request_new_pad(template, name, caps)?;
        pad.set_pad_flags(WITHOUT_RATE);
        if self.obj().property::<u64>("latency") == 0 {
            self.obj().set_property("latency", INSPECTION);
        }
        if self.obj().current_state() >= gst::State::Paused {
            self.end_unlinked();
        }
        Some(pad)
    }

    fn release_pad(&self, pad: &gst::Pad) {
        self.parent_release_pad(pad);
        if self.obj().property::<u64>("latency") == INSPECTION.nseconds() {
            self.obj().set_property("latency", gst::ClockTime::ZERO);
        }
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        let is_start = transition == gst::StateChange::ReadyToPaused;
        if is_start {
            self.warn_of_masks_alone();
        }
        let changed = self.parent_change_state(transition)?;
        if is_start {
            self.end_unlinked();
        }
        Ok(changed)
    }
}

/// Removes the metas that downstream accepts and this element does not honour: it draws on whole frames, so a source must
/// not leave cropping or turning to the sink.
fn remove_other_metas(query: &mut gst::query::Allocation) {
    let honoured = [
        gst_video::VideoMeta::meta_api(),
        gst_video::VideoOverlayCompositionMeta::meta_api(),
    ];
    let metas: Vec<glib::Type> = query.allocation_metas().map(|(api, _)| api).collect();
    for (index, api) in metas.iter().enumerate().rev() {
        if !honoured.contains(api) {
            query.remove_nth_allocation_meta(index as u32);
        }
    }
}

impl AggregatorImpl for InspectOverlay {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.warned
            .store(false, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = State::default();
        Ok(())
    }

    fn flush(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        lock(&self.state).masks.flush();
        Ok(gst::FlowSuccess::Ok)
    }

    fn create_new_pad(
        &self,
        template: &gst::PadTemplate,
        _name: Option<&str>,
        _caps: Option<&gst::Caps>,
    ) -> Option<AggregatorPad> {
        let pad = gst::PadBuilder::<AggregatorPad>::from_template(template);
        Some(pad.name(masks::PAD).build())
    }

    fn sink_event_pre_queue(
        &self,
        pad: &AggregatorPad,
        event: gst::Event,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let is_masks = *pad != self.frames;
        match event.view() {
            gst::EventView::Caps(caps) => {
                let caps = caps.caps();
                let refused = if is_masks {
                    masks::format_of(caps).err()
                } else {
                    planes::info(caps).err()
                };
                if let Some(why) = refused {
                    gst::error!(CAT, imp = self, "{why}");
                    return Err(gst::FlowError::NotNegotiated);
                }
            }
            gst::EventView::StreamStart(_) if is_masks => {
                // GstAggregator clears a pad's EOS only at a flush.
                if pad.is_eos() {
                    self.parent_sink_event(pad, gst::event::FlushStop::new(false));
                }
                let message = gst::message::Latency::builder().src(&*self.obj());
                let _ = self.obj().post_message(message.build());
            }
            _ => {}
        }
        self.parent_sink_event_pre_queue(pad, event)
    }

    fn sink_event(&self, pad: &AggregatorPad, event: gst::Event) -> bool {
        use gst::EventView;
        let is_masks = *pad != self.frames;
        let src_pad = self.obj().src_pad().clone();
        match event.view() {
            EventView::Caps(caps) if is_masks => {
                lock(&self.state).masks.format = masks::format_of(caps.caps()).ok();
                return true;
            }
            EventView::Caps(caps) => {
                let info = planes::info(caps.caps()).ok();
                lock(&self.state).frames = info.map(|info| (caps.caps_owned(), info));
                src_pad.mark_reconfigure();
                return true;
            }
            EventView::FlushStop(_) if is_masks => lock(&self.state).masks.flush(),
            EventView::Segment(segment) if !is_masks => {
                match segment.segment().downcast_ref::<gst::ClockTime>() {
                    Some(segment) => self.obj().update_segment(segment),
                    None => self.warn("frames without a TIME segment get no masks"),
                }
            }
            EventView::Gap(_) if is_masks => {}
            EventView::StreamStart(_)
            | EventView::Segment(_)
            | EventView::FlushStart(_)
            | EventView::FlushStop(_)
            | EventView::Eos(_) => {}
            // Events of the mask pad are not forwarded. Sticky events of the frame pad stay on the
            // pad until GstAggregator has begun its stream.
            _ => return is_masks || !src_pad.has_current_caps() || src_pad.push_event(event),
        }
        self.parent_sink_event(pad, event)
    }

    fn src_query(&self, query: &mut gst::QueryRef) -> bool {
        match query.view_mut() {
            gst::QueryViewMut::Seeking(seeking)
                if seeking.format() == gst::Format::Time && self.is_seekable() =>
            {
                self.frames.peer_query(query)
            }
            _ => self.parent_src_query(query),
        }
    }

    fn src_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Seek(seek) => self.seek(event.clone(), seek),
            gst::EventView::Navigation(_) => self.frames.push_event(event),
            gst::EventView::Reconfigure(_) => {
                self.frames.push_event(event.clone());
                self.parent_src_event(event)
            }
            _ => self.parent_src_event(event),
        }
    }

    fn update_src_caps(&self, downstream: &gst::Caps) -> Result<gst::Caps, gst::FlowError> {
        let state = lock(&self.state);
        let (caps, _) = state.frames.as_ref().ok_or(AGGREGATOR_FLOW_NEED_DATA)?;
        if !caps.can_intersect(downstream) {
            return Err(gst::FlowError::NotNegotiated);
        }
        let mut caps = caps.clone();
        // Sinks compare caps with templates that have a framerate.
        if let Some(structure) = caps.make_mut().structure_mut(0)
            && !structure.has_field("framerate")
        {
            structure.set("framerate", gst::Fraction::new(0, 1));
        }
        Ok(caps)
    }

    fn propose_allocation(
        &self,
        pad: &AggregatorPad,
        _decided: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        // The output frame uses the memory of the input frame.
        if *pad == self.frames {
            self.obj().src_pad().peer_query(query);
        }
        remove_other_metas(query);
        let known = query.find_allocation_meta::<gst_video::VideoMeta>();
        if known.is_none() {
            query.add_allocation_meta::<gst_video::VideoMeta>(None);
        }
        Ok(())
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        // GstAggregator has begun its stream; push the other sticky events, such as tags.
        let src_pad = self.obj().src_pad().clone();
        self.frames.sticky_events_foreach(|event| {
            use gst::EventType::{Caps, Eos, Segment, StreamStart};
            if ![StreamStart, Caps, Segment, Eos].contains(&event.type_()) {
                src_pad.push_event(event.clone());
            }
            ControlFlow::Continue(gst::EventForeachAction::Keep)
        });
        let attach = query.find_allocation_meta::<gst_video::VideoOverlayCompositionMeta>();
        let mut state = lock(&self.state);
        let info = state.frames.as_ref().map(|(_, info)| info.clone());
        state.output = info.map(|info| Output::new(info, attach.is_some()));
        Ok(())
    }

    fn next_time(&self) -> Option<gst::ClockTime> {
        // A live frame waits for its own time plus the latency; a frame without a time does not
        // wait.
        match self.frames.peek_buffer() {
            Some(frame) => Some(self.due(&frame)),
            None => self.frames.is_eos().then_some(gst::ClockTime::ZERO),
        }
    }

    fn aggregate(&self, timeout: bool) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(frame) = self.frames.peek_buffer() else {
            let is_over = self.frames.is_eos();
            return Err(if is_over {
                gst::FlowError::Eos
            } else {
                AGGREGATOR_FLOW_NEED_DATA
            });
        };
        let settings = lock(&self.settings).clone();
        let is_due = timeout || !settings.draws_anything();
        let mut state = lock(&self.state);
        let mask = self.mask(&mut state, &frame, is_due);
        let mask = mask.ok_or(AGGREGATOR_FLOW_NEED_DATA)?;
        drop(frame);
        let frame = self.frames.pop_buffer().ok_or(AGGREGATOR_FLOW_NEED_DATA)?;
        let obj = self.obj();
        obj.selected_samples(frame.pts(), frame.dts(), frame.duration(), None);
        let frame = self.overlaid(&mut state, frame, mask, &settings);
        drop(state);
        obj.finish_buffer(frame)
    }
}
