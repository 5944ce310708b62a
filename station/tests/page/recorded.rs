//! Recordings on the page, and what people say about them.

use std::{fs, path::Path, sync::atomic::Ordering::Relaxed, time::Duration};

use clinspect_testkit::tools::Sandbox;
use serde_json::{Value, json};

use crate::{
    browser::drive,
    curl::{Response, curl},
    fake::{Station, TOKEN, open, with_token},
};

const SOON: Duration = Duration::from_secs(10);

/// A PNG picture of 48 x 32 px.
pub fn picture() -> Vec<u8> {
    let mut png = std::io::Cursor::new(Vec::new());
    let grey = image::GrayImage::from_fn(48, 32, |x, y| [(x * 5 + y) as u8].into());
    grey.write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner()
}

/// Records a frame of the camera left; returns its name.
pub fn record(folder: &Path, number: u64, role: &str) -> String {
    let name = format!(
        "left_20200411T1000{:02}.250000Z_{number:010}_{role}",
        number % 60
    );
    fs::write(folder.join(format!("{name}.png")), picture()).unwrap();
    name
}

/// Makes the camera left one that records into the folder.
pub fn recording(station: &Station, sandbox: &Sandbox) -> std::path::PathBuf {
    let folder = sandbox.folder("recordings");
    fs::create_dir_all(&folder).unwrap();
    *station.cameras[0].recordings() = Some(folder.clone());
    folder
}

fn get(station: &Station, path: &str) -> Response {
    curl(&[
        &station.url(path),
        "--header",
        &format!("Authorization: Bearer {TOKEN}"),
    ])
}

fn post(station: &Station, path: &str, body: &str) -> Response {
    curl(&[
        &station.url(path),
        "--header",
        &format!("Authorization: Bearer {TOKEN}"),
        "--header",
        "Content-Type: application/json",
        "--data-raw",
        body,
    ])
}

const ALARM: &str = "{\"verdict\": \"false-alarm\"}";
const MISSED: &str = "{\"verdict\": \"missed\", \"boxes\": [[1, 2, 3, 4]]}";
const NOTHING: &str = "{\"verdict\": null}";

#[test]
fn recordings_are_listed_shown_and_judged() {
    let station = Station::start(with_token(true), &["left", "right"]);
    let sandbox = Sandbox::new("page-recorded");
    let folder = recording(&station, &sandbox);
    let names: Vec<String> = (0..53).map(|at| record(&folder, at, "context")).collect();
    let list = get(&station, "/api/cameras/left/recordings").json();
    assert_eq!(list["is_recording"], true);
    assert_eq!(list["recordings"].as_array().unwrap().len(), 50);
    let newest = json!({
        "name": names[52],
        "time": "2020-04-11T10:00:52.250000Z",
        "frame": 52,
        "role": "context",
        "said": null,
        "size": [48, 32],
    });
    assert_eq!(list["recordings"][0], newest);
    let before = format!("/api/cameras/left/recordings?before={}", names[3]);
    let older = get(&station, &before).json();
    let of = |at: usize| older["recordings"][at]["name"].clone();
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [
            json!(names[2]),
            json!(names[1]),
            json!(names[0]),
            Value::Null
        ]
    );
    for (end, width) in [(".jpg", 48), ("-thumb.jpg", 48)] {
        let shown = get(&station, &format!("/recordings/left/{}{end}", names[0]));
        assert_eq!(shown.header("content-type"), Some("image/jpeg"));
        let shown = image::load_from_memory(&shown.body).unwrap();
        assert_eq!([shown.width(), shown.height()], [width, 32]);
    }
    let path = format!("/api/cameras/left/recordings/{}/verdict", names[0]);
    let said = post(&station, &path, MISSED).json();
    assert_eq!(said["said"]["boxes"], json!([[1, 2, 3, 4]]));
    assert_eq!(said["said"]["who"], "page 127.0.0.1");
    let file = folder.join(format!("{}.verdict.json", names[0]));
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept, said["said"]);
    assert_eq!(get(&station, &before).json()["recordings"][2]["said"], kept);
    assert_eq!(post(&station, &path, NOTHING).json()["said"], Value::Null);
    assert!(!file.exists());
    // The other camera records nothing.
    let list = get(&station, "/api/cameras/right/recordings").json();
    assert_eq!(list, json!({ "is_recording": false, "recordings": [] }));
    let cameras = get(&station, "/api/cameras").json();
    let records = |at: usize| cameras[at]["is_recording"].as_bool();
    assert_eq!([records(0), records(1)], [Some(true), Some(false)]);
}

#[test]
fn a_failed_frame_leads_to_its_recording() {
    let station = Station::start(with_token(true), &["left"]);
    let sandbox = Sandbox::new("page-failure");
    station.wishes[0].plant.store(true, Relaxed);
    station.wait("a failed frame", SOON, |of| {
        !of.cameras[0].history().failures.is_empty()
    });
    let (shown, judge) = (
        "/api/cameras/left/failures/1",
        "/api/cameras/left/failures/1/verdict",
    );
    let refused = post(&station, judge, ALARM);
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("records no frames"),
        "{}",
        refused.text()
    );
    let folder = recording(&station, &sandbox);
    let refused = post(&station, judge, ALARM);
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("not recorded"),
        "{}",
        refused.text()
    );
    let failure = get(&station, shown).json();
    assert_eq!(failure["recording"], Value::Null);
    let time = failure["report"]["time"]
        .as_str()
        .unwrap()
        .replace(['-', ':'], "");
    let name = format!(
        "left_{time}_{:010}_failed",
        failure["report"]["frame"].as_u64().unwrap()
    );
    fs::write(folder.join(format!("{name}.png")), picture()).unwrap();
    assert_eq!(
        post(&station, judge, ALARM).json()["said"]["verdict"],
        "false-alarm"
    );
    let recording = &get(&station, shown).json()["recording"];
    assert_eq!(
        (&recording["name"], &recording["said"]["verdict"]),
        (&json!(name), &json!("false-alarm"))
    );
    let list = get(&station, "/api/cameras/left/recordings").json();
    assert_eq!(list["recordings"][0]["said"], recording["said"]);
}

#[test]
fn people_say_by_mouse_touch_and_keyboard_what_is_wrong() {
    let station = Station::start(with_token(true), &["left", "right"]);
    let sandbox = Sandbox::new("page-judged");
    let folder = recording(&station, &sandbox);
    station.wishes[0].plant.store(true, Relaxed);
    station.wait("a failed frame", SOON, |of| {
        !of.cameras[0].history().failures.is_empty()
    });
    let report = station.cameras[0].history().failures[0].report.clone();
    let time = report.time.replace(['-', ':'], "");
    let failed = format!("left_{time}_{:010}_failed", report.frame.unwrap());
    fs::write(folder.join(format!("{failed}.png")), picture()).unwrap();
    let names = [0, 1, 2].map(|number| record(&folder, number, "context"));
    drive(
        "verdicts.py",
        &station.url(""),
        std::time::Duration::from_secs(180),
        |line| eprintln!("{line}"),
    );
    let said = |name: &str| -> Value {
        let said = fs::read(folder.join(format!("{name}.verdict.json"))).unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        json!([said["verdict"], said["boxes"]])
    };
    assert_eq!(said(&failed), json!(["false-alarm", null]));
    assert_eq!(said(&names[2]), json!(["missed", [[12, 8, 12, 16]]]));
    assert_eq!(said(&names[1]), json!(["missed", [[22, 14, 4, 4]]]));
    assert_eq!(said(&names[0]), json!(["missed", [[24, 16, 24, 16]]]));
}

#[test]
fn verdicts_need_the_right_to_write_and_hostile_names_and_bodies_are_refused() {
    let sandbox = Sandbox::new("page-verdict-refused");
    for (access, status) in [(open(), 403), (with_token(false), 403)] {
        let station = Station::start(access, &["left"]);
        let folder = recording(&station, &sandbox);
        let name = record(&folder, 1, "failed");
        let path = format!("/api/cameras/left/recordings/{name}/verdict");
        assert_eq!(post(&station, &path, ALARM).status, status);
    }
    let station = Station::start(with_token(true), &["left"]);
    let folder = recording(&station, &sandbox);
    let name = record(&folder, 1, "failed");
    fs::write(sandbox.path().join("secret.png"), picture()).unwrap();
    let path = format!("/api/cameras/left/recordings/{name}/verdict");
    let anonymous = curl(&[&station.url(&path), "--data-raw", ALARM]);
    assert_eq!(anonymous.status, 401);
    for hostile in [
        "..%2fsecret",
        "..%2Fsecret%00",
        "%2e%2e%2fsecret",
        "secret",
        ".",
        &format!("x{name}"),
    ] {
        let shown = get(&station, &format!("/recordings/left/{hostile}.jpg"));
        assert_eq!(shown.status, 404, "{hostile}: {}", shown.text());
        assert!(!shown.text().contains("secret"));
        let said = post(
            &station,
            &format!("/api/cameras/left/recordings/{hostile}/verdict"),
            ALARM,
        );
        assert_eq!(said.status, 409, "{hostile}: {}", said.text());
    }
    assert_eq!(
        get(&station, &format!("/recordings/left/{name}.png")).status,
        404
    );
    let of = |boxes: &str| format!("{{\"verdict\": \"missed\", \"boxes\": [{boxes}]}}");
    for (body, status) in [
        ("", 400),
        ("[]", 422),
        ("{\"verdict\": \"perhaps\"}", 422),
        ("{\"verdict\": null, \"path\": \"/etc\"}", 422),
        (&of("[1, 2, 3]"), 422),
        (&of("[-1, 2, 3, 4]"), 422),
        (&of("[1, 2, 3, 4e9]"), 422),
        (&of("[40, 2, 9, 4]"), 409),
        (&of(""), 409),
        (&of(&"[1, 2, 3, 4],".repeat(1000)), 413),
    ] {
        let said = post(&station, &path, body);
        assert_eq!(said.status, status, "{body:.60}: {}", said.text());
    }
    // Broken pictures are told, not shown.
    fs::write(folder.join(format!("{name}.png")), "no picture").unwrap();
    assert_eq!(
        get(&station, &format!("/recordings/left/{name}.jpg")).status,
        422
    );
    assert_eq!(
        get(&station, "/api/cameras/left/recordings").json()["recordings"][0]["size"],
        Value::Null
    );
    assert_eq!(post(&station, &path, MISSED).status, 409);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
