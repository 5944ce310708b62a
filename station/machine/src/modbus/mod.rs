//! The station as a Modbus TCP server: a PLC reads outcomes and, if it may, triggers cameras and switches recipes.

pub mod handshake;
pub mod registers;
mod server;
mod station;
mod wire;

use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::{
    answer::{Line, Server},
    listen,
    locks::Mutex,
    warning,
};
use handshake::{CameraSnapshot, Fault, Handshake};
use plan::ModbusSettings;
use registers::Place;
pub use station::{Camera, FindCamera, Recipes, SwitchResult};
use wire::{Exception, Kind, Request, Write};

/// Longest time from the end of a PLC's heartbeat to its consequence, beyond the timeout.
const WATCH: Duration = Duration::from_millis(20);

/// The server.
pub struct Modbus {
    settings: ModbusSettings,
    line: Arc<Line>,
    recipes: Option<Arc<dyn Recipes>>,
    units: Arc<[Unit]>,
    /// Set when the cameras run.
    cameras: OnceLock<FindCamera>,
    /// Counts of connections and requests.
    pub numbers: Numbers,
}

/// The handshake of one camera.
///
/// Answers come while the camera's frames are locked. So nobody who holds `handshake` may call the camera; `writing` is for
/// those who must do both.
struct Unit {
    name: String,
    handshake: Mutex<Handshake>,
    writing: Mutex<()>,
}

/// Counts since the start of the station.
#[derive(Default)]
pub struct Numbers {
    /// Connections now.
    pub connections: AtomicUsize,
    /// Connections that were closed at once: from elsewhere, or too many.
    pub refused: AtomicU64,
    /// Requests that were answered.
    pub requests: AtomicU64,
    /// Those of them that were answered with an exception.
    pub exceptions: AtomicU64,
}

/// What the page shows of a camera.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PlcStatus {
    /// The camera.
    pub camera: String,
    /// Whether the PLC wants results.
    pub is_enabled: bool,
    /// Whether the PLC's heartbeat stopped and the PLC has not begun anew.
    pub is_lost: bool,
}

impl Modbus {
    /// The server for these cameras, in the order of their registers. It takes the answers of the line.
    pub fn new(
        settings: ModbusSettings,
        cameras: impl Iterator<Item = String>,
        line: &Arc<Line>,
        recipes: Option<Arc<dyn Recipes>>,
    ) -> Arc<Self> {
        let (has_commands, timeout) = (settings.allow_commands, settings.heartbeat_timeout);
        let unit = |name| Unit {
            name,
            handshake: Mutex::new(Handshake::new(has_commands, timeout)),
            writing: Mutex::default(),
        };
        let units: Arc<[Unit]> = cameras.map(unit).collect();
        let of_sink = units.clone();
        if has_commands {
            line.wait_for_commands();
        }
        line.set_sink(Box::new(move |camera, answer| {
            if let Some(unit) = of_sink.iter().find(|unit| unit.name == camera) {
                unit.handshake.lock().answer(answer);
            }
        }));
        Arc::new(Self {
            settings,
            line: line.clone(),
            recipes,
            units,
            cameras: OnceLock::new(),
            numbers: Numbers::default(),
        })
    }

    /// Answers PLCs until the future is dropped. `cameras`: those that run. `show` gets a text for the page.
    pub async fn serve(self: Arc<Self>, cameras: FindCamera, show: impl Fn(&str)) {
        // It is called once.
        let _ = self.cameras.set(cameras);
        let accept = async {
            let address = self.settings.listen;
            let listener = listen::bind(Server::Modbus, address, &self.line, &show).await;
            server::accept(self.clone(), listener).await;
        };
        tokio::join!(accept, self.watch());
    }

    /// Whether PLCs can connect.
    pub fn is_reachable(&self) -> bool {
        !self.line.is_unreachable(Server::Modbus)
    }

    /// Whether the PLC may write.
    pub fn has_commands(&self) -> bool {
        self.settings.allow_commands
    }

    /// What the page shows of each camera.
    pub fn shown(&self) -> Vec<PlcStatus> {
        let shown = self.units.iter().map(|unit| {
            let handshake = unit.handshake.lock();
            PlcStatus {
                camera: unit.name.clone(),
                is_enabled: handshake.is_enabled(),
                is_lost: handshake.is_lost(),
            }
        });
        shown.collect()
    }

    /// Carries out a request, and returns the words that it reads.
    fn answer(self: &Arc<Self>, request: &Request) -> Result<Vec<u16>, Exception> {
        if request.write.is_some() && !self.settings.allow_commands {
            return Err(Exception::Function);
        }
        // Both are checked before anything happens.
        let write = request.write.as_ref().map(|write| self.written(write));
        let read = request.read.map(|of| match of.kind {
            Kind::Holding => registers::holding(of.first, of.count, self.units.len()),
            Kind::Input => registers::inputs(of.first, of.count, self.units.len()),
        });
        let write = write.transpose()?;
        let read = read.map(|place| place.ok_or(Exception::Address));
        let read = read.transpose()?;
        if let (Some((unit, words)), Some(write)) = (write, &request.write) {
            self.write(unit, words, write);
        }
        Ok(read.map(|place| self.read(&place)).unwrap_or_default())
    }

    /// The unit and its words that a request writes.
    fn written(&self, write: &Write) -> Result<(usize, Range<usize>), Exception> {
        let (first, count) = match write {
            // At most 123.
            Write::Words(first, words) => (*first, words.len() as u16),
            Write::Mask { address, .. } => (*address, 1),
        };
        match registers::holding(first, count, self.units.len()) {
            Some(Place::Commands(unit, words)) => Ok((unit, words)),
            _ => Err(Exception::Address),
        }
    }

    fn read(&self, place: &Place) -> Vec<u16> {
        let words = match place {
            Place::Inputs(unit, words) => self.units.get(*unit).and_then(|unit| {
                let now = self.now(self.camera(unit).as_deref());
                let inputs = unit.handshake.lock().inputs(&now);
                Some(inputs.get(words.clone())?.to_vec())
            }),
            Place::Commands(unit, words) => self.units.get(*unit).and_then(|unit| {
                let commands = *unit.handshake.lock().commands();
                Some(commands.get(words.clone())?.to_vec())
            }),
        };
        words.unwrap_or_default()
    }

    fn write(self: &Arc<Self>, index: usize, words: Range<usize>, write: &Write) {
        let Some(unit) = self.units.get(index) else {
            return;
        };
        let _alone = unit.writing.lock();
        let camera = self.camera(unit);
        let now = self.now(camera.as_deref());
        let mut handshake = unit.handshake.lock();
        let values = match write {
            Write::Words(_, values) => values.clone(),
            Write::Mask { and, or, .. } => {
                let before = handshake.commands().get(words.clone()).unwrap_or_default();
                before.iter().map(|word| word & and | or & !and).collect()
            }
        };
        let asked = handshake.write(words.start, &values, &now, Instant::now());
        let (is_enabled, part) = (handshake.is_enabled(), handshake.part());
        drop(handshake);
        if let Some(camera) = &camera {
            if asked.begin {
                camera.machine().begin_after(now.newest);
            }
            camera.machine().set_enabled(is_enabled);
            camera.machine().set_part(part);
            if asked.alarm {
                self.tell_lost_heartbeat(&**camera);
            }
        }
        if asked.trigger {
            let armed = camera.and_then(|camera| camera.machine().arm().ok());
            unit.handshake.lock().armed(armed);
        }
        if let Some(number) = asked.recipe {
            tokio::spawn(self.clone().switch(index, number));
        }
    }

    /// The camera of a unit; `None` if the recipe in force lacks it.
    fn camera(&self, unit: &Unit) -> Option<Arc<dyn Camera>> {
        self.cameras.get()?(&unit.name)
    }

    /// What the station knows of a camera. Called without its handshake.
    fn now(&self, camera: Option<&dyn Camera>) -> CameraSnapshot {
        let (is_switching, recipe) = self
            .recipes
            .as_ref()
            .map_or((false, None), |recipes| recipes.in_force());
        let now = CameraSnapshot {
            is_switching,
            recipe: recipe.unwrap_or(0),
            heartbeat: self.line.heartbeat(),
            epoch: self.line.epoch(),
            is_page_away: self.line.is_unreachable(Server::Page),
            newest: self.line.newest(),
            ..CameraSnapshot::default()
        };
        let Some(camera) = camera else {
            return now;
        };
        let online = camera.is_online();
        let machine = camera.machine();
        CameraSnapshot {
            is_online: online.is_ok(),
            trouble: online.err().unwrap_or(0),
            is_busy: machine.waiting() > 0,
            has_trigger: machine.settings().trigger.is_commanded(),
            can_arm: machine.can_arm().is_ok(),
            ..now
        }
    }

    /// Switches to the recipe that the PLC asks for.
    async fn switch(self: Arc<Self>, index: usize, number: u16) {
        let result = self.switch_to(number).await;
        if let Err((_, why)) = &result {
            warning!("the PLC asks for the recipe with number {number}: {why}");
        }
        if let Some(unit) = self.units.get(index) {
            unit.handshake
                .lock()
                .switched(result.map_err(|(fault, _)| fault));
        }
    }

    async fn switch_to(&self, number: u16) -> Result<(), (Fault, String)> {
        let no_recipe = |why: &str| (Fault::NoRecipe, why.to_owned());
        let recipes = self.recipes.clone();
        let recipes = recipes.ok_or_else(|| {
            no_recipe("the station has no recipes; set recipes in its file to a folder")
        })?;
        let of_thread = recipes.clone();
        // It reads the files.
        let names = tokio::task::spawn_blocking(move || of_thread.with_number(number)).await;
        match names.unwrap_or_default().as_slice() {
            [name] => {
                let switched = recipes.switch(name).await;
                switched.map_err(|why| (Fault::SwitchFailed, why))
            }
            [] => Err(no_recipe(&format!(
                "no recipe has this number; write number = {number} into a recipe"
            ))),
            several => Err((
                Fault::TwoRecipes,
                format!(
                    "the recipes {} have this number; give each a number of its own",
                    several.join(" and ")
                ),
            )),
        }
    }

    fn tell_lost_heartbeat(&self, camera: &dyn Camera) {
        let milliseconds = self.settings.heartbeat_timeout.as_millis();
        camera.alarm(format!(
            "the PLC's heartbeat has not changed for {milliseconds} ms; the PLC gets no results until its heartbeat goes on \
             and it writes enable = 0, then 1"
        ));
    }

    /// Watches the heartbeats of PLCs, and passes their `enable` on to cameras, also to those that are new.
    async fn watch(&self) {
        if !self.settings.allow_commands {
            return;
        }
        let mut ticks = tokio::time::interval(WATCH);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for unit in &*self.units {
                let _alone = unit.writing.lock();
                let mut handshake = unit.handshake.lock();
                let has_stopped = handshake.expire(Instant::now());
                let is_enabled = handshake.is_enabled();
                drop(handshake);
                let Some(camera) = self.camera(unit) else {
                    continue;
                };
                if camera.machine().is_enabled() != is_enabled {
                    camera.machine().set_enabled(is_enabled);
                }
                if has_stopped {
                    self.tell_lost_heartbeat(&*camera);
                }
            }
        }
    }
}

impl Unit {}

impl Numbers {
    fn count(&self, is_exception: bool) {
        self.requests.fetch_add(1, Relaxed);
        self.exceptions.fetch_add(is_exception.into(), Relaxed);
    }
}
