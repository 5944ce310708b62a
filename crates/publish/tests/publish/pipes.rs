//! Pipes: readers that are not there, that leave, that return, and that do not read.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::{broker::frames, file::Folder, frames::Rig};

/// A FIFO in a folder.
fn fifo(folder: &Folder) -> String {
    let path = folder.file("fifo");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

/// Opens the reading end, which waits until the element has opened the other.
fn reader(path: &str) -> BufReader<File> {
    BufReader::new(File::open(path).unwrap())
}

/// The next lines.
fn lines(reader: &mut impl BufRead, count: usize) -> Vec<String> {
    let lines = reader.lines().take(count).map(Result::unwrap);
    lines.collect()
}

#[test]
fn a_reader_of_standard_output_that_leaves_is_a_warning_and_no_end_of_the_process() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("reader-leaves");
    let line = "videotestsrc is-live=true num-buffers=45 ! video/x-raw,format=GRAY8,width=64,height=48,framerate=30/1 \
                ! clhistogram ! inspectpublish location=- ! fakesink";
    let mut child = sandbox
        .command("gst-launch-1.0")
        .args(["-q", "--no-fault"])
        .args(line.split_whitespace())
        // With -q, so that only results are on standard output, the program prints no warnings.
        .env("GST_DEBUG", "GST_ERROR_SYSTEM:4")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(lines(&mut reader, 1).len(), 1);
    drop(reader);
    let mut told = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{told}");
    let warning = "posting message: results cannot be written to standard output: ";
    assert_eq!(told.matches(warning).count(), 1, "{told}");
    assert!(told.contains("reader"), "{told}");
}

#[test]
fn a_fifo_without_a_reader_is_told_and_results_wait_for_the_reader() {
    let folder = Folder::new("no-reader");
    let path = fifo(&folder);
    let mut rig = Rig::new(&format!("location={path} max-queued=3"));
    rig.push_fails(1);
    rig.wait_for("errors", 1);
    assert!(rig.told()[0].contains("no program reads"));
    let stopped = rig.stop();
    assert!(stopped < Duration::from_secs(1), "{stopped:?}");

    let mut rig = Rig::new(&format!("location={path} max-queued=3"));
    rig.push_fails(3);
    rig.wait_for("errors", 2);
    let mut reader = reader(&path);
    assert_eq!(frames(&lines(&mut reader, 3)), [0, 1, 2]);
    let told = rig.told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("again"), "{told:?}");
    rig.stop();
}

#[test]
fn a_reader_of_a_fifo_may_leave_and_return() {
    let folder = Folder::new("returns");
    let path = fifo(&folder);
    let mut rig = Rig::new(&format!("location={path}"));
    rig.push_fails(1);
    let mut first = reader(&path);
    assert_eq!(frames(&lines(&mut first, 1)), [0]);
    drop(first);
    rig.push_fails(2);
    rig.wait_for("errors", 1);
    assert!(rig.told().iter().any(|text| text.contains("reader")));
    let mut second = reader(&path);
    assert_eq!(frames(&lines(&mut second, 2)), [1, 2]);
    assert_eq!(rig.stat("dropped"), 0);
    rig.stop();
}

#[test]
fn a_reader_that_does_not_read_delays_neither_frames_nor_the_stop() {
    let folder = Folder::new("full");
    let path = fifo(&folder);
    let mut rig = Rig::new(&format!("location={path}"));
    let (send, opened) = mpsc::channel();
    let of_thread = path.clone();
    thread::spawn(move || send.send(reader(&of_thread)));
    rig.push_fails(1);
    let mut reader = opened.recv_timeout(Duration::from_secs(10)).unwrap();
    let begun = Instant::now();
    // Some 500 bytes each; a pipe holds 64 KiB.
    rig.push_fails(500);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    rig.wait_until_told("does not read");

    // The line that waited goes on where it stopped.
    assert_eq!(
        frames(&lines(&mut reader, 501)),
        (0..501).collect::<Vec<_>>()
    );
    rig.wait_for("published", 501);

    rig.push_fails(500);
    let stopped = rig.stop();
    assert!(stopped < Duration::from_millis(2700), "{stopped:?}");
}
