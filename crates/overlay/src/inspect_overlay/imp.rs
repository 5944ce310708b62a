//! Implementation of `inspectoverlay`.

use std::{
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use atomic_refcell::AtomicRefCell;
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{BaseTransformMode, base_transform::GenerateOutputSuccess, prelude::*},
};

use super::{
    mask_pad::{self, MaskInput},
    mask_queue::MaskQueue,
    matching::{FrameTime, TimedMask},
    pace::Pace,
    painter::{Findings, Painter},
    planes,
    properties::{self, Settings},
    rows::Rows,
    seeking,
};

/// Caps of the frames, and what was drawn on the last one.
struct State {
    info: gst_video::VideoInfo,
    painter: Painter,
}

/// Instance of `inspectoverlay`.
#[derive(Default)]
pub struct InspectOverlay {
    settings: Mutex<Settings>,
    state: AtomicRefCell<Option<State>>,
    masks: MaskQueue,
    mask_pad: Mutex<Option<gst::Pad>>,
    mask_input: Mutex<MaskInput>,
    pace: Mutex<Pace>,
    /// A fault was told since the start.
    told: AtomicBool,
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectoverlay",
        gst::DebugColorFlags::empty(),
        Some("Results drawn over the picture"),
    )
});

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InspectOverlay {
    pub(super) fn settings(&self) -> MutexGuard<'_, Settings> {
        lock(&self.settings)
    }

    pub(super) fn masks(&self) -> &MaskQueue {
        &self.masks
    }

    pub(super) fn mask_pad(&self) -> Option<gst::Pad> {
        lock(&self.mask_pad).clone()
    }

    pub(super) fn mask_input(&self) -> MutexGuard<'_, MaskInput> {
        lock(&self.mask_input)
    }

    /// Whether nobody takes frames any more, so that none will come for a mask.
    pub(super) fn frames_have_failed(&self) -> bool {
        self.obj().src_pad().last_flow_result().is_err()
    }

    /// Tells what is wrong with what is to be drawn; the picture goes on.
    pub(super) fn warn_once(&self, what: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            gst::warning!(CAT, imp = self, "not drawn: {what}");
        } else {
            gst::debug!(CAT, imp = self, "not drawn: {what}");
        }
    }

    /// gst-launch-1.0 links packed masks to the mask pad by themselves, and then nothing ever starts.
    fn warn_of_masks_alone(&self) {
        let has_masks = self.mask_pad().is_some_and(|pad| pad.is_linked());
        if has_masks && !self.obj().sink_pad().is_linked() {
            gst::element_imp_warning!(
                self,
                gst::CoreError::Pad,
                (
                    "masks come in at {0}.mask, and no frames at {0}.sink: link the picture there too, \
                     or set output=frame at clpitchthreshold instead",
                    self.obj().name()
                )
            );
        }
    }

    /// The latency has changed.
    fn post_latency(&self) {
        let obj = self.obj();
        let _ = obj.post_message(gst::message::Latency::builder().src(&*obj).build());
    }

    /// How long a frame may wait for its mask.
    fn limit(&self, running_time: gst::ClockTime, timeout: gst::ClockTime) -> Duration {
        let obj = self.obj();
        let now = obj.current_running_time();
        let nanoseconds = |time: gst::ClockTime| i64::try_from(time.nseconds()).unwrap_or(i64::MAX);
        let lateness = match now {
            Some(now) if obj.current_state() == gst::State::Playing => {
                nanoseconds(now) - nanoseconds(running_time)
            }
            // Nothing is due before the clock runs.
            _ => return Duration::from_nanos(timeout.nseconds()),
        };
        lock(&self.pace).limit(lateness, timeout)
    }

    /// The frame's mask from the mask pad, waited for as long as it may, and whether one was to
    /// come.
    fn mask(&self, frame: &gst::BufferRef, settings: &Settings) -> (Option<TimedMask>, bool) {
        let is_linked = self.mask_pad().is_some_and(|pad| pad.is_linked());
        if !is_linked || !settings.draws_anything() {
            return (None, is_linked);
        }
        self.masks.set_frame_under_way(true);
        let segment = self.obj().segment();
        let running_time = segment
            .downcast_ref::<gst::ClockTime>()
            .and_then(|segment| segment.to_running_time(frame.pts()));
        let Some(start) = running_time else {
            self.warn_once("a frame without a timestamp in its segment has no mask");
            return (None, true);
        };
        let time = FrameTime {
            start,
            duration: frame.duration(),
        };
        let limit = self.limit(start, settings.mask_timeout);
        let mask = self.masks.take(time, limit);
        gst::trace!(CAT, imp = self, "frame of {start}: mask {}", mask.is_some());
        (mask, true)
    }

    /// The frame with its overlay; as it was where there is nothing to draw, or drawing fails.
    fn overlaid(&self, mut frame: gst::Buffer) -> gst::Buffer {
        let settings = self.settings().clone();
        let (mask, mask_expected) = self.mask(&frame, &settings);
        let mut state = self.state.borrow_mut();
        let Some(State { info, painter }) = state.as_mut() else {
            return frame;
        };
        let findings = Findings {
            frame: &frame,
            mask: mask
                .as_ref()
                .map(|mask| (mask.buffer.as_ref(), &mask.format)),
            mask_expected,
        };
        let overlay = painter.draw(&settings, &findings);
        for fault in &overlay.faults {
            self.warn_once(fault);
        }
        if overlay.is_empty() {
            return frame;
        }
        let blended = planes::check(&frame, info).and_then(|()| {
            let buffer = frame.make_mut();
            let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info)
                .map_err(|_| "the frame cannot be written".to_owned())?;
            overlay.blend(&mut Rows::new(&mut frame)?);
            Ok(())
        });
        if let Err(why) = blended {
            self.warn_once(&why);
        }
        frame
    }
}

#[glib::object_subclass]
impl ObjectSubclass for InspectOverlay {
    const NAME: &'static str = "GstInspectOverlay";
    type Type = super::InspectOverlay;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for InspectOverlay {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::param_specs);
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let name = pspec.name();
        gst::info!(CAT, imp = self, "{name} = {value:?}");
        properties::set(&mut self.settings(), name, value);
        if name == "mask-timeout" && lock(&self.mask_pad).is_some() {
            self.post_latency();
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        properties::get(&self.settings(), pspec)
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
            let mut templates: Vec<_> = [
                ("sink", gst::PadDirection::Sink),
                ("src", gst::PadDirection::Src),
            ]
            .into_iter()
            .filter_map(|(name, direction)| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).ok()
            })
            .collect();
            templates.extend(mask_pad::template());
            templates
        });
        TEMPLATES.as_ref()
    }

    fn request_new_pad(
        &self,
        template: &gst::PadTemplate,
        _name: Option<&str>,
        _caps: Option<&gst::Caps>,
    ) -> Option<gst::Pad> {
        let pad = {
            let mut mask_pad = lock(&self.mask_pad);
            if mask_pad.is_some() {
                gst::warning!(CAT, imp = self, "there is a mask pad already");
                return None;
            }
            let pad = mask_pad::new(template);
            *mask_pad = Some(pad.clone());
            pad
        };
        *self.mask_input() = MaskInput::default();
        self.masks.open_pad(true);
        let added = pad.set_active(true).and_then(|()| self.obj().add_pad(&pad));
        if let Err(error) = added {
            gst::error!(CAT, imp = self, "{error}");
            *lock(&self.mask_pad) = None;
            return None;
        }
        self.post_latency();
        Some(pad)
    }

    fn release_pad(&self, pad: &gst::Pad) {
        // Wakes the frame that waits, and the mask that finds no room.
        let _ = pad.set_active(false);
        *lock(&self.mask_pad) = None;
        let _ = self.obj().remove_pad(pad);
        self.post_latency();
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            gst::StateChange::ReadyToPaused => {
                self.warn_of_masks_alone();

                self.told.store(false, Ordering::Relaxed);
                *lock(&self.pace) = Pace::default();
                *self.mask_input() = MaskInput::default();
                self.masks.restart_frames();
            }
            gst::StateChange::PausedToPlaying => lock(&self.pace).restart(),
            // Pads are stopped next, which waits for their threads.
            gst::StateChange::PausedToReady => self.masks.open_frames(false),
            _ => {}
        }
        self.parent_change_state(transition)
    }
}

impl BaseTransformImpl for InspectOverlay {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.state.borrow_mut() = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "no video format in {incaps}"))?;
        if !planes::are_sound(&info) {
            return Err(gst::loggable_error!(
                CAT,
                "{incaps} is too wide for a frame"
            ));
        }
        let painter = Painter::new(&info);
        *self.state.borrow_mut() = Some(State { info, painter });
        Ok(())
    }

    fn propose_allocation(
        &self,
        decide: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decide, query)?;
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::FlushStart(_) => self.masks.open_frames(false),
            gst::EventView::FlushStop(_) => {
                self.masks.restart_frames();
                lock(&self.pace).restart();
            }
            gst::EventView::StreamStart(_) => self.masks.set_frames_over(false),
            gst::EventView::Segment(_) => lock(&self.pace).restart(),
            gst::EventView::Eos(_) => self.masks.set_frames_over(true),
            _ => {}
        }
        self.parent_sink_event(event)
    }

    fn src_event(&self, event: gst::Event) -> bool {
        seeking::send_upstream(self, event, |event| self.parent_src_event(event))
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let answered = BaseTransformImplExt::parent_query(self, direction, query);
        if answered
            && direction == gst::PadDirection::Src
            && let gst::QueryViewMut::Latency(latency) = query.view_mut()
        {
            let (live, min, max) = latency.result();
            lock(&self.pace).set_live(live.then_some(min));
            if live && lock(&self.mask_pad).is_some() {
                let timeout = self.settings().mask_timeout;
                let max = max.map(|max| max.saturating_add(timeout));
                latency.set(live, min.saturating_add(timeout), max);
            }
        }
        answered
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        match self.take_queued_buffer() {
            // GstBaseTransform calls once more when the frame has been sent on.
            None => {
                self.masks.set_frame_under_way(false);
                Ok(GenerateOutputSuccess::NoOutput)
            }
            Some(frame) => Ok(GenerateOutputSuccess::Buffer(self.overlaid(frame))),
        }
    }

    fn transform_ip(
        &self,
        _buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        // generate_output does it, which may leave a frame that is not writable as it is.
        Ok(gst::FlowSuccess::Ok)
    }
}
