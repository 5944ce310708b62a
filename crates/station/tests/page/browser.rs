//! The page in chromium, driven by `browser.py`.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering::Relaxed,
};

use clinspect_station::state::{Status, Trouble};

use crate::fake::{Station, TOKEN, with_token};

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
            let name = format!("clinspect-page-{}", std::process::id());
            (std::env::temp_dir().join(name), false)
        }
    }
}

#[test]
fn page_shows_what_the_cameras_see() {
    let mut station = Some(Station::start(with_token(true), &["left", "right"]));
    let url = station.as_ref().map(|of| of.url("")).expect("a station");
    let (folder, is_kept) = folder();
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/browser.py");
    let child = Command::new("timeout")
        .args([
            "--kill-after=5",
            "120",
            "/usr/bin/python3",
            program,
            &url,
            TOKEN,
        ])
        .arg(&folder)
        .stdout(Stdio::piped())
        .spawn();
    let mut browser = Browser(child.expect("the tests need python3"));
    let lines = BufReader::new(browser.0.stdout.take().expect("its output")).lines();
    let mut is_done = false;
    for line in lines.map_while(Result::ok) {
        let cameras = station
            .as_ref()
            .map(|of| of.cameras.as_slice())
            .unwrap_or_default();
        match line.as_str() {
            "plant" => station.as_ref().expect("a station").plant[0].store(true, Relaxed),
            "lose" => {
                let lost = Status::Failed(Trouble::CameraLost, "no frame for 5 s".into());
                cameras[1].status.send_replace(lost);
            }
            "return" => {
                cameras[1].status.send_replace(Status::Running);
            }
            "end" => station = None,
            "done" => is_done = true,
            other => eprintln!("{other}"),
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
