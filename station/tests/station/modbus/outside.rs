//! Clients that others wrote: pymodbus and mbpoll.

use std::{fs, process::Command, thread::sleep, time::Duration};

use clinspect_testkit::tools::{Sandbox, exists, has_device, python, run, skip};

use super::{CLEAR, ENABLE, INSPECTION, READY, camera, client::Client, start, table, triggered};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/station/modbus/pymodbus_client.py"
);

const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/station/modbus/plc_program.py"
);

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plc.py");
const STRUCTURED_TEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/inspection.st");

#[test]
fn pymodbus_works_through_the_handshake() {
    let sandbox = Sandbox::new("station-modbus-pymodbus");
    let Some(mut command) = python(&sandbox, "from pymodbus.client import ModbusTcpClient") else {
        return;
    };
    if !has_device() {
        return;
    }
    let file = table("allow-commands = true") + &triggered("left") + &camera("right", "");
    let (station, port) = start(&sandbox, &file, &["left", "right"]);
    let done = run(command.args([SCRIPT, &port.to_string()]));
    assert_eq!(done.code(), Some(0), "{}\n{}", done.text(), station.log());
}

#[test]
fn example_in_python_goes_on_after_a_restart() {
    let sandbox = Sandbox::new("station-modbus-example");
    let Some(mut command) = python(&sandbox, "from pymodbus.client import ModbusTcpClient") else {
        return;
    };
    if !has_device() {
        return;
    }
    let file = table("allow-commands = true") + &triggered("left");
    let (station, port) = start(&sandbox, &file, &["left"]);
    let printed = sandbox.path().join("printed");
    let output = fs::File::create(&printed).unwrap();
    command.env("PYTHONUNBUFFERED", "1");
    let started = command
        .arg(EXAMPLE)
        .args(["127.0.0.1", &port.to_string(), "40"])
        .stdout(output)
        .spawn();
    let mut running = started.unwrap();
    let lines = || fs::read_to_string(&printed).unwrap();
    while lines().matches("pass").count() < 10 {
        let ended = running.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?} {}", lines());
        sleep(Duration::from_millis(20));
    }
    station.end("KILL");
    sleep(Duration::from_millis(500));
    let same = file.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    let (_station, _) = start(&sandbox, &same, &["left"]);
    let ended = running.wait().unwrap();
    let printed = lines();
    assert!(ended.success(), "{printed}");
    assert!(printed.contains("the station started again"), "{printed}");
    let results = printed.lines().filter(|line| line.ends_with("pass"));
    assert_eq!(results.count(), 40, "{printed}");
}

#[test]
fn example_in_structured_text_works_through_recipes_a_pause_and_a_restart() {
    let sandbox = Sandbox::new("station-modbus-program");
    let Some(mut command) = python(&sandbox, "from pymodbus.client import ModbusTcpClient") else {
        return;
    };
    if !has_device() {
        return;
    }
    let folder = sandbox.folder("recipes");
    for (number, threshold) in [(1, 30), (2, 255)] {
        let pitch = format!("pitch = {{ {INSPECTION}, threshold = {threshold} }}");
        let text = format!("number = {number}\n[[camera]]\nname = \"left\"\n{pitch}\n");
        fs::write(folder.join(format!("of-{number}.toml")), text).unwrap();
    }
    let modbus = table("allow-commands = true\nheartbeat-timeout-ms = 500");
    let file = format!("recipes = {folder:?}\n") + &modbus + &triggered("left");
    let (station, port) = start(&sandbox, &file, &["left"]);
    let printed = sandbox.path().join("printed");
    let output = fs::File::create(&printed).unwrap();
    let command = command
        .arg(PROGRAM)
        .arg(STRUCTURED_TEXT)
        .arg(port.to_string());
    let errors = output.try_clone().unwrap();
    let mut running = command.stdout(output).stderr(errors).spawn().unwrap();
    let said = || fs::read_to_string(&printed).unwrap();
    while !said().contains("restart") {
        let ended = running.try_wait().unwrap();
        assert!(ended.is_none(), "{}\n{}", said(), station.log());
        sleep(Duration::from_millis(20));
    }
    station.end("KILL");
    sleep(Duration::from_secs(1));
    let same = file.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    let (station, _) = start(&sandbox, &same, &["left"]);
    let ended = running.wait().unwrap();
    assert!(ended.success(), "{}\n{}", said(), station.log());
}

/// Runs mbpoll once.
fn mbpoll(port: u16, arguments: &[&str], values: &[&str]) -> (Option<i32>, String) {
    let port = port.to_string();
    let mut command = Command::new("mbpoll");
    command
        .args(["-m", "tcp", "-1", "-0", "-p", &port])
        .args(arguments)
        .arg("127.0.0.1")
        .args(values);
    let done = run(&mut command);
    (done.code(), done.text())
}

/// The values that mbpoll prints, by register.
fn values(text: &str) -> Vec<(u16, u16)> {
    let lines = text.lines().filter_map(|line| {
        let (register, value) = line.strip_prefix('[')?.split_once("]:")?;
        let value = value.split_whitespace().next()?;
        Some((register.parse().ok()?, value.parse().ok()?))
    });
    lines.collect()
}

#[test]
fn mbpoll_reads_and_writes_registers() {
    if !exists("mbpoll") {
        return skip("mbpoll is not installed");
    }
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-mbpoll");
    let file = table("allow-commands = true") + &triggered("left");
    let (_station, port) = start(&sandbox, &file, &["left"]);
    let (code, text) = mbpoll(port, &["-t", "3", "-r", "0", "-c", "29"], &[]);
    assert_eq!(code, Some(0), "{text}");
    let before = values(&text);
    assert_eq!(before.len(), 29, "{text}");
    let epoch = Client::new(port).inputs(0).epoch();
    assert_eq!(before[20].1, (epoch >> 16) as u16);
    // FC6, then FC16.
    let holding = ["-t", "4", "-r", "0"];
    let bits = ENABLE.to_string();
    let (code, text) = mbpoll(port, &holding, &[&bits]);
    assert_eq!(code, Some(0), "{text}");
    Client::new(port).wait(0, READY, 0);
    let bits = (ENABLE | CLEAR).to_string();
    let (code, text) = mbpoll(port, &holding, &[&bits, "5", "6", "7", "8"]);
    assert_eq!(code, Some(0), "{text}");
    let (_, text) = mbpoll(port, &["-t", "4", "-r", "0", "-c", "5"], &[]);
    let words: Vec<u16> = values(&text).iter().map(|(_, value)| *value).collect();
    assert_eq!(words, [ENABLE | CLEAR, 5, 6, 7, 8], "{text}");
    // The mirror, and an address that is not valid.
    let (code, text) = mbpoll(port, &["-t", "4", "-r", "1000", "-c", "29"], &[]);
    assert_eq!((code, values(&text).len()), (Some(0), 29), "{text}");
    let (_, text) = mbpoll(port, &["-t", "3", "-r", "29", "-c", "1"], &[]);
    assert!(text.contains("Illegal data address"), "{text}");
}
