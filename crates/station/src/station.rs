//! The cameras that run, and how a new configuration changes them.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    config::{CameraConfig, Config},
    error, info,
    state::{Camera, Cameras, Status},
    supervisor::Supervisor,
};

/// Longest wait for the cameras to stop.
const STOP_LIMIT: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(20);

/// The cameras that run.
pub struct Station {
    config: Config,
    running: Vec<Supervisor>,
    cameras: watch::Sender<Arc<Vec<Arc<Camera>>>>,
    /// The supervisors' counters at the last check.
    beats: Vec<(String, u64)>,
}

impl Station {
    /// Starts the cameras of a configuration.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(config: Config) -> std::io::Result<Self> {
        let running = config.cameras.iter().cloned().map(Supervisor::start);
        let mut station = Self {
            running: running.collect::<Result<_, _>>()?,
            config,
            cameras: watch::Sender::default(),
            beats: Vec::new(),
        };
        station.publish();
        Ok(station)
    }

    /// The cameras, now and after each reload.
    pub fn cameras(&self) -> Cameras {
        self.cameras.subscribe()
    }

    fn publish(&mut self) {
        let cameras = self.running.iter().map(|of| of.camera.clone()).collect();
        self.cameras.send_replace(Arc::new(cameras));
    }

    /// Whether each camera has started, or has failed once.
    pub fn is_ready(&self) -> bool {
        let mut cameras = self.running.iter().map(|of| &of.camera);
        cameras.all(|camera| *camera.status.borrow() != Status::Starting)
    }

    /// The cameras whose supervisors have done nothing since the last call.
    pub fn stuck(&mut self) -> Vec<String> {
        let beats = (self.running.iter()).map(|of| (of.camera.name.clone(), of.beats()));
        let before = std::mem::replace(&mut self.beats, beats.collect());
        let stuck = self.beats.iter().filter(|beat| before.contains(beat));
        stuck.map(|(name, _)| name.clone()).collect()
    }

    /// Reads the file again. A file with mistakes changes nothing.
    pub fn reload(&mut self, path: &Path) {
        let config = match Config::read(path) {
            Ok(config) => config,
            Err(mistakes) => {
                for mistake in &mistakes {
                    error!("{}:{mistake}", path.display());
                }
                error!(
                    "{} is not used: it has {} mistakes; the cameras continue with the previous settings",
                    path.display(),
                    mistakes.len()
                );
                return;
            }
        };
        let (old, new) = (&self.config, &config);
        if (old.listen, &old.token_file, old.allow_writing)
            != (new.listen, &new.token_file, new.allow_writing)
        {
            info!("listen, token-file and allow-writing change when the station is started again");
        }
        if let Err(why) = self.apply(&config.cameras) {
            error!("a camera cannot start: {why}");
        }
        self.config = config;
        info!("{} is in force", path.display());
    }

    /// Starts, changes and stops cameras, by their names.
    fn apply(&mut self, wanted: &[CameraConfig]) -> std::io::Result<()> {
        let mut before = std::mem::take(&mut self.running);
        let mut result = Ok(());
        for config in wanted {
            match before.iter().position(|of| of.camera.name == config.name) {
                Some(index) => {
                    let supervisor = before.swap_remove(index);
                    supervisor.change(config.clone());
                    self.running.push(supervisor);
                }
                None => match Supervisor::start(config.clone()) {
                    Ok(supervisor) => self.running.push(supervisor),
                    Err(error) => result = Err(error),
                },
            }
        }
        self.publish();
        // The others end by themselves; a camera that hangs must not hold up the reload.
        before.iter().for_each(Supervisor::stop);
        result
    }

    /// Stops all cameras and waits for their ends, for a bounded time.
    pub fn stop(self) {
        self.running.iter().for_each(Supervisor::stop);
        let until = Instant::now() + STOP_LIMIT;
        while Instant::now() < until && !self.running.iter().all(Supervisor::is_over) {
            std::thread::sleep(POLL);
        }
        for supervisor in self.running.iter().filter(|of| !of.is_over()) {
            error!(
                "camera {} does not stop; the program ends without it",
                supervisor.camera.name
            );
        }
    }
}
