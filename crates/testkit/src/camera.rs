//! aravis' simulated GigE Vision camera, in a network of its own: two cameras in one network would share a port, and
//! whoever looks for cameras would find both.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::tools::{exists, skip};

const PROGRAM: &str = "arv-fake-gv-camera-0.8";
/// UDP port of the GigE Vision control protocol.
pub const CONTROL_PORT: u16 = 3956;
/// Set in the process in which the user is root of a namespace.
const IS_ROOT_INSIDE: &str = "CLINSPECT_TEST_IN_NAMESPACE";

/// The network of this thread, and of all threads and processes that this thread starts.
#[derive(Debug)]
pub struct Network {
    /// The lock of the PC's network, if this kernel gives no other one.
    _shared: Option<File>,
}

/// Gives the test in this thread a network that holds the loopback only. `None`: the test is over, because a program is missing (a
/// line says so), or because it passed in another process, in which the user may make a network.
///
/// # Panics
/// The test failed in the other process.
#[track_caller]
pub fn network() -> Option<Network> {
    for tool in [PROGRAM, "capsh", "setpriv", "ip", "unshare"] {
        if !exists(tool) {
            skip(&format!("{tool} is not installed"));
            return None;
        }
    }
    if is_root() {
        // SAFETY: the call changes this thread only, which then has sockets in the new network.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
            let up = Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status();
            assert!(up.unwrap().success(), "the loopback cannot be set up");
            return Some(Network { _shared: None });
        }
    } else if passes_in_namespace() {
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("clinspect-camera.lock")).unwrap();
    lock.lock().unwrap();
    wait_until("no other camera is running", || !is_listening());
    Some(Network {
        _shared: Some(lock),
    })
}

/// Runs this test in a process whose user is root in a namespace. `false` if the kernel allows no such namespace.
#[track_caller]
fn passes_in_namespace() -> bool {
    let thread = std::thread::current();
    let namespace = ["--user", "--map-root-user"];
    let is_allowed = Command::new("unshare").args(namespace).arg("true").output();
    // With one thread for all tests, the thread has no test's name.
    let test = thread.name().filter(|&name| name != "main");
    let Some(test) = test.filter(|_| is_allowed.unwrap().status.success()) else {
        return false;
    };
    assert!(
        std::env::var_os(IS_ROOT_INSIDE).is_none(),
        "not root inside"
    );
    let done = Command::new("unshare")
        .args(namespace)
        .arg(std::env::current_exe().unwrap())
        .args(["--include-ignored", "--exact", test, "--nocapture"])
        .env(IS_ROOT_INSIDE, "1")
        .output();
    passed(&done.unwrap());
    true
}

/// What a test program printed that ran one test.
///
/// # Panics
/// The test failed, or there is no such test.
#[track_caller]
fn passed(done: &Output) -> String {
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}{errors}");
    assert!(text.contains("1 passed"), "{text}{errors}");
    text
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Whether a socket in this thread's network is bound to the camera's port.
fn is_listening() -> bool {
    let sockets = fs::read_to_string("/proc/thread-self/net/udp").unwrap();
    sockets.contains(&format!(":{CONTROL_PORT:04X} "))
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process of the simulated camera; ends with the test, also if the test is killed.
#[derive(Debug)]
pub struct Simulated(Child);

impl Simulated {
    /// Starts the camera in the network of this thread.
    ///
    /// # Panics
    /// The camera does not listen within a minute.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", PROGRAM, "-i", "127.0.0.1"])
            .args(arguments)
            // It complains of formats into which it draws nothing.
            .env_remove("G_DEBUG")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut camera = Self(process.unwrap());
        wait_until("the camera listens", || {
            let ended = camera.0.try_wait().unwrap();
            assert!(ended.is_none(), "the camera ended: {ended:?}");
            is_listening()
        });
        camera
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets `command`, which is `setpriv`, run a line of the shell that sees the simulated camera: aravis
/// uses raw sockets if it may, and raw sockets see no loopback traffic. So root drops that right.
pub fn visible<'a>(command: &'a mut Command, line: &str) -> &'a mut Command {
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["capsh", "--drop=cap_net_raw", "--"]);
    } else {
        command.arg("sh");
    }
    command.args(["-c", line])
}

/// Runs an ignored test of this program in a process that sees the simulated camera, with these variables besides. Returns
/// what the test printed.
///
/// # Panics
/// The test failed.
#[track_caller]
pub fn inside(test: &str, variables: &[(&str, &Path)]) -> String {
    let this = std::env::current_exe().unwrap();
    let line = format!(
        "exec {} --ignored --exact {test} --nocapture",
        this.display()
    );
    let run = || {
        visible(&mut Command::new("setpriv"), &line)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    let mut done = run();
    // On a busy PC the simulated camera, a program as any other, may answer too late: then the program under test rightly
    // reports a lost camera.
    let errors = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() && errors.contains("register timeout") {
        println!("again, because the simulated camera answered too late: {errors}");
        done = run();
    }
    passed(&done)
}
