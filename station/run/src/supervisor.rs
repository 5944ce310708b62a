//! Keeps the pipeline of one camera running, in a thread of its own.

mod idle;
mod wiring;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use clinspect_results::{report::Report, time};
use machine::{answer::Line, info, warning};
use plan::{CameraConfig, Trigger};
use tokio::sync::{mpsc as requests, oneshot};

use crate::{
    pictures::{PictureSettings, PictureThread, Pictures},
    pipeline::{ChangeResult, LearnedProperty, Outlets, Pipeline},
    publishing::Publishers,
    recording::Recorder,
    state::{Camera, Request, Status, Trouble},
    stopped::StopReason,
};
use idle::Idle;
use wiring::Wiring;

/// Longest pause between two checks for orders.
const POLL: Duration = Duration::from_millis(50);
/// Interval between two updates of the counters for publishing.
const NUMBERS: Duration = Duration::from_millis(500);
/// Pause before the first new start, doubled at each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Pause between two checks while somebody waits for a switch.
const SWITCH_POLL: Duration = Duration::from_millis(2);
/// A camera that waits for its trigger counts as switched after so long without trouble.
const TRIGGER_WAIT: Duration = Duration::from_secs(1);
/// After so long without trouble the pause is [`FIRST_PAUSE`] again.
const SETTLED: Duration = Duration::from_secs(30);

/// An order to the thread.
enum Order {
    Change(Box<CameraConfig>, Option<Reply>),
    Stop,
}

/// Gets `Ok` once frames are judged by the new settings, or if the camera did not run before; else a sentence that says why
/// none is.
pub type Reply = oneshot::Sender<Result<(), String>>;
/// Where the [`Reply`] comes.
pub type SwitchReply = oneshot::Receiver<Result<(), String>>;

/// The thread of a camera.
pub struct Supervisor {
    /// The camera.
    pub camera: Arc<Camera>,
    orders: mpsc::Sender<Order>,
    beats: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Supervisor {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(config: CameraConfig, line: &Arc<Line>) -> std::io::Result<Self> {
        let (camera, requests) = Camera::new(&config.name, line);
        let camera = Arc::new(camera);
        let (orders, received) = mpsc::channel();
        let beats = Arc::new(AtomicU64::new(0));
        let picture_thread = PictureThread::start(&camera, PictureSettings::of(&config))?;
        let run = Run {
            camera: camera.clone(),
            config,
            orders: received,
            requests,
            beats: beats.clone(),
            picture_thread,
            recorder: None,
            publishers: Arc::new(Publishers::none(&camera)),
            wiring: Wiring::none(&camera),
            learned: Vec::new(),
            switch: None,
        };
        let thread = std::thread::Builder::new().name(camera.name.clone());
        let of_thread = camera.clone();
        let thread = thread.spawn(move || {
            let _end = Fault(of_thread);
            run.run();
        })?;
        Ok(Self {
            camera,
            orders,
            beats,
            thread,
        })
    }

    /// Gives the camera other settings.
    pub fn change(&self, config: CameraConfig) {
        // A supervisor that has ended is found by `beats`.
        let _ = self.orders.send(Order::Change(Box::new(config), None));
    }

    /// Gives the camera the settings of another recipe. The receiver gets an error at once if the supervisor has ended.
    pub fn switch(&self, config: CameraConfig) -> SwitchReply {
        let (reply, replied) = oneshot::channel();
        let order = Order::Change(Box::new(config), Some(reply));
        let _ = self.orders.send(order);
        replied
    }

    /// Asks the camera to stop.
    pub fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
    }

    /// Counts on while the thread answers.
    pub fn beats(&self) -> u64 {
        self.beats.load(Relaxed)
    }

    /// Whether the thread has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Raises an alarm if the thread panics: nothing watches the camera then.
struct Fault(Arc<Camera>);

impl Drop for Fault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "the station has a fault and no longer watches this camera; start it again";
            self.0.machine.set_output(None);
            self.0.machine.abandon();
            self.0.alarm(text.to_owned());
            let status = Status::Failed(Trouble::CameraLost, text.to_owned());
            self.0.set_status(status);
        }
    }
}

/// Why a pipeline ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Change,
    Failed,
}

/// What the thread owns.
struct Run {
    camera: Arc<Camera>,
    config: CameraConfig,
    orders: mpsc::Receiver<Order>,
    requests: requests::Receiver<Request>,
    beats: Arc<AtomicU64>,
    picture_thread: PictureThread,
    recorder: Option<Arc<Recorder>>,
    publishers: Arc<Publishers>,
    wiring: Wiring,
    /// What was learned, and the settings at that time.
    learned: Vec<(LearnedProperty, CameraConfig)>,
    /// Somebody waits until frames are judged by the settings.
    switch: Option<Reply>,
}

impl Run {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.run_pipeline(&mut pause) {
                End::Stop => break,
                End::Change => {
                    pause = FIRST_PAUSE;
                    continue;
                }
                End::Failed => {}
            }
            match self.wait(pause) {
                Some(End::Stop) => break,
                Some(_) => pause = FIRST_PAUSE,
                None => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            self.camera.counters.restarts.fetch_add(1, Relaxed);
        }
        // Rest, before the end is told.
        self.wiring.end_input();
        self.camera.machine.abandon();
        self.publish_without_report();
        self.publishers.count();
        self.wiring.end_output();
        info!("camera {}: stopped", self.camera.name);
    }

    /// Starts a pipeline and watches it to its end. `pause`: before the next start.
    fn run_pipeline(&mut self, pause: &mut Duration) -> End {
        let started = Instant::now();
        let pictures = self.picture_thread.pictures().clone();
        let mut pipeline = match self.build(&pictures) {
            Ok(pipeline) => pipeline,
            Err(stopped) => {
                self.fail(&stopped, *pause);
                return End::Failed;
            }
        };
        self.begin_history(&pipeline);
        let end = pipeline
            .start(&self.config)
            .and_then(|()| self.watch(&mut pipeline));
        // Stopping may take seconds. Results that come meanwhile must not be shown as new.
        pipeline.mark_ending();
        self.publishers.set_online(false);
        let end = end.unwrap_or_else(|stopped| {
            let stopped = pipeline.explained(stopped, &self.config);
            if started.elapsed() > SETTLED + self.config.start_timeout {
                *pause = FIRST_PAUSE;
            }
            self.fail(&stopped, *pause);
            End::Failed
        });
        if end == End::Failed {
            // Before the pipeline stops, which takes long if the device hangs.
            self.camera.machine.abandon();
        }
        self.wiring.take_genicam();
        if end != End::Failed {
            self.camera.set_status(Status::Starting);
        }
        {
            let mut history = self.camera.history();
            history.offers.clear();
            history.frame_rate = 0.0;
        }
        match end {
            End::Failed => drop(pipeline),
            End::Stop | End::Change => pipeline.end(),
        }
        self.camera.machine.abandon();
        self.wiring.rest();
        self.publish_without_report();
        self.publishers.count();
        pictures.clear();
        end
    }

    fn build(&mut self, pictures: &Arc<Pictures>) -> Result<Pipeline, StopReason> {
        let outlets = self.outlets(pictures)?;
        self.camera.machine.set_recipe(&self.config.recipe);
        self.wiring.follow(&self.config)?;
        let pipeline = Pipeline::build(&self.config, &self.camera, &outlets)?;
        for (learned, then) in self.learned() {
            pipeline.set_learned(learned, then, &self.config);
        }
        Ok(pipeline)
    }

    /// The publishers and the recorder that the file asks for. They stay while pipelines start again. After an error all
    /// are as before.
    fn outlets(&mut self, pictures: &Arc<Pictures>) -> Result<Outlets, StopReason> {
        let publishers = self.next_publishers()?;
        let recorder = self.next_recorder()?;
        if let Some(mut next) = publishers {
            self.publishers.hand_over_to(&mut next);
            self.publishers = Arc::new(next);
        }
        self.recorder.clone_from(&recorder);
        let folder = self.config.recording.as_ref().map(|of| of.folder.clone());
        *self.camera.recordings() = folder;
        Ok(Outlets {
            pictures: pictures.clone(),
            publishers: self.publishers.clone(),
            recorder,
        })
    }

    /// What was learned under this recipe, as it is now: what was learned on another product, or before the recipe was
    /// saved again, stays with that one.
    fn learned(&self) -> Vec<(&LearnedProperty, &CameraConfig)> {
        let recipe = &self.config.recipe;
        let all = self.learned.iter().map(|(learned, then)| (learned, then));
        all.filter(|(_, then)| then.recipe == *recipe).collect()
    }

    /// Other publishers, if the file asks for others than those that run.
    fn next_publishers(&self) -> Result<Option<Publishers>, StopReason> {
        if self.publishers.tables() == self.config.publish {
            return Ok(None);
        }
        let next = Publishers::start(&self.config.publish, &self.camera);
        next.map(Some)
            .map_err(|why| (Trouble::SettingsRefused, why))
    }

    /// The recorder, if the file asks for one.
    fn next_recorder(&self) -> Result<Option<Arc<Recorder>>, StopReason> {
        let Some(settings) = &self.config.recording else {
            return Ok(None);
        };
        if let Some(recorder) = self.recorder.as_ref()
            && recorder.settings() == settings
        {
            return Ok(Some(recorder.clone()));
        }
        let recorder = Recorder::new(settings.clone(), self.camera.clone());
        let refused = |error| (Trouble::SettingsRefused, format!("recording: {error:#}"));
        Ok(Some(Arc::new(recorder.map_err(refused)?)))
    }

    fn watch(&mut self, pipeline: &mut Pipeline) -> Result<End, StopReason> {
        let mut numbers = Instant::now();
        let mut counted = (Instant::now(), 0);
        let mut idle = Idle::default();
        let mut is_described = false;
        loop {
            self.beat();
            let wait = self.switch.as_ref().map_or(POLL, |_| SWITCH_POLL);
            pipeline.poll(wait, &self.camera)?;
            self.wiring.give_genicam(pipeline);
            let watched = pipeline.watched();
            let has_results = watched.has_results();
            let waits = self.waits_for_trigger(pipeline);
            let is_running = has_results || waits;
            let is_new = *self.camera.status.borrow() != Status::Running;
            if has_results && (is_new || !is_described) {
                self.describe(pipeline);
                is_described = true;
            }
            if is_running && is_new {
                self.recover();
            }
            let (silence, start) = (self.config.silence, self.config.start_timeout);
            let has_run = watched.frames.load(Relaxed) > 0;
            let limit = match (has_results, has_run) {
                (true, _) => silence,
                (false, false) => start,
                // Since a switch. The line may stand.
                (false, true) if self.switch.is_none() => silence.max(start),
                (false, true) => start,
            };
            let watched = pipeline.watched().silence();
            let is_silent = match waits {
                true => {
                    let oldest = self.camera.machine.oldest();
                    oldest.is_some_and(|age| age > limit)
                        || idle.is_broken(pipeline, &self.camera, limit)?
                }
                false => watched > limit,
            };
            if is_silent {
                return Err(pipeline.silence());
            }
            if self.config.triggered && watched > TRIGGER_WAIT {
                self.reply(Ok(()));
            }
            for learned in pipeline.take_learned() {
                self.keep(learned);
            }
            if let Some(end) = self.obey(Some(pipeline))? {
                return Ok(end);
            }
            self.answer(Some(pipeline));
            self.publish_without_report();
            if numbers.elapsed() >= NUMBERS {
                numbers = Instant::now();
                self.publishers.count();
            }
            let elapsed = counted.0.elapsed();
            if elapsed >= Duration::from_secs(1) {
                let frames = pipeline.watched().frames.load(Relaxed);
                let rate = frames.saturating_sub(counted.1) as f64 / elapsed.as_secs_f64();
                self.camera.history().frame_rate = rate;
                counted = (Instant::now(), frames);
                let unpublished = self.camera.machine.take_unpublished();
                if unpublished > 0 {
                    warning!(
                        "camera {}: {unpublished} outcomes of frames without results are not published, because too many \
                         waited",
                        self.camera.name
                    );
                }
            }
        }
    }

    fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    /// Whether the camera sends nothing before the machine asks for a frame. A camera that the station triggers first gives
    /// one frame that nobody asks for: then its kernels have run, and the machine may ask.
    fn waits_for_trigger(&self, pipeline: &Pipeline) -> bool {
        match self.config.machine.trigger {
            Trigger::Every => false,
            Trigger::Next | Trigger::Input => pipeline.is_playing(),
            Trigger::Software => pipeline.watched().has_results(),
        }
    }

    /// The inspection runs, at first or again.
    fn recover(&mut self) {
        self.publishers.set_online(true);
        self.camera.set_status(Status::Running);
        self.reply(Ok(()));
    }

    /// Tells what inspects the frames, and what the camera sends.
    fn describe(&self, pipeline: &Pipeline) {
        let device = pipeline.device();
        let on = device.as_deref().unwrap_or("an unknown device");
        info!(
            "camera {}: frames come, inspected on {on}",
            self.camera.name
        );
        let sent = pipeline.sent(&self.config);
        if let Some(sent) = &sent {
            info!("camera {}: {sent}", self.camera.name);
        }
        let mut history = self.camera.history();
        (history.device, history.sent) = (device, sent);
    }

    /// Publishes the outcomes of frames that got no results.
    fn publish_without_report(&self) {
        for ended in self.camera.machine.take_outcomes_without_report() {
            let time = time::iso_8601(ended.time);
            let mut report = Report::without_results(&self.camera.name, ended.outcome, time);
            report.recipe = ended.recipe;
            self.publishers.offer(&Arc::new(report));
        }
    }

    /// Keeps what was learned for the pipelines that follow.
    fn keep(&mut self, learned: LearnedProperty) {
        let name = learned.name;
        let text = format!(
            "learned {learned}; write it into the configuration file, because a restart of the station reads \
             {name} from the file"
        );
        info!("camera {}: {text}", self.camera.name);
        self.camera.show_on_page(text);
        let recipe = &self.config.recipe;
        self.learned
            .retain(|(before, then)| before.name != name || then.recipe != *recipe);
        self.learned.push((learned, self.config.clone()));
    }

    /// Tells somebody who waits what became of the switch.
    fn reply(&mut self, result: Result<(), String>) {
        if let Some(reply) = self.switch.take() {
            // Nobody may wait any more.
            let _ = reply.send(result);
        }
    }

    fn fail(&mut self, (trouble, text): &StopReason, pause: Duration) {
        let (trouble, text) = (*trouble, crate::secrets::without_users(text));
        let status = Status::Failed(trouble, text.clone());
        self.reply(Err(format!("{trouble}: {text}")));
        let kind_before = match &*self.camera.status.borrow() {
            Status::Failed(trouble, _) => Some(*trouble),
            _ => None,
        };
        let seconds = pause.as_secs();
        if kind_before == Some(trouble) {
            let name = &self.camera.name;
            info!("camera {name}: still {trouble}: {text}; next start in {seconds} s");
        } else {
            self.camera.alarm(format!(
                "{trouble}: {text}; the station starts the camera again in {seconds} s"
            ));
        }
        self.camera.set_status(status);
    }

    /// Waits before a new start; orders end the wait.
    fn wait(&mut self, pause: Duration) -> Option<End> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            self.beat();
            // Without a pipeline nothing can stop it.
            if let Ok(Some(end)) = self.obey(None) {
                return Some(end);
            }
            self.answer(None);
            self.publish_without_report();
            self.publishers.count();
            std::thread::sleep(POLL);
        }
        None
    }

    /// Carries out the orders; returns the end of the pipeline if there must be one.
    ///
    /// # Errors
    /// Why the pipeline stopped.
    fn obey(&mut self, mut pipeline: Option<&mut Pipeline>) -> Result<Option<End>, StopReason> {
        loop {
            let (config, reply) = match self.orders.try_recv() {
                Ok(Order::Change(config, reply)) => (*config, reply),
                Ok(Order::Stop) => return Ok(Some(End::Stop)),
                Err(mpsc::TryRecvError::Empty) => return Ok(None),
                // The station has dropped the sender, so no order to stop can come.
                Err(mpsc::TryRecvError::Disconnected) => return Ok(Some(End::Stop)),
            };
            self.reply(Err("another change came".to_owned()));
            self.switch = reply;
            if config == self.config {
                self.reply(Ok(()));
                continue;
            }
            if config.recipe != self.config.recipe {
                let end = self.change_recipe(config, pipeline.as_deref_mut())?;
                if end.is_some() {
                    return Ok(end);
                }
                continue;
            }
            let name = self.camera.name.clone();
            let changed = pipeline
                .as_ref()
                .map_or(ChangeResult::NeedsStart, |pipeline| {
                    pipeline.change(&self.config, &config)
                });
            if let ChangeResult::Refused(why) = &changed {
                self.camera.alarm(format!(
                    "{why}; the camera continues with the previous settings"
                ));
                self.reply(Err(why.clone()));
                continue;
            }
            self.picture_thread
                .pictures()
                .set_settings(PictureSettings::of(&config));
            if let Some(pipeline) = &pipeline {
                pipeline.set_waiting(&config);
            }
            self.config = config;
            // At a new start this comes again.
            self.wiring.follow(&self.config)?;
            if changed == ChangeResult::Live {
                info!("camera {name}: the new settings are in force; no frame was left out");
                self.reply(Ok(()));
            } else {
                info!("camera {name}: starts again with the new settings");
                return Ok(Some(End::Change));
            }
        }
    }

    /// Goes on with the settings of another recipe. The source goes on too, if it is the same. If the new elements refuse the
    /// settings, the old ones go on.
    fn change_recipe(
        &mut self,
        config: CameraConfig,
        pipeline: Option<&mut Pipeline>,
    ) -> Result<Option<End>, StopReason> {
        // A camera that did not run may be repaired under any recipe.
        if *self.camera.status.borrow() != Status::Running {
            self.reply(Ok(()));
        }
        let pictures = self.picture_thread.pictures().clone();
        let settings = PictureSettings::of(&config);
        let old = std::mem::replace(&mut self.config, config);
        let Some(pipeline) = pipeline.filter(|of| of.can_swap(&old, &self.config)) else {
            pictures.set_settings(settings);
            return Ok(Some(End::Change));
        };
        let next = pipeline.prepare(&self.config, &self.learned());
        let next = next.and_then(|next| match self.outlets(&pictures) {
            Ok(outlets) => Ok((next, outlets)),
            Err(stopped) => {
                pipeline.discard(&next);
                Err(stopped)
            }
        });
        let (next, outlets) = match next {
            Ok(next) => next,
            Err((trouble, text)) => {
                self.config = old;
                self.camera.machine.set_recipe(&self.config.recipe);
                let why = format!("{trouble}: {}", crate::secrets::without_users(&text));
                self.camera.alarm(format!(
                    "{why}; the camera continues with the previous settings"
                ));
                self.reply(Err(why));
                return Ok(None);
            }
        };
        pictures.set_settings(settings);
        self.camera.machine.set_recipe(&self.config.recipe);
        pipeline.set_waiting(&self.config);
        self.wiring.follow(&self.config)?;
        pipeline.swap(next, &self.config, &self.camera, &outlets)?;
        // Until the first result of the new elements.
        self.camera.set_status(Status::Starting);
        self.wiring.fire_first();
        self.begin_history(pipeline);
        Ok(None)
    }

    /// What the page shows of the elements before is over.
    fn begin_history(&self, pipeline: &Pipeline) {
        self.camera.counters.repeats_now.store(0, Relaxed);
        let mut history = self.camera.history();
        history.begin_pipeline();
        history.offers = pipeline.offers();
    }

    /// Carries out the commands that came for the camera.
    fn answer(&mut self, pipeline: Option<&mut Pipeline>) {
        while let Ok(request) = self.requests.try_recv() {
            let answer = match &pipeline {
                Some(pipeline) => pipeline.command(request.command, request.frame),
                None => Err("the camera does not run".to_owned()),
            };
            // The request may have timed out meanwhile.
            let _ = request.answer.send(answer);
        }
    }
}
