//! Recipes by their numbers.

use std::{
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device, run};
use serde_json::Value;

use super::{
    CLEAR, ENABLE, INSPECTION, ONLINE, PASS, READY, RECIPE_BUSY, RECIPE_FAILED, RECIPE_REQUEST,
    REJECT, RESULT_ACK, RESULT_VALID, camera, client::Client, start, table,
};

/// A pitch that is larger than the frame: no look at the file could tell.
const IMPOSSIBLE: &str = "pitch-x = 500, pitch-y = 0, multiples = [1], min-contrast = 0";

#[test]
fn plc_switches_recipes_by_their_numbers() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-recipes");
    let folder = sandbox.folder("recipes");
    let write = |name: &str, number: u16, pitch: &str| {
        let text =
            format!("number = {number}\n[[camera]]\nname = \"left\"\npitch = {{ {pitch} }}\n");
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    };
    write("strict", 1, &format!("{INSPECTION}, threshold = 30"));
    write("lenient", 65_535, &format!("{INSPECTION}, threshold = 255"));
    write("one", 7, INSPECTION);
    write("another", 7, INSPECTION);
    write("impossible", 8, IMPOSSIBLE);
    let file =
        format!("recipes = {folder:?}\n") + &table("allow-commands = true") + &camera("left", "");
    let (mut station, port) = start(&sandbox, &file, &["left"]);
    let mut plc = Client::new(port);
    assert_eq!(plc.inputs(0).0[8], 0, "the cameras of the file");
    let ask = |plc: &mut Client, number: u16| {
        plc.write(0, &[ENABLE]);
        let started = Instant::now();
        plc.write(0, &[ENABLE | RECIPE_REQUEST, number]);
        let at_once = plc.inputs(0);
        assert!(
            at_once.has(RECIPE_BUSY) || at_once.0[8] == number || at_once.has(RECIPE_FAILED),
            "a read sees the state before: {at_once:?}"
        );
        let words = plc.wait(0, 0, RECIPE_BUSY);
        (started.elapsed(), words)
    };
    let mut times = Vec::new();
    for turn in 0..12 {
        let (number, bit) = [(1, REJECT), (65_535, PASS)][turn % 2];
        let (took, words) = ask(&mut plc, number);
        times.push(took);
        assert!(!words.has(RECIPE_FAILED), "{words:?}\n{}", station.log());
        assert_eq!((words.0[8], words.error()), (number, 0));
        // Results under the recipe before may wait, and frames of the switch itself.
        plc.write(0, &[ENABLE | CLEAR]);
        plc.write(0, &[ENABLE]);
        sleep(Duration::from_millis(150));
        plc.wait(0, RESULT_VALID | bit, 0);
        plc.write(0, &[ENABLE | RESULT_ACK]);
    }
    times.sort_unstable();
    eprintln!("switches of a camera without a trigger: {times:?}");
    // 300 ms for a warm camera; other tests run at the same time.
    assert!(times[6] <= Duration::from_secs(3), "{times:?}");
    for (number, code) in [(9, 13), (0, 13), (7, 14), (8, 15)] {
        let (_, words) = ask(&mut plc, number);
        assert!(words.has(RECIPE_FAILED), "{number}: {words:?}");
        // While the camera starts again, its own trouble hides the code.
        let words = plc.wait(0, ONLINE | RECIPE_FAILED, 0);
        assert_eq!((words.0[8], words.error()), (65_535, code), "{number}");
    }
    station.wait_for_log("the recipes another and one have this number");
    plc.write(0, &[ENABLE | CLEAR]);
    assert!(plc.wait(0, READY, RECIPE_FAILED).error() == 0);
    let listed: Value = serde_json::from_str(&station.get("/api/recipes")).unwrap();
    let strict = listed["recipes"].as_array().unwrap();
    let strict = strict.iter().find(|of| of["name"] == "strict").unwrap();
    assert_eq!(strict["number"], 1);
    let config = sandbox.path().join("page.toml");
    fs::write(
        &config,
        format!("listen = \"127.0.0.1:{}\"\n", station.port()),
    )
    .unwrap();
    let mut command = std::process::Command::new(crate::process::program());
    let listed = run(command.args(["recipe", "--config"]).arg(config)).succeeded();
    let line = listed.lines("* lenient");
    assert!(
        line.len() == 1 && line[0].ends_with("  number 65535"),
        "{line:?}"
    );
    let mut check = std::process::Command::new(crate::process::program());
    let checked = run(check.arg("--check").arg(&station.file)).output();
    let told = "one.toml:1:1: number = 7 is the number of another, too;";
    assert!(checked.contains(told), "{checked}");
    let changes = fs::read_to_string(folder.join("changes.jsonl")).unwrap();
    assert!(changes.contains("\"who\":\"modbus\""), "{changes}");
}
