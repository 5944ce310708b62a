//! Files: lines of JSON, the schema, rotation, disks that are full.

use std::{fs, path::PathBuf, process::Command, time::Instant};

use clinspect_results::Verdict::{Fail, None, Pass};
use clinspect_testkit::tools::{exists, skip};

use crate::{
    broker::frames,
    frames::{Rig, refusal},
};

/// A folder that is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("inspectpublish-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.0.join(name)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(Into::into).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lines_are_those_of_the_frames_that_publish_names() {
    let folder = Folder::new("lines");
    for (publish, expected) in [
        ("all", vec![0, 1, 2, 3, 4, 5]),
        ("fail", vec![2, 3]),
        ("change", vec![0, 1, 2, 4]),
    ] {
        let file = folder.file(publish);
        let mut rig = Rig::new(&format!("location={file} publish={publish} camera=left"));
        for verdict in [None, Pass, Fail, Fail, Pass, Pass] {
            rig.push(verdict);
        }
        assert_eq!(rig.stat("dropped"), 0);
        rig.stop();
        let lines = folder.lines(publish);
        assert_eq!(frames(&lines), expected, "{publish}");
        assert!(
            lines
                .iter()
                .all(|line| line.contains("\"camera\":\"left\""))
        );
    }
}

#[test]
fn lines_follow_the_schema_and_an_unknown_field_does_not() {
    if !exists("python3") {
        return skip("python3 is not installed");
    }
    let folder = Folder::new("schema");
    let mut rig = Rig::new(&format!("location={}", folder.file("lines")));
    for verdict in [Pass, Fail, None] {
        rig.push(verdict);
    }
    rig.stop();
    assert_eq!(folder.lines("lines").len(), 3);
    let inspections: Vec<serde_json::Value> = folder
        .lines("lines")
        .iter()
        .map(|line| {
            let report: serde_json::Value = serde_json::from_str(line).unwrap();
            report["inspections"][0].clone()
        })
        .collect();
    // Turned by a right angle, twice as large; what is no number is null.
    let alignment = serde_json::json!({
        "shift_x": 3.0, "shift_y": -4.5, "rotation_degrees": 90.0, "scale": 2.0,
        "transform": [1.0, 0.0, -2.0, 5.0, 2.0, 0.0], "step": "affine", "match_score": 0.875,
        "matched": true, "misfit": 1.5, "largest_local_shift": null,
    });
    assert_eq!(inspections[0]["alignment"], alignment);
    assert!(inspections[0].get("learning").is_none() && inspections[0].get("training").is_none());
    let progress = |frames: u32, all: u32| serde_json::json!({ "frames": frames, "all": all });
    assert_eq!(inspections[2]["learning"], progress(7, 24));
    assert_eq!(inspections[2]["training"], progress(3, 25));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/publish/schema.py");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
    let done = Command::new("/usr/bin/python3")
        .args([script, schema, &folder.file("lines")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    if done.status.code() == Some(77) {
        return skip(&text);
    }
    assert_eq!(text, "3 reports follow the schema, 4 changed ones do not\n");
}

#[test]
fn a_file_that_was_rotated_is_opened_again() {
    let folder = Folder::new("rotated");
    let mut rig = Rig::new(&format!("location={}", folder.file("now")));
    rig.push_fails(2);
    rig.wait_for("published", 2);
    fs::rename(folder.file("now"), folder.file("before")).unwrap();
    rig.push_fails(2);
    rig.wait_for("published", 4);
    fs::remove_file(folder.file("now")).unwrap();
    rig.push_fails(1);
    rig.stop();
    assert_eq!(frames(&folder.lines("before")), [0, 1]);
    assert_eq!(frames(&folder.lines("now")), [4]);
}

#[test]
fn a_missing_folder_is_told_once_and_results_wait_for_it() {
    let folder = Folder::new("missing");
    fs::create_dir(folder.0.join("later")).unwrap();
    fs::remove_dir(folder.0.join("later")).unwrap();
    let mut rig = Rig::new(&format!(
        "location={} max-queued=3",
        folder.file("later/lines")
    ));
    let begun = Instant::now();
    rig.push_fails(5);
    assert!(begun.elapsed().as_secs_f64() < 1.0, "frames waited");
    rig.wait_for("errors", 2);
    fs::create_dir(folder.0.join("later")).unwrap();
    rig.wait_for("published", 3);
    let told = rig.told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("cannot be written") && told[1].contains("again"),
        "{told:?}"
    );
    // One was taken by the writer before the queue was full, and came back as the oldest.
    assert_eq!((rig.stat("published"), rig.stat("dropped")), (3, 2));
    rig.stop();
    assert_eq!(frames(&folder.lines("later/lines")), [2, 3, 4]);
}

#[test]
fn results_that_wait_are_bounded_in_bytes() {
    let folder = Folder::new("bytes");
    let mut rig = Rig::new(&format!("location={}", folder.file("later/lines")));
    // Half a megabyte each: fewer than the 1000 of max-queued fill the 64 MiB.
    let most = 64 << 20;
    for _ in 0..300 {
        rig.push_defects(4000);
    }
    rig.wait_for("errors", 1);
    let bytes = rig.stat("queued-bytes");
    assert!(bytes <= most && bytes > most * 9 / 10, "{bytes} bytes");
    assert!(rig.stat("dropped") > 100);
    // The newest wait.
    fs::create_dir(folder.0.join("later")).unwrap();
    rig.wait_for("published", 100);
    rig.stop();
    let written = frames(&folder.lines("later/lines"));
    let first = 300 - written.len() as u64;
    assert_eq!(written, (first..300).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_is_counted_and_a_stop_stays_short() {
    let mut rig = Rig::new("location=/dev/full");
    rig.push_fails(3);
    rig.wait_for("errors", 1);
    assert_eq!(rig.stat("published"), 0);
    let told = rig.told();
    assert!(told[0].contains("No space left"), "{told:?}");
    assert!(rig.stop().as_secs_f64() < 4.0);
}

#[test]
fn settings_that_cannot_work_are_refused_with_a_sentence() {
    for (properties, word) in [
        ("", "location is empty"),
        ("method=mqtt", "uri must be"),
        (
            "method=mqtt uri=mqtt://user:hidden@host",
            "credentials-file",
        ),
        ("method=mqtt uri=mqtt://::1:1883", "brackets"),
        ("method=mqtt uri=mqtts://[fe80::1%eth0]:8883", "zone"),
        (
            "method=mqtt uri=mqtt://user:hidden@[::1]",
            "credentials-file",
        ),
        ("method=mqtt uri=mqtt://host topic=a/# camera=x", "topic="),
        ("method=mqtt uri=mqtt://host camera=\"a\tb\"", "control"),
        ("method=mqtt uri=mqtt://host ca-file=/x.pem", "mqtts://"),
        (
            "method=mqtt uri=mqtts://host ca-file=/no/ca.pem",
            "ca-file=/no/ca.pem",
        ),
        (
            "method=mqtt uri=mqtt://host credentials-file=/no/file",
            "credentials-file=/no/file",
        ),
        (
            "method=mqtt uri=mqtt://host credentials-file=/etc/hostname",
            "chmod 600",
        ),
    ] {
        let text = refusal(properties);
        assert!(
            text.contains(word) && !text.contains("hidden"),
            "{properties}: {text}"
        );
    }
}

#[test]
fn half_a_line_of_a_power_cut_is_ended_before_the_next_line() {
    let folder = Folder::new("half");
    let file = folder.file("lines");
    fs::write(&file, "{\"frame\": 7}\n{\"fra").unwrap();
    let mut rig = Rig::new(&format!("location={file}"));
    rig.push_fails(2);
    rig.stop();
    let lines = folder.lines("lines");
    assert_eq!(lines[..2], ["{\"frame\": 7}", "{\"fra"]);
    assert_eq!(frames(&lines[2..]), [0, 1]);
}

#[test]
fn a_line_waits_while_another_process_writes() {
    let folder = Folder::new("locked");
    let file = folder.file("lines");
    let other = fs::File::create(&file).unwrap();
    other.lock().unwrap();
    let mut rig = Rig::new(&format!("location={file}"));
    rig.push_fails(1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(folder.lines("lines").len(), 0);
    other.unlock().unwrap();
    rig.wait_for("published", 1);
    assert_eq!(folder.lines("lines").len(), 1);

    // A lock that stays is told, and delays no stop.
    other.lock().unwrap();
    rig.push_fails(1);
    rig.wait_for("errors", 1);
    let told = rig.told();
    assert!(told[0].contains("keeps the file locked"), "{told:?}");
    let stopped = rig.stop();
    assert!(
        stopped < std::time::Duration::from_millis(2700),
        "{stopped:?}"
    );
}
