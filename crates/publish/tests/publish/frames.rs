//! Frames with results, pushed through the element.

use std::time::{Duration, Instant};

use clinspect_results::{AlignStep, Alignment, Defect, DefectResult, HistogramResult, Verdict};
use gst::prelude::*;

/// The element between two pads.
pub struct Rig {
    harness: gst_check::Harness,
    bus: gst::Bus,
    number: u64,
}

impl Rig {
    /// The element with these properties as in a gst-launch line, running.
    pub fn new(properties: &str) -> Self {
        gst::init().unwrap();
        gstinspectpublish::register_static().unwrap();
        let line = format!("inspectpublish {properties}");
        let element = gst::parse::launch(&line).expect("the element");
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
        harness.play();
        Self {
            harness,
            bus,
            number: 0,
        }
    }

    /// Sends the next frame, which fails with this many defects.
    pub fn push_defects(&mut self, count: usize) {
        let mut result = result(self.number, Verdict::Fail);
        result.defects = vec![result.defects[0]; count];
        self.push_result(&result);
    }

    /// Sends the next frame with this verdict; it must come out unchanged.
    pub fn push(&mut self, verdict: Verdict) {
        self.push_result(&result(self.number, verdict));
    }

    fn push_result(&mut self, result: &DefectResult) {
        let mut buffer = gst::Buffer::with_size(64 * 48).unwrap();
        let frame = buffer.get_mut().unwrap();
        frame.set_pts(gst::ClockTime::from_mseconds(40 * self.number));
        result.attach(frame).unwrap();
        histogram(self.number).attach(frame).unwrap();
        self.number += 1;
        let pointer = buffer.as_ptr();
        assert_eq!(self.harness.push(buffer), Ok(gst::FlowSuccess::Ok));
        assert_eq!(self.harness.pull().unwrap().as_ptr(), pointer);
    }

    /// Sends this many frames that fail.
    pub fn push_fails(&mut self, count: usize) {
        for _ in 0..count {
            self.push(Verdict::Fail);
        }
    }

    /// A field of `stats`.
    pub fn stat(&self, name: &str) -> u64 {
        let element = self.harness.element().unwrap();
        element
            .property::<gst::Structure>("stats")
            .get(name)
            .unwrap()
    }

    /// Waits until a field of `stats` is at least `least`.
    #[track_caller]
    pub fn wait_for(&self, name: &str, least: u64) {
        let begun = Instant::now();
        while self.stat(name) < least {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{name} is {}: {:?}",
                self.stat(name),
                self.told()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Texts of the warnings and infos since the last call, in order.
    pub fn told(&self) -> Vec<String> {
        let kinds = [
            gst::MessageType::Warning,
            gst::MessageType::Info,
            gst::MessageType::Error,
        ];
        std::iter::from_fn(|| self.bus.pop_filtered(&kinds))
            .map(|message| match message.view() {
                gst::MessageView::Warning(m) => format!("warning: {}", m.error().message()),
                gst::MessageView::Info(m) => format!("info: {}", m.error().message()),
                gst::MessageView::Error(m) => format!("error: {}", m.error().message()),
                _ => String::new(),
            })
            .collect()
    }

    /// Waits for a warning or an info that contains `word`, and takes it with all before it.
    #[track_caller]
    pub fn wait_until_told(&self, word: &str) -> String {
        let begun = Instant::now();
        let mut told = Vec::new();
        loop {
            told.extend(self.told());
            if let Some(text) = told.iter().find(|text| text.contains(word)) {
                return text.clone();
            }
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(30), "no {word:?} in {told:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the element; the time that it took.
    pub fn stop(self) -> Duration {
        let begun = Instant::now();
        let element = self.harness.element().unwrap();
        element.set_state(gst::State::Null).unwrap();
        begun.elapsed()
    }
}

/// The error of a start with these properties.
pub fn refusal(properties: &str) -> String {
    gst::init().unwrap();
    gstinspectpublish::register_static().unwrap();
    let element = gst::parse::launch(&format!("inspectpublish {properties}")).unwrap();
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    assert!(
        element.set_state(gst::State::Paused).is_err(),
        "{properties}"
    );
    let message = bus
        .pop_filtered(&[gst::MessageType::Error])
        .expect("an error");
    element.set_state(gst::State::Null).unwrap();
    match message.view() {
        gst::MessageView::Error(error) => error.error().message().to_owned(),
        _ => String::new(),
    }
}

fn result(frame_number: u64, verdict: Verdict) -> DefectResult {
    let defect = Defect {
        x: -3,
        y: 5,
        width: 8,
        height: 4,
        area: 21,
        mean_difference: -31.25,
        peak_difference: f32::NEG_INFINITY,
        polarity: -1,
        id: 7,
        class: 1,
        ..Defect::default()
    };
    DefectResult {
        element: "inspect".into(),
        frame_number,
        width: 64,
        height: 48,
        mm_per_pixel_x: 0.5,
        mm_per_pixel_y: 0.5,
        mean_level: 120.0,
        judged_pixels: 3000,
        defect_pixels: 21,
        verdict,
        defects: if verdict == Verdict::Fail {
            vec![defect]
        } else {
            Vec::new()
        },
        class_names: vec!["scratch \"long\"".into()],
        alignment: Some(Alignment {
            shift_x: 3.0,
            shift_y: -4.5,
            match_score: 0.875,
            matched: true,
            // Turned by a right angle, twice as large.
            transform: [1.0, 0.0, -2.0, 5.0, 2.0, 0.0],
            misfit: 1.5,
            step: AlignStep::Affine,
            largest_local_shift: f64::NAN,
        }),
        learning: (verdict == Verdict::None).then_some([7, 24]),
        training: (verdict == Verdict::None).then_some([3, 25]),
        ..DefectResult::default()
    }
}

fn histogram(frame_number: u64) -> HistogramResult {
    let mut counts = vec![0; 256];
    counts[120] = 64 * 48;
    HistogramResult {
        element: "light".into(),
        frame_number,
        format: "GRAY8".into(),
        width: 64,
        height: 48,
        roi: [0, 0, 64, 48],
        bit_depth: 8,
        bins: 256,
        statistics: vec![clinspect_core::statistics::Statistics::from_bins(
            &counts, 8,
        )],
        counts,
        alarms: vec!["over-exposed".into()],
        corrupted: false,
    }
}
