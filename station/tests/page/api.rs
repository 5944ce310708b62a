//! The answers' shapes.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use run::state::{Status, Trouble};

use crate::{
    curl::curl,
    fake::{HOSTILE_CLASS, Station, TOKEN, open, report, with_token},
};

const SOON: Duration = Duration::from_secs(10);

fn plant(station: &Station, camera: usize) {
    let count = station.cameras[camera].history().failures.len();
    station.wishes[camera].plant.store(true, Relaxed);
    station.wait("a failed frame", SOON, |of| {
        of.cameras[camera].history().failures.len() > count
    });
}

#[test]
fn summary_holds_what_a_card_shows() {
    let station = Station::start(open(), &["left", "right"]);
    station.wait("a frame", SOON, |of| {
        of.cameras[0].report.borrow().is_some()
    });
    let cameras = curl(&[&station.url("/api/cameras")]).json();
    let left = &cameras[0];
    assert_eq!(left["name"], "left");
    assert_eq!(left["status"], "running");
    assert_eq!(left["verdict"], "pass");
    assert_eq!(left["device"], "pthread-test");
    assert_eq!(left["frame_rate"], 25.0);
    assert_eq!(left["counts"], serde_json::json!({}));
    assert_eq!(left["publish_connected"], true);
    assert_eq!(left["alignment"]["rotation_degrees"], 0.125);
    assert_eq!(left["alignment"]["step"], "affine");
    assert!(left["learning"].is_null(), "{left}");
    assert!(left["age_ms"].as_u64() < Some(1000), "{left}");
    assert_eq!(left["offers"], serde_json::json!(["take-white", "learn"]));
    assert_eq!(cameras[1]["name"], "right");
    let one = curl(&[&station.url("/api/cameras/right")]).json();
    assert_eq!(one["name"], "right");
    assert!(one["frames"].as_u64() > Some(0));
    assert_eq!(
        one["learning"],
        serde_json::json!({ "frames": 7, "all": 24 })
    );
    assert!(one["alignment"].is_null(), "{one}");
    assert_eq!(one["parts"]["found"][0]["angle"], -33.25);
    assert!(left["parts"].is_null(), "{left}");
    let lost = Status::Failed(Trouble::CameraLost, "no frame for 5 s".into());
    station.cameras[0].status.send_replace(lost);
    let left = curl(&[&station.url("/api/cameras/left")]).json();
    assert_eq!(left["status"], "camera-lost");
    assert_eq!(left["status_text"], "no frame for 5 s");
}

#[test]
fn failed_frame_is_listed_with_its_defects_and_pictures() {
    let station = Station::start(open(), &["left"]);
    plant(&station, 0);
    let history = curl(&[&station.url("/api/cameras/left/history")]).json();
    assert_eq!(history["failures"][0]["id"], 1);
    assert_eq!(history["failures"][0]["defects"], 3);
    assert_eq!(history["failures"][0]["counts"][HOSTILE_CLASS], 1);
    assert_eq!(history["minutes"][0]["defects"]["scratch"], 2);
    assert_eq!(history["bins"][0].as_array().map(Vec::len), Some(64));
    assert_eq!(history["histograms"][0]["channels"][0]["mean"], 101.5);
    let failure = curl(&[&station.url("/api/cameras/left/failures/1")]).json();
    assert_eq!(failure["report"]["verdict"], "fail");
    assert_eq!(
        failure["report"]["inspections"][0]["defects"][0]["class"],
        "scratch"
    );
    for path in ["/failures/left/1.jpg", "/thumbnails/left/1.jpg"] {
        let picture = curl(&[&station.url(path)]);
        assert_eq!(
            (picture.status, picture.header("content-type")),
            (200, Some("image/jpeg"))
        );
        assert_eq!(&picture.body[..2], b"\xff\xd8", "{path} is a JPEG file");
        assert_eq!(picture.header("cache-control"), Some("no-store"));
    }
    // What went since the page got its list is no error for the browser's console.
    for (path, status) in [
        ("/thumbnails/left/99.jpg", 204),
        ("/thumbnails/gone/1.jpg", 204),
        ("/thumbnails/left/one.jpg", 404),
        ("/failures/left/99.jpg", 404),
    ] {
        assert_eq!(curl(&[&station.url(path)]).status, status, "{path}");
    }
    let roll = curl(&[&station.url("/api/cameras/left/roll")]).json();
    assert_eq!(
        (&roll["web"], &roll["marks"][0]["across"]),
        (&3.into(), &0.25.into())
    );
    let repeat = &roll["repeats"][0];
    assert_eq!(
        (&repeat["count"], &repeat["period_m"], &repeat["is_active"]),
        (&6.into(), &0.628.into(), &true.into())
    );
    assert_eq!(repeat["places"][5]["across"], 0.25);
    let report = curl(&[&station.url("/api/cameras/left/report")]).json();
    assert_eq!(report["camera"], "left");
}

#[test]
fn results_of_a_camera_that_stands_get_older_and_go_with_their_report() {
    let station = Station::start(open(), &["left"]);
    station.wait("a frame", SOON, |of| {
        of.cameras[0].report.borrow().is_some()
    });
    station.wishes[0].pause.store(true, Relaxed);
    std::thread::sleep(Duration::from_millis(1500));
    let url = station.url("/api/cameras/left");
    let age = curl(&[&url]).json()["age_ms"].as_u64();
    assert!((Some(1300)..Some(5000)).contains(&age), "{age:?}");
    station.cameras[0].report.send_replace(None);
    let left = curl(&[&url]).json();
    for key in ["age_ms", "verdict", "light_alarms", "counts"] {
        assert!(left[key].is_null(), "{key}: {}", left[key]);
    }
    let history = curl(&[&station.url("/api/cameras/left/history")]).json();
    assert_eq!(history["bins"], serde_json::json!([]));
}

#[test]
fn last_hour_shows_no_minute_of_yesterday() {
    let station = Station::start(open(), &["left"]);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.expect("a clock").as_secs() / 60;
    for minute in [now - 1440, now - 60, now - 30, now + 60] {
        station.cameras[0].history().minute(minute);
    }
    let history = curl(&[&station.url("/api/cameras/left/history")]).json();
    let minutes = history["minutes"].as_array().expect("minutes");
    let minutes = minutes.iter().map(|of| of["minute"].as_u64());
    assert_eq!(Vec::from_iter(minutes), [Some(now - 30)]);
}

#[test]
fn roll_map_holds_the_newest_web_alone() {
    let station = Station::start(open(), &["left"]);
    plant(&station, 0);
    let url = station.url("/api/cameras/left/roll");
    assert_eq!(
        curl(&[&url]).json()["marks"].as_array().map(Vec::len),
        Some(1)
    );
    let mut history = station.cameras[0].history();
    // As the first strip of the next web does.
    (history.web, history.repeats) = (Some(4), Vec::new());
    drop(history);
    let next = serde_json::json!({ "web": 4, "marks": [], "repeats": [] });
    assert_eq!(curl(&[&url]).json(), next, "the next web has no defect");
    station.cameras[0].history().begin_pipeline();
    assert!(curl(&[&url]).json()["web"].is_null());
    let left = curl(&[&station.url("/api/cameras/left")]).json();
    assert_eq!(left["is_web"], false);
}

#[test]
fn report_that_a_late_frame_left_is_not_shown_as_one_of_a_camera_that_runs() {
    let station = Station::start(open(), &["left"]);
    station.wishes[0].pause.store(true, Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    let late = Arc::new(report("left", 7, true));
    station.cameras[0].report.send_replace(Some(late));
    let url = station.url("/api/cameras/left");
    let url_of_report = station.url("/api/cameras/left/report");
    assert_eq!(curl(&[&url]).json()["frame"], 7);
    station.cameras[0].status.send_replace(Status::Starting);
    let left = curl(&[&url]).json();
    assert!(left["verdict"].is_null(), "{left}");
    assert!(curl(&[&url_of_report]).json().is_null());
}

#[test]
fn health_names_the_cameras_that_do_not_run() {
    let station = Station::start(open(), &["left", "right"]);
    assert_eq!(curl(&[&station.url("/healthz")]).status, 200);
    station.cameras[1].status.send_replace(Status::Starting);
    let response = curl(&[&station.url("/healthz")]);
    assert_eq!(response.status, 503);
    assert_eq!(response.text(), "These cameras do not run: right.\n");
}

#[test]
fn metrics_are_served_as_text() {
    let station = Station::start(open(), &["left"]);
    let metrics = curl(&[&station.url("/metrics")]);
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .header("content-type")
            .is_some_and(|of| of.starts_with("text/plain"))
    );
    assert!(
        metrics.text().contains("camera=\"left\""),
        "{}",
        metrics.text()
    );
}

#[test]
fn reload_changes_the_cameras() {
    let station = Station::start(open(), &["left", "right"]);
    assert_eq!(curl(&[&station.url("/api/cameras/left")]).status, 200);
    station
        .list
        .send_replace(station.cameras[1..].to_vec().into());
    assert_eq!(curl(&[&station.url("/api/cameras/left")]).status, 404);
    assert_eq!(curl(&[&station.url("/api/cameras/right")]).status, 200);
}

#[test]
fn command_is_answered_by_the_camera() {
    let station = Station::start(with_token(true), &["left"]);
    let url = station.url("/api/cameras/left/command");
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let send = |body: &str| {
        curl(&[
            "-H",
            &bearer,
            "-H",
            "Content-Type: application/json",
            "-d",
            body,
            &url,
        ])
    };
    let done = send(r#"{"command": "take-white"}"#).json();
    assert_eq!(
        done["answer"],
        "The next 16 frames become the white reference."
    );
    let refused = send(r#"{"command": "learn"}"#);
    assert_eq!(refused.status, 409);
    assert_eq!(refused.text(), "The light is off; switch it on first.\n");
    let forgets = send(r#"{"command": "forget", "frame": 18446744073709551615}"#);
    assert_eq!(forgets.status, 200, "{}", forgets.text());
    assert_eq!(
        forgets.json()["answer"],
        "Frame 18446744073709551615 is forgotten."
    );
    assert_eq!(send(r#"{"command": "forget", "frame": -1}"#).status, 422);
    assert_eq!(send(r#"{"command": "format-disk"}"#).status, 422);
    assert_eq!(send(r#"{"command": "train", "more": 1}"#).status, 422);
    assert_eq!(send("{").status, 400);
    let form = curl(&["-H", &bearer, "-d", "command=train", &url]);
    assert_eq!(form.status, 415);
}
