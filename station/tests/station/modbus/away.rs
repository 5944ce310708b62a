//! Addresses that cannot be used when the station starts.

use std::{fs, net::TcpListener};

use clinspect_testkit::tools::{Sandbox, has_device};

use super::{camera, client::Client, port, table};
use crate::process::{Station, command};

/// The bit of register 0 that says that the page cannot be reached.
const PAGE_AWAY: u16 = 4096;

/// A port that another program uses until the listener is dropped.
fn taken() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn cameras_run_while_no_plc_can_connect_and_it_can_as_soon_as_the_address_is_there() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-away");
    let (holder, taken) = taken();
    let file = table("").replace(":0", &format!(":{taken}")) + &camera("left", "");
    let mut station = Station::start(&sandbox, &file);
    station.wait_for_log("ERROR no PLC can connect at");
    station.wait_for_frames("left", 10);
    let alarms = station.camera("left")["alarms"].to_string();
    assert!(
        alarms.contains("another program uses this port"),
        "{alarms}"
    );
    assert!(station.get("/api/plc").contains("\"is_reachable\":false"));
    assert!(
        station
            .get("/metrics")
            .contains("clinspect_modbus_listening 0")
    );
    drop(holder);
    assert_eq!(port(&mut station), taken);
    Client::new(taken).wait(0, super::ONLINE, 0);
    assert!(
        station
            .get("/metrics")
            .contains("clinspect_modbus_listening 1")
    );
    assert_eq!(station.log().matches("no PLC can connect").count(), 1);
    station.lost_nothing("left");
    // An address of a network that is not up.
    let file = table("allow-from = [\"192.0.2.0/24\"]").replace("127.0.0.1:0", "192.0.2.77:1502");
    let mut station = Station::start(&sandbox, &(file + &camera("left", "")));
    station.wait_for_log("no network of this PC has this address");
    station.wait_for_frames("left", 10);
}

#[test]
fn cameras_run_and_the_plc_is_told_while_the_page_has_no_address() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-page-away");
    let (holder, taken) = taken();
    let file = sandbox.path().join("station.toml");
    let page = format!("listen = \"127.0.0.1:{taken}\"\n");
    fs::write(&file, page + &table("") + &camera("left", "")).unwrap();
    let mut station = Station::spawn(&mut command(&file), file.clone());
    station.wait_for_log("ERROR the page cannot be served at");
    let port = port(&mut station);
    let online = super::ONLINE | PAGE_AWAY;
    Client::new(port).wait(0, online, 0);
    drop(holder);
    station.find_page();
    Client::new(port).wait(0, super::ONLINE, PAGE_AWAY);
    station.wait_for_frames("left", 10);
    let alarms = station.camera("left")["alarms"].to_string();
    assert!(alarms.contains("the page cannot be served"), "{alarms}");
}
