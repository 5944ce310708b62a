//! A PLC that vanishes, and a station that starts again.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};
use serde_json::Value;

use super::{
    CLEAR, ENABLE, READY, RESULT_ACK, RESULT_VALID, TRIGGER, TRIGGER_ACK, camera, client::Client,
    start, table, triggered,
};

#[test]
fn plc_that_vanishes_gets_no_result_until_it_begins_anew() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-heartbeat");
    let file = table("allow-commands = true\nheartbeat-timeout-ms = 400") + &camera("left", "");
    let (mut station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    for beat in 1..=15 {
        plc.write(0, &[ENABLE, 0, 0, 0, beat]);
        sleep(Duration::from_millis(50));
    }
    let enabled = |station: &crate::process::Station| -> Value {
        serde_json::from_str(&station.get("/api/plc")).unwrap()
    };
    let told = enabled(&station);
    assert_eq!(told["connections"], 1);
    assert_eq!(told["cameras"][0]["is_enabled"], true, "{told}");
    assert!(plc.inputs(0).has(RESULT_VALID));
    assert_eq!(plc.inputs(0).error(), 0);
    // The connection stays open: a PLC that stopped its program.
    let mut watcher = Client::new(port);
    let stopped = Instant::now();
    let lost = watcher.wait(0, 0, READY | RESULT_VALID);
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(lost.error(), 11);
    eprintln!("heartbeat lost after {took:?}, of which 400 ms are the timeout");
    assert_eq!(enabled(&station)["cameras"][0]["is_lost"], true);
    station.wait_for_log("the PLC's heartbeat has not changed for 400 ms");
    // It goes on as before: this is not enough.
    let mut beat = 100;
    let mut write = |plc: &mut Client, bits| {
        beat += 1;
        plc.write(0, &[bits, 0, 0, 0, beat]);
    };
    write(&mut plc, ENABLE);
    assert!(!plc.inputs(0).has(READY));
    write(&mut plc, 0);
    write(&mut plc, ENABLE | CLEAR);
    let words = plc.wait(0, READY | RESULT_VALID, 0);
    assert_eq!(words.error(), 0);
    let heartbeats = [plc.inputs(0).0[1], {
        sleep(Duration::from_millis(250));
        plc.inputs(0).0[1]
    }];
    assert_ne!(heartbeats[0], heartbeats[1], "the station's own heartbeat");
}

#[test]
fn station_that_starts_again_has_another_epoch_and_no_trigger_of_before() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-restart");
    let file = table("allow-commands = true") + &triggered("left");
    let (station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    plc.write(0, &[ENABLE]);
    plc.wait(0, READY, 0);
    let before = plc.inputs(0).epoch();
    plc.write(0, &[ENABLE | TRIGGER]);
    // Between request and acknowledgement.
    station.end("KILL");
    let same = file.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    let (_station, again) = start(&sandbox, &same, &["left"]);
    assert_eq!(again, port);
    assert!(
        plc.try_ask(&[4, 0, 0, 0, 1]).is_err(),
        "the connection is gone"
    );
    let mut plc = Client::new(port);
    // A PLC that writes its image in each cycle.
    for _ in 0..20 {
        plc.write(0, &[ENABLE | TRIGGER]);
        sleep(Duration::from_millis(10));
    }
    let words = plc.inputs(0);
    assert_ne!(words.epoch(), before);
    assert!(!words.has(TRIGGER_ACK | RESULT_VALID), "{words:?}");
    assert_eq!((words.error(), words.missed()), (10, 1));
    plc.write(0, &[ENABLE | CLEAR]);
    plc.wait(0, READY, 0);
    plc.write(0, &[ENABLE | TRIGGER]);
    let sequence = plc.inputs(0).trigger();
    assert_ne!(sequence, 0);
    assert_eq!(plc.wait(0, RESULT_VALID, 0).result(), sequence);
    plc.write(0, &[ENABLE | RESULT_ACK]);
    assert!(!plc.inputs(0).has(RESULT_VALID | TRIGGER_ACK));
}
