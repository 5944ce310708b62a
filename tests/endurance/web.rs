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

const WIDTH: usize = 136;
/// Rows of a strip, and the pattern's period along both axes: all strips are equal but for the defects.
const ROWS: usize = 8;
/// A spot on the seam behind each strip with a number of this multiple.
const SPOT_EVERY: usize = 10;
const SPOT_COLUMNS: std::ops::Range<usize> = 100..103;
/// A column line begins with each strip with a number of this multiple, and is so many strips long.
const LINE_EVERY: usize = 1000;
const LINE_STRIPS: usize = 50;
const LINE_COLUMNS: std::ops::Range<usize> = 32..34;
const BRIGHTER: u8 = 60;
const CHAIN: &str = "clgaussian line-scan=true ! clpitchthreshold line-scan=true pitch-x=8 pitch-y=8 \
                     threshold=15 interval=10000000000";
const SLOPE_LIMIT_KIB: f64 = 16.0;
const SAMPLES: usize = 100;

/// Strip `number`: the pattern, with the lower half of a spot in its first row, the upper half in its last
/// row, and a line.
fn strip(number: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(WIDTH * ROWS);
    for y in 0..ROWS {
        for x in 0..WIDTH {
            let wave = |at: usize| (std::f64::consts::TAU * at as f64 / ROWS as f64).cos();
            let mut level = (110.0 + 30.0 * wave(x) + 30.0 * wave(y)) as u8;
            let spot = (y == ROWS - 1 && number.is_multiple_of(SPOT_EVERY))
                || (y == 0 && number % SPOT_EVERY == 1);
            let line = number >= LINE_EVERY && number % LINE_EVERY < LINE_STRIPS;
            if (spot && SPOT_COLUMNS.contains(&x)) || (line && LINE_COLUMNS.contains(&x)) {
                level += BRIGHTER;
            }
            bytes.push(level);
        }
    }
    bytes
}

/// The strips come round after this many; the first round has no line.
const ROUND: usize = 2 * LINE_EVERY;

fn many_strips(count: usize, what: &str) {
    let _alone = alone();
    if start().is_none() {
        return;
    }
    let strips: Vec<Vec<u8>> = (0..ROUND).map(strip).collect();
    let content = |number: usize| {
        let number = if number < LINE_EVERY {
            number
        } else {
            LINE_EVERY + number % LINE_EVERY
        };
        strips[number].clone()
    };
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time block=true max-buffers=4 max-bytes=0 max-time=0 \
         caps=video/x-raw,format=GRAY8,width={WIDTH},height={ROWS},framerate=1000/1 ! {CHAIN} ! \
         appsink name=out sync=false max-buffers=4 wait-on-eos=false"
    ));
    let input: gst_app::AppSrc = pipeline.get("in");
    let output: gst_app::AppSink = pipeline.get("out");
    let bus = pipeline.bus().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let begin = Instant::now();
    let (mut received, mut defects, mut tall) = (0, 0, 0);
    let mut trend = Trend::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..count {
                let mut buffer = gst::Buffer::from_slice(content(number));
                let fields = buffer.get_mut().unwrap();
                fields.set_offset(number as u64);
                fields.set_pts(gst::ClockTime::from_mseconds(number as u64));
                if input.push_buffer(buffer).is_err() {
                    return;
                }
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
            assert_eq!(result.first_line, (received * ROWS) as u64);
            assert_eq!(result.web, 0);
            for defect in &result.defects {
                defects += 1;
                tall += usize::from(defect.height as usize >= LINE_STRIPS * ROWS);
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
    assert_eq!(received, count, "{errors:?}");
    // A spot or line whose first strip is among the strips is listed.
    let lines = (count.saturating_sub(1)) / LINE_EVERY;
    let expected = count.div_ceil(SPOT_EVERY) + lines;
    let whole = (LINE_EVERY + LINE_STRIPS..=count)
        .step_by(LINE_EVERY)
        .count();
    let growth = trend.growth(0.25);
    let good = (defects, tall) == (expected, whole)
        && (count < 10_000 || growth.rss_slope <= SLOPE_LIMIT_KIB)
        && growth.fds <= 0
        && growth.threads <= 0;
    say(&format!(
        "{} {what}: {count} strips of {ROWS} rows in {:.1} s, {defects} defects of {expected}, {tall} of \
         {whole} lines whole; growth after a quarter: RSS {:+} KiB ({:.1} KiB per 10 000 strips), fds \
         {:+}, threads {:+}",
        if good { "PASS" } else { "FAIL" },
        begin.elapsed().as_secs_f64(),
        growth.rss_kib,
        growth.rss_slope,
        growth.fds,
        growth.threads,
    ));
    assert!(good, "{growth:?}");
}

#[test]
fn defects_of_a_web_of_short_strips_are_listed_once() {
    many_strips(2 * LINE_EVERY, "web");
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn soak_of_a_web() {
    let count = setting("CLINSPECT_SOAK_STRIPS", 100_000);
    many_strips(count, "soak of a web");
}
