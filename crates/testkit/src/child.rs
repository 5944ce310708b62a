//! Runs scenarios in child processes, one after the other; a crash or a hang affects only its own
//! scenario.
//!
//! A test binary with scenarios has an ignored test `child`, which runs the job of [`job`].

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crate::{layer, tools};

/// Environment variables: the job of a child, and its first scenario.
const JOB: &str = "CLINSPECT_CHILD_JOB";
const FROM: &str = "CLINSPECT_CHILD_FROM";
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

/// Fails the running scenario and ends this process: a thread hangs and cannot be stopped. The job goes on with the next
/// scenario in another process.
pub fn give_up(why: &str) -> ! {
    say(&format!("FATAL {}", why.replace('\n', " ")));
    // Not exit(): the functions that run at exit could wait for the thread that hangs.
    std::process::abort();
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
    /// Number of scenarios that began.
    pub ran: usize,
    /// Each failure, after the names of job and scenario.
    pub failures: Vec<String>,
    /// Time of the slowest scenario that did not fail, ms.
    pub slowest_ms: u64,
    /// Why no scenario can run here.
    pub skipped: Option<String>,
    /// The answer of a job that is a question.
    pub told: String,
}

/// Runs a job behind the layer of `tests/opencl_layer`, with a new child after each crash or hang.
pub fn run(job: &str) -> Outcome {
    run_with(job, |command, name| {
        layer::put_between(command, name);
    })
}

/// Runs a job; `prepare` gets the command of each child, and a name that no other child of this process has.
pub fn run_with(job: &str, prepare: impl Fn(&mut Command, &str)) -> Outcome {
    let mut outcome = Outcome::default();
    let mut next = 0;
    loop {
        let before = next;
        let Err((scenario, end)) = run_from(job, &prepare, &mut next, &mut outcome) else {
            return outcome;
        };
        println!("{job}: {scenario}: {end}");
        outcome.failures.push(format!("{job}: {scenario}: {end}"));
        // A child that ends before its first scenario would do so again.
        if next == before {
            return outcome;
        }
    }
}

/// Runs scenarios from `next` on; fails with the one that ended the child.
fn run_from(
    job: &str,
    prepare: &impl Fn(&mut Command, &str),
    next: &mut usize,
    outcome: &mut Outcome,
) -> Result<(), (String, String)> {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(JOB, job)
        .env(FROM, next.to_string())
        .env("G_DEBUG", "fatal-criticals")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let name = format!("{}-{next}", job.replace(['/', ':'], "-"));
    prepare(&mut command, &name);
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
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
                end(&mut child);
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
            "FATAL" => {
                end(&mut child);
                return Err((scenario, rest.to_owned()));
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

fn end(child: &mut Child) {
    // The child may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

fn end_of(child: &mut Child) -> String {
    describe(child.wait().unwrap())
}

fn describe(status: ExitStatus) -> String {
    format!("the process ended with {status}")
}

/// Runs jobs, `at_once` at a time; fails with the failures of the jobs.
///
/// # Panics
/// A scenario failed, or a job had none.
pub fn assert_all(jobs: &[String], at_once: usize, run: impl Fn(&str) -> Outcome + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(job);
            println!(
                "{job}: {} scenarios, {} failed, the slowest took {} ms",
                outcome.ran,
                outcome.failures.len(),
                outcome.slowest_ms
            );
            outcomes.push(outcome);
        }
        outcomes
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.min(jobs.len()))
            .map(|_| scope.spawn(work))
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let failures: Vec<String> = outcomes.iter().flat_map(|o| o.failures.clone()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    if let Some(why) = outcomes.iter().find_map(|o| o.skipped.clone()) {
        return tools::skip(&why);
    }
    assert!(
        outcomes.iter().all(|o| o.ran > 0),
        "a job without scenarios"
    );
}
