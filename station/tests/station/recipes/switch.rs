//! Switches while frames flow.

use std::{collections::BTreeMap, path::Path, thread::sleep, time::Duration};

use clinspect_testkit::{
    camera::Simulated,
    tools::{Sandbox, has_device},
};

use super::{
    Folder, INSPECTION, LENIENT, STRICT, TOKEN, head, listed, published, refused, results, switch,
};
use crate::{
    process::{Station, live_camera},
    simulated::{self, gige_camera},
};

#[test]
fn every_result_names_the_recipe_that_judged_it_while_frames_flow() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-flow");
    let cameras = ["left", "right"];
    let folder = Folder::of_two(&sandbox, &cameras);
    let files = cameras.map(|name| sandbox.path().join(name));
    let tables = [0, 1].map(|at| published(cameras[at], 100, &files[at]));
    let file = head(&sandbox, &folder) + &tables.concat();
    let mut station = Station::start(&sandbox, &file);
    for name in cameras {
        station.wait_for_status(name, "running");
    }
    let mut times = Vec::new();
    for turn in 0..40 {
        let name = ["strict", "lenient"][turn % 2];
        times.push(switch(&station, name));
        for camera in cameras {
            // Its first result may be gone with the status before; the next one is there a frame later.
            station.wait_until("a result", |of| of.camera(camera)["recipe"].is_object());
            let of_camera = station.camera(camera);
            assert_eq!(of_camera["recipe"]["name"], name, "{of_camera}");
        }
        sleep(Duration::from_millis(300));
    }
    let lost = cameras.map(|name| station.camera(name)["lost"].as_u64());
    assert_eq!(lost, [Some(0); 2], "frames were lost");
    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for file in &files {
        let mut frames = 0..;
        for report in results(file) {
            let recipe = report["recipe"]["name"].as_str();
            let verdict = report["verdict"].as_str().unwrap().to_owned();
            // Without a recipe the file's own threshold is in force, which is low.
            let wanted = if recipe == Some("lenient") {
                "pass"
            } else {
                "fail"
            };
            assert_eq!(verdict, wanted, "{report}");
            // The source numbers its frames: none is missing between two recipes, and none is judged twice.
            assert_eq!(report["frame"].as_u64(), frames.next(), "{report}");
            *counts
                .entry((recipe.unwrap_or("none").to_owned(), verdict))
                .or_default() += 1;
        }
    }
    times.sort_unstable();
    eprintln!("{counts:?}; milliseconds {times:?}");
    assert!(counts.values().sum::<usize>() >= 1000, "{counts:?}");
    assert!(counts.len() == 3, "{counts:?}");
}

/// The source numbers its frames.
#[track_caller]
fn none_is_missing(file: &Path) {
    let mut frames = 0..;
    for report in results(file) {
        assert_eq!(report["frame"].as_u64(), frames.next(), "{report}");
    }
    assert!(frames.start > 30);
}

#[test]
fn source_goes_on_before_elements_that_take_more_formats() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-formats");
    let folder = Folder::new(&sandbox);
    // clgaussian takes more formats than clpitchthreshold; the source has one.
    for (name, blur) in [("sharp", ""), ("blurred", "gaussian = {}\n")] {
        let text = format!("[[camera]]\nname = \"left\"\n{blur}pitch = {{ {INSPECTION} }}\n");
        folder.write(name, &text);
    }
    let file = sandbox.path().join("results");
    let mut station = Station::start(
        &sandbox,
        &(head(&sandbox, &folder) + &published("left", 100, &file)),
    );
    station.wait_for_status("left", "running");
    for turn in 0..6 {
        switch(&station, ["blurred", "sharp"][turn % 2]);
        station.wait_for_frames("left", 5);
    }
    station.end("TERM");
    none_is_missing(&file);
}

#[test]
fn rows_of_a_web_that_wait_for_the_next_strip_are_judged_before_a_switch() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-web");
    let folder = Folder::new(&sandbox);
    // Rows are compared with those 16 rows away, so the last ones of a strip wait for the next strip.
    let inspection =
        "pitch-x = 0, pitch-y = 16, multiples = [1], min-contrast = 0, line-scan = true";
    for threshold in [STRICT, LENIENT] {
        let pitch = format!("pitch = {{ {inspection}, threshold = {threshold} }}");
        let text = format!("[[camera]]\nname = \"web\"\n{pitch}\n");
        folder.write(&format!("of-{threshold}"), &text);
    }
    let file = sandbox.path().join("results");
    let camera = published("web", 30, &file);
    let camera = camera.replace(INSPECTION, inspection);
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &camera));
    station.wait_for_status("web", "running");
    for turn in 0..6 {
        switch(&station, ["of-30", "of-255"][turn % 2]);
        station.wait_for_frames("web", 5);
    }
    station.end("TERM");
    none_is_missing(&file);
}

/// A recipe whose camera fails at its first frame: a pitch that is larger than the frame. No look at the file could tell.
fn impossible(camera: &str) -> String {
    let inspection = INSPECTION.replace("pitch-x = 16", "pitch-x = 500");
    format!("[[camera]]\nname = \"{camera}\"\npitch = {{ {inspection} }}\n")
}

#[test]
fn all_cameras_go_back_if_one_of_them_cannot_run_under_the_recipe() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-back");
    let cameras = ["left", "right"];
    let folder = Folder::of_two(&sandbox, &cameras);
    let left =
        format!("[[camera]]\nname = \"left\"\npitch = {{ {INSPECTION}, threshold = {LENIENT} }}\n");
    folder.write("impossible", &(left + &impossible("right")));
    let tables = cameras.map(|name| live_camera(name, "ball", INSPECTION));
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &tables.concat()));
    for name in cameras {
        station.wait_for_status(name, "running");
    }
    switch(&station, "strict");
    let before = station.get("/api/cameras/left/report");
    assert!(before.contains("\"name\":\"strict\""), "{before}");
    let (status, why) = refused(&station, "impossible");
    assert_eq!(status, 409);
    assert!(
        why.contains("camera right: ") && why.contains("all cameras are as before"),
        "{why}"
    );
    for name in cameras {
        station.wait_for_status(name, "running");
        let camera = station.camera(name);
        assert_eq!(
            (&camera["recipe"]["name"], &camera["verdict"]),
            (&"strict".into(), &"fail".into()),
            "{camera}"
        );
    }
    assert_eq!(folder.active().as_deref(), Some("strict"));
    let changes = folder.changes();
    let last = changes.last().unwrap();
    assert_eq!(
        (&last["action"], &last["from"], &last["to"]),
        (&"switch".into(), &"strict".into(), &"impossible".into())
    );
    assert!(
        last["result"].as_str().unwrap().contains("camera right"),
        "{last}"
    );
    assert_eq!(listed(&station)["failed"], last["result"]);
    let metrics = station.get("/metrics");
    for line in [
        "clinspect_recipe_switches_total{result=\"done\"} 1",
        "clinspect_recipe_switches_total{result=\"failed\"} 1",
        "clinspect_recipe_switch_seconds_count 1",
        "clinspect_recipe_info{recipe=\"strict\",hash=\"",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    // The next one is not hurt.
    switch(&station, "lenient");
    for name in cameras {
        assert_eq!(station.camera(name)["verdict"], "pass");
    }
}

#[test]
fn camera_that_was_lost_before_does_not_veto() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-lost");
    let cameras = ["left", "lost"];
    let folder = Folder::of_two(&sandbox, &cameras);
    let lost = "[[camera]]\nname = \"lost\"\nsource = \"filesrc location=missing ! rawvideoparse width=160 height=120 \
        format=gray8\"\n";
    let left = live_camera("left", "ball", INSPECTION);
    let file = format!("{}{left}{lost}", head(&sandbox, &folder));
    let mut station = Station::start(&sandbox, &file);
    station.wait_for_status("left", "running");
    station.wait_for_status("lost", "camera-lost");
    let took = switch(&station, "lenient");
    assert!(took < 2000, "{took} ms");
    assert_eq!(station.camera("left")["verdict"], "pass");
    assert_eq!(folder.active().as_deref(), Some("lenient"));
    // Its next start is under the recipe, and it still fails.
    station.wait_until("the lost camera tries again", |station| {
        station.camera("lost")["restarts"].as_u64() >= Some(2)
    });
}

#[test]
fn camera_that_waits_for_its_trigger_is_switched_while_the_line_stands() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-trigger");
    let folder = Folder::of_two(&sandbox, &["left"]);
    let left = live_camera("left", "ball", INSPECTION).replace("framerate=30/1", "framerate=1/60");
    let left = format!("{left}triggered = true\nsilence = 600\n");
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &left));
    station.wait_for_status("left", "running");
    let took = switch(&station, "lenient");
    assert!((1000..3000).contains(&took), "{took} ms");
    assert_eq!(folder.active().as_deref(), Some("lenient"));
    assert_eq!(
        station.camera("left")["frames"],
        1,
        "a frame came after all"
    );
}

#[test]
fn limits_learned_on_one_product_are_not_in_force_on_the_next() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-learned");
    let folder = Folder::new(&sandbox);
    let table = format!(
        "[[camera]]\nname = \"left\"\npitch = {{ {INSPECTION}, threshold = {STRICT}, learn = {{ frames = 5 }} }}\n"
    );
    folder.write("cloth", &table);
    folder.write("label", &table);
    let left = live_camera("left", "ball", INSPECTION);
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &left));
    station.wait_for_status("left", "running");
    switch(&station, "cloth");
    assert_eq!(station.camera("left")["verdict"], "fail");
    station.command("left", "learn", TOKEN);
    station.wait_until("the ball passes", |s| s.camera("left")["verdict"] == "pass");
    station.wait_for_log("camera left: the learned limits are in the file ");
    let limits = folder.0.join("cloth/left-limits.npz");
    assert!(limits.is_file(), "{}", station.log());
    switch(&station, "label");
    station.wait_for_frames("left", 20);
    assert_eq!(
        station.camera("left")["verdict"],
        "fail",
        "{}",
        station.log()
    );
    switch(&station, "cloth");
    station.wait_for_frames("left", 5);
    assert_eq!(
        station.camera("left")["verdict"],
        "pass",
        "{}",
        station.log()
    );
    assert!(!folder.0.join("label/left-limits.npz").exists());
}

#[test]
fn switch_is_fast_with_a_network_camera_and_with_a_model() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-recipe-gige");
    let folder = Folder::new(&sandbox);
    let table = |keys: &str| format!("[[camera]]\nname = \"gige\"\n{keys}\n");
    folder.write("cloth", &table("pitch = { pitch-x = 16, pitch-y = 16 }"));
    folder.write(
        "carpet",
        &table("gaussian = {}\npitch = { pitch-x = 24, pitch-y = 24 }"),
    );
    folder.write("label", &table("reference = { train-frames = 5 }"));
    let caps = "caps = \"video/x-raw, format=GRAY8, width=512, height=512, framerate=25/1\"";
    let gige = gige_camera("gige", caps);
    let _camera = Simulated::start(&[]);
    let mut station = simulated::station(&sandbox, &(head(&sandbox, &folder) + &gige));
    station.wait_for_status("gige", "running");
    // The kernels are compiled, and the model is trained from the first frames.
    for name in ["cloth", "carpet", "label"] {
        switch(&station, name);
    }
    let model = folder.0.join("label/gige-reference.npz");
    station.wait_until("the model is a file", |_| model.is_file());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        without.extend(["cloth", "carpet"].map(|name| switch(&station, name)));
        with.push(switch(&station, "label"));
    }
    eprintln!("milliseconds without a model {without:?}, with one {with:?}");
    // Other tests use the same cores meanwhile, so the quickest one counts.
    assert!(without.iter().min() <= Some(&300), "{without:?}");
    assert!(with.iter().min() <= Some(&1000), "{with:?}");
    // Frames that a busy processor makes late look lost, so only the source counts.
    let camera = station.camera("gige");
    assert_eq!(camera["restarts"], 0, "{camera}");
}
