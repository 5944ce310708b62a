//! Setting up a camera through the API, as the page does it.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use clinspect_testkit::{
    camera::Simulated,
    panel::PanelSpec,
    scenes::{self, Sequence},
    tools::{Sandbox, has_device},
};
use serde_json::{Value, json};

use crate::{
    process::{Station, TOKEN, live_camera, writing},
    simulated,
};

/// The slowest device and the first compilation of kernels.
const SLOW: Duration = Duration::from_secs(120);

/// A station with the folders of panels `good` and `failed`, and with these cameras.
fn station(sandbox: &Sandbox, cameras: &str) -> Station {
    let frames = sandbox.path().join("frames");
    let spec = PanelSpec {
        width: 200,
        height: 160,
        ..PanelSpec::default()
    };
    let panels = |name: &str, frames_of: usize, good: usize, seed: u64| {
        let sequence = Sequence {
            frames: frames_of,
            good,
            bad_every: 1,
            defects: 6,
            seed,
        };
        scenes::panels(&frames.join(name), spec, sequence).unwrap();
    };
    panels("good", 12, 12, 1);
    panels("failed", 6, 0, 2);
    Station::start(
        sandbox,
        &(head(sandbox) + &format!("frames = {frames:?}\n") + cameras),
    )
}

/// The keys of a station's file before its cameras.
fn head(sandbox: &Sandbox) -> String {
    let recipes = sandbox.path().join("recipes");
    format!("{}recipes = {recipes:?}\n", writing(sandbox))
}

/// A draft, by its address.
struct Draft<'s>(&'s Station, String);

impl<'s> Draft<'s> {
    fn begin(station: &'s Station, camera: Option<&str>) -> Self {
        let body = json!({ "camera": camera });
        let answer = ask(station, "POST", "/api/setup/drafts", &body).unwrap();
        let id = answer["id"].as_str().unwrap();
        Self(station, format!("/api/setup/drafts/{id}"))
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        ask(self.0, method, &format!("{}{path}", self.1), body).unwrap()
    }

    #[track_caller]
    fn refused(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        ask(self.0, method, &format!("{}{path}", self.1), body).expect_err("a refusal")
    }

    /// Changes the settings; returns the mistakes.
    #[track_caller]
    fn settings(&self, settings: &Value) -> Value {
        self.ask("PUT", "/settings", settings)["mistakes"].take()
    }

    /// The next live frame that was judged.
    #[track_caller]
    fn judged(&self, mut is: impl FnMut(&Value) -> bool) -> Value {
        self.live(|live| live["problem"].is_null() && is(live))
    }

    /// The next live frame or problem that is as wanted.
    #[track_caller]
    fn live(&self, mut is: impl FnMut(&Value) -> bool) -> Value {
        let start = Instant::now();
        let mut n = 0;
        loop {
            let live = self.ask("GET", &format!("/live?after={n}"), &Value::Null);
            n = live["n"].as_u64().unwrap_or(n);
            if is(&live) {
                return live;
            }
            assert!(start.elapsed() < SLOW, "{live}\n{}", self.0.log());
        }
    }

    /// The state, once it is as wanted.
    #[track_caller]
    fn until(&self, what: &str, mut is: impl FnMut(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let state = self.ask("GET", "", &Value::Null);
            if is(&state) {
                return state;
            }
            assert!(start.elapsed() < SLOW, "{what}: {state}\n{}", self.0.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The JSON of an answer, or its status and text.
fn ask(station: &Station, method: &str, path: &str, body: &Value) -> Result<Value, (u16, String)> {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    match station.request(method, path, body.as_bytes(), TOKEN) {
        (200, text) => Ok(serde_json::from_str(&text).unwrap()),
        refused => Err(refused),
    }
}

fn panel_settings(source: &str, threshold: f64) -> Value {
    json!({
        "source": source,
        "name": "line",
        "gaussian": { "kernel-size": 5, "sigma": 0.8 },
        "analyzer": "pitch",
        "analysis": { "pitch-x": 7.35, "pitch-y": 7.35, "threshold": threshold },
    })
}

#[test]
fn camera_is_chosen_taught_tried_and_saved_and_the_station_inspects_with_the_recipe() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up");
    let mut station = station(&sandbox, "");
    let choices = ask(&station, "GET", "/api/setup/cameras", &Value::Null).unwrap();
    let ids = choices
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["id"].clone());
    let ids: Vec<Value> = ids
        .filter(|id| id.as_str().unwrap().starts_with("folder"))
        .collect();
    assert_eq!(ids, ["folder:failed", "folder:good"]);
    {
        let draft = Draft::begin(&station, None);
        let live = draft.ask("GET", "/live", &Value::Null);
        assert_eq!(live["problem"], "choose a camera");
        // Far too strict: good panels fail until the limits are learned.
        assert_eq!(
            draft.settings(&panel_settings("folder:good", 3.0)),
            json!([])
        );
        let live = draft.judged(|live| live["verdict"] == "fail");
        assert_eq!(
            (&live["width"], &live["height"]),
            (&json!(200), &json!(160))
        );
        assert!(live["focus"].as_f64().unwrap() > 0.0, "{live}");
        let counted: u64 = live["histogram"]["bins"][0]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of.as_u64().unwrap())
            .sum();
        assert_eq!(counted, 200 * 160);
        draft.ask("POST", "/teach", &json!({ "what": "limits", "frames": 8 }));
        let state = draft.until("limits are learned", |state| {
            // The thread looks at frames while somebody asks for them, and while it teaches.
            !state["teach"]["limits"].as_array().unwrap().is_empty()
                || !state["teach"]["problem"].is_null()
        });
        assert_eq!(state["teach"]["problem"], Value::Null);
        let limit = &state["teach"]["limits"][0];
        assert_eq!(limit["name"], "threshold");
        assert_eq!(state["settings"]["analysis"]["threshold"], limit["value"]);
        let kept: Vec<&Value> = state["frames"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| &of["id"])
            .collect();
        assert_eq!(kept.len(), 8);
        assert!(kept.contains(&&limit["frame"]), "{limit}");
        draft.judged(|live| live["verdict"] == "pass");
        // Without the frame that set the limit it is lower, or another frame sets the same.
        let setter = limit["frame"].as_u64().unwrap();
        draft.ask(
            "PUT",
            &format!("/frames/{setter}"),
            &json!({ "used": false }),
        );
        draft.ask("POST", "/teach/again", &json!({}));
        let again = draft.until("limits are learned again", |state| {
            state["teach"]["is_learning"] == false && state["teach"]["limits"][0]["frame"] != setter
        });
        assert!(again["teach"]["limits"][0]["value"].as_f64() <= limit["value"].as_f64());
        draft.ask(
            "PUT",
            &format!("/frames/{setter}"),
            &json!({ "used": true }),
        );
        draft.ask("POST", "/teach/again", &json!({}));
        draft.until("the first limit is back", |state| {
            state["teach"]["is_learning"] == false
                && state["teach"]["limits"][0]["value"] == limit["value"]
        });
        let added = draft.ask(
            "POST",
            "/collect",
            &json!({ "from": "folder:failed", "label": "failed" }),
        );
        assert_eq!(added["added"], 6);
        draft.ask("POST", "/try", &json!({}));
        let tried = draft.until("the kept frames are tried", |state| {
            state["try"]["revision"].is_u64()
        });
        assert_eq!(
            tried["try"]["good"],
            json!({ "pass": 8, "fail": 0, "none": 0 })
        );
        assert_eq!(
            tried["try"]["failed"],
            json!({ "pass": 0, "fail": 6, "none": 0 })
        );
        let text = draft.ask("GET", "/recipe?name=panel", &Value::Null);
        let text = text["text"].as_str().unwrap();
        let remark = "# Learned from 8 good pieces. Set: threshold by good piece";
        assert!(text.contains(remark), "{text}");
        // A limit that is moved is tried at once.
        let revision = tried["try"]["revision"].as_u64();
        let mut settings = tried["settings"].clone();
        settings["analysis"]["threshold"] = json!(3.0);
        assert_eq!(draft.settings(&settings), json!([]));
        let strict = draft.until("it is tried again", |state| {
            state["try"]["revision"].as_u64() > revision
        });
        assert_eq!(strict["try"]["good"]["fail"], 8);
        assert_eq!(draft.settings(&tried["settings"]), json!([]));
        let preview = draft.ask("GET", "/recipe?name=panel", &Value::Null);
        let saved = draft.ask(
            "POST",
            "/save",
            &json!({ "name": "panel", "activate": true }),
        );
        assert!(saved["milliseconds"].as_f64().unwrap() > 0.0, "{saved}");
        let text = fs::read_to_string(sandbox.path().join("recipes/panel.toml")).unwrap();
        assert_eq!(preview["text"], text);
        assert!(!text.contains("# Learned"), "set by hand since: {text}");
    }
    station.wait_for_status("line", "running");
    station.wait_for_frames("line", 12);
    let camera = station.camera("line");
    assert_eq!(
        (&camera["recipe"]["name"], &camera["fail"]),
        (&json!("panel"), &json!(0))
    );
    let changes = fs::read_to_string(sandbox.path().join("recipes/changes.jsonl")).unwrap();
    let changes: Vec<Value> = changes
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let lines = changes.iter().map(|of| {
        (
            of["action"].as_str().unwrap(),
            of["who"].as_str().unwrap(),
            of["result"].as_str().unwrap(),
        )
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            ("save", "page 127.0.0.1", "ok"),
            ("switch", "page 127.0.0.1", "ok")
        ]
    );
    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
}

/// The first frame that the camera sees shows much more contrast than the others.
#[test]
fn least_contrast_of_the_good_pieces_is_saved_and_the_camera_starts_with_it() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-contrast");
    let mut station = station(&sandbox, "");
    let mut files: Vec<_> = fs::read_dir(sandbox.path().join("frames/good"))
        .unwrap()
        .map(|of| of.unwrap().path())
        .filter(|of| of.extension().is_some_and(|end| end == "png"))
        .collect();
    files.sort();
    for file in &files[1..] {
        let mut picture = image::open(file).unwrap().into_luma8();
        picture
            .iter_mut()
            .for_each(|level| *level = 60 + *level / 5 * 2);
        picture.save(file).unwrap();
    }
    {
        let draft = Draft::begin(&station, None);
        draft.settings(&panel_settings("folder:good", 3.0));
        draft.ask("POST", "/teach", &json!({ "what": "limits", "frames": 8 }));
        let state = draft.until("limits are learned", |state| {
            !state["teach"]["limits"].as_array().unwrap().is_empty()
        });
        let contrasts = state["settings"]["analysis"]["contrasts"].as_array();
        assert_eq!(contrasts.map(Vec::len), Some(1), "{state}");
        draft.ask(
            "POST",
            "/save",
            &json!({ "name": "panel", "activate": true }),
        );
    }
    let text = fs::read_to_string(sandbox.path().join("recipes/panel.toml")).unwrap();
    assert!(text.contains("good pieces. Set: threshold by"), "{text}");
    station.wait_for_frames("line", 12);
    assert_eq!(station.camera("line")["fail"], 0, "{text}");
}

#[test]
fn each_picture_of_a_folder_teaches_once_and_odd_ones_are_named() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-folder");
    let station = station(&sandbox, "");
    let frames = sandbox.path().join("frames");
    let mixed = frames.join("mixed");
    fs::create_dir(&mixed).unwrap();
    let mut good = fs::read_dir(frames.join("good"))
        .unwrap()
        .map(|of| of.unwrap().path())
        .collect::<Vec<_>>();
    good.sort();
    for file in good
        .iter()
        .filter(|file| file.extension().unwrap() == "png")
        .take(5)
    {
        fs::copy(file, mixed.join(file.file_name().unwrap())).unwrap();
    }
    let odd = [b"P5 64 64 255\n".to_vec(), vec![90; 64 * 64]].concat();
    fs::write(mixed.join("odd.pgm"), odd).unwrap();
    fs::write(mixed.join("broken.png"), "no picture").unwrap();
    fs::write(mixed.join("._0.png"), "no picture").unwrap();
    let taught = |draft: &Draft, frames: u32| {
        draft.ask(
            "POST",
            "/teach",
            &json!({ "what": "limits", "frames": frames }),
        );
        draft.until("limits are learned", |state| {
            let teach = &state["teach"];
            teach["have"] == teach["need"]
                && teach["is_learning"] == false
                && !teach["done"].is_null()
        })
    };
    let draft = Draft::begin(&station, None);
    assert_eq!(
        draft.settings(&panel_settings("folder:good", 3.0)),
        json!([])
    );
    // All of them, and again: no picture teaches twice.
    for _ in 0..2 {
        let state = taught(&draft, 12);
        assert_eq!(state["frames"].as_array().unwrap().len(), 12);
        assert_eq!(state["teach"]["done"], "Learned from 12 good pieces");
        assert_eq!(state["teach"]["problem"], Value::Null);
    }
    drop(draft);
    let draft = Draft::begin(&station, None);
    assert_eq!(
        draft.settings(&panel_settings("folder:mixed", 3.0)),
        json!([])
    );
    let state = taught(&draft, 24);
    assert_eq!(
        state["teach"]["done"], "Learned from 5 good pieces",
        "{state}"
    );
    let said = state["teach"]["problem"].as_str().unwrap();
    for part in [
        "broken.png cannot be read",
        "no more than 6 pictures; 24 were asked for",
        "(odd.pgm) is left out: it is 64x64 GRAY8, and most are 200x160 GRAY8",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = draft.ask("GET", "/recipe", &Value::Null)["text"].to_string();
    assert!(text.contains("# Learned from 5 good pieces."), "{text}");
}

#[test]
fn the_running_inspection_is_untouched_until_somebody_saves_and_a_later_save_is_refused() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-running");
    let inspection = "pitch-x = 16, pitch-y = 0, min-contrast = 0, multiples = [1], threshold = 30";
    let mut station = station(&sandbox, &live_camera("left", "ball", inspection));
    station.wait_for_status("left", "running");
    {
        let draft = Draft::begin(&station, Some("left"));
        let state = draft.ask("GET", "", &Value::Null);
        assert_eq!(state["is_running_camera"], true);
        let mut settings = state["settings"].clone();
        assert_eq!(settings["analysis"]["threshold"], 30);
        draft.judged(|live| live["verdict"] == "fail");
        // A folder that was only looked at does not stay the camera.
        let own = settings["source"].take();
        settings["source"] = json!("folder:good");
        assert_eq!(draft.settings(&settings), json!([]));
        settings["source"] = own;
        assert_eq!(draft.settings(&settings), json!([]));
        let text = draft.ask("GET", "/recipe?name=x", &Value::Null);
        let text = text["text"].as_str().unwrap();
        assert!(!text.contains("source"), "{text}");
        settings["analysis"]["threshold"] = json!(255);
        assert_eq!(draft.settings(&settings), json!([]));
        let live = draft.judged(|live| live["verdict"] == "pass");
        assert!(live["rate"].as_f64().unwrap() > 10.0, "{live}");
        // Values out of range change nothing.
        settings["analysis"]["threshold"] = json!(-7);
        let mistakes = draft.settings(&settings);
        assert_eq!(mistakes[0]["key"], "threshold", "{mistakes}");
        settings["analysis"]["threshold"] = json!(255);
        let other = Draft::begin(&station, Some("left"));
        draft.ask(
            "POST",
            "/save",
            &json!({ "name": "lenient", "activate": false }),
        );
        let camera = station.camera("left");
        assert_eq!(
            (&camera["pass"], &camera["recipe"]),
            (&json!(0), &Value::Null),
            "it is judged by the draft"
        );
        // Both drafts began without this recipe.
        let (status, refused) = other.refused(
            "POST",
            "/save",
            &json!({ "name": "lenient", "activate": true }),
        );
        assert_eq!(status, 409);
        let refused: Value = serde_json::from_str(&refused).unwrap();
        let changes = refused["changes"].as_array().unwrap();
        assert!(
            changes
                .iter()
                .any(|line| line.as_str().unwrap().starts_with("- threshold")),
            "{refused}"
        );
        // The first draft may go on.
        draft.ask(
            "POST",
            "/save",
            &json!({ "name": "lenient", "activate": true }),
        );
    }
    station.wait_until("frames pass", |station| {
        station.camera("left")["pass"].as_u64() > Some(5)
    });
    station.lost_nothing("left");
    station.end("TERM");
}

#[test]
fn files_of_a_recipe_are_those_that_the_page_shows() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-files");
    let inspection = "pitch-x = 16, pitch-y = 0, min-contrast = 0, multiples = [1], threshold = 30";
    let mut station = station(&sandbox, &live_camera("left", "ball", inspection));
    station.wait_for_status("left", "running");
    let files = sandbox.path().join("recipes/masked");
    let [mask, limits] = ["left-ignore.png", "left-limits.npz"].map(|file| files.join(file));
    {
        let draft = Draft::begin(&station, Some("left"));
        draft.judged(|live| live["verdict"] == "fail");
        // The ball passes where nothing is judged.
        let mut picture = std::io::Cursor::new(Vec::new());
        let right = image::GrayImage::from_fn(160, 120, |x, _| {
            image::Luma([if x >= 60 { 255 } else { 0 }])
        });
        right
            .write_to(&mut picture, image::ImageFormat::Png)
            .unwrap();
        let path = format!("{}/mask", draft.1);
        let (status, answer) = station.request("PUT", &path, picture.get_ref(), TOKEN);
        assert_eq!((status, answer.trim()), (200, "{\"mistakes\":[]}"));
        draft.judged(|live| live["verdict"] == "pass");
        let masked = json!({ "name": "masked", "activate": true });
        draft.ask("POST", "/save", &masked);
        assert!(mask.exists());
        // As the command `learn` of a running camera leaves it. A draft knows the recipe as it is now.
        fs::write(&limits, "learned").unwrap();
        let later = Draft::begin(&station, Some("left"));
        let state = later.ask("GET", "", &Value::Null);
        let said = state["teach"]["problem"].as_str().unwrap_or_default();
        assert!(said.contains("learned on the line"), "{state}");
        later.ask("DELETE", "/mask", &Value::Null);
        let unused = json!({ "name": "masked", "activate": false });
        later.ask("POST", "/save", &unused);
        assert!(!mask.exists() && limits.exists(), "limits go unseen");
        let mut settings = state["settings"].clone();
        settings["analysis"]["threshold"] = json!(29);
        assert_eq!(later.settings(&settings), json!([]));
        later.judged(|live| live["verdict"] == "fail");
        later.ask("POST", "/save", &masked);
        // A camera of the recipe alone can be left out of the next one, and can be gone on with.
        let beside = Draft::begin(&station, None);
        assert_eq!(
            beside.settings(&panel_settings("folder:good", 30.0)),
            json!([])
        );
        beside.ask(
            "POST",
            "/save",
            &json!({ "name": "both", "activate": true }),
        );
        let next = Draft::begin(&station, Some("left"));
        assert_eq!(next.ask("GET", "", &Value::Null)["others"], json!(["line"]));
        let alone = json!({ "name": "alone", "activate": false, "without": ["line", "left"] });
        next.ask("POST", "/save", &alone);
        let text = fs::read_to_string(sandbox.path().join("recipes/alone.toml")).unwrap();
        assert!(
            text.contains("\"left\"") && !text.contains("\"line\""),
            "{text}"
        );
        let names = || {
            let drafts = ask(&station, "GET", "/api/setup/drafts", &Value::Null).unwrap();
            let drafts = drafts.as_array().unwrap().clone();
            Vec::from_iter(drafts.into_iter().map(|mut of| of["name"].take()))
        };
        assert!(names().is_empty(), "{:?} are saved", names());
        settings["analysis"]["threshold"] = json!(31);
        assert_eq!(next.settings(&settings), json!([]));
        assert_eq!(names(), ["left"]);
        for draft in [&draft, &later, &beside, &next] {
            draft.ask("DELETE", "", &Value::Null);
        }
        let later = Draft::begin(&station, Some("left"));
        // The name of a recipe that was there is no conflict.
        let second = json!({ "name": "second", "activate": false });
        later.ask("POST", "/save", &second);
        let third = Draft::begin(&station, Some("left"));
        let (status, sentence) = third.refused("POST", "/save", &second);
        assert!(
            status == 422 && sentence.contains("already a recipe"),
            "{status} {sentence}"
        );
    }
    assert!(!limits.exists(), "limits that nobody sees decide");
    let text = fs::read_to_string(sandbox.path().join("recipes/masked.toml")).unwrap();
    assert!(!text.contains("mask"), "{text}");
    station.end("TERM");
}

#[test]
fn network_camera_is_chosen_set_and_handed_over_to_the_station() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("set-up-gige");
    let _camera = Simulated::start(&[]);
    let mut station = simulated::station(&sandbox, &head(&sandbox));
    {
        let draft = Draft::begin(&station, None);
        let source = "genicam:Aravis-Fake-GV01";
        let choices = ask(&station, "GET", "/api/setup/cameras", &Value::Null).unwrap();
        assert_eq!(choices[0]["id"], source);
        let mut settings = panel_settings(source, 200.0);
        assert_eq!(draft.settings(&settings), json!([]));
        // The camera would begin with Bayer pictures, if it was asked for nothing.
        let live = draft.judged(|_| true);
        assert_eq!(
            (&live["format"], &live["width"]),
            (&json!("GRAY8"), &json!(512))
        );
        let state = draft.until("controls are read", |state| {
            state["controls"]["exposure"].is_object()
        });
        assert_eq!(state["controls"]["exposure"]["value"], 10_000.0);
        let formats = state["formats"].as_array().unwrap();
        assert!(formats.contains(&json!("Mono8")), "{formats:?}");
        settings["exposure"] = json!(5000.0);
        assert_eq!(draft.settings(&settings), json!([]));
        draft.until("the camera is set", |state| {
            draft.judged(|_| true);
            state["controls"]["exposure"]["value"] == 5000.0
        });
        // A value that the camera refuses is told, and the next one is taken.
        settings["exposure"] = json!(1.0);
        assert_eq!(draft.settings(&settings), json!([]));
        draft.live(|live| {
            live["problem"]
                .as_str()
                .is_some_and(|of| of.contains("exposure"))
        });
        settings["exposure"] = json!(6000.0);
        assert_eq!(draft.settings(&settings), json!([]));
        draft.judged(|_| true);
        // Only one may have the camera open.
        let saved = draft.ask(
            "POST",
            "/save",
            &json!({ "name": "gige", "activate": true }),
        );
        // A network camera is opened anew, which takes longer than a request may on a busy PC; then the page says so.
        match saved["problem"].as_str() {
            None => assert!(saved["milliseconds"].is_u64(), "{saved}"),
            Some(problem) => assert!(problem.contains("still start"), "{problem}"),
        }
        let live = draft.judged(|_| true);
        assert_eq!(
            live["width"], 512,
            "the draft looks at the station's camera"
        );
    }
    station.wait_for_status("line", "running");
    station.wait_for_frames("line", 10);
    station.end("TERM");
}

#[test]
fn requests_that_are_hostile_or_mistaken_are_refused_with_a_sentence() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-hostile");
    let station = station(&sandbox, "");
    let draft = Draft::begin(&station, None);
    let (status, _) = station.request("GET", &draft.1, b"", "wrong-token-of-the-tests-1");
    assert_eq!(status, 401);
    for (path, status) in [
        ("/api/setup/drafts/0", 404),
        ("/api/setup/drafts/..%2f..", 404),
    ] {
        let refused = ask(&station, "GET", path, &Value::Null).expect_err("no draft");
        assert_eq!(refused.0, status, "{path}");
    }
    let mut wrong = panel_settings("folder:good", 5.0);
    for (key, value, expected) in [
        (
            "source",
            json!("videotestsrc ! filesink location=/tmp/x"),
            "source",
        ),
        ("source", json!("folder:../.."), "source"),
        (
            "publish",
            json!({ "method": "file", "location": "/tmp/x" }),
            "publish",
        ),
        (
            "flat-field",
            json!({ "location": "/etc/passwd" }),
            "flat-field",
        ),
        (
            "analysis",
            json!({ "learn": { "location": "/etc/passwd" } }),
            "analysis",
        ),
        (
            "analysis",
            json!({ "ignore": { "mask": "/etc/passwd" } }),
            "analysis",
        ),
        ("name", json!("../../x"), "name"),
        ("name", json!("a\nsource = \"videotestsrc\""), "name"),
    ] {
        let right = wrong[key].take();
        wrong[key] = value;
        let mistakes = draft.settings(&wrong);
        assert_eq!(mistakes[0]["key"], expected, "{key}: {mistakes}");
        if right.is_null() {
            wrong.as_object_mut().unwrap().remove(key);
        } else {
            wrong[key] = right;
        }
    }
    assert_eq!(
        draft.settings(&wrong),
        json!([]),
        "the right ones are taken"
    );
    // A thousand points, and too many bytes.
    let polygon: Vec<f64> = (0..2000).map(|at| f64::from(at % 100)).collect();
    wrong["analysis"]["ignore"] = json!({ "regions": [polygon] });
    assert_eq!(draft.settings(&wrong), json!([]));
    let large = vec![b' '; 300 << 10];
    let (status, _) = station.request("PUT", &format!("{}/settings", draft.1), &large, TOKEN);
    assert_eq!(status, 413);
    for name in ["../x", "", "a/b", "active\n", &"x".repeat(65)] {
        let (status, sentence) =
            draft.refused("POST", "/save", &json!({ "name": name, "activate": false }));
        assert_eq!(status, 422, "{name:?}: {sentence}");
    }
    let (status, _) = draft.refused("POST", "/collect", &json!({ "from": "folder:../recipes" }));
    assert_eq!(status, 409);
    let (status, text) = station.request("PUT", &format!("{}/mask", draft.1), b"no picture", TOKEN);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, &answer["mistakes"][0]["key"]),
        (200, &json!("mask"))
    );
    let folder = draft.1.rsplit('/').next().unwrap();
    let kept = sandbox
        .path()
        .join("recipes")
        .join(format!(".draft-{folder}"));
    assert!(is_empty(&kept), "a refused mask is left there");
    station.end("TERM");
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn copy_of_a_recipe_has_not_its_number() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("set-up-number");
    let inspection = "pitch-x = 16, pitch-y = 0, min-contrast = 0, multiples = [1], threshold = 30";
    let folder = sandbox.folder("recipes");
    let cloth = "number = 7\n[[camera]]\nname = \"left\"\npitch = { threshold = 40 }\n";
    fs::write(folder.join("cloth.toml"), cloth).unwrap();
    fs::write(folder.join("active"), "cloth\n").unwrap();
    let mut station = station(&sandbox, &live_camera("left", "ball", inspection));
    station.wait_for_status("left", "running");
    let draft = Draft::begin(&station, Some("left"));
    let has_number = |name: &str| {
        let recipe = draft.ask("GET", &format!("/recipe?name={name}"), &Value::Null);
        recipe["text"].as_str().unwrap().contains("number = 7")
    };
    assert!(has_number("cloth") && !has_number("copy"));
    let copy = json!({ "name": "copy", "activate": false });
    // Also when the copy is saved again.
    for _ in 0..2 {
        draft.ask("POST", "/save", &copy);
        let text = fs::read_to_string(folder.join("copy.toml")).unwrap();
        assert!(text.contains("left") && !text.contains("number"), "{text}");
    }
    assert!(!has_number("copy"));
}

/// The recipes' folder with a recipe `cloth` in force.
fn in_force(sandbox: &Sandbox, recipe: &str) -> std::path::PathBuf {
    let folder = sandbox.folder("recipes");
    fs::write(folder.join("cloth.toml"), recipe).unwrap();
    fs::write(folder.join("active"), "cloth\n").unwrap();
    folder
}

#[test]
fn saving_keeps_the_other_cameras_however_the_recipe_writes_them() {
    let sandbox = Sandbox::new("set-up-inline");
    let folder = in_force(
        &sandbox,
        "camera = [\n  { name = \"left\", pitch = { threshold = 40 } },\n  \
         { name = \"right\", pitch = { threshold = 77, min-area = 5 } },\n]\n",
    );
    let cameras =
        ["left", "right"].map(|name| live_camera(name, "ball", "pitch-x = 16, min-contrast = 0"));
    let station = station(&sandbox, &cameras.concat());
    let draft = Draft::begin(&station, Some("left"));
    draft.ask(
        "POST",
        "/save",
        &json!({ "name": "cloth", "activate": false }),
    );
    let text = fs::read_to_string(folder.join("cloth.toml")).unwrap();
    for kept in ["77", "min-area = 5", "40", "name = \"right\""] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn saving_without_a_change_removes_nothing() {
    let sandbox = Sandbox::new("set-up-unchanged");
    let recipe = "[[camera]]\nname = \"line\"\n# the new one\nsource = \"videotestsrc is-live=true\"\n\
                  \n[camera.pitch]\n# Learned from 24 good pieces. Set: threshold by good piece 2.\nthreshold = 40.5\n\
                  # by hand\nmin-area = 4\n";
    in_force(&sandbox, recipe);
    let mut station = station(&sandbox, "");
    station.wait_until("the camera is there", |station| {
        !station.camera("line").is_null()
    });
    let draft = Draft::begin(&station, Some("line"));
    let state = draft.ask("GET", "", &Value::Null);
    assert_eq!(draft.settings(&state["settings"]), json!([]));
    let shown = draft.ask("GET", "/recipe?name=cloth", &Value::Null);
    let text = shown["text"].as_str().unwrap();
    let mut rest = text;
    for line in recipe.lines().filter(|line| !line.is_empty()) {
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("{line} is gone or moved:\n{text}"));
        rest = &rest[at + line.len()..];
    }
    assert!(text.starts_with("[[camera]]"), "{text}");
    // A limit that is changed was not learned.
    let mut settings = state["settings"].clone();
    settings["analysis"]["threshold"] = json!(41.0);
    assert_eq!(draft.settings(&settings), json!([]));
    let text = draft.ask("GET", "/recipe?name=cloth", &Value::Null)["text"].to_string();
    assert!(
        !text.contains("Learned") && text.contains("by hand"),
        "{text}"
    );
}

#[test]
fn a_refused_change_takes_no_other_one_back() {
    let sandbox = Sandbox::new("set-up-at-once");
    let station = station(&sandbox, "");
    let draft = Draft::begin(&station, None);
    let settings = |threshold: f64| panel_settings("folder:good", threshold);
    assert_eq!(draft.settings(&settings(10.0)), json!([]));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                assert_ne!(draft.settings(&settings(-1.0)), json!([]), "no threshold");
            }
        });
        for number in 0..60 {
            let threshold = f64::from(20 + number);
            assert_eq!(draft.settings(&settings(threshold)), json!([]));
            let state = draft.ask("GET", "", &Value::Null);
            let in_force = state["settings"]["analysis"]["threshold"].as_f64();
            if in_force != Some(threshold) {
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert_eq!(in_force, Some(threshold));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn set_ups_in_which_nothing_would_be_lost_give_way() {
    let sandbox = Sandbox::new("set-up-many");
    let station = station(
        &sandbox,
        &live_camera("left", "ball", "pitch-x = 16, min-contrast = 0"),
    );
    // Looked at only, and saved.
    for number in 0..6 {
        let draft = Draft::begin(&station, Some("left"));
        let name = format!("saved-{number}");
        draft.ask("POST", "/save", &json!({ "name": name, "activate": false }));
        Draft::begin(&station, Some("left"));
    }
    let unsaved = [0; 4].map(|_| {
        let draft = Draft::begin(&station, None);
        assert_eq!(
            draft.settings(&panel_settings("folder:good", 10.0)),
            json!([])
        );
        draft
    });
    let (status, sentence) = ask(
        &station,
        "POST",
        "/api/setup/drafts",
        &json!({ "camera": "left" }),
    )
    .unwrap_err();
    assert!(
        status == 409 && sentence.contains("4 set-ups with unsaved changes"),
        "{sentence}"
    );
    let listed = ask(&station, "GET", "/api/setup/drafts", &Value::Null).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 4, "{listed}");
    unsaved[0].ask("DELETE", "", &Value::Null);
    Draft::begin(&station, Some("left"));
}
