//! A run from the first frame to the last, over all restarts of the source.

use std::{
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_core::ClError;

use crate::{
    failure::Failure,
    live::stop::{on_ctrl_c, stopped},
    options::Args,
    passages::Passages,
    pictures::Pictures,
    pipeline::{Inspected, Next, Pipeline},
    report::Report,
    roll::Roll,
    settings::Inspection,
    simulated::Truth,
    source::{Feeding, Source},
};

/// Least time that a live source gets for its first frame.
const FIRST_SILENCE: Duration = Duration::from_secs(15);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(8);
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// How a pipeline ended.
enum Ending {
    /// All frames are inspected, or the user has stopped.
    Done,
    /// The source went away.
    Lost(String),
}

/// Inspects the source that the arguments name.
///
/// # Errors
/// Why the run could not start, or why it ended early.
pub fn run(args: &Args) -> Result<(), Failure> {
    gst::init().map_err(|error| Failure::Runtime(format!("GStreamer does not start: {error}")))?;
    gstclinspect::register_static()?;
    let source = Source::parse(args)?;
    let simulated = matches!(source, Source::Panel(_) | Source::Label(_));
    let inspection = args.inspection();
    // Held for the whole run, so that compiled programs survive a restart of the source.
    let context = open(&inspection.device)?;
    let pictures = args
        .output
        .as_deref()
        .map(|folder| Pictures::new(folder, args.pictures, inspection.bit_depth))
        .transpose()?;
    let feeding = Feeding {
        frames: args.frames(simulated),
        fps: args.fps(simulated),
        formats: inspection.formats(),
        truth: Truth::default(),
    };
    let known = Some(feeding.frames).filter(|&n| n > 0);
    let known = known.into_iter().chain(source.length()).min();
    let roll = inspection.line_scan.then(|| {
        let planted = match &source {
            Source::Web(strips) => Some(*strips),
            _ => None,
        };
        Roll::new(planted)
    });
    let report = Report::new(args.json, args.list, known, roll.is_some());
    report.note(&format!("device: {}", context.device_name()));
    report.note(&format!("source: {}", source.describe()));
    if inspection.comparison.is_none() {
        report.note("both pitches are 0: frames are smoothed and counted, but not compared");
    }
    on_ctrl_c().map_err(|error| Failure::Runtime(format!("Ctrl-C cannot be handled: {error}")))?;

    let mut session = Session {
        returns: matches!(source, Source::Camera(_)),
        source,
        inspection,
        feeding,
        silence: Duration::from_secs_f64(args.silence),
        passages: Passages::new(pictures.is_some()),
        report,
        roll,
        pictures,
    };
    let result = session.inspect(Retry::new(args.max_wait));
    let pictured = session.pictures.map_or(Ok(()), Pictures::finish);
    let mut mapped = Ok(());
    if result.is_ok() || session.report.frames() > 0 {
        if let (Some(roll), Some(folder)) = (&session.roll, &args.output) {
            mapped = roll.draw(folder);
        }
        session.report.finish(session.roll.map(Roll::summary))?;
    }
    result.and(pictured).and(mapped)
}

fn open(device: &str) -> Result<Arc<clinspect_opencl::ClContext>, Failure> {
    clinspect_opencl::open(device).map_err(|error| match error {
        // There are devices, but none that matches.
        ClError::Unavailable(why) if clinspect_opencl::devices().is_ok() => Failure::Usage(why),
        other => Failure::Runtime(other.to_string()),
    })
}

/// A run, over all restarts of the source.
struct Session {
    source: Source,
    inspection: Inspection,
    feeding: Feeding,
    /// Whether to wait for a source that goes away: a camera, or a live source that sent frames.
    returns: bool,
    /// How long a live source may be silent; zero = for ever.
    silence: Duration,
    passages: Passages,
    report: Report,
    roll: Option<Roll>,
    pictures: Option<Pictures>,
}

impl Session {
    /// Runs pipelines until there is no more to inspect.
    fn inspect(&mut self, mut retry: Retry) -> Result<(), Failure> {
        loop {
            let bin = self.source.build(&self.feeding)?;
            let mut pipeline = Pipeline::new(bin, &self.inspection, &self.passages)?;
            let before = self.report.frames();
            let ending = self.watch(&mut pipeline);
            self.report.add_stats(&pipeline.stats());
            drop(pipeline);
            let Ending::Lost(why) = ending? else {
                return Ok(());
            };
            self.report.lose(self.passages.forget());
            retry.wait(&why, self.report.frames() > before, &self.report)?;
            if stopped() {
                return Ok(());
            }
        }
    }

    /// Takes results until the pipeline ends.
    fn watch(&mut self, pipeline: &mut Pipeline) -> Result<Ending, Failure> {
        let camera = matches!(self.source, Source::Camera(_));
        // Frames that this program makes have no time limit.
        let made = matches!(
            self.source,
            Source::Panel(_) | Source::Label(_) | Source::Web(_) | Source::Files(_)
        );
        self.report.starting();
        let live = match pipeline.start() {
            Ok(live) => live,
            Err(failure) if failure.in_source && self.returns => {
                return Ok(Ending::Lost(failure.text));
            }
            Err(failure) => return Err(failure.into()),
        };
        let watched = live && !made && !self.silence.is_zero();
        let started = Instant::now();
        let wanted = self.feeding.frames;
        while !stopped() && (wanted == 0 || self.report.frames() < wanted) {
            let next = pipeline.next(POLL);
            for remark in pipeline.remarks() {
                self.report.note(&remark);
            }
            match next {
                Next::Frame(frame) => {
                    self.take(*frame)?;
                    self.returns |= live && !made;
                }
                Next::Nothing => {
                    let (since, most) = match pipeline.last_entered() {
                        Some(last) => (last, self.silence),
                        None => (started, self.silence.max(FIRST_SILENCE)),
                    };
                    if watched && since.elapsed() > most {
                        let seconds = most.as_secs_f64();
                        return Ok(Ending::Lost(format!("no frame for {seconds} s")));
                    }
                }
                Next::End if camera => return Ok(Ending::Lost("the stream has ended".into())),
                Next::End => return Ok(Ending::Done),
                // A description that never sent a frame is a mistake.
                Next::Failed(failure) if failure.in_source && self.returns => {
                    return Ok(Ending::Lost(failure.text));
                }
                Next::Failed(failure) => return Err(failure.into()),
            }
        }
        Ok(Ending::Done)
    }

    fn take(&mut self, frame: Inspected) -> Result<(), Failure> {
        let shown = self.feeding.truth.take(frame.number);
        self.report.frame(&frame, shown.as_deref())?;
        if let (Some(roll), Some(judged)) = (&mut self.roll, &frame.judged) {
            for line in roll.take(&judged.result) {
                self.report.defect(line)?;
            }
        }
        match &mut self.pictures {
            Some(pictures) => pictures.take(frame),
            None => Ok(()),
        }
    }
}

/// Waits for a source that has gone away.
struct Retry {
    next: Duration,
    max_wait: Option<Duration>,
    lost: Option<Instant>,
}

impl Retry {
    fn new(max_wait_s: Option<f64>) -> Self {
        Self {
            next: FIRST_RETRY,
            max_wait: max_wait_s.map(Duration::from_secs_f64),
            lost: None,
        }
    }

    /// Waits, longer each time until frames have come again (`recovered`).
    ///
    /// # Errors
    /// The source was away for longer than `--max-wait`.
    fn wait(&mut self, why: &str, recovered: bool, report: &Report) -> Result<(), Failure> {
        if recovered {
            self.next = FIRST_RETRY;
            self.lost = None;
        }
        let lost = *self.lost.get_or_insert_with(Instant::now);
        if self.max_wait.is_some_and(|most| lost.elapsed() >= most) {
            return Err(Failure::Runtime(why.into()));
        }
        report.note(&format!(
            "waiting for the source ({why}): trying again in {:.1} s",
            self.next.as_secs_f64()
        ));
        let until = Instant::now() + self.next;
        while Instant::now() < until && !stopped() {
            sleep(Duration::from_millis(50));
        }
        self.next = (self.next * 2).min(LAST_RETRY);
        Ok(())
    }
}
