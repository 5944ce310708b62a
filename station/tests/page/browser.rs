//! The page in chromium, driven by `browser.py`; and what the tests of other pages need for it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use run::state::{Camera, Status, Trouble};

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

/// The station's program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_clinspect-station");

/// The program with a file of its own; ended on drop.
pub struct RealStation {
    child: Child,
    address: String,
}

impl RealStation {
    /// Starts the station and waits for its page.
    pub fn start(folder: &Path, text: &str) -> Self {
        let file = folder.join("station.toml");
        fs::write(&file, text).unwrap();
        // The kernel ends the station even if the test is killed.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", PROGRAM])
            .arg(&file)
            .env_remove("JOURNAL_STREAM")
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let page = lines.by_ref().map_while(Result::ok);
        let address = page.inspect(|line| eprintln!("{line}")).find_map(|line| {
            let (_, address) = line.split_once("the page is at ")?;
            Some(address.trim_end_matches('/').to_owned())
        });
        let address = address.expect("the station serves its page");
        // The station's log tells what went wrong if the browser finds a fault.
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        Self { child, address }
    }

    pub fn url(&self) -> String {
        self.address.clone()
    }
}

impl Drop for RealStation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder for the browser's profile and the screenshots. `CLINSPECT_SCREENSHOTS` keeps them.
fn folder(script: &str) -> (PathBuf, bool) {
    match std::env::var_os("CLINSPECT_SCREENSHOTS") {
        Some(folder) => (PathBuf::from(folder).join(script), true),
        None => {
            let name = format!("clinspect-{script}-{}", std::process::id());
            (std::env::temp_dir().join(name), false)
        }
    }
}

/// Runs a script at the page; `obey` gets each line that it prints. The script must end with `done`.
pub fn drive(script: &str, url: &str, within: Duration, mut obey: impl FnMut(&str)) {
    let (folder, is_kept) = folder(script);
    fs::create_dir_all(&folder).expect("a folder");
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/page")
        .join(script);
    let child = Command::new("timeout")
        .args([
            "--kill-after=5",
            &within.as_secs().to_string(),
            "/usr/bin/python3",
            "-B",
        ])
        .arg(program)
        .args([url, TOKEN])
        .arg(&folder)
        .stdout(Stdio::piped())
        .spawn();
    let mut browser = Browser(child.expect("the tests need python3"));
    let lines = BufReader::new(browser.0.stdout.take().expect("its output")).lines();
    let mut is_done = false;
    for line in lines.map_while(Result::ok) {
        match line.as_str() {
            "done" => is_done = true,
            line => obey(line),
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
        let _ = fs::remove_dir_all(&folder);
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

#[test]
fn page_shows_what_the_cameras_see() {
    let mut station = Some(Station::start(with_token(true), &["left", "right"]));
    let url = station.as_ref().map(|of| of.url("")).expect("a station");
    drive(
        "browser.py",
        &url,
        Duration::from_secs(180),
        |line| match (line, &mut station) {
            ("end", station) => *station = None,
            (wish, Some(of)) => obey(wish, &of.cameras, &of.wishes),
            (other, None) => eprintln!("{other}"),
        },
    );
}
