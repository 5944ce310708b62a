//! The chains, each with many frames.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    device::say,
    expected::{Result, Step, write_models},
    frames::{ARRANGEMENTS, Arrangement, Frame, PLAIN},
    panels::spotted,
    resources::{Trend, alone},
    setting,
    support::{Pipeline, buffer_of, caps_of, faults, noise, start},
};

/// No multiple of a work-group or a vector; no format has padding at this size.
const SIZE: [usize; 2] = [164, 122];
/// Different frames, sent in a cycle. Prime and more than the buffers of a pipeline, so that a reused
/// buffer never holds the expected contents already.
const FRAMES: usize = 11;
/// Number of resource samples in a run.
const SAMPLES: usize = 20;
/// Growth allowed for heap fragmentation, KiB.
const RSS_LIMIT_KIB: i64 = 256;
/// GPU memory that the driver may allocate late, MiB.
const GPU_LIMIT_MIB: i64 = 8;
const THRESHOLD: f64 = 14.0;

struct Chain {
    name: &'static str,
    format: Format,
    /// Panels with planted defects; else noise.
    panels: bool,
    steps: &'static [Step],
}

const CHAINS: [Chain; 11] = [
    Chain {
        name: "gaussian-grey",
        format: Format::Gray8,
        panels: false,
        steps: &[Step::Gaussian(3)],
    },
    Chain {
        name: "gaussian-rgb",
        format: Format::Rgb,
        panels: false,
        steps: &[Step::Gaussian(7)],
    },
    Chain {
        name: "gaussian-images",
        // Images of several channels are slow on PoCL.
        format: Format::Gray8,
        panels: false,
        steps: &[Step::GaussianOfImages(3), Step::Gaussian(3)],
    },
    Chain {
        name: "histogram-rgb",
        format: Format::Rgb,
        panels: false,
        steps: &[Step::Histogram],
    },
    Chain {
        name: "histogram-grey16",
        format: Format::Gray16Le,
        panels: false,
        steps: &[Step::Gaussian(3), Step::Histogram],
    },
    Chain {
        name: "pitch-grey",
        format: Format::Gray8,
        panels: true,
        steps: &[Step::Pitch(7.35, THRESHOLD)],
    },
    Chain {
        name: "pitch-frames",
        format: Format::Nv12,
        panels: true,
        steps: &[Step::PitchOfFrames(7.35, THRESHOLD)],
    },
    Chain {
        name: "pitch-unpacked",
        format: Format::Gray8,
        panels: true,
        steps: &[Step::Pitch(14.7, THRESHOLD), Step::Unpack],
    },
    Chain {
        name: "light-and-reference",
        format: Format::Gray8,
        panels: true,
        steps: &[Step::FlatField, Step::Reference(60.0)],
    },
    Chain {
        name: "all",
        format: Format::Gray8,
        panels: true,
        steps: &[
            Step::Gaussian(3),
            Step::Histogram,
            Step::Pitch(7.35, THRESHOLD),
        ],
    },
    Chain {
        name: "web",
        format: Format::Gray8,
        panels: true,
        steps: &[
            Step::GaussianOfWeb(5),
            Step::Histogram,
            Step::PitchOfWeb(7.35, THRESHOLD),
        ],
    },
];

/// What a chain must give for `count` frames.
struct Expected {
    results: Vec<Result>,
    is_web: bool,
    count: usize,
}

impl Expected {
    /// Rounds of a web that the reference computes: the first one, the last one, and one that stands for all
    /// between them.
    const ROUNDS: usize = 3;

    /// Strips of the web that the reference computes; the last one shows the same frame as the last of `count`.
    fn strips(count: usize) -> usize {
        if count < (Self::ROUNDS + 1) * FRAMES {
            count
        } else {
            Self::ROUNDS * FRAMES + count % FRAMES
        }
    }

    fn of(&self, number: usize) -> &Result {
        let left = self.count - number;
        let strips = Self::strips(self.count);
        &self.results[match number {
            _ if !self.is_web => number % FRAMES,
            _ if number < FRAMES || strips == self.count => number,
            _ if left <= FRAMES => strips - left,
            _ => FRAMES + number % FRAMES,
        }]
    }
}

/// Stops a pipeline on drop, also in a panic, so that the feeding thread continues.
struct StopAtEnd<'a>(&'a gst::Pipeline);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// A folder with the files of [`write_models`], removed at the end.
struct Models(PathBuf);

impl Models {
    fn new() -> Self {
        let folder = format!("clinspect-endurance-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        write_models(&folder, SIZE);
        Self(folder)
    }
}

impl Drop for Models {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Chain {
    /// The frames of the cycle.
    fn frames(&self) -> Vec<Frame> {
        let mut panel = spotted(SIZE);
        (0..FRAMES)
            .map(|number| {
                let arrangement = self.arrangement(number);
                if self.panels {
                    panel.next_as(self.format, arrangement, number)
                } else {
                    // Noise depends only on the size, so rotate it to make frames different.
                    let mut frame = noise(self.format, SIZE, arrangement);
                    frame.bytes.rotate_left(4 * number);
                    frame
                }
            })
            .collect()
    }

    /// The results of the references for `count` frames that go round.
    fn expected(&self, frames: &[Frame], count: usize) -> Expected {
        let is_web = self.steps.iter().any(|step| step.is_of_web());
        let results = if is_web {
            let strips = (0..Expected::strips(count)).map(|number| &frames[number % FRAMES]);
            Result::of_web(self.steps, &strips.collect::<Vec<_>>())
        } else {
            let each = frames.iter();
            each.map(|frame| Result::expected(self.steps, frame))
                .collect()
        };
        Expected {
            results,
            is_web,
            count,
        }
    }

    /// Alternates between our memory and system memory.
    fn arrangement(&self, number: usize) -> Arrangement {
        [PLAIN, ARRANGEMENTS[1]][number % 2]
    }

    /// Sends `count` frames through the chain on a device, and hands each result to `look`.
    fn run(
        &self,
        device: (&str, &Arc<ClContext>),
        models: &Path,
        frames: &[Frame],
        count: usize,
        mut look: impl FnMut(usize, &gst::Buffer),
    ) {
        let elements: Vec<String> = (self.steps.iter())
            .map(|step| step.line(device.0, models))
            .collect();
        let pipeline = Pipeline::new(&format!(
            "appsrc name=in format=time block=true max-buffers=4 max-bytes=0 max-time=0 ! {} ! \
             appsink name=out sync=false max-buffers=4 wait-on-eos=false",
            elements.join(" ! ")
        ));
        let input: gst_app::AppSrc = pipeline.get("in");
        let output: gst_app::AppSink = pipeline.get("out");
        input.set_caps(Some(&caps_of(&frames[0])));
        let buffers: Vec<gst::Buffer> = frames
            .iter()
            .map(|frame| buffer_of(frame, device.1))
            .collect();
        let bus = pipeline.bus().unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..count {
                    let mut buffer = buffers[number % buffers.len()].copy();
                    let time = gst::ClockTime::from_mseconds(number as u64);
                    buffer.get_mut().unwrap().set_pts(time);
                    if input.push_buffer(buffer).is_err() {
                        return;
                    }
                }
                let _ = input.end_of_stream();
            });
            let _stop = StopAtEnd(&pipeline);
            let mut received = 0;
            while let Ok(sample) = output.pull_sample() {
                let buffer = sample.buffer_owned().unwrap();
                let time = gst::ClockTime::from_mseconds(received as u64);
                assert_eq!(
                    buffer.pts(),
                    Some(time),
                    "{}: a frame is missing",
                    self.name
                );
                look(received, &buffer);
                received += 1;
                // Take the messages, or they accumulate.
                while bus.pop_filtered(&[gst::MessageType::Element]).is_some() {}
            }
            let errors = faults(&bus, gst::MessageType::Error);
            assert_eq!(received, count, "{}: {errors:?}", self.name);
        });
    }
}

#[test]
fn every_chain_frame_after_frame_equals_the_references_and_does_not_grow() {
    let _alone = alone();
    let Some(device) = start() else { return };
    let name = device.device_name().to_owned();
    let count = setting("CLINSPECT_ENDURANCE_FRAMES", 200);
    let other = std::env::var("CLINSPECT_OTHER_DEVICE").unwrap_or_else(|_| "cpu".into());
    let other = clinspect_opencl::open(&other)
        .ok()
        .filter(|other| other.device_name() != name);
    let models = Models::new();
    for chain in &CHAINS {
        let frames = chain.frames();
        let mut compared = "the reference".to_owned();
        if let Some(other) = &other {
            let other_name = other.device_name();
            let expected = chain.expected(&frames, FRAMES);
            chain.run(
                (other_name, other),
                &models.0,
                &frames,
                FRAMES,
                |number, buffer| {
                    let difference = Result::read(buffer).difference(expected.of(number));
                    assert_eq!(difference, None, "{} on {other_name}", chain.name);
                },
            );
            compared = format!("the reference and {other_name}");
        }
        let expected = chain.expected(&frames, count);
        let mut trend = Trend::default();
        let begin = Instant::now();
        chain.run(
            (&name, &device),
            &models.0,
            &frames,
            count,
            |number, buffer| {
                let difference = Result::read(buffer).difference(expected.of(number));
                assert_eq!(difference, None, "{} on {name}, frame {number}", chain.name);
                if number % (count / SAMPLES).max(1) == 0 {
                    trend.add(number as u64);
                }
            },
        );
        let took = begin.elapsed().as_secs_f64();
        let growth = trend.growth(0.25);
        let good = growth.rss_kib <= RSS_LIMIT_KIB
            && growth.gpu_mib <= GPU_LIMIT_MIB
            && growth.fds <= 0
            && growth.threads <= 0;
        say(&format!(
            "{} {} on {name}: {count} frames equal {compared}, {took:.1} s; growth after a \
             quarter: RSS {} KiB ({:.1} KiB per 10 000 frames), GPU {} MiB, fds {}, threads {}",
            if good { "PASS" } else { "FAIL" },
            chain.name,
            growth.rss_kib,
            growth.rss_slope,
            growth.gpu_mib,
            growth.fds,
            growth.threads,
        ));
        assert!(good, "{}: {growth:?}", chain.name);
    }
}
