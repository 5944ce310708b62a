//! Subclass of GstBaseTransform behind [`super::ClBaseFilter`].

use std::sync::{
    LazyLock, Mutex,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{
        BaseTransformMode,
        base_transform::{GenerateOutputSuccess, InputBuffer, PrepareOutputBufferSuccess},
        prelude::*,
    },
};

use super::{
    device::{self, Device, QueueQuery},
    faults::Faults,
    properties::{self, MemoryObject},
    reports::Counts,
    stream::{
        Buffers, Frame, FrameStream, Negotiated, Target, Treatment, View, before_caps, is_corrupted,
    },
    web::{Beginning, Reason, Web},
};
use crate::elements::{
    debug_category, lock,
    property_table::{PropertyTable, property_methods},
};
use clinspect_core::{ClError, window::Window};
use clinspect_opencl::frame::{Carrier, Importer, depth_of};
use clinspect_operators::Trial;
use clinspect_results::mask_caps::buffer_size;

/// How long a stop waits for a device that makes no progress.
const FINISH_LIMIT: Duration = Duration::from_secs(1);
/// How long the end of a stream and a flush wait: a slow device may take that long for one large
/// frame.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

pub(super) static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clbasefilter", "OpenCL elements' parent class"));

/// Caps for the other pad, given caps on the pad of a direction.
type OtherCaps = fn(&super::ClBaseFilter, gst::PadDirection, &gst::Caps) -> Option<gst::Caps>;

/// How frames with caps of the sink pad lie in their buffers, if they are not raw video.
type CarrierOf = fn(&super::ClBaseFilter, &gst::Caps) -> Result<Option<Carrier>, ClError>;

/// What the parent class knows of a subclass, as [`ClBaseFilterImpl`](super::ClBaseFilterImpl) describes them.
pub struct ClassData {
    pub(super) task: &'static str,
    pub(super) counts: &'static [&'static str],
    pub(super) rewrites: bool,
    pub(super) check: fn(&super::ClBaseFilter, bool) -> Result<(), ClError>,
    pub(super) open: fn(&super::ClBaseFilter) -> Option<Box<dyn FrameStream>>,
    pub(super) close: fn(&super::ClBaseFilter),
    pub(super) other_caps: OtherCaps,
    pub(super) carrier: CarrierOf,
}

/// The class struct: the parent's class struct, then the data of the subclass.
#[repr(C)]
pub struct Class {
    parent: gst_base::ffi::GstBaseTransformClass,
    pub(super) data: Option<&'static ClassData>,
}

// SAFETY: the struct begins with the class struct of the parent type, and zeros are a valid value
// of the rest.
unsafe impl ClassStruct for Class {
    type Type = ClBaseFilter;
}

/// What an element has from its start to its stop. Locked while a frame is processed: handlers of the messages and
/// notifications that an element posts must not send it events or queries.
pub(super) struct Running {
    /// The subclass's part. It holds the element, so only [`ClBaseFilter::close`] ends the cycle: an element must go to
    /// READY before it is dropped, as every element must.
    pub stream: Box<dyn FrameStream>,
    /// What belongs to the accepted caps; `None` before the first caps, and after caps that were refused.
    pub for_caps: Option<ForCaps>,
    /// How the next web begins.
    beginning: Beginning,
}

/// What an element has for the accepted caps.
pub(super) struct ForCaps {
    pub importer: Importer,
    /// The rows of a frame.
    window: Window,
    /// The web, if frames are strips.
    pub web: Option<Web>,
    /// Input and output caps.
    caps: [gst::Caps; 2],
}

impl Running {
    /// The subclass's part, and what belongs to the caps.
    pub fn parts(&mut self) -> Result<(&mut dyn FrameStream, &mut ForCaps), ClError> {
        match &mut self.for_caps {
            Some(for_caps) => Ok((&mut *self.stream, for_caps)),
            None => Err(before_caps()),
        }
    }

    /// Processes a frame; returns an event to push before the buffer. `revision`: see [`ClBaseFilter::revision`].
    fn process(&mut self, buffers: Buffers, revision: u64) -> Result<Option<gst::Event>, ClError> {
        let (stream, for_caps) = self.parts()?;
        let ForCaps {
            importer, window, ..
        } = for_caps;
        stream.follow(revision)?;
        let input = importer.import(buffers.input())?;
        let meter = importer.meter();
        if is_corrupted(buffers.input()) {
            stream.leave_out();
        } else {
            stream.learn(&View {
                frame: &input,
                rows: window.height,
                is_web: false,
                meter,
            })?;
        }
        let mut frame = Frame::new(input, *window, importer, buffers);
        let event = stream.process(&mut frame)?;
        frame.input.wait_for_upload()?;
        Ok(event)
    }
}

/// An element on a device.
#[derive(Default)]
pub struct ClBaseFilter {
    pub(super) settings: Mutex<properties::Settings>,
    /// See [`Self::revision`].
    revision: AtomicU64,
    pub(super) device: Mutex<Option<Device>>,
    pub(super) running: Mutex<Option<Running>>,
    /// The latency that was posted last: number of held frames and frame rate; `None` for no latency.
    pub(super) delay: Mutex<Option<(u64, gst::Fraction)>>,
    pub(super) faults: Faults,
    pub(super) counts: Counts,
}

impl ClBaseFilter {
    pub(super) fn class_data(&self) -> Result<&'static ClassData, ClError> {
        let data = self.obj().class().as_ref().data;
        data.ok_or_else(|| ClError::Unavailable("ClBaseFilter is abstract".into()))
    }

    /// Grows with each change of a property, and of all else from which operators are built: a frame compares one
    /// number to learn that nothing has changed.
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// A property has changed.
    pub(super) fn revise(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    /// The element's work on a frame, for error messages.
    pub(super) fn task(&self) -> &'static str {
        self.class_data().map_or("", |data| data.task)
    }

    /// See [`ClBaseFilter::check`](super::ClBaseFilter::check).
    ///
    /// # Errors
    /// See there.
    pub(super) fn check(&self) -> Result<(), ClError> {
        let images = lock(&self.settings).memory_object == MemoryObject::Image;
        (self.class_data()?.check)(&self.obj(), images)
    }

    /// Calls `act` with what the element has since its start.
    pub(super) fn with_running<R>(
        &self,
        act: impl FnOnce(&mut Running) -> Result<R, ClError>,
    ) -> Result<R, ClError> {
        act(lock(&self.running).as_mut().ok_or_else(before_caps)?)
    }

    /// Whether frames are strips of a web.
    fn is_line_scan(&self) -> bool {
        (lock(&self.device).as_ref()).is_some_and(|device| device.line_scan)
    }

    /// Counts a frame if its source flagged it.
    pub(super) fn count_flags(&self, buffer: &gst::BufferRef) {
        if is_corrupted(buffer) {
            self.counts.count_corrupted();
        }
    }

    pub(super) fn process(&self, buffers: Buffers) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.count_flags(buffers.input());
        let revision = self.revision();
        match self.with_running(|running| running.process(buffers, revision)) {
            // No lock is held here, and the event goes just before the buffer that it belongs to.
            Ok(event) => {
                self.push_event(event);
                Ok(gst::FlowSuccess::Ok)
            }
            Err(error) => {
                self.faults.post(&self.obj(), &error, self.task());
                Err(gst::FlowError::Error)
            }
        }
    }
}

impl ClBaseFilter {
    fn carrier(&self, caps: &gst::Caps) -> Result<Option<Carrier>, ClError> {
        (self.class_data()?.carrier)(&self.obj(), caps)
    }

    /// Bytes of a buffer with caps of either pad.
    fn size_of(&self, caps: &gst::Caps) -> Option<usize> {
        buffer_size(caps).or_else(|| Some(self.carrier(caps).ok()??.info().size()))
    }

    /// An importer of frames with these caps.
    fn importer(&self, device: &Device, caps: &gst::Caps) -> Result<Importer, ClError> {
        let (context, meter) = (&device.context, &device.meter);
        if let Some(carrier) = self.carrier(caps)? {
            return Importer::carrying(context, meter, carrier);
        }
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|_| {
            ClError::Refused(format!(
                "GStreamer knows no raw video of {caps}; correct format, size and framerate"
            ))
        })?;
        Importer::new(context, meter, &info)
    }

    /// Prepares the element for new caps.
    fn set_up(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), ClError> {
        let device = self.device()?;
        let caps = [incaps.clone(), outcaps.clone()];
        if device.line_scan {
            let is_same = |running: &mut Running| Ok(running.parts()?.1.caps == caps);
            if self.with_running(is_same).unwrap_or(false) {
                // A branch that is linked downstream asks for caps again; the web goes on.
                return Ok(());
            }
            // What is held leaves with the caps before.
            if self.end_web(Reason::Caps).is_err() {
                gst::debug!(
                    CAT,
                    imp = self,
                    "the last strips before new caps were not sent"
                );
            }
        }
        self.with_running(|running| {
            if let Some(ForCaps { web, .. }) = running.for_caps.take() {
                running.beginning = web.map_or_else(Beginning::default, |web| web.next());
            }
            let importer = self.importer(&device, incaps)?;
            if device.line_scan && device.images {
                return Err(ClError::Refused(
                    "line-scan=true needs buffers; set memory-object=auto".into(),
                ));
            }
            let web = device
                .line_scan
                .then(|| Web::new(&importer, running.beginning))
                .transpose()?;
            running.stream.negotiate(&Negotiated {
                incaps,
                outcaps,
                importer: &importer,
                allocator: &device.allocator,
                target: Target {
                    context: device.context.clone(),
                    layout: importer.layout().clone(),
                    depth: depth_of(importer.info().format()),
                    images: device.images,
                    line_scan: device.line_scan,
                    trial: Trial::new(&device.context, importer.info(), device.self_test),
                },
            })?;
            running.for_caps = Some(ForCaps {
                window: Window::frame(importer.layout().height),
                importer,
                web,
                caps,
            });
            Ok(())
        })?;
        self.post_latency();
        Ok(())
    }

    /// Sets the accepted caps again after others were refused: the parent class does not set caps that equal
    /// those of the pads.
    fn set_up_again(&self) -> Result<(), gst::FlowError> {
        if self
            .with_running(|running| running.parts().map(|_| ()))
            .is_ok()
        {
            return Ok(());
        }
        let element = self.obj();
        let pads = [element.sink_pad(), element.src_pad()];
        match pads.map(|pad| pad.current_caps()) {
            [Some(incaps), Some(outcaps)] => self
                .set_caps(&incaps, &outcaps)
                .map_err(|_| gst::FlowError::NotNegotiated),
            _ => Ok(()),
        }
    }
}
impl ClBaseFilter {
    pub(super) fn device(&self) -> Result<Device, ClError> {
        lock(&self.device)
            .clone()
            .ok_or_else(|| ClError::Unavailable("the element is not started".into()))
    }

    /// The property `stats`.
    fn stats(&self) -> gst::Structure {
        // Not locked while the driver is asked for times: frames lock the device, too.
        let device = self.device();
        let name = (device.as_ref()).map_or("", |device| device.context.device_name());
        let mut stats = self.counts.stats();
        stats.set("device", name);
        stats
    }

    /// Opens the device, and latches the properties that take effect at the start.
    fn open(&self) -> Result<(), ClError> {
        let data = self.class_data()?;
        let element = self.obj().downgrade();
        let tell = move |error| {
            if let Some(element) = element.upgrade() {
                let faults = &element.imp().faults;
                faults.post_once(&element, &error, "offering memory upstream");
            }
        };
        let device = Device::open(&lock(&self.settings).clone(), self.obj().src_pad(), tell)?;
        gst::info!(CAT, imp = self, "device {}", device.context.device_name());
        for removed in device.context.take_removed() {
            // gst-launch-1.0 prints the details of an information only.
            gst::element_imp_info!(self, gst::ResourceError::Read, ("{removed}"), ["{removed}"]);
        }
        self.counts.start(&device.meter, data.counts);
        *lock(&self.device) = Some(device);
        self.faults.clear();
        *lock(&self.running) = (data.open)(&self.obj()).map(|stream| Running {
            stream,
            for_caps: None,
            beginning: Beginning::default(),
        });
        self.obj().notify("stats");
        Ok(())
    }

    fn close(&self) {
        // Dropped after the lock: it may wait for a compiler.
        let running = lock(&self.running).take();
        drop(running);
        *lock(&self.delay) = None;
        if let Ok(data) = self.class_data() {
            (data.close)(&self.obj());
        }
        let device = lock(&self.device).take();
        if let Some(device) = device {
            // The commands of frames that were pushed must end before the element does.
            if let Err(error) = device.context.finish_within(FINISH_LIMIT, &device.meter) {
                gst::warning!(CAT, imp = self, "{error}");
            }
            device.meter.close();
            gst::info!(CAT, imp = self, "{}", self.counts.stats());
        }
    }

    /// Posts the error if another element could not read or write a frame in this element's memory:
    /// that element may continue without an error of its own.
    ///
    /// # Errors
    /// There was such a failure.
    fn check_memory(&self) -> Result<(), ()> {
        let of_memory = |device: &Device| {
            let own = device.allocator.take_failure();
            own.or_else(|| device.offered.take_failure())
        };
        let failure = lock(&self.device).as_ref().and_then(of_memory);
        match failure {
            None => Ok(()),
            // The error was posted already, with the frame before.
            Some(_) if self.faults.is_call_posted() => Ok(()),
            Some(error) => {
                self.faults.post(&self.obj(), &error, "passing a frame on");
                Err(())
            }
        }
    }

    /// Waits until all pushed frames are computed, so that their errors are posted before the end
    /// of the stream.
    fn drain(&self) {
        if self.check_memory().is_ok()
            && let Ok(device) = self.device()
            // The failure of the device was posted already.
            && !device.context.has_failed()
            && let Err(error) = device.context.finish_within(DRAIN_LIMIT, &device.meter)
        {
            self.faults.post(
                &self.obj(),
                &error,
                "finishing the last frames of the stream",
            );
        }
    }

    /// Sets `device`, unless a device is open.
    fn set_device(&self, value: &glib::Value) {
        if lock(&self.device).is_none() {
            lock(&self.settings).set_device(value);
            return;
        }
        let device = lock(&self.settings).device.clone();
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Settings,
            (
                "device={} stays: an element that runs cannot change its device; set it to READY \
                 first",
                device
            )
        );
    }
}
impl ClBaseFilter {
    /// Sends an event of a frame, if it has one.
    pub(super) fn push_event(&self, event: Option<gst::Event>) {
        if let Some(event) = event {
            let taken = self.obj().src_pad().push_event(event);
            gst::trace!(CAT, imp = self, "event handled: {taken}");
        }
    }

    /// The property `line-scan`.
    pub(super) fn line_scan(&self) -> bool {
        lock(&self.settings).line_scan
    }

    pub(super) fn set_line_scan(&self, value: bool) {
        lock(&self.settings).line_scan = value;
    }
}

/// Elements that rewrite frames: in place where the frame's memory is ours to write, else into a buffer of their pool.
/// Frames that need no change are sent as they came.
impl ClBaseFilter {
    /// Takes the frame that was submitted, and returns the one to send.
    fn rewrite(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let Some(mut buffer) = self.take_queued_buffer() else {
            return Ok(GenerateOutputSuccess::NoOutput);
        };
        let (treatment, is_ours) = self.treatment(&buffer).map_err(|error| {
            self.faults.post(&self.obj(), &error, self.task());
            gst::FlowError::Error
        })?;
        match treatment {
            Treatment::Pass => self.count_flags(&buffer),
            Treatment::Read => {
                self.process(Buffers::InPlace(buffer.make_mut()))?;
            }
            Treatment::Rewrite => {
                if is_ours && let Some(buffer) = buffer.get_mut() {
                    self.process(Buffers::InPlace(buffer))?;
                } else {
                    let prepared = self.prepare_output_buffer(InputBuffer::Readable(&buffer))?;
                    let PrepareOutputBufferSuccess::Buffer(mut output) = prepared else {
                        return Err(gst::FlowError::Error);
                    };
                    self.process(Buffers::Pair(&buffer, output.make_mut()))?;
                    buffer = output;
                }
            }
        }
        Ok(GenerateOutputSuccess::Buffer(buffer))
    }

    /// Applies the settings; says what to do with the frame, and whether it lies in memory of this device
    /// that nobody else uses.
    fn treatment(&self, buffer: &gst::BufferRef) -> Result<(Treatment, bool), ClError> {
        self.with_running(|running| {
            let (stream, for_caps) = running.parts()?;
            for_caps.importer.check(buffer)?;
            stream.follow(self.revision())?;
            let treatment = stream.treatment()?;
            let is_ours =
                buffer.is_all_memory_writable() && for_caps.importer.output(buffer).is_ok();
            Ok((treatment, is_ours))
        })
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClBaseFilter>> = LazyLock::new(|| {
    PropertyTable::<ClBaseFilter>::new(&CAT)
        .with(|this| &this.settings, properties::rows())
        .with_own(
            properties::device_spec(),
            |this| lock(&this.settings).device.to_value(),
            ClBaseFilter::set_device,
        )
        .with_read_only(properties::stats_spec(), |this| this.stats().to_value())
});

#[glib::object_subclass]
impl ObjectSubclass for ClBaseFilter {
    const NAME: &'static str = "GstClBaseFilter";
    const ABSTRACT: bool = true;
    type Type = super::ClBaseFilter;
    type ParentType = gst_base::BaseTransform;
    type Class = Class;
}

impl ObjectImpl for ClBaseFilter {
    property_methods!(PROPERTIES);
}

impl GstObjectImpl for ClBaseFilter {}

impl ElementImpl for ClBaseFilter {
    // Not in `start` and `stop`: a failed start would be posted twice, once here and once by the
    // subclass as a failure of its parent class.
    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused {
            self.open().map_err(|error| {
                self.faults
                    .post(&self.obj(), &error, "opening an OpenCL device");
                gst::StateChangeError
            })?;
        }
        let result = self.parent_change_state(transition);
        let failed = transition == gst::StateChange::ReadyToPaused && result.is_err();
        if failed || transition == gst::StateChange::PausedToReady {
            self.close();
        }
        result
    }
}

impl BaseTransformImpl for ClBaseFilter {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn sink_event(&self, event: gst::Event) -> bool {
        let (event, outlive) = if self.is_line_scan() {
            self.pass_web(event)
        } else {
            (Some(event), Vec::new())
        };
        let Some(event) = event else { return true };
        if matches!(
            event.type_(),
            gst::EventType::Eos | gst::EventType::FlushStop
        ) {
            self.drain();
        }
        if event.type_() == gst::EventType::Eos
            && let Some(running) = lock(&self.running).as_mut()
            && running.for_caps.is_some()
        {
            running.stream.end();
        }
        let is_handled = self.parent_sink_event(event);
        for event in outlive {
            self.parent_sink_event(event);
        }
        is_handled
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let data = self.class_data().ok()?;
        match ((data.other_caps)(&self.obj(), direction, caps), filter) {
            (None, _) => self.parent_transform_caps(direction, caps, filter),
            // The filter has downstream's order of preference; the result has the element's own.
            (Some(caps), Some(filter)) => {
                Some(caps.intersect_with_mode(filter, gst::CapsIntersectMode::First))
            }
            (Some(caps), None) => Some(caps),
        }
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        match self.set_up(incaps, outcaps) {
            Ok(()) => {
                self.faults.clear();
                Ok(())
            }
            Err(error) => {
                // Upstream may try the same caps again.
                self.faults.post_once(&self.obj(), &error, "setting caps");
                Err(gst::loggable_error!(CAT, "{error}"))
            }
        }
    }

    fn unit_size(&self, caps: &gst::Caps) -> Option<usize> {
        self.size_of(caps)
    }

    fn transform_size(
        &self,
        _direction: gst::PadDirection,
        _caps: &gst::Caps,
        _size: usize,
        othercaps: &gst::Caps,
    ) -> Option<usize> {
        // The input buffer may be larger than its rows need, so the size comes from the caps.
        self.size_of(othercaps)
    }

    fn propose_allocation(
        &self,
        decide: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        if self.obj().is_passthrough() {
            // Frames go on unread: upstream may use the memory that downstream offers.
            return self.parent_propose_allocation(decide, query);
        }
        // Held strips keep their buffers only if these are sent on.
        let held = lock(&self.delay).filter(|_| self.obj().is_in_place());
        let held = held.map_or(0, |(frames, _)| u32::try_from(frames).unwrap_or(u32::MAX));
        let size = query.get_owned().0.and_then(|caps| self.size_of(&caps));
        let proposed = self
            .device()
            .and_then(|device| device::propose(&device, query, size, held));
        proposed.map_err(|error| gst::loggable_error!(CAT, "{error}"))
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let decided = self
            .device()
            .and_then(|device| device::decide(&device, query));
        decided.map_err(|error| gst::loggable_error!(CAT, "{error}"))
    }

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        input: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.check_memory().map_err(|()| gst::FlowError::Error)?;
        self.set_up_again()?;
        self.parent_submit_input_buffer(is_discont, input)?;
        // Other frames than strips wait there for `generate_output`.
        if !self.is_line_scan() {
            return Ok(gst::FlowSuccess::Ok);
        }
        match self.take_queued_buffer() {
            Some(strip) => self.take_strip(strip),
            None => self.skip_strip(),
        }
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        match self.class_data() {
            Ok(data) if data.rewrites => self.rewrite(),
            _ => self.parent_generate_output(),
        }
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let is_from_upstream = direction == gst::PadDirection::Sink;
        if is_from_upstream && QueueQuery::answer(query, lock(&self.device).as_ref()) {
            return true;
        }
        let is_drain = is_from_upstream && query.type_() == gst::QueryType::Drain;
        let holds_strips = is_drain && self.drain_web();
        let answered = BaseTransformImplExt::parent_query(self, direction, query) && !holds_strips;
        if answered
            && let gst::QueryViewMut::Latency(latency) = query.view_mut()
            && let Some((frames, fps)) = *lock(&self.delay)
            // Without a framerate nobody knows how long strips are held.
            && fps.numer() > 0
        {
            let nanoseconds = gst::ClockTime::SECOND.nseconds();
            let held = nanoseconds.mul_div_ceil(frames * fps.denom() as u64, fps.numer() as u64);
            let held = gst::ClockTime::from_nseconds(held.unwrap_or(0));
            let (live, min, max) = latency.result();
            let longer = |time: gst::ClockTime| time.saturating_add(held);
            latency.set(live, longer(min), max.map(longer));
        }
        answered
    }

    fn prepare_output_buffer(
        &self,
        input: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        let prepared = self.parent_prepare_output_buffer(input);
        // The parent class refuses the frame without a reason.
        if let Err(gst::FlowError::Error) = prepared
            && let Ok(device) = self.device()
        {
            let error = device.allocator.take_failure();
            let error = error.unwrap_or_else(|| {
                ClError::Input(
                    "cannot allocate a buffer for the output frame; stop and start the pipeline"
                        .into(),
                )
            });
            self.faults
                .post(&self.obj(), &error, "allocating an output frame");
        }
        prepared
    }

    fn transform_meta<'a>(
        &self,
        _outbuf: &mut gst::BufferRef,
        _meta: gst::MetaRef<'a, gst::Meta>,
        _inbuf: &'a gst::BufferRef,
    ) -> bool {
        // The output has the input's size, so the metas of other elements remain valid. Metas about
        // memory do not reach this method.
        true
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.process(Buffers::Pair(inbuf, outbuf))
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.process(Buffers::InPlace(buffer))
    }
}
