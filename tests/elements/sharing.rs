//! Memory with several users, and elements that stop while their frames are in use.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::alone;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    frames::{Frame, PLAIN, read},
    results::assert_counted,
    support::{Pipeline, Rig, buffer_of, caps_of, faults, judged, noise, smoothed, start},
};

const SIZE: [usize; 2] = [320, 64];
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// Longest wait for a buffer that was freed.
const WAKE_LIMIT: Duration = Duration::from_secs(10);

/// Different frames.
fn frames(count: usize) -> Vec<Frame> {
    (0..count)
        .map(|number| {
            let mut frame = noise(Format::Gray8, SIZE, PLAIN);
            frame.bytes.rotate_left(7 * number);
            frame
        })
        .collect()
}

/// Sends frames one by one through the pipeline's `appsrc name=in`.
fn send(pipeline: &Pipeline, buffers: Vec<gst::Buffer>, caps: &gst::Caps) {
    let input: gst_app::AppSrc = pipeline.get("in");
    input.set_caps(Some(caps));
    pipeline.set_state(gst::State::Playing).unwrap();
    for buffer in buffers {
        input.push_buffer(buffer).unwrap();
    }
    input.end_of_stream().unwrap();
}

#[test]
fn reader_and_kernels_on_one_buffer_behind_a_tee_see_the_same_pixels() {
    let Some(device) = start() else { return };
    let frames = frames(24);
    let branch = |line: &str| {
        format!(
            "t. ! queue ! {line} ! appsink name=out{} sync=false",
            line.len()
        )
    };
    let lines = [
        "identity",
        "clhistogram",
        "clpitchthreshold PUBLISHED pitch-x=5",
    ];
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! clgaussian ! tee name=t {} {} {}",
        branch(lines[0]),
        branch(lines[1]),
        branch(lines[2])
    ));
    let buffers = frames.iter().map(|f| buffer_of(f, &device)).collect();
    send(&pipeline, buffers, &caps_of(&frames[0]));
    std::thread::scope(|scope| {
        for line in lines {
            let (pipeline, frames) = (&pipeline, &frames);
            scope.spawn(move || {
                let output: gst_app::AppSink = pipeline.get(&format!("out{}", line.len()));
                for (number, frame) in frames.iter().enumerate() {
                    let sample = output.pull_sample().unwrap();
                    let buffer = sample.buffer_owned().unwrap();
                    let expected = smoothed(frame, 3);
                    match line {
                        "identity" => assert_eq!(read(&buffer), expected.bytes, "{number}"),
                        "clhistogram" => {
                            let found = &HistogramResult::read(&buffer)[0];
                            assert_counted(&expected, found, [0, 0, SIZE[0], SIZE[1]]);
                            assert_eq!(read(&buffer), expected.bytes, "{number}");
                        }
                        _ => {
                            let outcome = judged(&expected, 5.0, 0.0, 10.0);
                            assert_eq!(read(&buffer), outcome.packed, "{number}");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn writer_behind_a_tee_changes_its_own_copy_alone() {
    let Some(device) = start() else { return };
    let frames = frames(12);
    let pipeline = Pipeline::new(
        "appsrc name=in format=time ! clgaussian ! tee name=t \
         t. ! queue ! identity drop-probability=0 ! appsink name=write sync=false \
         t. ! queue ! clhistogram ! appsink name=keep sync=false",
    );
    let buffers = frames.iter().map(|f| buffer_of(f, &device)).collect();
    send(&pipeline, buffers, &caps_of(&frames[0]));
    let writes: gst_app::AppSink = pipeline.get("write");
    let keeps: gst_app::AppSink = pipeline.get("keep");
    for frame in &frames {
        let expected = smoothed(frame, 3);
        let mut mine = writes.pull_sample().unwrap().buffer_owned().unwrap();
        // Write four bytes through a write-only map.
        mine.make_mut().copy_from_slice(100, &[1, 2, 3, 4]).unwrap();
        let mut changed = expected.bytes.clone();
        changed[100..104].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(read(&mine), changed);
        let kept = keeps.pull_sample().unwrap().buffer_owned().unwrap();
        assert_eq!(read(&kept), expected.bytes);
        let counted = &HistogramResult::read(&kept)[0];
        assert_counted(&expected, counted, [0, 0, SIZE[0], SIZE[1]]);
    }
}

#[test]
fn frames_held_for_long_keep_their_pixels() {
    let Some(device) = start() else { return };
    let frames = frames(40);
    let mut rig = Rig::new("clgaussian ! clhistogram", &caps_of(&frames[0]));
    // More than the buffers of any pool.
    let held: Vec<gst::Buffer> = frames
        .iter()
        .map(|frame| rig.pass(buffer_of(frame, &device)))
        .collect();
    for (buffer, frame) in held.iter().zip(&frames) {
        assert_eq!(read(buffer), smoothed(frame, 3).bytes);
    }
    // Masks too, both as buffers and in metas.
    let mut rig = Rig::new(
        "clpitchthreshold PUBLISHED pitch-x=5 output=frame",
        &caps_of(&frames[0]),
    );
    let held: Vec<gst::Buffer> = frames
        .iter()
        .map(|frame| rig.pass(buffer_of(frame, &device)))
        .collect();
    drop(rig);
    for (buffer, frame) in held.iter().zip(&frames) {
        let mask = DefectResult::read(buffer)[0].mask.clone().unwrap();
        assert_eq!(read(&mask), judged(frame, 5.0, 0.0, 10.0).packed);
    }
}

#[test]
fn source_that_waits_for_an_exhausted_pool_is_freed_by_a_flush_and_by_a_frame() {
    let Some(_device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let caps = caps_of(&frame);
    let mut rig = Rig::new("clhistogram", &caps);
    let mut query = gst::query::Allocation::new(Some(&caps), true);
    assert!(rig.harness().srcpad().unwrap().peer_query(&mut query));
    let (pool, size, ..) = query.allocation_pools().next().unwrap();
    let pool = pool.unwrap();
    let mut config = pool.config();
    config.set_params(Some(&caps), size, 2, 2);
    pool.set_config(config).unwrap();
    pool.set_active(true).unwrap();
    let mut held = vec![
        pool.acquire_buffer(None).unwrap(),
        pool.acquire_buffer(None).unwrap(),
    ];
    let waiting = |free: &mut dyn FnMut()| {
        let (sender, acquired) = mpsc::channel();
        let pool = pool.clone();
        // Not joined, because the thread never ends if the buffer is not freed.
        std::thread::spawn(move || sender.send(pool.acquire_buffer(None)));
        let early = acquired.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "the pool was not exhausted");
        free();
        acquired
            .recv_timeout(WAKE_LIMIT)
            .expect("the source is freed")
    };
    // A frame that the element no longer uses.
    let mut inspected = held.pop();
    let acquired = waiting(&mut || {
        let mut buffer = inspected.take().unwrap();
        let writable = buffer.get_mut().unwrap();
        writable.copy_from_slice(0, &frame.bytes).unwrap();
        drop(rig.pass(buffer));
    });
    held.push(acquired.unwrap());
    let flushed = waiting(&mut || pool.set_flushing(true));
    assert_eq!(flushed.unwrap_err(), gst::FlowError::Flushing);
    pool.set_flushing(false);
    held.clear();
    pool.acquire_buffer(None).unwrap();
    pool.set_active(false).unwrap();
}

#[test]
fn stop_from_another_thread_while_a_kernel_runs_is_short_and_clean() {
    // Other tests' compilers would delay a stop here too.
    let test = "sharing::stop_from_another_thread_while_a_kernel_runs_is_short_and_clean";
    if alone(test, &[]).is_some() || start().is_none() {
        return;
    }
    for (round, line) in [
        "clgaussian kernel-size=31 arithmetic=float",
        "clhistogram strategy=local",
        "clpitchthreshold PUBLISHED pitch-x=7.35 pitch-y=7.35 compare=minimum multiples=<1,4>",
        "clgaussian kernel-size=31 ! clhistogram ! clpitchthreshold PUBLISHED pitch-x=8",
    ]
    .iter()
    .enumerate()
    {
        let pipeline = Pipeline::new(&format!(
            "videotestsrc ! video/x-raw,format=GRAY8,width=1920,height=1080 ! {line} ! \
             fakesink sync=false"
        ));
        // A stop cannot interrupt a driver's compiler, which takes seconds on an empty cache: compile first.
        pipeline.set_state(gst::State::Paused).unwrap();
        pipeline
            .state(Some(gst::ClockTime::from_seconds(120)))
            .0
            .unwrap();
        pipeline.set_state(gst::State::Null).unwrap();
        // Check errors of the stop too.
        pipeline.set_auto_flush_bus(false);
        for ms in [0, 1, 7, 30, 90] {
            pipeline.set_state(gst::State::Playing).unwrap();
            std::thread::sleep(Duration::from_millis(ms + round as u64));
            let begin = Instant::now();
            std::thread::scope(|scope| {
                // Two threads stop at the same time, like an application and its bus handler.
                scope.spawn(|| pipeline.set_state(gst::State::Null));
                scope.spawn(|| pipeline.set_state(gst::State::Null));
            });
            pipeline.set_state(gst::State::Null).unwrap();
            assert!(
                begin.elapsed() < STOP_LIMIT,
                "{line}: {:?}",
                begin.elapsed()
            );
            let errors = faults(&pipeline.bus().unwrap(), gst::MessageType::Error);
            assert!(errors.is_empty(), "{line}: {errors:?}");
        }
    }
}
