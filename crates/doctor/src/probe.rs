//! Questions that a child process answers, because the answer needs a driver or a plugin.

use std::{
    env, fmt,
    io::{self, Read},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use clinspect_opencl::pocl_cache_folder;
use nix::sys::signal::{Signal, raise};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    cameras, child,
    devices::{self, Device},
    gstreamer, self_test, speed,
};

/// Begins the line with the answer: drivers may print lines of their own.
const ANSWER: &str = "clinspect-doctor answers: ";

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub enum Probe {
    /// What GStreamer finds.
    Gstreamer,
    /// The OpenCL devices.
    Devices,
    /// Whether an operator computes right on a device.
    SelfTest {
        /// Value of the property `device`.
        device: String,
        /// The operator, an index of [`self_test::OPERATORS`].
        operator: usize,
    },
    /// Frames a second of the recommended chain.
    Speed {
        /// Value of the property `device`.
        device: String,
        /// Width and height of a frame, pixels.
        size: [u32; 2],
    },
    /// The cameras that GStreamer's device monitor finds.
    Cameras,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The child did not end within the limit.
    Hangs(String),
    /// The child died.
    Dies(String),
    /// The child answered with an error.
    Fails(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Hangs(text) | Self::Dies(text) | Self::Fails(text)) = self;
        f.write_str(text)
    }
}

impl Probe {
    /// Asks a child process, with more environment variables.
    pub fn ask<T: DeserializeOwned>(
        &self,
        limit: Duration,
        variables: &[(&str, &str)],
    ) -> Result<T, Trouble> {
        let fails = |error: &dyn fmt::Display| {
            Trouble::Fails(format!("the probe cannot be started: {error}"))
        };
        let program = env::current_exe().map_err(|error| fails(&error))?;
        let question = serde_json::to_string(self).map_err(|error| fails(&error))?;
        let mut command = Command::new(program);
        command
            .args(["probe", &question])
            .envs(variables.iter().copied());
        let done = child::run(&mut command, limit).map_err(|error| fails(&error))?;
        if !done.is_success() {
            let text = format!("the process {}", done.how(limit));
            return Err(match done.end {
                child::End::Exited(_) => Trouble::Dies(text),
                child::End::Killed | child::End::Stuck(_) => Trouble::Hangs(text),
            });
        }
        let mut answers = done.output.lines().filter_map(|l| l.strip_prefix(ANSWER));
        let answer = answers.next_back().unwrap_or_default();
        match serde_json::from_str::<Result<T, String>>(answer) {
            Ok(answer) => answer.map_err(Trouble::Fails),
            Err(_) => Err(Trouble::Dies("the process ended without an answer".into())),
        }
    }

    /// Asks what a device does. A process that dies or fails may have loaded damaged kernels from PoCL's cache, which
    /// the next process removes. So it is asked once more on a device of PoCL, and an answer comes with a sentence.
    pub fn ask_device<T: DeserializeOwned>(
        &self,
        limit: Duration,
        device: &Device,
    ) -> Result<(T, Option<String>), Trouble> {
        match self.ask(limit, &[]) {
            Err(Trouble::Dies(first) | Trouble::Fails(first)) if device.is_pocl() => {
                let sentence = format!(
                    "{first}. With newly compiled kernels it works: those in PoCL's cache {} were damaged, and were removed",
                    pocl_cache_folder().display()
                );
                Ok((self.ask(limit, &[])?, Some(sentence)))
            }
            answer => Ok((answer?, None)),
        }
    }
}

/// Answers a question in the child process.
pub fn main(question: &str) -> ExitCode {
    let Ok(probe) = serde_json::from_str(question) else {
        eprintln!("probe is for clinspect-doctor itself; run clinspect-doctor --help");
        return ExitCode::from(2);
    };
    // The parent process holds the other end. If it is gone, nobody kills this process after the limit.
    thread::spawn(|| {
        let mut stdin = io::stdin();
        while !matches!(stdin.read(&mut [0; 64]), Ok(0) | Err(_)) {}
        // The driver may hang in an exit handler as well.
        let _ = raise(Signal::SIGKILL);
    });
    if let Err(error) = gst::init() {
        return answer::<()>(Err(format!("GStreamer does not start: {error}")));
    }
    match probe {
        Probe::Gstreamer => answer(Ok(gstreamer::probe())),
        Probe::Devices => answer(devices::probe()),
        Probe::SelfTest { device, operator } => answer(self_test::probe(&device, operator)),
        Probe::Speed { device, size } => answer(speed::probe(&device, size)),
        Probe::Cameras => answer(cameras::probe()),
    }
}

fn answer<T: Serialize>(answer: Result<T, String>) -> ExitCode {
    match serde_json::to_string(&answer) {
        Ok(json) => {
            // Behind a line of a driver that does not end.
            println!("\n{ANSWER}{json}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}
