//! A web of a line camera in many short strips: every defect is listed once, and the process does not
//! grow.

use std::time::Instant;

use gst::prelude::*;
use gstclinspect::results::DefectResult;

use crate::{
    device::say,
    resources::{Trend, alone},
    setting,
    support::{Pipeline, faults, start},
};

/// Size of a strip. Rows are a multiple of the period: all strips are equal but for the defects.
#[derive(Clone, Copy)]
struct Size {
    width: usize,
    rows: usize,
}

/// The pattern's period along both axes.
const PERIOD: usize = 8;
/// A spot on the seam behind each strip with a number of this multiple.
const SPOT_EVERY: usize = 10;
const SPOT_COLUMNS: std::ops::Range<usize> = 100..103;
/// A column line begins with each strip with a number of this multiple, and is so many strips long.
const LINE_EVERY: usize = 1000;
const LINE_STRIPS: usize = 50;
const LINE_COLUMNS: std::ops::Range<usize> = 32..34;
const BRIGHTER: u8 = 60;
const CHAIN: &str = "clgaussian line-scan=true ! clpitchthreshold line-scan=true pitch-x=8 pitch-y=8 \
                     threshold=15 reports=reports,interval=10000000000";
const SLOPE_LIMIT_KIB: f64 = 16.0;
const SAMPLES: usize = 100;

/// The defects of a strip.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Planted {
    /// The upper half of a spot in the last row.
    begins: bool,
    /// The lower half of a spot in the first row.
    ends: bool,
    /// A line from the first to the last row.
    line: bool,
}

impl Planted {
    fn of(number: usize) -> Self {
        Self {
            begins: number.is_multiple_of(SPOT_EVERY),
            ends: number % SPOT_EVERY == 1,
            line: number >= LINE_EVERY && number % LINE_EVERY < LINE_STRIPS,
        }
    }
}

fn strip(size: Size, planted: Planted) -> gst::Memory {
    let mut bytes = Vec::with_capacity(size.width * size.rows);
    for y in 0..size.rows {
        for x in 0..size.width {
            let wave = |at: usize| (std::f64::consts::TAU * at as f64 / PERIOD as f64).cos();
            let mut level = (110.0 + 30.0 * wave(x) + 30.0 * wave(y)) as u8;
            let spot = (y == size.rows - 1 && planted.begins) || (y == 0 && planted.ends);
            if (spot && SPOT_COLUMNS.contains(&x)) || (planted.line && LINE_COLUMNS.contains(&x)) {
                level += BRIGHTER;
            }
            bytes.push(level);
        }
    }
    gst::Memory::from_slice(bytes)
}

fn many_strips(size: Size, count: usize, what: &str) {
    let _alone = alone();
    if start().is_none() {
        return;
    }
    // Few strips differ, and these are made once.
    let mut made: Vec<(Planted, gst::Memory)> = Vec::new();
    let mut content = |number: usize| {
        let planted = Planted::of(number);
        if let Some((_, memory)) = made.iter().find(|(known, _)| *known == planted) {
            return memory.clone();
        }
        let memory = strip(size, planted);
        made.push((planted, memory.clone()));
        memory
    };
    let Size { width, rows } = size;
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time block=true max-buffers=4 max-bytes=0 max-time=0 \
         caps=video/x-raw,format=GRAY8,width={width},height={rows},framerate=1000/1 ! {CHAIN} ! \
         appsink name=out sync=false max-buffers=4 wait-on-eos=false"
    ));
    let input: gst_app::AppSrc = pipeline.get("in");
    let output: gst_app::AppSink = pipeline.get("out");
    let bus = pipeline.bus().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let begin = Instant::now();
    let (mut sent, mut received, mut defects, mut tall) = (0, 0, 0, 0);
    let mut trend = Trend::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..count {
                let mut buffer = gst::Buffer::new();
                let fields = buffer.get_mut().unwrap();
                fields.append_memory(content(number));
                fields.set_offset(number as u64);
                fields.set_pts(gst::ClockTime::from_mseconds(number as u64));
                if input.push_buffer(buffer).is_err() {
                    return;
                }
                sent += 1;
            }
            let _ = input.end_of_stream();
        });
        while let Ok(sample) = output.pull_sample() {
            let buffer = sample.buffer().unwrap();
            assert_eq!(
                buffer.offset(),
                received as u64,
                "{what}: a strip is missing"
            );
            let result = DefectResult::read(buffer).pop().unwrap();
            assert_eq!(result.first_line, (received * rows) as u64);
            assert_eq!(result.web, 0);
            for defect in &result.defects {
                defects += 1;
                tall += usize::from(defect.height as usize >= LINE_STRIPS * rows);
                assert_eq!(defect.id as usize, defects);
            }
            if received.is_multiple_of((count / SAMPLES).max(1)) {
                trend.add(received as u64);
            }
            received += 1;
            while bus.pop_filtered(&[gst::MessageType::Element]).is_some() {}
        }
    });
    let errors = faults(&bus, gst::MessageType::Error);
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!((sent, received), (count, count), "{errors:?}");
    // A spot or line whose first strip is among the strips is listed.
    let lines = (count.saturating_sub(1)) / LINE_EVERY;
    let expected = count.div_ceil(SPOT_EVERY) + lines;
    let whole = (LINE_EVERY + LINE_STRIPS..=count)
        .step_by(LINE_EVERY)
        .count();
    let (first, last) = trend.ends();
    let growth = trend.growth(0.25);
    let good = (defects, tall) == (expected, whole)
        && (count < 10_000 || growth.rss_slope <= SLOPE_LIMIT_KIB)
        && growth.fds <= 0
        && growth.threads <= 0;
    say(&format!(
        "{} {what}: {sent} strips of {width}x{rows} in, {received} out, in {:.1} s; {defects} defects of \
         {expected}, {tall} of {whole} lines whole; RSS {} KiB at the first strip, {} at the last; after a \
         quarter {:+} KiB ({:.1} per 10 000 strips), fds {:+}, threads {:+}",
        if good { "PASS" } else { "FAIL" },
        begin.elapsed().as_secs_f64(),
        first.rss_kib,
        last.rss_kib,
        growth.rss_kib,
        growth.rss_slope,
        growth.fds,
        growth.threads,
    ));
    assert!(good, "{growth:?}");
}

#[test]
fn defects_of_a_web_of_short_strips_are_listed_once() {
    let size = Size {
        width: 136,
        rows: PERIOD,
    };
    many_strips(size, 2 * LINE_EVERY, "web");
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn soak_of_a_web() {
    let count = setting("CLINSPECT_SOAK_STRIPS", 100_000);
    let size = Size {
        width: 1024,
        rows: 64,
    };
    many_strips(size, count, "soak of a web");
}
