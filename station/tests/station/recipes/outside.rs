//! Switches from the command line and over MQTT.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, exists, has_device, skip};

use super::{Folder, INSPECTION, head, listed, switch};
use crate::process::{Station, live_camera, program};

#[test]
fn command_line_lists_and_switches_and_says_who_did() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-command");
    let folder = Folder::of_two(&sandbox, &["left"]);
    folder.write("broken", "x");
    let head = head(&sandbox, &folder);
    let left = live_camera("left", "ball", INSPECTION);
    let mut station = Station::start(&sandbox, &(head.clone() + &left));
    station.wait_for_status("left", "running");
    // The file of the running station has port 0.
    let file = sandbox.path().join("client.toml");
    fs::write(
        &file,
        format!("listen = \"127.0.0.1:{}\"\n{head}", station.port()),
    )
    .unwrap();
    let recipe = |arguments: &[&str]| {
        let mut command = Command::new(program());
        let command = command
            .arg("recipe")
            .args(arguments)
            .arg("--config")
            .arg(&file);
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let text = [stdout, stderr].concat();
        (status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = recipe(&["lenient"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("lenient is in force after "), "{text}");
    assert_eq!(station.camera("left")["verdict"], "pass");
    let (code, text) = recipe(&[]);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("  broken ") && lines[0].ends_with("  1 mistake"),
        "{text}"
    );
    assert!(
        lines[1].starts_with("* lenient ") && lines[2].starts_with("  strict "),
        "{text}"
    );
    let (code, text) = recipe(&["broken"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("broken.toml:1:"), "{text}");
    let changes = folder.changes();
    let who = changes[0]["who"].as_str().unwrap();
    assert!(
        who.starts_with("command line of ") && who.ends_with(", 127.0.0.1"),
        "{who}"
    );
    station.end("TERM");
    let (code, text) = recipe(&["strict"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("does it run?"), "{text}");
}

/// Whether there is all that the tests of MQTT need.
fn has_tools() -> bool {
    for tool in ["mosquitto", "mosquitto_pub", "mosquitto_sub", "setpriv"] {
        if !exists(tool) {
            skip(&format!("{tool} is not installed"));
            return false;
        }
    }
    has_device()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The table of the broker at this port.
fn table(port: u16) -> String {
    format!("[mqtt]\nuri = \"mqtt://127.0.0.1:{port}\"\ntopic = \"plant/a\"\n")
}

/// A broker; ends with the value.
struct Broker(Child, u16);

impl Broker {
    fn start(sandbox: &Sandbox, port: u16) -> Self {
        let file = sandbox.path().join("mosquitto.conf");
        fs::write(
            &file,
            format!("listener {port} 127.0.0.1\nallow_anonymous true\n"),
        )
        .unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "mosquitto", "-c"]);
        let child = command
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap(), port)
    }

    fn publish(&self, arguments: &[&str]) {
        let port = self.1.to_string();
        let mut command = Command::new("mosquitto_pub");
        command.args(["-h", "127.0.0.1", "-p", &port, "-t", "plant/a/recipe/set"]);
        command.args(arguments).stderr(Stdio::null());
        let until = Instant::now() + Duration::from_secs(10);
        while !command.status().unwrap().success() {
            assert!(Instant::now() < until, "the broker does not answer");
        }
    }

    /// The retained value, if there is one.
    fn value(&self) -> serde_json::Value {
        let port = self.1.to_string();
        let mut command = Command::new("mosquitto_sub");
        let command = command.args(["-h", "127.0.0.1", "-p", &port, "-t", "plant/a/recipe"]);
        let done = command.args(["-C", "1", "-W", "2"]).output().unwrap();
        serde_json::from_slice(&done.stdout).unwrap_or_default()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn broker_keeps_the_recipe_in_force_and_passes_wishes_for_another() {
    if !has_tools() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-mqtt");
    let folder = Folder::of_two(&sandbox, &["left"]);
    let port = free_port();
    let broker = table(port);
    let left = live_camera("left", "ball", INSPECTION);
    // The station starts before its broker, and cameras do not wait for it.
    let file = format!("{}{broker}{left}", head(&sandbox, &folder));
    let mut station = Station::start(&sandbox, &file);
    station.wait_for_status("left", "running");
    station.wait_for_log("recipes over MQTT: the broker 127.0.0.1:");
    switch(&station, "strict");
    let broker = Broker::start(&sandbox, port);
    station.wait_for_log("answers again");
    station.wait_until("the broker has the recipe", |_| {
        broker.value()["name"] == "strict"
    });
    broker.publish(&["-m", "lenient"]);
    station.wait_until("the recipe is switched", |s| {
        s.camera("left")["verdict"] == "pass"
    });
    station.wait_until("the broker has it", |_| broker.value()["name"] == "lenient");
    let active = listed(&station)["active"].clone();
    assert_eq!(broker.value()["hash"], active["hash"]);
    for payload in ["../x", "", "two words"] {
        broker.publish(&["-m", payload]);
    }
    station.wait_until("each is refused", |station| {
        let refusals = station.log();
        refusals
            .matches("over MQTT to switch the recipe is refused")
            .count()
            == 3
    });
    broker.publish(&["-m", "gone"]);
    station.wait_until("the reason is told", |_| {
        let failed = broker.value()["failed"].clone();
        failed
            .as_str()
            .is_some_and(|why| why.contains("there is no recipe gone"))
    });
    let changes = folder.changes();
    let who: Vec<&str> = changes.iter().filter_map(|of| of["who"].as_str()).collect();
    assert_eq!(who, ["page 127.0.0.1", "mqtt", "mqtt"]);
}

#[test]
fn wish_that_the_broker_kept_is_refused() {
    if !has_tools() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-retained");
    let folder = Folder::of_two(&sandbox, &["left"]);
    let broker = Broker::start(&sandbox, free_port());
    broker.publish(&["-r", "-m", "lenient"]);
    let left = live_camera("left", "ball", INSPECTION);
    let file = format!("{}{}{left}", head(&sandbox, &folder), table(broker.1));
    let mut station = Station::start(&sandbox, &file);
    station.wait_for_log("a retained message on the topic plant/a/recipe/set is refused");
    station.wait_for_status("left", "running");
    station.wait_for_frames("left", 10);
    assert_eq!(station.camera("left")["verdict"], "fail");
    // It is not in the way of a new one.
    broker.publish(&["-m", "lenient"]);
    station.wait_until("the recipe is switched", |s| {
        s.camera("left")["verdict"] == "pass"
    });
}
