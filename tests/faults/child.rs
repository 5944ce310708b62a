//! Runs scenarios in child processes, one after the other; a crash or a hang affects only its own
//! scenario.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::layer;

/// Environment variables: the job of a child, and its first scenario.
const JOB: &str = "CLINSPECT_FAULTS_JOB";
const FROM: &str = "CLINSPECT_FAULTS_FROM";
/// A scenario without output for this time hangs.
const SILENCE: Duration = Duration::from_secs(60);

/// The job of this process, if it is a child.
pub fn job() -> Option<String> {
    env::var(JOB).ok()
}

/// Runs scenarios in a child, and prints the result of each.
pub fn each<T>(
    scenarios: &[T],
    name: impl Fn(&T) -> String,
    mut run: impl FnMut(&T) -> Result<(), String>,
) {
    let from: usize = env::var(FROM).map_or(0, |from| from.parse().unwrap());
    say(&format!("COUNT {}", scenarios.len()));
    for scenario in scenarios.iter().skip(from) {
        say(&format!("BEGIN {}", name(scenario)));
        let begun = Instant::now();
        match run(scenario) {
            Ok(()) => say(&format!("OK {}", begun.elapsed().as_millis())),
            Err(why) => say(&format!("FAIL {}", why.replace('\n', " "))),
        }
    }
    say("DONE");
}

/// Prints the answer to a question instead of running scenarios.
pub fn tell(answer: &str) {
    say(&format!("TELL {answer}"));
    say("DONE");
}

/// Prints why no scenario can run here.
pub fn skip(why: &str) {
    say(&format!("SKIP {why}"));
}

/// Writes around the capture of the test harness, at the beginning of a line.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\n@{line}");
    let _ = out.flush();
}

/// The results of a job's scenarios.
#[derive(Debug, Default)]
pub struct Outcome {
    pub ran: usize,
    pub failures: Vec<String>,
    pub slowest_ms: u64,
    pub skipped: Option<String>,
    pub told: String,
}

/// Runs a job, with a new child after each crash or hang.
pub fn run(job: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut next = 0;
    loop {
        let before = next;
        let Err((scenario, end)) = run_from(job, &mut next, &mut outcome) else {
            return outcome;
        };
        outcome.failures.push(format!("{job}: {scenario}: {end}"));
        // A child that ends before its first scenario would do so again.
        if next == before {
            return outcome;
        }
    }
}

/// Runs scenarios from `next` on; fails with the one that ended the child.
fn run_from(job: &str, next: &mut usize, outcome: &mut Outcome) -> Result<(), (String, String)> {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(JOB, job)
        .env(FROM, next.to_string())
        .env("G_DEBUG", "fatal-criticals")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let name = format!("{}-{next}", job.replace(['/', ':'], "-"));
    layer::put_between(&mut command, &name);
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut scenario = "before the first one".to_owned();
    loop {
        let line = match lines.recv_timeout(SILENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err((scenario, "hangs".into()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err((scenario, end_of(&mut child)));
            }
        };
        let Some((word, rest)) = line
            .strip_prefix('@')
            .map(|l| l.split_once(' ').unwrap_or((l, "")))
        else {
            continue;
        };
        match word {
            "BEGIN" => {
                scenario = rest.to_owned();
                *next += 1;
                outcome.ran += 1;
            }
            "OK" => outcome.slowest_ms = outcome.slowest_ms.max(rest.parse().unwrap_or(0)),
            "FAIL" => {
                println!("{job}: {scenario}: {rest}");
                outcome.failures.push(format!("{job}: {scenario}: {rest}"));
            }
            "TELL" => outcome.told = rest.to_owned(),
            "SKIP" => outcome.skipped = Some(rest.to_owned()),
            "DONE" => scenario = "at its end".into(),
            _ => {}
        }
        if word == "SKIP" || word == "DONE" {
            let end = child.wait().unwrap();
            return if end.success() {
                Ok(())
            } else {
                Err((scenario, describe(end)))
            };
        }
    }
}

fn end_of(child: &mut Child) -> String {
    describe(child.wait().unwrap())
}

fn describe(status: ExitStatus) -> String {
    format!("the process ended with {status}")
}
