//! Runs other programs with the built plugin: GStreamer's tools, Python.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Longest run time of a program, s.
const TIME_LIMIT_S: u32 = 240;

/// Elements that inspect two frames with a square that only means of pixels show; a sink follows.
pub const FAINT_SQUARE: &str = "videotestsrc num-buffers=2 pattern=solid-color foreground-color=0xff808080 ! \
    video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix. \
    videotestsrc num-buffers=2 pattern=solid-color foreground-color=0xff787878 ! \
    video/x-raw,format=I420,width=24,height=24,framerate=30/1 ! mix. \
    compositor name=mix sink_1::xpos=100 sink_1::ypos=130 ! \
    clpitchthreshold name=p pitch-x=40 pitch-y=40 multiples=<1> min-contrast=0 scales=3 \
    classes=stain:level>=1 output=frame";

/// A folder with the plugin, a registry of its own, and files of the test.
pub struct Sandbox {
    dir: PathBuf,
}

impl Sandbox {
    /// Makes the folder; `name` must be unique among the tests.
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("clinspect-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("plugins")).expect("a folder for the test");
        for name in PLUGINS {
            let link = dir.join("plugins").join(name);
            std::os::unix::fs::symlink(plugin(name), link).expect("a link to the plugin");
        }
        Self { dir }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Makes a subfolder.
    pub fn folder(&self, name: &str) -> PathBuf {
        let dir = self.dir.join(name);
        fs::create_dir_all(&dir).expect("a folder for the test");
        dir
    }

    /// A program that finds the plugin and is ended after 240 s (`TIME_LIMIT_S`).
    pub fn command(&self, program: &str) -> Command {
        self.command_within(TIME_LIMIT_S, program)
    }

    /// A program that finds the plugin and is ended after `seconds`.
    pub fn command_within(&self, seconds: u32, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", &seconds.to_string(), program])
            .env("GST_PLUGIN_PATH", self.dir.join("plugins"))
            .env("GST_REGISTRY", self.dir.join("registry.bin"))
            // Messages are matched untranslated.
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1");
        command
    }

    /// `gst-launch-1.0` with a pipeline. After a crash the process ends instead of spinning.
    pub fn launch(&self, pipeline: &str) -> Command {
        let mut command = self.command("gst-launch-1.0");
        command
            .args(["--no-fault", "-m"])
            .args(pipeline.split_whitespace());
        command
    }

    /// Runs a pipeline of a document in a shell; it must exit with 0 and print no warning.
    #[track_caller]
    pub fn runs_as_printed(&self, line: &str) {
        // There is no display; everything before the sink runs as printed.
        let line = line.replace("autovideosink", "fakevideosink sync=false");
        let mut shell = self.command("bash");
        // A pipeline that fails must not hide behind a `| grep`.
        shell.args(["-o", "pipefail", "-c", &line]);
        let done = run(shell.current_dir(self.path()));
        assert_eq!(done.code(), Some(0), "{line}\n{}", done.text());
        assert!(!done.text().contains("WARNING"), "{line}\n{}", done.text());
    }

    /// Runs a `python3` line of a document with Debian's Python; it must exit with 0.
    #[track_caller]
    pub fn python_runs_as_printed(&self, line: &str) -> Run {
        let line = line.replacen("python3", "/usr/bin/python3", 1);
        let mut shell = self.command("bash");
        run(shell.args(["-c", &line]).current_dir(self.path())).succeeded()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The plugin files.
const PLUGINS: [&str; 3] = [
    "libgstclinspect.so",
    "libgstinspectoverlay.so",
    "libgstinspectpublish.so",
];

/// The plugin file that was built with this test.
fn plugin(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("the test's own path");
    let deps = exe.parent().expect("a folder");
    [deps, deps.parent().expect("a folder")]
        .iter()
        .map(|dir| dir.join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("cargo builds {name} before it runs the tests"))
}

/// The example of this name.
pub fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test knows its place");
    let profile = own.parent().and_then(Path::parent);
    let profile = profile.expect("the test lies in target/<profile>/deps");
    let path = profile.join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is missing: run cargo build --examples",
        path.display()
    );
    path
}

/// Set in the child process of [`alone`].
const ALONE: &str = "CLINSPECT_TEST_ALONE";

/// Runs `test`, its path in this test binary, in a process without other tests and with more variables:
/// `None` in that process, which goes on with the test; else what it printed to its standard error.
///
/// # Panics
/// The test failed there.
pub fn alone(test: &str, variables: &[(&str, &Path)]) -> Option<String> {
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let output = Command::new(std::env::current_exe().expect("the test's own path"))
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .envs(variables.iter().copied())
        .output()
        .expect("the test runs once more");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("1 passed"),
        "no test is named {test}: {printed}"
    );
    Some(text)
}

/// Whether a device opens; else the test is skipped.
#[track_caller]
pub fn has_device() -> bool {
    gst::init().expect("GStreamer initialises");
    let selector = std::env::var("CLINSPECT_DEVICE").unwrap_or_else(|_| "auto".into());
    let opened = clinspect_opencl::open(&selector);
    if let Err(why) = &opened {
        skip(&format!("no device: {why}"));
    }
    opened.is_ok()
}

/// Lines of a document's shell blocks that contain `part`.
pub fn shell_lines<'a>(document: &'a str, part: &str) -> Vec<&'a str> {
    let mut lines = Vec::new();
    let mut shell = false;
    for line in document.lines() {
        match line {
            "```sh" => shell = true,
            "```" => shell = false,
            _ if shell && line.contains(part) => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// `/usr/bin/python3` if it can run `modules` (a line of Python); else the test is skipped.
#[track_caller]
pub fn python(sandbox: &Sandbox, modules: &str) -> Option<Command> {
    let interpreter = "/usr/bin/python3";
    let can_run = exists("python3")
        && Path::new(interpreter).exists()
        && run(sandbox.command(interpreter).args(["-c", modules])).code() == Some(0);
    if !can_run {
        skip(&format!("/usr/bin/python3 cannot run: {modules}"));
        return None;
    }
    Some(sandbox.command(interpreter))
}

/// Runs a command; fails only if the command cannot be started.
pub fn run(command: &mut Command) -> Run {
    let output = command.output().expect("the command runs");
    Run(output)
}

/// The output of a program, and how it ended.
#[derive(Debug)]
pub struct Run(Output);

impl Run {
    /// The exit code; `None` if a signal ended the program.
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    /// The standard output.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    /// All output, for messages.
    pub fn text(&self) -> String {
        format!(
            "{}\n{}",
            self.output(),
            String::from_utf8_lossy(&self.0.stderr)
        )
    }

    /// Lines of both outputs that start with this text.
    pub fn lines(&self, begin: &str) -> Vec<String> {
        self.text()
            .lines()
            .filter(|line| line.starts_with(begin))
            .map(str::to_owned)
            .collect()
    }

    /// Fails unless the program exited with 0.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code(), Some(0), "{}", self.text());
        self
    }
}

/// Compiles the layer of `tests/opencl_layer` into `library`.
pub fn opencl_layer(library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/opencl_layer");
    let files = fs::read_dir(source).expect("the layer's sources");
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.expect("a source of the layer").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    files.sort();
    let built = Command::new("cc")
        .args("-std=c11 -shared -fPIC -O1 -Wall -Wextra -Werror".split(' '))
        .args(["-fvisibility=hidden", "-pthread", "-o"])
        .arg(library)
        .args(files)
        .output()
        .expect("cc of the package build-essential");
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{text}");
}

/// Sets the rules of the layer that reads `path`; an empty text removes them.
pub fn write_layer_rules(path: &Path, rules: &str) {
    if rules.is_empty() {
        // The file may not exist.
        let _ = fs::remove_file(path);
        return;
    }
    // Renamed, so that the layer never sees half of them.
    let whole = path.with_extension("whole");
    fs::write(&whole, rules).expect("a file for the rules");
    fs::rename(&whole, path).expect("the rules in their place");
}

/// Skips a test of something that this machine lacks, with a line that says so; fails with
/// `CLINSPECT_REQUIRE_DEVICE=1`.
#[track_caller]
pub fn skip(why: &str) {
    let required = std::env::var("CLINSPECT_REQUIRE_DEVICE").is_ok_and(|v| v == "1");
    assert!(!required, "CLINSPECT_REQUIRE_DEVICE=1, but {why}");
    skip_for_kernel(why);
}

/// Skips a test of something that this machine's kernel lacks, with a line that says so. No package brings a kernel to a
/// container, so nothing requires it.
pub fn skip_for_kernel(why: &str) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    // Bypasses the capture of the test harness, which shows only the output of failing tests.
    let _ = writeln!(std::io::stderr(), "SKIP {test}: {why}");
}

/// Whether a program is on the PATH.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|dir| dir.join(program).exists())
}
