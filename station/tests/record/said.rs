//! What people say about recorded frames.

use std::{fs, os::unix::fs::symlink, path::Path};

use clinspect_testkit::tools::Sandbox;
use plan::RecordingSettings;
use run::{
    recorded::{self, Label, PersonVerdict, Recording, Verdict},
    recording::{Recorder, Role},
};

use crate::support::{camera, files, send, settings};

fn said(verdict: Verdict, boxes: &[[u32; 4]]) -> PersonVerdict {
    PersonVerdict {
        verdict,
        boxes: boxes.to_vec(),
        who: "page 192.168.1.7".into(),
        time: "2026-04-11T10:00:00.000000Z".into(),
    }
}

fn verdict_files(folder: &Path) -> Vec<String> {
    let mut files = files(folder);
    files.retain(|name| name.ends_with(".verdict.json"));
    files
}

/// Frames 0 to 4, of which 1 and 3 failed.
fn five(folder: &Path) -> Vec<Recording> {
    let settings = RecordingSettings {
        before: 1,
        after: 1,
        ..settings(folder)
    };
    let recorder = Recorder::new(settings, camera("left")).unwrap();
    send(recorder, 0, &["pass", "fail", "pass", "fail", "pass"]);
    recorded::list(folder, "left").unwrap()
}

#[test]
fn a_frame_has_the_label_that_people_gave_it_and_else_that_of_its_role() {
    let sandbox = Sandbox::new("said-labels");
    let folder = sandbox.folder("out");
    let all = five(&folder);
    let failed = |at: usize| all[at].role == Role::Failed;
    assert_eq!(
        [0, 1, 2, 3, 4].map(failed),
        [false, true, false, true, false]
    );
    assert_eq!(all[1].time, "2026-04-11T10:00:01.250000Z");
    assert_eq!(all[1].frame, 1);
    all[1].say(Some(&said(Verdict::FalseAlarm, &[]))).unwrap();
    all[2]
        .say(Some(&said(Verdict::Missed, &[[1, 2, 3, 4]])))
        .unwrap();
    let again = recorded::list(&folder, "left").unwrap();
    let labels: Vec<Label> = again.iter().map(Recording::label).collect();
    use Label::{Failed, Good};
    assert_eq!(labels, [Good, Good, Failed, Failed, Good]);
    let kept = again[2].load().unwrap();
    assert_eq!((kept.label, kept.missed), (Failed, vec![[1, 2, 3, 4]]));
    assert_eq!(again[2].said, Some(said(Verdict::Missed, &[[1, 2, 3, 4]])));
    // Taken back, twice.
    again[1].say(None).unwrap();
    again[1].say(None).unwrap();
    let back = recorded::find(&folder, "left", &all[1].name).unwrap();
    assert_eq!((back.label(), back.said), (Failed, None));
    let newest = recorded::page(&folder, "left", None, 2).unwrap();
    let names = |of: &[Recording]| of.iter().map(|of| of.frame).collect::<Vec<_>>();
    assert_eq!(names(&newest), [4, 3]);
    let older = recorded::page(&folder, "left", Some(&newest[1].name), 50).unwrap();
    assert_eq!(names(&older), [2, 1, 0]);
    assert!(recorded::list(&folder, "lef").unwrap().is_empty());
}

#[test]
fn a_verdict_goes_with_its_recording_and_survives_a_restart() {
    let sandbox = Sandbox::new("said-removed");
    let folder = sandbox.folder("out");
    for recorded in five(&folder) {
        recorded
            .say(Some(&said(Verdict::Missed, &[[0, 0, 1, 1]])))
            .unwrap();
    }
    let start = |most| {
        let settings = RecordingSettings {
            max_count: most,
            ..settings(&folder)
        };
        Recorder::new(settings, camera("left")).unwrap()
    };
    drop(start(3));
    let names: Vec<String> = recorded::list(&folder, "left")
        .unwrap()
        .into_iter()
        .map(|of| of.name)
        .collect();
    let expected: Vec<String> = names
        .iter()
        .map(|name| format!("{name}.verdict.json"))
        .collect();
    assert_eq!(verdict_files(&folder), expected);
    assert_eq!(names.len(), 3);
    // Of a crash: a half written one, and one without its recording. Others' files stay.
    let orphan = expected[0].replace("_0000000002_", "_0000000077_");
    for name in [
        &format!(".{}.0123456789abcdef.part", expected[0]),
        &orphan,
        "left_notes.verdict.json",
    ] {
        fs::write(folder.join(name), "{}").unwrap();
    }
    drop(start(3));
    let mut expected = expected;
    expected.push("left_notes.verdict.json".into());
    assert_eq!(verdict_files(&folder), expected);
    send(start(3), 10, &["fail"; 3]);
    assert_eq!(verdict_files(&folder), ["left_notes.verdict.json"]);
}

#[test]
fn verdicts_that_do_not_fit_are_refused_and_broken_files_count_as_none() {
    let sandbox = Sandbox::new("said-refused");
    let folder = sandbox.folder("out");
    let all = five(&folder);
    let [width, height] = all[0].size().unwrap();
    for (verdict, boxes, part) in [
        (Verdict::FalseAlarm, vec![[0, 0, 1, 1]], "leave boxes out"),
        (Verdict::Missed, vec![], "draw a rectangle"),
        (Verdict::Missed, vec![[0, 0, 1, 1]; 101], "100 or fewer"),
        (Verdict::Missed, vec![[0, 0, 0, 1]], "not in the frame"),
        (Verdict::Missed, vec![[width, 0, 1, 1]], "not in the frame"),
        (Verdict::Missed, vec![[0, 1, 1, height]], "not in the frame"),
        (
            Verdict::Missed,
            vec![[u32::MAX, 0, 2, 1]],
            "not in the frame",
        ),
    ] {
        let why = all[0].say(Some(&said(verdict, &boxes))).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
    assert!(verdict_files(&folder).is_empty());
    all[0]
        .say(Some(&said(Verdict::Missed, &[[0, 0, width, height]])))
        .unwrap();
    let file = folder.join(&verdict_files(&folder)[0]);
    for broken in ["", "{", "{\"verdict\": \"maybe\"}", "[]"] {
        fs::write(&file, broken).unwrap();
        assert_eq!(recorded::list(&folder, "left").unwrap()[0].said, None);
    }
    fs::write(&file, vec![b' '; 100_000]).unwrap();
    assert_eq!(recorded::list(&folder, "left").unwrap()[0].said, None);
    // What the limits removed meanwhile gets no verdict.
    let gone = &all[1];
    fs::remove_file(folder.join(format!("{}.png", gone.name))).unwrap();
    gone.say(Some(&said(Verdict::FalseAlarm, &[]))).unwrap_err();
    assert_eq!(verdict_files(&folder).len(), 1);
    assert!(recorded::find(&folder, "left", &gone.name).is_none());
}

#[test]
fn names_with_paths_find_nothing_and_links_are_no_recordings() {
    let sandbox = Sandbox::new("said-hostile");
    let folder = sandbox.folder("out");
    let all = five(&folder);
    let good = all[0].name.clone();
    let secret = sandbox.path().join("secret.png");
    fs::copy(folder.join(format!("{good}.png")), &secret).unwrap();
    let link = good.replace("_0000000000_", "_0000000099_");
    symlink(&secret, folder.join(format!("{link}.png"))).unwrap();
    for name in [
        "",
        ".",
        "../secret",
        "..%2fsecret",
        &format!("../out/{good}"),
        &format!("{good}/../{good}"),
        &format!("{good}\0"),
        &format!("{good}.png"),
        &good.replace("left", "right"),
        &good.replace("_context", "_../x"),
        &good.replace("2026", "20/6"),
        &link,
    ] {
        assert!(recorded::find(&folder, "left", name).is_none(), "{name:?}");
    }
    assert_eq!(recorded::list(&folder, "left").unwrap().len(), all.len());
    assert!(recorded::find(&folder, "left", &good).is_some());
}

#[test]
fn many_people_at_once_leave_one_whole_verdict_and_no_other_file() {
    let sandbox = Sandbox::new("said-at-once");
    let folder = sandbox.folder("out");
    let all = five(&folder);
    let boxes = |at: u32| said(Verdict::Missed, &[[0, 0, at + 1, 1]; 50]);
    all[0].say(Some(&boxes(0))).unwrap();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let recorded = &all[0];
            scope.spawn(move || (0..40).for_each(|_| recorded.say(Some(&boxes(at))).unwrap()));
        }
        for _ in 0..400 {
            // A reader sees a whole verdict, whoever's it is.
            let seen = recorded::find(&folder, "left", &all[0].name).unwrap().said;
            let seen = seen.expect("a whole verdict").boxes;
            assert!(seen.len() == 50 && seen.windows(2).all(|of| of[0] == of[1]));
        }
    });
    assert_eq!(files(&folder).len(), all.len() * 2 + 1);
}
