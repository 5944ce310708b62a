//! Harnesses, buses, and the results that the references expect from an element.

use std::sync::{Arc, Once};

use clinspect_opencl::{ClContext, Meter};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    frames::{Arrangement, Frame, PLAIN},
    oracle::{
        gaussian::gaussian_integer,
        pitch_threshold::{Compare, Outcome, Polarity, Settings, compare},
    },
};

/// The elements that need a device.
pub const ON_DEVICE: [&str; 4] = [
    "clgaussian",
    "clhistogram",
    "clpitchthreshold pitch-x=4",
    "clreference",
];

/// Registers the elements, with or without a device.
pub fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        gst::init().unwrap();
        gstclinspect::register_static().unwrap();
        gstinspectoverlay::register_static().unwrap();
        // For tests that attach a meta of another application.
        gst::meta::CustomMeta::register("TestForeignMeta", &[]);
    });
}

/// Registers the elements and opens the device; `None`: the test is skipped, with a line that says
/// so.
pub fn start() -> Option<Arc<ClContext>> {
    register();
    device::open()
}

/// An error or a warning on a bus.
#[derive(Debug)]
pub struct Fault {
    /// Name of the element that posted it.
    pub source: String,
    /// Text for the user.
    pub text: String,
}

/// Elements between a harness's pads, with a bus.
pub struct Rig {
    harness: Harness,
    bin: gst::Bin,
    bus: gst::Bus,
}

/// What `PUBLISHED` means in the pipelines of [`Rig`] and [`line()`]: the published formula of
/// `clpitchthreshold`, a verdict by marked pixels, and no search for the pattern.
pub const PUBLISHED: &str = "compare=average match-center=false multiples=<1> pitch-y=0 borders=skip scales=0 \
     min-contrast=0 threshold=10 fail=fail,defect-pixels=0,defect-area=0";

/// A pipeline's text with the settings that `PUBLISHED` stands for.
pub fn line(text: &str) -> String {
    text.replace("PUBLISHED", PUBLISHED)
}

impl Rig {
    /// `description` is a piece of a gst-launch line; frames of `caps` go in.
    pub fn new(description: &str, caps: &gst::Caps) -> Self {
        Self::between(description, caps, &gst::Caps::new_any())
    }

    /// Like [`Self::new`], with caps `wanted` downstream.
    pub fn between(description: &str, caps: &gst::Caps, wanted: &gst::Caps) -> Self {
        let bin = gst::parse::bin_from_description(&line(description), true).unwrap();
        let bus = gst::Bus::new();
        let mut harness = Harness::with_element(&bin, Some("sink"), Some("src"));
        bin.set_bus(Some(&bus));
        harness.set_sink_caps(wanted.clone());
        harness.set_src_caps(caps.clone());
        harness.play();
        Self { harness, bin, bus }
    }

    /// The only element made by `factory`.
    pub fn only(&self, factory: &str) -> gst::Element {
        let made: Vec<gst::Element> = self
            .bin
            .iterate_recurse()
            .into_iter()
            .flatten()
            .filter(|element| element.factory().is_some_and(|f| f.name() == factory))
            .collect();
        assert_eq!(made.len(), 1, "{factory}");
        made[0].clone()
    }

    /// The harness, for calls without a shorthand here.
    pub fn harness(&mut self) -> &mut Harness {
        &mut self.harness
    }

    /// Sets other caps for the next frames.
    pub fn renegotiate(&mut self, caps: &gst::Caps) {
        self.harness.set_src_caps(caps.clone());
    }

    /// Sends a frame in.
    pub fn push(&mut self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.harness.push(buffer)
    }

    /// Sends a frame in and returns the output; waits for elements that queue.
    #[track_caller]
    pub fn pass(&mut self, buffer: gst::Buffer) -> gst::Buffer {
        if let Err(flow) = self.push(buffer) {
            panic!("{flow:?}: {:?}", self.errors());
        }
        self.harness.pull().expect("a buffer comes out")
    }

    /// Pushes frames until the output shows the new settings: their kernels may have to be compiled
    /// first. Every output before that must satisfy `as_before`.
    #[track_caller]
    pub fn settle(
        &mut self,
        frame: impl Fn() -> gst::Buffer,
        as_wanted: impl Fn(&gst::Buffer) -> bool,
        as_before: impl Fn(&gst::Buffer) -> bool,
    ) -> gst::Buffer {
        let began = std::time::Instant::now();
        loop {
            let output = self.pass(frame());
            if as_wanted(&output) {
                return output;
            }
            assert!(
                as_before(&output),
                "the output matches neither the old nor the new settings"
            );
            let limit = std::time::Duration::from_secs(60);
            assert!(
                began.elapsed() < limit,
                "the new settings never take effect"
            );
        }
    }

    /// Whether there is no output.
    pub fn is_silent(&mut self) -> bool {
        self.harness.try_pull().is_none()
    }

    /// The caps of the output.
    pub fn output_caps(&self) -> gst::Caps {
        self.harness
            .sinkpad()
            .and_then(|pad| pad.current_caps())
            .expect("negotiated caps")
    }

    /// Errors posted since the last call.
    pub fn errors(&self) -> Vec<Fault> {
        faults(&self.bus, gst::MessageType::Error)
    }

    /// Warnings posted since the last call.
    pub fn warnings(&self) -> Vec<Fault> {
        faults(&self.bus, gst::MessageType::Warning)
    }

    /// Info messages posted since the last call.
    pub fn infos(&self) -> Vec<Fault> {
        faults(&self.bus, gst::MessageType::Info)
    }

    /// The next message of any element.
    pub fn next_element_message(&self) -> Option<gst::Message> {
        self.bus.pop_filtered(&[gst::MessageType::Element])
    }

    /// Element messages named `name`, posted since the last call for any name.
    pub fn told(&self, name: &str) -> Vec<gst::Structure> {
        told(&self.bus, name)
    }

    /// The next element message named `name`, for which frames are sent until it is there: `clreference` judges the frames of
    /// a training while others flow.
    #[track_caller]
    pub fn told_while(&mut self, name: &str, frame: impl Fn() -> gst::Buffer) -> gst::Structure {
        for _ in 0..1000 {
            if let Some(told) = self.told(name).pop() {
                return told;
            }
            self.pass(frame());
        }
        panic!("{name} is not told")
    }

    /// Takes the progress messages off the bus: type, and name of the element with the text.
    pub fn progress(&self) -> Vec<(gst::ProgressType, String)> {
        std::iter::from_fn(|| self.bus.pop_filtered(&[gst::MessageType::Progress]))
            .filter_map(|message| {
                let gst::MessageView::Progress(progress) = message.view() else {
                    return None;
                };
                let (kind, _, text) = progress.get();
                Some((kind, format!("{}: {text}", message.src()?.name())))
            })
            .collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.bin.set_bus(None);
    }
}

/// Takes errors or warnings off a bus.
pub fn faults(bus: &gst::Bus, kind: gst::MessageType) -> Vec<Fault> {
    let mut found = Vec::new();
    while let Some(message) = bus.pop_filtered(&[kind]) {
        let text = match message.view() {
            gst::MessageView::Error(error) => error.error().message().to_owned(),
            gst::MessageView::Warning(warning) => warning.error().message().to_owned(),
            gst::MessageView::Info(info) => info.error().message().to_owned(),
            _ => continue,
        };
        let source = message.src().map(|s| s.name().to_string());
        found.push(Fault {
            source: source.unwrap_or_default(),
            text,
        });
    }
    found
}

/// Takes element messages off a bus, and returns those named `name`.
pub fn told(bus: &gst::Bus, name: &str) -> Vec<gst::Structure> {
    std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Element]))
        .filter_map(|message| Some(message.structure()?.to_owned()))
        .filter(|structure| structure.name() == name)
        .collect()
}

/// A pipeline that is stopped when dropped, also during a panic.
pub struct Pipeline(gst::Pipeline);

impl Pipeline {
    /// Makes a pipeline without starting it.
    pub fn new(line: &str) -> Self {
        Self(
            gst::parse::launch(&self::line(line))
                .unwrap()
                .downcast()
                .unwrap(),
        )
    }

    /// The element of this name, downcast.
    #[track_caller]
    pub fn get<T: IsA<gst::Element>>(&self, name: &str) -> T {
        self.0.by_name(name).unwrap().downcast().unwrap()
    }

    /// Waits for EOS or an error; returns which came.
    #[track_caller]
    pub fn wait_for_end(&self) -> gst::Message {
        let ends = [gst::MessageType::Eos, gst::MessageType::Error];
        let bus = self.0.bus().unwrap();
        bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &ends)
            .expect("EOS or an error within a minute")
    }
}

impl std::ops::Deref for Pipeline {
    type Target = gst::Pipeline;

    fn deref(&self) -> &gst::Pipeline {
        &self.0
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// The outcome of a pipeline that was fed through its `appsrc name=in`.
#[derive(Debug)]
pub struct Fate {
    /// Errors posted by all elements except the source, which repeats errors of downstream.
    pub errors: Vec<Fault>,
    /// Buffers that reached `appsink name=out`.
    pub received: usize,
}

/// Runs `appsrc name=in ! <middle> ! appsink name=out` on the buffers until EOS or an error.
pub fn feed(middle: &str, caps: &gst::Caps, buffers: Vec<gst::Buffer>) -> Fate {
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! {middle} ! \
         appsink name=out sync=false async=false wait-on-eos=false"
    ));
    let input: gst_app::AppSrc = pipeline.get("in");
    let output: gst_app::AppSink = pipeline.get("out");
    input.set_caps(Some(caps));
    let bus = pipeline.bus().unwrap();
    if pipeline.set_state(gst::State::Playing).is_ok() {
        for buffer in buffers {
            // A source that an error stopped takes no more buffers.
            if input.push_buffer(buffer).is_err() {
                break;
            }
        }
        let _ = input.end_of_stream();
        // Posted again, so that errors are counted in one place.
        bus.post(pipeline.wait_for_end()).unwrap();
    }
    let mut received = 0;
    while output.try_pull_sample(gst::ClockTime::ZERO).is_some() {
        received += 1;
    }
    let mut errors = faults(&bus, gst::MessageType::Error);
    errors.retain(|fault| fault.source != "in");
    Fate { errors, received }
}

/// The frame as a buffer, without offset.
pub fn buffer_of(frame: &Frame, device: &Arc<ClContext>) -> gst::Buffer {
    frame.buffer(device, &Meter::new(false))
}

/// The frame as a buffer with a timestamp in ms and a duration of 10 ms.
pub fn buffer_at(frame: &Frame, device: &Arc<ClContext>, ms: u64) -> gst::Buffer {
    let mut buffer = buffer_of(frame, device);
    let writable = buffer.get_mut().unwrap();
    writable.set_pts(gst::ClockTime::from_mseconds(ms));
    writable.set_duration(gst::ClockTime::from_mseconds(10));
    buffer
}

/// A frame of noise.
pub fn noise(format: Format, size: [usize; 2], arrangement: Arrangement) -> Frame {
    gst::init().unwrap();
    Frame::showing(format, size, arrangement, Content::Random, 0)
}

/// A frame of one level.
pub fn constant(size: [usize; 2], level: u8) -> Frame {
    let mut frame = Frame::poisoned(Format::Gray8, size, PLAIN, level);
    frame.bytes.fill(level);
    frame
}

/// Caps of a frame.
pub fn caps_of(frame: &Frame) -> gst::Caps {
    frame.info.to_caps().unwrap()
}

/// Settings of the reference that match `pitch-x`, `pitch-y` and `threshold`.
pub fn pitch_threshold_settings(pitch_x: f64, pitch_y: f64, threshold: f64) -> Settings {
    Settings {
        vectors: Vec::new(),
        pitch_x,
        pitch_y,
        multiples: vec![1],
        threshold,
        compare: Compare::Average,
        match_center: false,
        polarity: Polarity::Both,
        inward: false,
        edge_margin: 0,
        scales: 0,
        scale_factors: Vec::new(),
        min_contrast: 0.0,
        bit_depth: 0,
        rois: Vec::new(),
        ignored: Vec::new(),
    }
}

/// A grey frame behind a Gaussian of this size, with the standard deviation that follows from the size.
pub fn smoothed(frame: &Frame, kernel_size: usize) -> Frame {
    let mut smoothed = frame.clone();
    let samples = gaussian_integer(frame.component(0), kernel_size, 0.0);
    smoothed.set(&[samples], frame);
    smoothed
}

/// The result of the comparison on a frame's first component.
pub fn judged(frame: &Frame, pitch_x: f64, pitch_y: f64, threshold: f64) -> Outcome {
    compare(
        frame.component(0),
        &pitch_threshold_settings(pitch_x, pitch_y, threshold),
    )
}

/// Whether an element is building an operator on another thread.
pub fn is_compiling() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.flatten().any(|thread| {
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "clbuild\n")
    })
}

/// Sets a property without glib-rs's check of the range, as a C program can.
pub fn set_unchecked(element: &gst::Element, name: &std::ffi::CStr, value: &gst::glib::Value) {
    use gst::glib::translate::ToGlibPtr;
    // SAFETY: the object and the value live during the call.
    unsafe {
        gst::glib::gobject_ffi::g_object_set_property(
            element.upcast_ref::<gst::glib::Object>().to_glib_none().0,
            name.as_ptr(),
            value.to_glib_none().0,
        );
    }
}

/// A string value of any bytes, as a C program can make.
pub fn text(bytes: &std::ffi::CStr) -> gst::glib::Value {
    use gst::glib::translate::ToGlibPtrMut;
    let mut value = gst::glib::Value::from_type(gst::glib::Type::STRING);
    // SAFETY: the value holds a string, and copies the bytes.
    unsafe {
        gst::glib::gobject_ffi::g_value_set_string(value.to_glib_none_mut().0, bytes.as_ptr());
    }
    value
}
