//! Keeps the pipeline of one camera running, in a thread of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::mpsc as requests;

use crate::{
    config::CameraConfig,
    info,
    pictures::{Look, Worker},
    pipeline::{Outlets, Pipeline, trouble::Stopped},
    recording::Recorder,
    state::{Camera, Request, Status, Trouble},
};

/// Longest pause between two looks at the orders.
const POLL: Duration = Duration::from_millis(50);
/// Between two readings of numbers.
const NUMBERS: Duration = Duration::from_millis(500);
/// Pause before the first new start, doubled at each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so long without trouble the pause is [`FIRST_PAUSE`] again.
const SETTLED: Duration = Duration::from_secs(30);

/// What a supervisor is told.
enum Order {
    Change(Box<CameraConfig>),
    Stop,
}

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
    pub fn start(config: CameraConfig) -> std::io::Result<Self> {
        let (camera, requests) = Camera::new(&config.name);
        let camera = Arc::new(camera);
        let (orders, received) = mpsc::channel();
        let beats = Arc::new(AtomicU64::new(0));
        let worker = Worker::start(&camera, Look::of(&config))?;
        let run = Run {
            camera: camera.clone(),
            config,
            orders: received,
            requests,
            beats: beats.clone(),
            worker,
            recorder: None,
            published: [0; 2],
        };
        let thread = std::thread::Builder::new().name(camera.name.clone());
        let thread = thread.spawn(move || run.run())?;
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
        let _ = self.orders.send(Order::Change(Box::new(config)));
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

/// Why a pipeline does not go on.
enum End {
    Stop,
    Change,
    Failed(Stopped),
}

/// What the thread owns.
struct Run {
    camera: Arc<Camera>,
    config: CameraConfig,
    orders: mpsc::Receiver<Order>,
    requests: requests::Receiver<Request>,
    beats: Arc<AtomicU64>,
    worker: Worker,
    recorder: Option<Arc<Recorder>>,
    /// Results dropped and errors of the pipelines before.
    published: [u64; 2],
}

impl Run {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            match self.run_pipeline() {
                End::Stop => break,
                End::Change => {
                    pause = FIRST_PAUSE;
                    self.camera.status.send_replace(Status::Starting);
                    continue;
                }
                End::Failed((trouble, text)) => {
                    if started.elapsed() > SETTLED + self.config.start_timeout {
                        pause = FIRST_PAUSE;
                    }
                    self.fail(trouble, &text, pause);
                }
            }
            match self.wait(pause) {
                Some(End::Stop) => break,
                Some(_) => pause = FIRST_PAUSE,
                None => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            self.camera.counters.restarts.fetch_add(1, Relaxed);
        }
        info!("camera {}: stopped", self.camera.name);
    }

    /// Starts a pipeline and watches it to its end.
    fn run_pipeline(&mut self) -> End {
        let pictures = self.worker.pictures().clone();
        let built = self.recorder().and_then(|recorder| {
            let outlets = Outlets {
                pictures: pictures.clone(),
                recorder,
            };
            Pipeline::build(&self.config, &self.camera, &outlets)
        });
        let mut pipeline = match built {
            Ok(pipeline) => pipeline,
            Err(stopped) => return End::Failed(stopped),
        };
        self.camera.history().begin_pipeline();
        self.camera.history().offers = pipeline.offers();
        let end = match pipeline.start() {
            Ok(()) => self.watch(&mut pipeline),
            Err(stopped) => End::Failed(stopped),
        };
        self.read_numbers(&pipeline);
        let [_, dropped, errors] = pipeline.publishing();
        self.published[0] += dropped;
        self.published[1] += errors;
        self.camera.counters.publish_queue.store(0, Relaxed);
        pictures.clear();
        {
            let mut history = self.camera.history();
            history.offers.clear();
            history.frame_rate = 0.0;
        }
        match &end {
            End::Failed(_) => drop(pipeline),
            End::Stop | End::Change => pipeline.end(),
        }
        end
    }

    /// The recorder, if the file asks for one. It stays while pipelines start again.
    fn recorder(&mut self) -> Result<Option<Arc<Recorder>>, Stopped> {
        let is_same =
            |recorder: &Arc<Recorder>| Some(recorder.settings()) == self.config.recording.as_ref();
        self.recorder = self.recorder.take().filter(is_same);
        if self.recorder.is_none()
            && let Some(settings) = self.config.recording.clone()
        {
            let recorder = Recorder::new(settings, self.camera.clone());
            let refused = |error| (Trouble::SettingsRefused, format!("recording: {error:#}"));
            self.recorder = Some(Arc::new(recorder.map_err(refused)?));
        }
        Ok(self.recorder.clone())
    }

    fn watch(&mut self, pipeline: &mut Pipeline) -> End {
        let mut numbers = Instant::now();
        let mut counted = (Instant::now(), 0);
        loop {
            self.beat();
            if let Err(stopped) = pipeline.poll(POLL, &self.camera) {
                return End::Failed(stopped);
            }
            let watched = pipeline.watched();
            let is_running = watched.has_results();
            if is_running && *self.camera.status.borrow() != Status::Running {
                self.recover(pipeline);
            }
            let limit = if is_running {
                self.config.silence
            } else {
                self.config.start_timeout
            };
            if pipeline.watched().silence() > limit {
                return End::Failed(pipeline.silence());
            }
            if let Some(end) = self.obey(Some(pipeline)) {
                return end;
            }
            self.answer(Some(pipeline));
            if numbers.elapsed() >= NUMBERS {
                numbers = Instant::now();
                self.read_numbers(pipeline);
            }
            let elapsed = counted.0.elapsed();
            if elapsed >= Duration::from_secs(1) {
                let frames = pipeline.watched().frames.load(Relaxed);
                let rate = (frames - counted.1) as f64 / elapsed.as_secs_f64();
                self.camera.history().frame_rate = rate;
                counted = (Instant::now(), frames);
            }
        }
    }

    fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    /// Frames come, at first or again.
    fn recover(&self, pipeline: &Pipeline) {
        let device = pipeline.device();
        let on = device.as_deref().unwrap_or("an unknown device");
        info!(
            "camera {}: frames come, inspected on {on}",
            self.camera.name
        );
        self.camera.history().device = device;
        self.camera.status.send_replace(Status::Running);
        pipeline.note_latency();
    }

    fn fail(&self, trouble: Trouble, text: &str, pause: Duration) {
        let status = Status::Failed(trouble, text.to_owned());
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
        self.camera.status.send_replace(status);
    }

    /// Waits before a new start; orders end the wait.
    fn wait(&mut self, pause: Duration) -> Option<End> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            self.beat();
            if let Some(end) = self.obey(None) {
                return Some(end);
            }
            self.answer(None);
            std::thread::sleep(POLL);
        }
        None
    }

    /// Carries out the orders; returns the end of the pipeline if there must be one.
    fn obey(&mut self, pipeline: Option<&Pipeline>) -> Option<End> {
        loop {
            let config = match self.orders.try_recv() {
                Ok(Order::Change(config)) => *config,
                Ok(Order::Stop) => return Some(End::Stop),
                Err(mpsc::TryRecvError::Empty) => return None,
                // Nobody is left who could stop the camera.
                Err(mpsc::TryRecvError::Disconnected) => return Some(End::Stop),
            };
            if config == self.config {
                continue;
            }
            let is_live = pipeline.is_some_and(|pipeline| pipeline.change(&self.config, &config));
            self.worker.pictures().set_look(Look::of(&config));
            self.config = config;
            let name = &self.camera.name;
            if is_live {
                info!("camera {name}: the new settings are in force; no frame was left out");
            } else {
                info!("camera {name}: starts again with the new settings");
                return Some(End::Change);
            }
        }
    }

    /// Answers what people ask of the camera.
    fn answer(&mut self, pipeline: Option<&Pipeline>) {
        while let Ok(request) = self.requests.try_recv() {
            let answer = match pipeline {
                Some(pipeline) => pipeline.command(request.command),
                None => Err("the camera does not run".to_owned()),
            };
            // Whoever asked may have gone.
            let _ = request.answer.send(answer);
        }
    }

    fn read_numbers(&self, pipeline: &Pipeline) {
        let [queued, dropped, errors] = pipeline.publishing();
        let counters = &self.camera.counters;
        counters.publish_queue.store(queued, Relaxed);
        counters
            .publish_dropped
            .store(self.published[0] + dropped, Relaxed);
        counters
            .publish_errors
            .store(self.published[1] + errors, Relaxed);
    }
}
