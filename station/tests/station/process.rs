//! A running station.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::Sandbox;
use serde_json::Value;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A station; killed on drop.
pub struct Station {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    pub file: PathBuf,
    port: u16,
}

/// The program.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_clinspect-station")
}

/// The command of a station with this file. The kernel ends it even if the test is killed.
pub fn command(file: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program()]).arg(file);
    command
}

/// A live camera of 30 small frames per second.
pub fn live_camera(name: &str, pattern: &str, pitch: &str) -> String {
    format!(
        "[[camera]]\nname = \"{name}\"\nsource = \"videotestsrc is-live=true pattern={pattern} ! \
         video/x-raw,format=GRAY8,width=160,height=120,framerate=30/1\"\npitch = {{ {pitch} }}\n"
    )
}

pub const TOKEN: &str = "a-token-of-the-tests-0123456789";

/// The keys of a station's file that allow commands with [`TOKEN`].
pub fn writing(sandbox: &Sandbox) -> String {
    let token = sandbox.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    format!("token-file = {token:?}\nallow-writing = true\n")
}

impl Station {
    /// Starts a station with these cameras.
    pub fn start(sandbox: &Sandbox, cameras: &str) -> Self {
        Self::start_with(sandbox, cameras, |command| command)
    }

    /// Starts a station; `prepare` may change the command.
    pub fn start_with(
        sandbox: &Sandbox,
        cameras: &str,
        prepare: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let file = sandbox.path().join("station.toml");
        write(&file, cameras);
        Self::run(prepare(&mut command(&file)), file)
    }

    /// Starts the command of a station that reads `file`.
    pub fn run(command: &mut Command, file: PathBuf) -> Self {
        let mut station = Self::spawn(command, file);
        station.find_page();
        station
    }

    /// Waits for the page.
    #[track_caller]
    pub fn find_page(&mut self) {
        let line = self.wait_for_log("the page is at http://");
        let port = line.trim_end_matches('/').rsplit(':').next();
        self.port = port.unwrap().parse().unwrap();
    }

    /// Starts the command of a station whose page may come later.
    pub fn spawn(command: &mut Command, file: PathBuf) -> Self {
        let child = command
            .env_remove("JOURNAL_STREAM")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let written = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                written.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            log,
            file,
            port: 0,
        }
    }

    /// The log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + LIMIT;
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?} before {what}: {}", self.log());
            let log = self.log();
            assert!(
                Instant::now() < until,
                "waited too long until {what}: {log}"
            );
            sleep(POLL);
        }
    }

    /// Waits for a line of the log that contains `part`.
    #[track_caller]
    pub fn wait_for_log(&mut self, part: &str) -> String {
        let find = |station: &Self| {
            let log = station.log.lock().unwrap();
            log.iter().find(|line| line.contains(part)).cloned()
        };
        self.wait_until(part, |station| find(station).is_some());
        find(self).unwrap()
    }

    /// Replaces the file and sends SIGHUP.
    pub fn reload(&self, cameras: &str) {
        write(&self.file, cameras);
        self.signal("HUP");
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Sends a signal and waits for the end.
    #[track_caller]
    pub fn end(mut self, signal: &str) -> (ExitStatus, Duration, String) {
        self.signal(signal);
        let sent = Instant::now();
        while sent.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The thread that reads the log needs a moment for the last lines.
                sleep(POLL * 5);
                return (status, sent.elapsed(), self.log());
            }
            sleep(POLL);
        }
        panic!("SIG{signal} does not end the station: {}", self.log());
    }

    /// The answer to a GET request, as text.
    pub fn get(&self, path: &str) -> String {
        String::from_utf8(self.get_bytes(path)).unwrap()
    }

    /// The answer to a GET request.
    pub fn get_bytes(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
        answer.split_off(head.unwrap() + 4)
    }

    /// Gives a command to a camera.
    #[track_caller]
    pub fn command(&self, camera: &str, command: &str, token: &str) {
        let body = format!("{{\"command\": \"{command}\"}}");
        let path = format!("/api/cameras/{camera}/command");
        let (status, answer) = self.post(&path, &body, token);
        assert_eq!(status, 200, "{answer}");
    }

    /// The status and the body of the answer to a POST request with JSON.
    pub fn post(&self, path: &str, body: &str, token: &str) -> (u16, String) {
        self.request("POST", path, body.as_bytes(), token)
    }

    /// The status and the body of the answer to a request with JSON, or with other bytes.
    pub fn request(&self, method: &str, path: &str, body: &[u8], token: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        let head = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n");
        let fields = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        let length = body.len();
        write!(stream, "{head}{fields}Content-Length: {length}\r\n\r\n").unwrap();
        // The station refuses a large body before it has read it.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let parts = answer.split_once("\r\n\r\n");
        let (head, body) = parts.unwrap_or_else(|| panic!("{answer:?}: {}", self.log()));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// The port of the page.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the page knows of a camera; null if it has none of this name.
    pub fn camera(&self, name: &str) -> Value {
        let cameras: Vec<Value> = serde_json::from_str(&self.get("/api/cameras")).unwrap();
        let found = cameras.into_iter().find(|camera| camera["name"] == name);
        found.unwrap_or(Value::Null)
    }

    /// Waits until the camera has this status.
    #[track_caller]
    pub fn wait_for_status(&mut self, name: &str, status: &str) {
        self.wait_until(&format!("{name} is {status}"), |station| {
            station.camera(name)["status"] == status
        });
    }

    /// Waits until the camera has inspected this many frames more.
    #[track_caller]
    pub fn wait_for_frames(&mut self, name: &str, more: u64) {
        let frames = |station: &Self| station.camera(name)["frames"].as_u64().unwrap_or(0);
        let before = frames(self);
        self.wait_until("frames come", |station| frames(station) >= before + more);
    }

    /// Fails unless each frame since the start was inspected, in one pipeline.
    #[track_caller]
    pub fn lost_nothing(&self, name: &str) {
        let camera = self.camera(name);
        let numbers = ["frames", "frame", "lost", "restarts"].map(|of| camera[of].as_u64());
        let [Some(frames), Some(last), Some(lost), Some(restarts)] = numbers else {
            panic!("{camera}");
        };
        assert_eq!((lost, restarts), (0, 0), "{camera}");
        // The numbers are read while frames go on.
        assert!(frames.abs_diff(last + 1) <= 1, "{camera}");
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(file: &Path, cameras: &str) {
    fs::write(file, format!("listen = \"127.0.0.1:0\"\n{cameras}")).unwrap();
}
