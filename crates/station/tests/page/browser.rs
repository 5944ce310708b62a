//! The page in chromium, driven by `browser.py`.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use clinspect_station::state::{Camera, Status, Trouble};

use crate::fake::{Station, TOKEN, Wishes, report, with_token};

/// Ended whatever happens, with the browser: both are in a process group of their own.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            // `timeout` passes the signal on to its group.
            let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        }
        let _ = self.0.wait();
    }
}

/// A folder for the browser's profile and the screenshots. `CLINSPECT_SCREENSHOTS` keeps them.
fn folder() -> (PathBuf, bool) {
    match std::env::var_os("CLINSPECT_SCREENSHOTS") {
        Some(folder) => (folder.into(), true),
        None => {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Relaxed);
            let name = format!("clinspect-page-{}-{count}", std::process::id());
            (std::env::temp_dir().join(name), false)
        }
    }
}

/// Does what `browser.py` asks of the cameras left and right.
fn obey(wish: &str, cameras: &[Arc<Camera>], wishes: &[Arc<Wishes>]) {
    let counters = &cameras[1].counters;
    let break_down = |is_broken: bool| {
        counters.publish_connected.store(!is_broken, Relaxed);
        counters.recording_stopped.store(is_broken, Relaxed);
        counters.recording_dropped.store(3, Relaxed);
        counters.recording_errors.store(1, Relaxed);
    };
    match wish {
        "plant" => wishes[0].plant.store(true, Relaxed),
        "plant right" => wishes[1].plant.store(true, Relaxed),
        "pause" => wishes[0].pause.store(true, Relaxed),
        "go on" => wishes[0].pause.store(false, Relaxed),
        "blind" => wishes[0].blind.store(true, Relaxed),
        "see" => wishes[0].blind.store(false, Relaxed),
        "forget" => cameras[0].history().failures.clear(),
        "break" => break_down(true),
        "mend" => break_down(false),
        "lose" => {
            let lost = Status::Failed(Trouble::CameraLost, "no frame for 5 s".into());
            cameras[1].status.send_replace(lost);
            // The last report of a camera that is lost means nothing, even if it is still sent.
            let mut last = report("right", 7, false);
            last.histograms[0].alarms = vec!["over-exposed".into()];
            cameras[1].report.send_replace(Some(Arc::new(last)));
        }
        "return" => {
            cameras[1].status.send_replace(Status::Running);
        }
        other => eprintln!("{other}"),
    }
}

/// Runs a program of this folder that drives the browser, and hands the lines that it prints to `obey`.
pub fn drive(program: &str, url: &str, mut obey: impl FnMut(&str)) {
    let (folder, is_kept) = folder();
    let folder = folder.join(program);
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = format!("{}/tests/page/{program}", env!("CARGO_MANIFEST_DIR"));
    let child = Command::new("timeout")
        .args(["--kill-after=5", "180", "/usr/bin/python3", "-B"])
        .args([&program, url, TOKEN])
        .arg(&folder)
        .stdout(Stdio::piped())
        .spawn();
    let mut browser = Browser(child.expect("the tests need python3"));
    let lines = BufReader::new(browser.0.stdout.take().expect("its output")).lines();
    let mut is_done = false;
    for line in lines.map_while(Result::ok) {
        match line.as_str() {
            "done" => is_done = true,
            wish => obey(wish),
        }
    }
    let status = browser.0.wait().expect("its end");
    let screenshots = folder.display();
    assert!(
        is_done && status.success(),
        "the page is wrong; the tests need the packages chromium, chromium-driver and python3-selenium; \
         screenshots are in {screenshots}"
    );
    if !is_kept {
        let _ = std::fs::remove_dir_all(&folder);
    }
}

#[test]
fn page_shows_what_the_cameras_see() {
    let mut station = Some(Station::start(with_token(true), &["left", "right"]));
    let url = station.as_ref().map(|of| of.url("")).expect("a station");
    drive("browser.py", &url, |wish| match (wish, &mut station) {
        ("end", station) => *station = None,
        (wish, Some(of)) => obey(wish, &of.cameras, &of.wishes),
        (other, None) => eprintln!("{other}"),
    });
}
