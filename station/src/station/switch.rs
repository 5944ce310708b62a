//! Another recipe: all cameras, or none.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_results::report::RecipeId;
use config::{
    file::Purpose,
    recipes::{Action, Change, InForce, RecipeContent, Recipes, Switch},
};
use machine::{error, info};
use plan::CameraConfig;
use run::{
    state::{Camera, Status},
    supervisor::{Supervisor, SwitchReply},
};
use tokio::{task::block_in_place, time::timeout};

use super::{RunningCameras, Station, in_file};

/// A supervisor answers a little later than its camera's `start-timeout` at the latest.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// A switch that was ordered and is not known to have happened.
struct PendingSwitch {
    /// Cameras that have other settings now, and their answers.
    changed: Vec<(String, Duration, SwitchReply)>,
    /// Cameras that the recipe before did not have.
    new: Vec<(Arc<Camera>, Duration)>,
    /// Cameras that this recipe does not have. They run until the switch is done.
    leaving: Vec<Supervisor>,
}

impl Station {
    /// Carries out a switch and answers it.
    pub async fn switch(self: Arc<Self>, wanted: Switch) {
        let Some(recipes) = self.recipes.clone() else {
            return;
        };
        let _alone = self.changing.lock().await;
        let started = Instant::now();
        let before = recipes.in_force().borrow().clone();
        recipes.in_force().send_modify(|state| state.is_busy = true);
        self.set_switching(true);
        let result = self.carry_out(&recipes, &wanted.name, &before).await;
        let took = started.elapsed();
        self.set_switching(false);
        recipes.in_force().send_modify(|state| {
            state.is_busy = false;
            match &result {
                Ok((active, number)) => {
                    *state = InForce {
                        active: Some(active.clone()),
                        number: *number,
                        ..InForce::default()
                    }
                }
                Err(why) => state.failed = Some(why.clone()),
            }
        });
        let result = result.map(|(active, _)| active);
        let is_change = result.is_err() || result.as_ref().ok() != before.active.as_ref();
        if is_change {
            let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let (hash, text) = match &result {
                Ok(active) => (Some(active.hash.clone()), "ok"),
                Err(why) => (None, why.as_str()),
            };
            recipes.numbers().count(result.is_ok().then_some(took));
            match &result {
                Ok(active) => info!("recipe {active} is in force after {milliseconds} ms"),
                Err(why) => error!("recipe {}: {why}", wanted.name),
            }
            let change = Change {
                time: Change::now(),
                who: wanted.who,
                action: Action::Switch,
                from: before.active.map(|active| active.name),
                to: wanted.name,
                hash,
                milliseconds,
                result: text.to_owned(),
            };
            block_in_place(|| recipes.record(change));
        }
        // The one who asked may have left.
        let _ = wanted.answer.send(result.map(|_| took));
    }

    /// Also cameras that the recipe adds meanwhile end their switch here.
    fn set_switching(&self, is_switching: bool) {
        for supervisor in &self.running.lock().supervisors {
            supervisor.camera.machine.set_switching(is_switching);
        }
    }

    async fn carry_out(
        &self,
        recipes: &Arc<Recipes>,
        name: &str,
        before: &InForce,
    ) -> Result<(RecipeId, Option<u16>), String> {
        let (of_thread, to_read) = (recipes.clone(), name.to_owned());
        let read = move || of_thread.read_for_cameras(&to_read, Purpose::Run);
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.map_err(|error| format!("the recipe cannot be read: {error}"))?;
        let RecipeContent {
            id,
            number,
            cameras,
        } = read.map_err(|mistakes| {
            let told = in_file(recipes, name, &mistakes).join("; ");
            format!("the recipe cannot be used, and all cameras are as before: {told}")
        })?;
        if before.active.as_ref() == Some(&id) {
            return Ok((id, number));
        }
        let old = self.running.lock().in_force.clone();
        let ordered = self.order(&cameras);
        let mut result = match ordered {
            Ok(ordered) => {
                let (result, leaving) = ordered.wait().await;
                match result {
                    Ok(()) => block_in_place(|| self.keep(recipes, &id, cameras, leaving)),
                    Err(why) => {
                        self.running.lock().supervisors.extend(leaving);
                        Err(why)
                    }
                }
            }
            Err(why) => Err(why),
        };
        match &mut result {
            Ok(()) => block_in_place(|| recipes.release_others(&id)),
            Err(why) => {
                *why = format!("{why}; all cameras are as before");
                self.go_back(&old).await;
                block_in_place(|| recipes.release_one(&id));
            }
        }
        result.map(|()| (id, number))
    }

    /// Orders the settings of a recipe. Cameras that it does not have go on.
    fn order(&self, cameras: &[CameraConfig]) -> Result<PendingSwitch, String> {
        let mut guard = self.running.lock();
        let running: &mut RunningCameras = &mut guard;
        let mut ordered = PendingSwitch {
            changed: Vec::new(),
            new: Vec::new(),
            leaving: std::mem::take(&mut running.supervisors),
        };
        let mut result = Ok(());
        for config in cameras {
            let name = &config.name;
            let known = ordered.leaving.iter();
            let known = known.map(|of| &of.camera.name).position(|of| of == name);
            if let Some(index) = known {
                let supervisor = ordered.leaving.swap_remove(index);
                // What other elements judge from now on is a fault, until they are replaced.
                supervisor.camera.machine.set_recipe(&config.recipe);
                let answer = supervisor.switch(config.clone());
                (ordered.changed).push((name.clone(), config.start_timeout, answer));
                running.supervisors.push(supervisor);
                continue;
            }
            match Supervisor::start(config.clone(), &self.line) {
                Ok(supervisor) => {
                    let camera = supervisor.camera.clone();
                    camera.machine.set_switching(true);
                    ordered.new.push((camera, config.start_timeout));
                    running.supervisors.push(supervisor);
                }
                Err(why) => result = Err(format!("camera {name} cannot start: {why}")),
            }
        }
        self.publish(running);
        if result.is_err() {
            running.supervisors.append(&mut ordered.leaving);
        }
        result.map(|()| ordered)
    }

    /// All cameras run under the recipe: now it is the one that a start begins with, and cameras that it lacks stop.
    fn keep(
        &self,
        recipes: &Recipes,
        id: &RecipeId,
        cameras: Vec<CameraConfig>,
        leaving: Vec<Supervisor>,
    ) -> Result<(), String> {
        if let Err(why) = recipes.write_active(&id.name) {
            self.running.lock().supervisors.extend(leaving);
            return Err(format!(
                "the recipe in force cannot be noted in {}: {why}; see that the disk has room and that the station may \
                 write there",
                recipes.folder().display()
            ));
        }
        self.running.lock().in_force = cameras;
        leaving.iter().for_each(Supervisor::stop);
        Ok(())
    }

    /// Gives all cameras the settings before the switch.
    async fn go_back(&self, old: &[CameraConfig]) {
        match self.order(old) {
            Ok(ordered) => {
                // Cameras that only the other recipe has.
                ordered.leaving.iter().for_each(Supervisor::stop);
                if let (Err(why), _) = ordered.wait().await {
                    error!("after the recipe that failed: {why}; the station tries again");
                }
            }
            Err(why) => error!("{why}"),
        }
    }
}

impl PendingSwitch {
    /// Waits until the cameras that ran before run again, and the new ones run or have failed.
    async fn wait(self) -> (Result<(), String>, Vec<Supervisor>) {
        let mut result = Ok(());
        for (name, limit, answer) in self.changed {
            let answered = match timeout(limit + ANSWER_LIMIT, answer).await {
                Ok(Ok(answered)) => answered,
                Ok(Err(_)) => Err("its supervisor has ended; start the station again".to_owned()),
                Err(_) => Err("its supervisor does not answer".to_owned()),
            };
            if let Err(why) = answered {
                result = Err(format!("camera {name}: {why}"));
                break;
            }
        }
        if result.is_ok() {
            for (camera, limit) in self.new {
                let mut status = camera.status.subscribe();
                let has_begun = status.wait_for(|status| *status != Status::Starting);
                // A camera that did not run before does not veto.
                let _ = timeout(limit, has_begun).await;
            }
        }
        (result, self.leaving)
    }
}
