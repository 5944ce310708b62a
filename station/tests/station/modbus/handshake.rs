//! Triggers and results of running cameras.

use std::{
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};
use serde_json::Value;

use super::{
    CLEAR, ENABLE, ERROR, ONLINE, OVERRUN, PASS, READY, REJECT, RESULT_ACK, RESULT_VALID, TRIGGER,
    TRIGGER_ACK, camera,
    client::{Client, words},
    start, table, triggered,
};

#[test]
fn each_trigger_gets_the_result_of_one_frame_with_its_part() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-trigger");
    let results = sandbox.path().join("results");
    let publish = format!("publish = {{ method = \"file\", location = {results:?} }}");
    let file = table("allow-commands = true") + &triggered("left") + &publish;
    let (station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    let epoch = plc.inputs(0).epoch();
    assert_ne!(epoch, 0);
    // Not ready before this write.
    plc.write(0, &[ENABLE | TRIGGER]);
    let words = plc.inputs(0);
    assert!(!words.has(TRIGGER_ACK) && words.has(ERROR), "{words:?}");
    assert_eq!((words.error(), words.missed()), (10, 1));
    plc.write(0, &[ENABLE | CLEAR]);
    let mut parts = Vec::new();
    for part in 100_000..100_020_u32 {
        plc.write(0, &[ENABLE]);
        let words = plc.wait(0, ONLINE | READY, TRIGGER_ACK | RESULT_VALID | ERROR);
        assert_eq!(words.missed(), 0);
        let [high, low] = [(part >> 16) as u16, part as u16];
        plc.write(0, &[ENABLE | TRIGGER, 0, high, low, 0]);
        let words = plc.inputs(0);
        assert!(words.has(TRIGGER_ACK), "{words:?}");
        let sequence = words.trigger();
        let words = plc.wait(0, RESULT_VALID, 0);
        assert_eq!(words.result(), sequence);
        assert!(words.has(PASS) && !words.has(REJECT), "{words:?}");
        assert_eq!((words.0[6], words.0[7], words.0[8]), (1, 0, 0));
        assert_eq!(words.epoch(), epoch);
        assert_eq!(plc.holding(1000, 22)[2..8], words.0[2..8], "the mirror");
        plc.write(0, &[ENABLE | TRIGGER | RESULT_ACK]);
        let words = plc.inputs(0);
        assert!(!words.has(RESULT_VALID) && words.has(TRIGGER_ACK));
        assert_eq!(words.result(), 0);
        plc.write(0, &[ENABLE]);
        parts.push((u64::from(sequence), u64::from(part)));
    }
    // The results that others get name the same frames.
    sleep(Duration::from_millis(300));
    station.end("TERM");
    let text = fs::read_to_string(&results).unwrap();
    let reports = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let published: Vec<(u64, u64)> = reports
        .filter_map(|report| Some((report["sequence"].as_u64()?, report["part"].as_u64()?)))
        .collect();
    for part in &parts {
        assert!(published.contains(part), "{part:?} {published:?}");
    }
}

#[test]
fn camera_without_a_trigger_sends_each_result_until_the_queue_is_full() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-every");
    let file = table("allow-commands = true") + &camera("left", "") + &triggered("right");
    let (_station, port) = start(&sandbox, &file, &["left", "right"]);
    let mut plc = Client::new(port);
    let mut other = Client::new(port);
    sleep(Duration::from_millis(200));
    assert!(!plc.inputs(0).has(RESULT_VALID | READY), "without enable");
    plc.write(0, &[ENABLE]);
    // One in the registers, eight behind it; the next one is dropped.
    let words = plc.wait(0, OVERRUN | RESULT_VALID, READY);
    assert!(words.missed() >= 1);
    let first = words.result();
    let mut sequences = vec![first];
    for _ in 1..9 {
        plc.write(0, &[ENABLE | RESULT_ACK]);
        assert!(!plc.inputs(0).has(RESULT_VALID));
        plc.write(0, &[ENABLE]);
        // Those that wait come at once.
        let words = plc.inputs(0);
        assert!(words.has(RESULT_VALID), "{words:?}");
        sequences.push(words.result());
    }
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    // The frames of both cameras share the numbers, so at most every second one is missing.
    assert!(sequences[8] - first <= 2 * 9, "{sequences:?}");
    // A read repeats nothing and takes nothing away.
    let again = [plc.inputs(0).result(), other.inputs(0).result()];
    assert_eq!(again, [sequences[8]; 2]);
    plc.write(0, &[ENABLE | CLEAR]);
    assert!(!plc.inputs(0).has(OVERRUN));
    plc.write(0, &[ENABLE | CLEAR | TRIGGER]);
    assert_eq!(plc.inputs(0).error(), 12);
    // The block of the second camera is its own.
    assert!(!plc.inputs(100).has(ERROR | RESULT_VALID | READY));
    plc.write(100, &[ENABLE]);
    plc.wait(100, READY, ERROR);
}

#[test]
fn every_function_reads_and_writes_as_the_protocol_says() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-functions");
    let file = table("allow-commands = true\nallow-from = [\"127.0.0.1\"]") + &triggered("left");
    let (_station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    // FC6, FC16, FC3.
    assert_eq!(plc.ask(&[6, 0, 1, 0, 9]), [6, 0, 1, 0, 9]);
    plc.write(2, &[3, 4]);
    assert_eq!(plc.holding(0, 5), [0, 9, 3, 4, 0]);
    assert_eq!(plc.holding(3, 1), [4]);
    // FC22: (9 and 0xfff8) or (6 and not 0xfff8).
    let mask = [22, 0, 1, 0xff, 0xf8, 0, 6];
    assert_eq!(plc.ask(&mask), mask);
    assert_eq!(plc.holding(1, 1), [14]);
    // FC23 writes before it reads: ready follows enable.
    plc.wait(0, ONLINE, READY);
    let both = plc.ask(&[23, 0x03, 0xe8, 0, 1, 0, 0, 0, 1, 2, 0, 1]);
    assert_eq!(words(&both, 23), [ONLINE | READY]);
    // FC22 and FC6 trigger too.
    assert_eq!(plc.ask(&[22, 0, 0, 0xff, 0xff, 0, 0])[0], 22);
    let trigger = [22, 0, 0, 0xff, 0xfd, 0, 2];
    assert_eq!(plc.ask(&trigger), trigger);
    assert!(plc.inputs(0).has(TRIGGER_ACK));
    // Exceptions: functions, addresses, counts.
    for function in [1, 2, 5, 7, 8, 15, 17, 20, 24, 43, 100, 127] {
        assert_eq!(plc.refused(&[function, 0, 0, 0, 1]), 1, "{function}");
    }
    for request in [
        &[4, 0, 29, 0, 1][..],
        &[4, 0, 0, 0, 30],
        &[4, 0, 100, 0, 1],
        &[3, 0, 5, 0, 1],
        &[3, 0, 0, 0, 6],
        &[3, 0x03, 0xe8, 0, 30],
        &[6, 0, 5, 0, 1],
        &[6, 0x03, 0xe8, 0, 1],
        &[16, 0, 4, 0, 2, 4, 0, 0, 0, 0],
        // What it writes is good, what it reads is not: nothing happens.
        &[23, 0, 50, 0, 1, 0, 1, 0, 1, 2, 0, 77],
    ] {
        assert_eq!(plc.refused(request), 2, "{request:?}");
    }
    assert_eq!(plc.holding(1, 1), [14]);
    for request in [
        &[4, 0, 0, 0, 0][..],
        &[4, 0, 0, 0, 126],
        &[16, 0, 0, 0, 0, 0],
        &[16, 0, 0, 0, 1, 2],
    ] {
        assert_eq!(plc.refused(request), 3, "{request:?}");
    }
}

#[test]
fn without_allow_commands_the_plc_only_reads() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-read");
    let (station, port) = start(&sandbox, &(table("") + &camera("left", "")), &["left"]);
    let mut plc = Client::new(port);
    for write in [
        &[6, 0, 0, 0, 1][..],
        &[16, 0, 0, 0, 1, 2, 0, 1],
        &[22, 0, 0, 0, 0, 0, 1],
        &[23, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 1],
        // Also to an address that is not valid.
        &[6, 0, 50, 0, 1],
    ] {
        assert_eq!(plc.refused(write), 1, "{write:?}");
    }
    let mut last = plc.wait(0, RESULT_VALID | PASS, READY).result();
    for _ in 0..5 {
        sleep(Duration::from_millis(100));
        let words = plc.inputs(0);
        assert!(words.has(RESULT_VALID) && !words.has(OVERRUN), "{words:?}");
        assert!(words.result() > last, "{words:?}");
        last = words.result();
    }
    let text = station.get("/metrics");
    for line in [
        "clinspect_modbus_connections 1",
        "clinspect_modbus_exceptions_total 5",
        "clinspect_modbus_enabled{camera=\"left\"} 0",
    ] {
        assert!(text.lines().any(|of| of == line), "{line}: {text}");
    }
}

/// The limits of the definition are 1 ms and 5 ms; other tests run at the same time.
#[test]
fn reads_and_triggers_are_answered_at_once() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-times");
    let file = table("allow-commands = true") + &triggered("left");
    let (_station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    let mut reads: Vec<Duration> = (0..5000)
        .map(|_| {
            let started = Instant::now();
            plc.inputs(0);
            started.elapsed()
        })
        .collect();
    let mut triggers = Vec::new();
    plc.write(0, &[ENABLE]);
    while triggers.len() < 100 {
        plc.wait(0, READY, TRIGGER_ACK | RESULT_VALID);
        let started = Instant::now();
        plc.write(0, &[ENABLE | TRIGGER]);
        plc.wait(0, TRIGGER_ACK, 0);
        triggers.push(started.elapsed());
        plc.wait(0, RESULT_VALID, 0);
        plc.write(0, &[ENABLE | RESULT_ACK]);
        plc.write(0, &[ENABLE]);
    }
    let p99 = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    let (read, trigger) = (p99(&mut reads), p99(&mut triggers));
    eprintln!(
        "read of a block: median {:?}, p99 {read:?}; trigger seen: median {:?}, p99 {trigger:?}",
        reads[reads.len() / 2],
        triggers[triggers.len() / 2]
    );
    assert!(read <= Duration::from_millis(10), "{read:?}");
    assert!(trigger <= Duration::from_millis(50), "{trigger:?}");
}
