//! A draft: a recipe that is being made, with the frames that it is tried on.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use config::{file::ANALYZERS, recipes::Recipes};
use machine::{
    locks::{Monitor, Mutex},
    worker::Worker,
};
use plan::{CameraConfig, is_name, model_file};
use run::{frame::Frame, state::Camera, trial::files_of};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table};

use super::{
    Setup,
    choices::Choice,
    frames::Frames,
    live::Live,
    settings::{self, Notes, Settings},
    teach::Teach,
    tries::Tries,
};

/// Live frames that are kept to measure the object.
const RECENT: usize = 8;
/// Least time between two of them.
const RECENT_PACE: Duration = Duration::from_millis(120);
/// Said of a recipe whose limits are in a file.
const LEARNED_ON_LINE: &str = "limits that this camera learned on the line are in force. A limit that you change here, or \
                               teaching, replaces them";
/// Longest wait until a camera of the draft's own is closed.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);
/// The keys of a camera's table that say where its frames come from.
const SOURCE: [&str; 3] = ["source", "aravis", "caps"];
/// Name of a new camera.
const NEW: &str = "camera";

/// A mistake in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingMistake {
    /// The key of the settings, as far as it is known.
    pub key: String,
    /// What is wrong, and what to do.
    pub text: String,
}

/// A draft. Its thread ends when it is dropped.
pub struct Draft {
    /// Names it in a request.
    pub id: String,
    pub(super) shared: Arc<Shared>,
    thread: Option<Worker>,
}

/// What the draft's thread and the requests share.
pub(super) struct Shared {
    pub recipes: Arc<Recipes>,
    /// Files that the recipe will have.
    pub folder: PathBuf,
    pub state: Monitor<State>,
    /// One at a time changes the settings and checks them: a refused change must not take back another one.
    pub changing: Mutex<()>,
    /// The newest judged frame, and the one before: a page may still load its picture.
    pub live: watch::Sender<VecDeque<Arc<Live>>>,
    /// When the page asked last.
    asked: Mutex<Instant>,
    /// When the page asked last for live frames.
    looked: Mutex<Option<Instant>>,
    pub is_over: AtomicBool,
    /// Whether the draft's camera is given back, so that the station can open it.
    released: AtomicBool,
    /// Whether the draft has a camera open.
    pub has_own: AtomicBool,
}

/// What a draft has.
pub(super) struct State {
    /// The recipe's text, in which this camera's table is changed.
    pub document: DocumentMut,
    /// The name of the camera in that text.
    pub name: String,
    /// The camera of the station that is set up, or looked at.
    pub running: Option<Arc<Camera>>,
    /// What was chosen.
    pub choice: Option<Choice>,
    pub settings: Settings,
    pub notes: Notes,
    /// The settings as an inspection takes them; `None` as long as they have mistakes.
    pub config: Option<Arc<CameraConfig>>,
    /// Counts the changes of `config`.
    pub revision: u64,
    /// When it changed.
    pub changed: Instant,
    /// The revision and the number of kept frames when the draft began or was saved.
    pub saved: (u64, usize),
    /// The recipes that there were when the draft began.
    pub names: Vec<String>,
    /// What the recipe itself said of the source, by [`SOURCE`].
    pub own_source: [Option<Item>; 3],
    /// Whether the station's file has this camera.
    pub inherits: bool,
    /// The file of the mask, in the draft's folder.
    pub mask: Option<String>,
    /// Counts the changes of the draft's files.
    pub files: u64,
    /// The recipe that the draft began with, and its hash then.
    pub base: Option<(String, String)>,
    /// The newest live frames, for measuring.
    pub recent: VecDeque<(Instant, Arc<Frame>)>,
    pub frames: Frames,
    pub teach: Teach,
    pub tries: Tries,
    /// What of the camera can be set, if only the draft uses it.
    pub controls: Value,
}

impl Draft {
    /// Begins a draft and starts its thread.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn begin(
        id: &str,
        folder: PathBuf,
        camera: Option<&str>,
        setup: &Setup,
    ) -> Result<Arc<Self>, String> {
        let active = setup.recipes.in_force().borrow().active.clone();
        // As it is on the disk: somebody may have saved it, or learned limits, since it came into force.
        let (base, base_text) = match active {
            Some(active) => {
                let unread =
                    |why: String| format!("the recipe {} cannot be read: {why}", active.name);
                let text = setup.recipes.text(&active.name);
                let text = text.map_err(|why| unread(why.to_string()))?;
                let hash = setup.recipes.hash(&active.name).map_err(unread)?;
                (Some((active.name, hash)), text)
            }
            None => (None, String::new()),
        };
        let running = match camera {
            Some(name) => {
                let camera = setup.camera(name);
                Some(camera.ok_or_else(|| "the station has no such camera".to_owned())?)
            }
            None => None,
        };
        let others = station_cameras(setup);
        let mut document = document(&base_text, &others)?;
        let name = match camera {
            Some(name) => name.to_owned(),
            None => free_name(&document),
        };
        let inherits = others.contains(&name);
        let mut shown = settings::of_table(&merged(&setup.file, &mut document, &name));
        let own = table_of(&mut document, &name);
        let own_source = SOURCE.map(|key| own.get(key).cloned());
        // What the page shows is in the recipe, so that a later change of the station's file changes no recipe unseen.
        settings::write(&shown, &Notes::new(), own, inherits);
        shown.insert("name".to_owned(), name.as_str().into());
        let choice = running
            .as_ref()
            .map(|camera| super::choices::running(&camera.name));
        shown.insert(
            "source".to_owned(),
            choice
                .as_ref()
                .map_or(Value::Null, |of| of.id.as_str().into()),
        );
        fs::create_dir(&folder)
            .map_err(|why| format!("the folder of recipes refuses files: {why}"))?;
        if let Some((base, _)) = &base {
            take_files(&setup.recipes.files(base), &folder);
        }
        let mut teach = Teach::default();
        let in_force = setup.recipes.cameras_in_force();
        let in_force = in_force.iter().find(|of| of.name == name);
        let mask = take_inherited(in_force, &folder);
        if !settings::keeps_limits_file(&shown) && folder.join(limits_file(&name)).exists() {
            teach.problem = Some(LEARNED_ON_LINE.to_owned());
        }
        let shared = Arc::new(Shared {
            recipes: setup.recipes.clone(),
            folder,
            state: Monitor::new(State {
                document,
                name,
                running,
                choice,
                settings: shown,
                notes: Notes::new(),
                config: None,
                revision: 0,
                changed: Instant::now(),
                base,
                saved: (0, 0),
                names: setup.recipes.names(),
                own_source,
                inherits,
                mask: mask.clone(),
                files: 0,
                recent: VecDeque::new(),
                frames: Frames::default(),
                teach,
                tries: Tries::default(),
                controls: Value::Null,
            }),
            changing: Mutex::default(),
            live: watch::Sender::default(),
            asked: Mutex::new(Instant::now()),
            looked: Mutex::new(None),
            is_over: AtomicBool::new(false),
            released: AtomicBool::new(false),
            has_own: AtomicBool::new(false),
        });
        if mask.is_some() {
            shared.name_mask(mask);
        }
        // Without a camera the settings have a mistake, which the page knows.
        let _ = shared.check();
        shared.state().mark_saved();
        let of_thread = shared.clone();
        let thread = Worker::start("set-up", move || super::live::run(&of_thread));
        let thread = thread.map_err(|why| why.to_string())?;
        Ok(Arc::new(Self {
            id: id.to_owned(),
            shared,
            thread: Some(thread),
        }))
    }

    /// Time since somebody asked about it.
    pub fn idle(&self) -> Duration {
        let asked = self.shared.asked.lock();
        asked.elapsed()
    }

    /// Somebody asks about it.
    pub fn touch(&self) {
        *self.shared.asked.lock() = Instant::now();
    }

    /// The newest judged frames, as they come. They are made while somebody asks for them.
    pub fn look(&self) -> watch::Receiver<VecDeque<Arc<Live>>> {
        *self.shared.looked.lock() = Some(Instant::now());
        self.shared.state.notify();
        self.shared.live.subscribe()
    }

    /// What the page shows of it.
    pub fn state(&self) -> Value {
        // Settings that are still checked are not shown.
        let _alone = self.shared.alone();
        let others = self.others();
        let state = self.shared.state();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|_| state.choice.as_ref().is_none_or(|of| of.kind == "running"));
        let size = state
            .recent
            .back()
            .map(|(_, frame)| [frame.info().width(), frame.info().height()]);
        json!({
            "id": self.id,
            "name": state.name,
            "source": state.choice.as_ref().map(|of| &of.id),
            "settings": state.settings,
            "is_running_camera": is_running,
            "frames": state.frames.list(),
            "teach": state.teach,
            "try": state.tries,
            "base": state.base.as_ref().map(|(recipe, hash)| json!({ "recipe": recipe, "hash": hash })),
            "size": size,
            "has_mask": state.mask.is_some(),
            "others": others,
            "is_valid": state.config.is_some(),
            "controls": state.controls.get("controls"),
            "formats": state.controls.get("formats"),
        })
    }

    /// Changes the settings, as the page sent them. With a mistake the settings before stay in force.
    ///
    /// # Errors
    /// The mistakes.
    pub fn change(&self, settings: Settings, setup: &Setup) -> Result<(), Vec<SettingMistake>> {
        let mistake = |key: &str, text: String| {
            vec![SettingMistake {
                key: key.to_owned(),
                text,
            }]
        };
        settings::check(&settings).map_err(|(key, text)| mistake(&key, text))?;
        let _alone = self.shared.alone();
        let id = settings.get("source").and_then(Value::as_str);
        let choice = match id {
            None => None,
            Some(id) => {
                let choice = setup.choices.by_id(id);
                let gone = || {
                    mistake(
                        "source",
                        "this camera is no longer there; choose another one".to_owned(),
                    )
                };
                Some(choice.ok_or_else(gone)?)
            }
        };
        let running = choice
            .as_ref()
            .and_then(|of| of.camera.as_deref())
            .and_then(|name| setup.camera(name));
        let mut state = self.shared.state();
        let notes_before = state.notes.clone();
        let before = (
            state.document.clone(),
            state.name.clone(),
            state.settings.clone(),
            state.choice.clone(),
            state.running.clone(),
        );
        let name = settings
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !is_name(name) {
            let text = "a name has 1 to 64 letters from a to z, digits, - and _".to_owned();
            return Err(mistake("name", text));
        }
        let old_name = state.name.clone();
        if name != state.name {
            if state.document_has(name) {
                return Err(mistake(
                    "name",
                    "another camera of the recipe has this name".to_owned(),
                ));
            }
            let is_of_station = station_cameras(setup).contains(&state.name);
            if is_of_station {
                return Err(mistake(
                    "name",
                    "the station's file gives this camera its name".to_owned(),
                ));
            }
            let old = state.name.clone();
            table_of(&mut state.document, &old).insert("name", toml_edit::value(name));
            state.name = name.to_owned();
        }
        let name = state.name.clone();
        let mut notes = state.notes.clone();
        let (own_source, inherits) = (state.own_source.clone(), state.inherits);
        let table = table_of(&mut state.document, &name);
        if let Some(choice) = &choice {
            for (key, own) in SOURCE.into_iter().zip(own_source) {
                let wanted = match &choice.key {
                    None => own,
                    Some((of, value)) => (*of == key).then(|| toml_edit::value(value.as_str())),
                };
                // One that stays keeps its place and its remarks.
                let text = |item: &Item| item.to_string().trim().to_owned();
                match wanted {
                    None => drop(table.remove(key)),
                    Some(wanted) if table.get(key).map(text) != Some(text(&wanted)) => {
                        table.insert(key, wanted);
                    }
                    Some(_) => {}
                }
            }
        }
        let limits_changed = settings::LIMITS.iter().any(|key| {
            let of = |settings: &Settings| {
                settings
                    .get("analysis")
                    .and_then(|of| of.get(*key))
                    .cloned()
            };
            of(&settings) != of(&before.2)
        });
        if limits_changed {
            notes.retain(|(_, key), _| {
                let of = |settings: &Settings| {
                    settings.get("analysis").and_then(|of| of.get(key)).cloned()
                };
                of(&settings) == of(&before.2)
            });
        }
        settings::write(&settings, &notes, table, inherits);
        if state.choice.as_ref().map(|of| &of.id) != choice.as_ref().map(|of| &of.id) {
            // Frames of another camera measure nothing of this one.
            state.recent.clear();
        }
        (state.settings, state.notes) = (settings, notes);
        (state.choice, state.running) = (choice, running);
        drop(state);
        let checked = self.shared.check();
        if checked.is_err() {
            let mut state = self.shared.state();
            (
                state.document,
                state.name,
                state.settings,
                state.choice,
                state.running,
            ) = before;
            state.notes = notes_before;
            return checked;
        }
        if old_name != name {
            rename_files(&self.shared.folder, &old_name, &name);
            self.shared.renew_files();
        }
        if limits_changed && self.shared.forget_limits_file() {
            self.shared.renew_files();
        }
        if self.shared.state().tries.is_shown() {
            self.try_all();
        }
        Ok(())
    }

    /// Gives a camera back that only the draft uses, before the station opens it. Takes up to some seconds.
    pub fn release(&self) {
        self.shared.released.store(true, Relaxed);
        let until = Instant::now() + RELEASE_WITHIN;
        while self.shared.has_own.load(Relaxed) && Instant::now() < until {
            self.shared.state.notify();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks at frames again: at those of the station, if the camera runs there now.
    pub fn resume(&self, setup: &Setup) {
        let mut state = self.shared.state();
        if let Some(camera) = setup.camera(&state.name) {
            let choice = super::choices::running(&camera.name);
            state
                .settings
                .insert("source".to_owned(), choice.id.as_str().into());
            (state.choice, state.running) = (Some(choice), Some(camera));
        }
        drop(state);
        self.shared.released.store(false, Relaxed);
        self.shared.state.notify();
    }

    /// The newest live frames, to measure the object.
    pub fn recent(&self) -> Vec<Arc<Frame>> {
        let state = self.shared.state();
        state
            .recent
            .iter()
            .map(|(_, frame)| frame.clone())
            .collect()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        self.shared.state().tries.stop();
        self.shared.state.notify();
        if let Some(thread) = self.thread.take() {
            // It may wait for a driver; a request must not. What it leaves in the folder goes at the next start.
            let shared = self.shared.clone();
            std::thread::spawn(move || {
                drop(thread);
                let _ = fs::remove_dir_all(&shared.folder);
            });
        }
    }
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Only one at a time changes the settings.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Whether the draft's camera is given back.
    pub fn is_released(&self) -> bool {
        self.released.load(Relaxed)
    }

    /// Whether the page looks at live frames.
    pub fn is_looked_at(&self, within: Duration) -> bool {
        let looked = self.looked.lock();
        looked.is_some_and(|when| when.elapsed() < within)
    }

    /// Reads the text as the station would, and takes what it says of this camera.
    ///
    /// # Errors
    /// The mistakes; the settings before stay in force.
    pub fn check(&self) -> Result<(), Vec<SettingMistake>> {
        let (text, name) = {
            let state = self.state();
            (state.document.to_string(), state.name.clone())
        };
        let read = self.recipes.check_text_in(&text, &self.folder);
        let cameras = read.map_err(|mistakes| {
            mistakes
                .into_iter()
                .map(|mistake| SettingMistake {
                    key: key_at(&text, mistake.line),
                    text: mistake.text,
                })
                .collect::<Vec<_>>()
        })?;
        let config = cameras.into_iter().find(|of| of.name == name);
        let mut state = self.state();
        if state.config.as_deref() != config.as_ref() {
            state.config = config.map(Arc::new);
            state.revision += 1;
            state.changed = Instant::now();
        }
        drop(state);
        self.state.notify();
        Ok(())
    }

    /// The draft's files changed: elements read them when they start.
    pub fn renew_files(&self) {
        let mut state = self.state();
        state.files += 1;
        state.revision += 1;
        state.changed = Instant::now();
        drop(state);
        self.state.notify();
    }

    /// Removes the file of limits that the camera learned on the line; whether there was one.
    fn forget_limits_file(&self) -> bool {
        let mut state = self.state();
        state.teach.problem = state
            .teach
            .problem
            .take()
            .filter(|of| of != LEARNED_ON_LINE);
        state.remove_limits_file(&self.folder)
    }

    /// Keeps a live frame to measure the object, a few each second.
    pub fn remember(&self, frame: &Arc<Frame>) {
        let mut state = self.state();
        let newest = state.recent.back();
        if newest.is_some_and(|(when, _)| when.elapsed() < RECENT_PACE) {
            return;
        }
        let is_same = |of: &Arc<Frame>| of.info() == frame.info();
        if newest.is_some_and(|(_, of)| !is_same(of)) {
            state.recent.clear();
        }
        state.recent.push_back((Instant::now(), frame.clone()));
        if state.recent.len() > RECENT {
            state.recent.pop_front();
        }
    }
}

impl Shared {
    /// Names the mask in the recipe, or names none.
    pub fn name_mask(&self, file: Option<String>) {
        let mut state = self.state();
        state.mask.clone_from(&file);
        let analyzer = state
            .settings
            .get("analyzer")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let name = state.name.clone();
        let table = table_of(&mut state.document, &name);
        let Some(analysis) = table
            .entry(&analyzer)
            .or_insert(Item::Table(Table::new()))
            .as_table_like_mut()
        else {
            return;
        };
        let ignore = analysis
            .entry("ignore")
            .or_insert(toml_edit::value(InlineTable::new()));
        if let Some(ignore) = ignore.as_table_like_mut() {
            match file {
                Some(file) => drop(ignore.insert("mask", toml_edit::value(file))),
                None => drop(ignore.remove("mask")),
            }
            if ignore.is_empty() {
                analysis.remove("ignore");
            }
        }
    }
}

impl State {
    /// Removes the file of the camera's limits, whose limits would win over those of the text; whether there was one.
    pub fn remove_limits_file(&self, folder: &Path) -> bool {
        let file = folder.join(limits_file(&self.name));
        !settings::keeps_limits_file(&self.settings) && fs::remove_file(file).is_ok()
    }

    /// What is there needs no saving.
    pub fn mark_saved(&mut self) {
        self.saved = (self.revision, self.frames.list().len());
    }

    /// Whether the draft began with this recipe, or was saved as it.
    pub fn is_of(&self, recipe: &str) -> bool {
        self.base.as_ref().is_some_and(|(base, _)| base == recipe)
    }

    /// Whether something would be lost with the draft.
    pub fn is_unsaved(&self) -> bool {
        self.saved != (self.revision, self.frames.list().len())
    }

    fn document_has(&self, name: &str) -> bool {
        tables(&self.document).any(|table| name_of(table) == Some(name))
    }
}

/// The file of the limits that a camera learned while the line ran.
pub(super) fn limits_file(camera: &str) -> String {
    model_file(camera, "limits")
}

/// Copies what belongs to the recipe in force: its models and masks. Without a file the camera says what it lacks.
fn take_files(files: &[PathBuf], folder: &Path) {
    for file in files {
        if let Some(name) = file.file_name() {
            let _ = fs::copy(file, folder.join(name));
        }
    }
}

/// Copies the files that a camera has from the station's file, under the names that they have in a recipe. Returns the name
/// of its mask.
fn take_inherited(config: Option<&CameraConfig>, folder: &Path) -> Option<String> {
    let mut mask = None;
    for (name, file) in config.map(files_of).unwrap_or_default() {
        let is_mask = name.contains("-ignore.");
        // It is from the recipe, and there.
        let own = file
            .file_name()
            .map(|of| folder.join(of))
            .filter(|of| of.exists());
        let name = match own.as_ref().and_then(|of| of.file_name()?.to_str()) {
            Some(own) if is_mask => own.to_owned(),
            _ => name,
        };
        let to = folder.join(&name);
        if !to.exists() {
            let _ = fs::copy(&file, &to);
        }
        if is_mask {
            mask = Some(name);
        }
    }
    mask
}

/// A camera's files get its new name.
fn rename_files(folder: &Path, old: &str, new: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if let Some(rest) = file.strip_prefix(old).filter(|rest| rest.starts_with('-')) {
            // Without it the camera says what it lacks.
            let _ = fs::rename(entry.path(), folder.join(format!("{new}{rest}")));
        }
    }
}

/// The names of the cameras of the station's file.
fn station_cameras(setup: &Setup) -> Vec<String> {
    let cameras = setup.recipes.bases();
    cameras.iter().map(|camera| camera.name.clone()).collect()
}

/// The camera's table in the station's file, with the keys of the recipe in their places.
fn merged(file: &Path, recipe: &mut DocumentMut, name: &str) -> Table {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut file: DocumentMut = text.parse().unwrap_or_default();
    file.get_mut("camera").map(as_tables);
    let mut table = tables(&file)
        .find(|table| name_of(table) == Some(name))
        .cloned()
        .unwrap_or_default();
    let own = table_of(recipe, name);
    if ANALYZERS.iter().any(|analyzer| own.contains_key(analyzer)) {
        for analyzer in ANALYZERS {
            table.remove(analyzer);
        }
    }
    for (key, item) in own.iter() {
        table.insert(key, item.clone());
    }
    table
}

/// The recipe's text with a table for each camera of the station.
fn document(text: &str, cameras: &[String]) -> Result<DocumentMut, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|why| format!("the recipe in force is no TOML: {why}"))?;
    document.get_mut("camera").map(as_tables);
    for name in cameras {
        table_of(&mut document, name);
    }
    Ok(document)
}

fn tables(document: &DocumentMut) -> impl Iterator<Item = &Table> {
    let list = document.get("camera").and_then(Item::as_array_of_tables);
    list.into_iter().flatten()
}

/// The names of the cameras of a recipe.
pub(super) fn names(document: &DocumentMut) -> impl Iterator<Item = &str> {
    tables(document).filter_map(name_of)
}

/// Removes the tables of these cameras.
pub(super) fn leave_out(document: &mut DocumentMut, cameras: &[String]) {
    let list = document
        .get_mut("camera")
        .and_then(Item::as_array_of_tables_mut);
    if let Some(list) = list {
        list.retain(|table| name_of(table).is_none_or(|name| cameras.iter().all(|of| of != name)));
    }
}

fn name_of(table: &Table) -> Option<&str> {
    table.get("name")?.as_str()
}

/// The table of a camera, which is made if it is missing.
pub(super) fn table_of<'d>(document: &'d mut DocumentMut, name: &str) -> &'d mut Table {
    let list = document
        .entry("camera")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    as_tables(list);
    if !list.is_array_of_tables() {
        *list = Item::ArrayOfTables(ArrayOfTables::new());
    }
    let at = list
        .as_array_of_tables()
        .and_then(|list| list.iter().position(|table| name_of(table) == Some(name)));
    if at.is_none()
        && let Some(list) = list.as_array_of_tables_mut()
    {
        let mut table = Table::new();
        table.insert("name", toml_edit::value(name));
        list.push(table);
    }
    let last = list
        .as_array_of_tables()
        .map_or(0, |list| list.len().saturating_sub(1));
    list.get_mut(at.unwrap_or(last))
        .and_then(Item::as_table_mut)
        .unwrap_or_else(|| unreachable!("the list has the table"))
}

/// Makes `[[camera]]` of `camera = [{ … }]`, so that a table can be changed and the others stay.
fn as_tables(list: &mut Item) {
    // Other things stay as they are.
    *list = match std::mem::take(list).into_array_of_tables() {
        Ok(tables) => Item::ArrayOfTables(tables),
        Err(other) => other,
    };
}

/// A name that no camera of the recipe has.
fn free_name(document: &DocumentMut) -> String {
    let is_free = |name: &str| tables(document).all(|table| name_of(table) != Some(name));
    let numbered = (2..).map(|number| format!("{NEW}-{number}"));
    std::iter::once(NEW.to_owned())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or_default()
}

/// The key in that line of the text.
fn key_at(text: &str, line: usize) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let key = line.split('=').next().unwrap_or_default();
    key.trim()
        .trim_matches(['[', ']'])
        .trim_start_matches("camera.")
        .to_owned()
}
