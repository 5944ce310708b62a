//! What is kept.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use clinspect_testkit::tools::Sandbox;
use plan::RecordingSettings;
use run::recording::Recorder;

use crate::support::{alarms, all_whole, camera, files, load, recorded, send, settings};

fn numbers(folder: &Path) -> Vec<u64> {
    recorded(folder)
        .into_iter()
        .map(|(number, _)| number)
        .collect()
}

fn size(folder: &Path) -> u64 {
    let sizes = files(folder)
        .into_iter()
        .map(|name| fs::metadata(folder.join(name)).unwrap().len());
    sizes.sum()
}

#[test]
fn the_oldest_recordings_beyond_the_count_are_removed_also_after_a_restart() {
    let sandbox = Sandbox::new("record-count");
    let folder = sandbox.folder("out");
    let start = |most| {
        let settings = RecordingSettings {
            max_count: most,
            ..settings(&folder)
        };
        Recorder::new(settings, camera("left")).unwrap()
    };
    send(start(4), 0, &["fail"; 10]);
    assert_eq!(numbers(&folder), [6, 7, 8, 9]);
    send(start(4), 10, &["fail"]);
    assert_eq!(numbers(&folder), [7, 8, 9, 10]);
    drop(start(2));
    assert_eq!(numbers(&folder), [9, 10]);
    assert_eq!(files(&folder).len(), 4, "a PNG and a JSON file each");
}

#[test]
fn the_oldest_recordings_beyond_the_bytes_are_removed() {
    let sandbox = Sandbox::new("record-bytes");
    let folder = sandbox.folder("out");
    send(
        Recorder::new(settings(&folder), camera("left")).unwrap(),
        0,
        &["fail"; 8],
    );
    let of_eight = size(&folder);
    // Room for four and a half.
    let max_bytes = of_eight * 9 / 16;
    let bounded = RecordingSettings {
        max_bytes,
        ..settings(&folder)
    };
    send(
        Recorder::new(bounded, camera("left")).unwrap(),
        8,
        &["fail"; 5],
    );
    assert_eq!(numbers(&folder), [9, 10, 11, 12]);
    assert!(size(&folder) <= max_bytes);

    // A frame that is larger than the limit removes nothing.
    let camera = camera("left");
    let small = RecordingSettings {
        max_bytes: of_eight / 8 - 20,
        ..settings(&folder)
    };
    let kept = sandbox.folder("kept");
    let small = RecordingSettings {
        folder: kept.clone(),
        ..small
    };
    send(
        Recorder::new(small, camera.clone()).unwrap(),
        13,
        &["fail"; 3],
    );
    assert_eq!(files(&kept), [""; 0]);
    assert_eq!(load(&camera.counters.recording_errors), 3);
    let alarms = alarms(&camera);
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert!(alarms[0].contains("set a larger max-bytes"), "{alarms:?}");
}

#[test]
fn recordings_beyond_the_age_are_removed() {
    let sandbox = Sandbox::new("record-age");
    let folder = sandbox.folder("out");
    send(
        Recorder::new(settings(&folder), camera("left")).unwrap(),
        0,
        &["fail"; 6],
    );
    let hour = Duration::from_secs(3600);
    for (index, name) in files(&folder).iter().enumerate() {
        // Two files each: frames 0 to 3 are 3 to 6 hours old, the others 1 and 2 hours.
        let age = hour * (6 - index as u32 / 2) - hour / 2;
        let file = fs::File::options()
            .write(true)
            .open(folder.join(name))
            .unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    let aged = RecordingSettings {
        max_age_hours: 2,
        ..settings(&folder)
    };
    drop(Recorder::new(aged, camera("left")).unwrap());
    assert_eq!(numbers(&folder), [4, 5]);
}

#[test]
fn files_of_others_and_of_other_cameras_stay() {
    let sandbox = Sandbox::new("record-others");
    let folder = sandbox.folder("out");
    let ours = "left_20260411T101530.123456Z_0000000007_failed";
    let others = [
        "notes.txt".to_owned(),
        "left.png".into(),
        "left_20260411T101530.123456Z_0000000007_failed.jpg".into(),
        "left_20260411T101530.123456Z_0000000007_failed.png.bak".into(),
        "left_20260411T101530.123456Z_7_failed.png".into(),
        "left_20260411T101530.123456Z_0000000007_broken.png".into(),
        "left_2026-04-11T10:15:30Z_0000000007_failed.png".into(),
        "left_20260411T101530.123456Z_0000000007_failed_.png".into(),
        "left_2_20260411T101530.123456Z_0000000007_failed.png".into(),
        "right_20260411T101530.123456Z_0000000007_failed.png".into(),
        ".right_20260411T101530.123456Z_0000000007_failed.png.0123456789abcdef.part".into(),
        ".left_20260411T101530.123456Z_0000000007_failed.png.theirs.part".into(),
        ".left.part".into(),
    ];
    for name in &others {
        fs::write(folder.join(name), "theirs").unwrap();
    }
    // Of our form, but neither is a file.
    fs::create_dir(folder.join("left_20260411T101530.123456Z_0000000008_failed.png")).unwrap();
    let link = folder.join("left_20260411T101530.123456Z_0000000009_failed.png");
    std::os::unix::fs::symlink(folder.join("notes.txt"), link).unwrap();
    let before = files(&folder);
    // What a crash leaves.
    for name in [
        format!(".{ours}.png.0123456789abcdef.part"),
        format!(".{ours}.json.0123456789abcdef.part"),
        format!("{ours}.json"),
    ] {
        fs::write(folder.join(name), "half").unwrap();
    }
    let settings = RecordingSettings {
        max_count: 1,
        max_age_hours: 1,
        max_bytes: 100_000,
        ..settings(&folder)
    };
    drop(Recorder::new(settings.clone(), camera("left")).unwrap());
    assert_eq!(files(&folder), before);
    send(
        Recorder::new(settings, camera("left")).unwrap(),
        0,
        &["fail"; 3],
    );
    let mut left = files(&folder);
    left.retain(|name| !before.contains(name));
    let last = "left_20260411T100002.250000Z_0000000002_failed";
    assert_eq!(left, [format!("{last}.json"), format!("{last}.png")]);
}

/// Six recordings by a recorder with these limits; then `change` by hand; then four recordings more. The numbers that are
/// left.
fn changed_by_hand(name: &str, limits: RecordingSettings, change: impl Fn(&Path)) -> Vec<u64> {
    let sandbox = Sandbox::new(name);
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let settings = RecordingSettings {
        folder: folder.clone(),
        ..limits
    };
    let recorder = Recorder::new(settings, camera.clone()).unwrap();
    let info = crate::support::info(gst_video::VideoFormat::Gray8, 16, 8);
    let fail = |number| {
        let picture = crate::support::frame(&info, number);
        recorder.frame(&picture, &info, &crate::support::report(number, "fail"));
    };
    (0..6).for_each(fail);
    crate::support::until("6 are written", || load(&camera.counters.recorded) == 6);
    change(&folder);
    (6..10).for_each(fail);
    drop(recorder);
    assert!(alarms(&camera).is_empty());
    all_whole(&folder);
    assert_eq!(
        files(&folder).len(),
        2 * numbers(&folder).len(),
        "no file is left alone"
    );
    numbers(&folder)
}

/// Removes the files of the recordings with these places in the order of their names.
fn remove(folder: &Path, places: std::ops::Range<usize>, ends: &str) {
    for name in &files(folder)[2 * places.start..2 * places.end] {
        if name.ends_with(ends) {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
}

#[test]
fn recordings_that_somebody_removed_are_not_counted() {
    let limits = settings(Path::new(""));
    let count = RecordingSettings {
        max_count: 6,
        ..limits.clone()
    };
    // Each frame of noise takes about as much.
    let sandbox = Sandbox::new("record-one");
    send(
        Recorder::new(settings(sandbox.path()), camera("left")).unwrap(),
        0,
        &["fail"],
    );
    let pair = ["png", "json"].map(|end| {
        let names = files(sandbox.path());
        let name = names.iter().find(|name| name.ends_with(end)).unwrap();
        fs::metadata(sandbox.path().join(name)).unwrap().len()
    });
    let bytes = RecordingSettings {
        max_bytes: pair.iter().sum::<u64>() * 13 / 2,
        ..limits
    };
    for (name, limits) in [("record-removed", count), ("record-removed-bytes", bytes)] {
        let left = |places: std::ops::Range<usize>, ends: &str| {
            changed_by_hand(name, limits.clone(), |folder| {
                remove(folder, places.clone(), ends)
            })
        };
        assert_eq!(left(0..2, ""), [4, 5, 6, 7, 8, 9], "{name}, the oldest");
        assert_eq!(left(3..6, ""), [1, 2, 6, 7, 8, 9], "{name}, the newest");
        assert_eq!(
            left(2..6, ".png"),
            [0, 1, 6, 7, 8, 9],
            "{name}, pictures only"
        );
    }
}

#[test]
fn recordings_that_somebody_added_are_counted() {
    let limits = RecordingSettings {
        max_count: 6,
        ..settings(Path::new(""))
    };
    let left = changed_by_hand("record-added", limits, |folder| {
        for name in files(folder) {
            let copy = name.replace("_00000000", "_00000001");
            fs::copy(folder.join(&name), folder.join(copy)).unwrap();
        }
    });
    assert_eq!(left.len(), 6, "{left:?}");
    assert_eq!(
        left.iter().filter(|number| **number < 100).count(),
        4,
        "{left:?}"
    );
}

#[test]
fn a_name_that_repeats_replaces_the_recording() {
    let sandbox = Sandbox::new("record-repeated");
    let folder = sandbox.folder("out");
    let bounded = RecordingSettings {
        max_count: 3,
        ..settings(&folder)
    };
    let camera = camera("left");
    for _ in 0..3 {
        send(
            Recorder::new(bounded.clone(), camera.clone()).unwrap(),
            0,
            &["fail"; 2],
        );
        assert_eq!(numbers(&folder), [0, 1]);
    }
    assert_eq!(load(&camera.counters.recorded), 6);
    assert_eq!(all_whole(&folder), 2);
}
