//! The cameras that run, and how a new configuration or another recipe changes them.

mod switch;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_results::report::RecipeId;
use config::{
    file::{Config, Mistake, Purpose},
    recipes::{Action, Change, InForce, Recipes},
};
use machine::{answer::Line, error, info, locks::Mutex};
use plan::CameraConfig;
use run::{
    state::{Camera, Cameras, Status},
    supervisor::Supervisor,
};
use tokio::sync::watch;

/// Longest wait for the cameras to stop.
const STOP_LIMIT: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(20);

/// The cameras that run.
pub struct Station {
    recipes: Option<Arc<Recipes>>,
    line: Arc<Line>,
    running: Mutex<RunningCameras>,
    cameras: watch::Sender<Arc<Vec<Arc<Camera>>>>,
    /// Held while a recipe or a new file comes into force: one after the other.
    changing: tokio::sync::Mutex<()>,
}

struct RunningCameras {
    /// The station's file.
    config: Config,
    /// The settings in force.
    in_force: Vec<CameraConfig>,
    supervisors: Vec<Supervisor>,
    /// The supervisors' counters at the last check.
    beats: Vec<(String, u64)>,
}

impl Station {
    /// Starts the cameras: those of the recipe that was in force before, else those of the file. No camera starts if that
    /// recipe is missing or broken; then people choose another one.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        config: Config,
        recipes: Option<Arc<Recipes>>,
        line: Arc<Line>,
    ) -> std::io::Result<Arc<Self>> {
        let (wanted, problem) = match wanted(recipes.as_deref(), &config.cameras, Purpose::Start) {
            Ok(wanted) => (wanted, None),
            Err(mistakes) => {
                for mistake in &mistakes {
                    error!("{mistake}");
                }
                (TargetSettings::default(), Some(problem(&mistakes)))
            }
        };
        let TargetSettings {
            cameras: in_force,
            active,
            number,
        } = wanted;
        if let Some(recipes) = &recipes {
            begin_log(recipes, active.as_ref(), problem.as_deref());
            recipes.in_force().send_replace(InForce {
                active,
                number,
                problem,
                ..InForce::default()
            });
        }
        let start = |config: &CameraConfig| Supervisor::start(config.clone(), &line);
        let supervisors = in_force.iter().map(start);
        let supervisors = supervisors.collect::<Result<_, _>>()?;
        let station = Self {
            recipes,
            line,
            running: Mutex::new(RunningCameras {
                supervisors,
                config,
                in_force,
                beats: Vec::new(),
            }),
            cameras: watch::Sender::default(),
            changing: tokio::sync::Mutex::default(),
        };
        station.publish(&station.running.lock());
        Ok(Arc::new(station))
    }

    /// The cameras, now and after each change.
    pub fn cameras(&self) -> Cameras {
        self.cameras.subscribe()
    }

    fn publish(&self, running: &RunningCameras) {
        let cameras = running.supervisors.iter();
        let cameras = cameras.map(|of| of.camera.clone()).collect();
        self.cameras.send_replace(Arc::new(cameras));
    }

    /// Whether each camera has started, or has failed once.
    pub fn is_ready(&self) -> bool {
        let running = self.running.lock();
        let mut cameras = running.supervisors.iter().map(|of| &of.camera);
        cameras.all(|camera| *camera.status.borrow() != Status::Starting)
    }

    /// The cameras whose supervisors have done nothing since the last call.
    pub fn stuck(&self) -> Vec<String> {
        let mut running = self.running.lock();
        let beats = running.supervisors.iter();
        let beats = beats.map(|of| (of.camera.name.clone(), of.beats()));
        let beats: Vec<_> = beats.collect();
        let before = std::mem::replace(&mut running.beats, beats);
        let stuck = running.beats.iter().filter(|beat| before.contains(beat));
        stuck.map(|(name, _)| name.clone()).collect()
    }

    /// Reads the file and the recipe in force again, after a switch that is being carried out. A file or a recipe with
    /// mistakes changes nothing.
    pub async fn reload(&self, path: &Path) {
        let _alone = self.changing.lock().await;
        // It reads files and makes elements.
        tokio::task::block_in_place(|| self.read_again(path));
    }

    fn read_again(&self, path: &Path) {
        let started = Instant::now();
        let shown = path.display();
        let config = match Config::read(path) {
            Ok(config) => config,
            Err(mistakes) => {
                for mistake in &mistakes {
                    error!("{shown}:{mistake}");
                }
                error!(
                    "{shown} is not used: it has {} mistakes; the cameras continue with the previous settings",
                    mistakes.len()
                );
                return;
            }
        };
        let old = self.running.lock().config.clone();
        let fixed = |of: &Config| {
            let files = (of.token_file.clone(), of.recipes.clone());
            let servers = (of.listen, of.mqtt.clone(), of.modbus.clone());
            (servers, files, of.allow_writing)
        };
        if fixed(&old) != fixed(&config) {
            info!(
                "listen, token-file, allow-writing, recipes, mqtt and modbus change when the station is started again"
            );
        }
        let recipes = self.recipes.as_deref();
        if let Some(recipes) = recipes {
            recipes.set_bases(config.cameras.clone());
        }
        let wanted = match wanted(recipes, &config.cameras, Purpose::Run) {
            Ok(wanted) => wanted,
            Err(mistakes) => {
                for mistake in &mistakes {
                    error!("{mistake}");
                }
                error!("nothing of {shown} is used: the recipe in force has these mistakes");
                if let Some(recipes) = recipes {
                    recipes.set_bases(old.cameras);
                }
                return;
            }
        };
        let TargetSettings {
            cameras,
            active,
            number,
        } = wanted;
        let mut running = self.running.lock();
        let applied = self.apply(&mut running, &cameras);
        let applied = applied.map_err(|why| format!("a camera cannot start: {why}"));
        if let Err(why) = &applied {
            error!("{why}");
        }
        running.config = config;
        running.in_force = cameras;
        if let Some(recipes) = recipes {
            let before = recipes.in_force().send_replace(InForce {
                active: active.clone(),
                number,
                ..InForce::default()
            });
            if let Some(active) = active.filter(|active| before.active.as_ref() != Some(active)) {
                recipes.record(Change {
                    time: Change::now(),
                    who: "reload".to_owned(),
                    action: Action::Switch,
                    from: before.active.map(|before| before.name),
                    to: active.name,
                    hash: Some(active.hash),
                    milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                    result: applied.err().unwrap_or_else(|| "ok".to_owned()),
                });
            }
        }
        info!("{shown} is in force");
    }

    /// Starts, changes and stops cameras, by their names.
    fn apply(&self, running: &mut RunningCameras, wanted: &[CameraConfig]) -> std::io::Result<()> {
        let mut before = std::mem::take(&mut running.supervisors);
        let mut result = Ok(());
        for config in wanted {
            match before.iter().position(|of| of.camera.name == config.name) {
                Some(index) => {
                    let supervisor = before.swap_remove(index);
                    supervisor.camera.machine.set_recipe(&config.recipe);
                    supervisor.change(config.clone());
                    running.supervisors.push(supervisor);
                }
                None => match Supervisor::start(config.clone(), &self.line) {
                    Ok(supervisor) => running.supervisors.push(supervisor),
                    Err(error) => result = Err(error),
                },
            }
        }
        self.publish(running);
        // The others end by themselves; a camera that hangs must not hold up the reload.
        before.iter().for_each(Supervisor::stop);
        result
    }

    /// Stops all cameras and waits for their ends, for a bounded time.
    pub fn stop(&self) {
        let running = self.running.lock();
        let supervisors = &running.supervisors;
        supervisors.iter().for_each(Supervisor::stop);
        let until = Instant::now() + STOP_LIMIT;
        while Instant::now() < until && !supervisors.iter().all(Supervisor::is_over) {
            std::thread::sleep(POLL);
        }
        for supervisor in supervisors.iter().filter(|of| !of.is_over()) {
            error!(
                "camera {} does not stop; the program ends without it",
                supervisor.camera.name
            );
        }
    }
}

/// The settings that are to be in force, and their recipe with its number.
#[derive(Default)]
struct TargetSettings {
    cameras: Vec<CameraConfig>,
    active: Option<RecipeId>,
    number: Option<u16>,
}

/// The settings that are to be in force.
///
/// # Errors
/// What is wrong with the recipe, with its file.
fn wanted(
    recipes: Option<&Recipes>,
    own: &[CameraConfig],
    purpose: Purpose,
) -> Result<TargetSettings, Vec<String>> {
    let of_file = || TargetSettings {
        cameras: own.to_vec(),
        ..TargetSettings::default()
    };
    let Some(recipes) = recipes else {
        return Ok(of_file());
    };
    match recipes.named_active().map_err(|why| vec![why])? {
        None => Ok(of_file()),
        Some(name) => {
            let read = recipes.read_for_cameras(&name, purpose);
            let read = read.map_err(|mistakes| in_file(recipes, &name, &mistakes))?;
            Ok(TargetSettings {
                cameras: read.cameras,
                active: Some(read.id),
                number: read.number,
            })
        }
    }
}

/// The mistakes of a recipe with its file, for the log.
fn in_file(recipes: &Recipes, name: &str, mistakes: &[Mistake]) -> Vec<String> {
    let file = recipes.folder().join(format!("{name}.toml"));
    let told = mistakes
        .iter()
        .map(|mistake| format!("{}:{mistake}", file.display()));
    told.collect()
}

/// Why no camera runs, for people.
fn problem(mistakes: &[String]) -> String {
    let first = mistakes.first().map_or("", String::as_str);
    let more = match mistakes.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more; the log has all)", many - 1),
    };
    format!(
        "No camera runs, because the recipe that was in force cannot be used: {first}{more}. Switch to another recipe, or \
         correct this one and reload the station."
    )
}

/// The first line of each run in the list of changes: what is in force from now on.
fn begin_log(recipes: &Recipes, active: Option<&RecipeId>, problem: Option<&str>) {
    let name = recipes.named_active();
    let Some(name) = name.unwrap_or_default() else {
        return;
    };
    recipes.record(Change {
        time: Change::now(),
        who: "start".to_owned(),
        action: Action::Switch,
        from: None,
        to: name,
        hash: active.map(|active| active.hash.clone()),
        milliseconds: 0,
        result: problem.unwrap_or("ok").to_owned(),
    });
}
