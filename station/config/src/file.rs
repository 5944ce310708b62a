//! The station's configuration file.

mod camera;
mod files;
mod gpio;
mod input;
mod machine;
mod mistakes;
mod modbus;
mod mqtt;
mod nearest;
mod output;
mod properties;
mod recipe;
mod repeats;
mod table;

use std::{
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
};

use clinspect_results::text;
use plan::{CameraConfig, ModbusSettings, MqttSettings};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub use mistakes::{Mistake, Purpose};
pub use mqtt::recipe_topic;
pub use recipe::{ANALYZERS, MOST_BYTES as MOST_RECIPE_BYTES, NUMBER, number_of, read_recipe};

use crate::token::Token;
use files::comes_with_the_service;
use mistakes::Mistakes;
use table::Table;

/// Where the page is served if the file does not say so.
const LISTEN: &str = "127.0.0.1:8080";
/// The largest file that is read as a configuration, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// What the file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the page is served.
    pub listen: SocketAddr,
    /// The file with the token that requests must carry.
    pub token_file: Option<PathBuf>,
    /// A folder whose sub-folders of pictures are offered as cameras.
    pub frames: Option<PathBuf>,
    /// Whether the page may give commands to cameras.
    pub allow_writing: bool,
    /// The folder of the recipes, if products change.
    pub recipes: Option<PathBuf>,
    /// The broker through which others switch recipes, if there is one.
    pub mqtt: Option<MqttSettings>,
    /// The server for PLCs, if there is one.
    pub modbus: Option<ModbusSettings>,
    /// The cameras in the order of the file. With recipes they are what the recipe in force begins with.
    pub cameras: Vec<CameraConfig>,
}

impl Config {
    /// Reads a file to run its cameras. GStreamer and the elements must be registered.
    ///
    /// # Errors
    /// Every mistake in the file, in its order.
    pub fn read(path: &Path) -> Result<Self, Vec<Mistake>> {
        read_file(path, Purpose::Run).map(|(config, _)| config)
    }

    /// Reads a file at the start of the station. What an element refuses is left to that element: it stops its own
    /// camera, which is tried again, and the others start. A file that the element reads may come later at boot.
    ///
    /// # Errors
    /// Every other mistake in the file, in its order.
    pub fn read_at_start(path: &Path) -> Result<Self, Vec<Mistake>> {
        read_file(path, Purpose::Start).map(|(config, _)| config)
    }

    /// Where the page is served, and the file with its token, for a program that asks the running station. Nothing else of
    /// the file is looked at.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or the two are wrong.
    pub fn address(path: &Path) -> Result<(SocketAddr, Option<PathBuf>), String> {
        let text = text::read(path, MOST_BYTES).map_err(|why| format!("cannot be read: {why}"))?;
        let mut mistakes = Mistakes::of(&text, path, Purpose::Start);
        let document = document(&text, &mut mistakes);
        let found = document.map(|document| {
            let mut table = Table::new(document.get_ref(), 0..0, "the file");
            let (listen, _) = listen(&mut table, &mut mistakes);
            let token = table.string("token-file", &mut mistakes);
            (listen, token.map(|(path, _)| path.into()))
        });
        let [mistakes, _] = mistakes.into_sorted();
        match (found, mistakes.first()) {
            (Some(found), None) => Ok(found),
            (_, Some(mistake)) => Err(mistake.to_string()),
            (None, None) => Err("cannot be read".to_owned()),
        }
    }

    /// Reads a file to check it: a credential that systemd passes to the service may be missing. Returns
    /// notes about what was not checked, too.
    ///
    /// # Errors
    /// Every mistake in the file, in its order.
    pub fn check(path: &Path) -> Result<(Self, Vec<Mistake>), Vec<Mistake>> {
        read_file(path, Purpose::Check)
    }
}

fn read_file(path: &Path, purpose: Purpose) -> Result<(Config, Vec<Mistake>), Vec<Mistake>> {
    let whole_file = |text: String| {
        vec![Mistake {
            line: 1,
            column: 1,
            text,
        }]
    };
    let text = text::read(path, MOST_BYTES)
        .map_err(|why| whole_file(format!("the file cannot be read: {why}")))?;
    let mut mistakes = Mistakes::of(&text, path, purpose);
    let Some(document) = document(&text, &mut mistakes) else {
        let [mistakes, _] = mistakes.into_sorted();
        return Err(mistakes);
    };
    // The document as a whole is at its beginning.
    let mut table = Table::new(document.get_ref(), 0..0, "the file");
    let config = read(&mut table, &mut mistakes);
    table.finish(&mut mistakes);
    let [mistakes, notes] = mistakes.into_sorted();
    if mistakes.is_empty() {
        Ok((config, notes))
    } else {
        Err(mistakes)
    }
}

/// The tables of a text; `None` if it has a character that no setting can hold. Other mistakes of the syntax are noted.
fn document<'t>(text: &'t str, mistakes: &mut Mistakes<'_>) -> Option<Spanned<DeTable<'t>>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        mistakes.add_syntax(at, &format!("this is not TOML: {}", error.message()));
    }
    (!refuse_nul(document.get_ref(), mistakes)).then_some(document)
}

/// Notes each text with a NUL character (`\u0000`), which GStreamer's texts cannot hold; returns whether there is one.
fn refuse_nul(table: &DeTable<'_>, mistakes: &mut Mistakes<'_>) -> bool {
    fn in_value(value: &Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>) -> bool {
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                mistakes.add(
                    &value.span(),
                    "the text has a NUL character; remove \\u0000",
                );
                true
            }
            // Each one is visited, so that each mistake is told.
            DeValue::Array(values) => (values.iter())
                .map(|value| in_value(value, mistakes))
                .fold(false, |before, found| before | found),
            DeValue::Table(table) => refuse_nul(table, mistakes),
            _ => false,
        }
    }
    let found = table.iter().map(|(_, value)| in_value(value, mistakes));
    found.fold(false, |before, found| before | found)
}

fn read(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Config {
    let (listen, place) = listen(table, mistakes);
    let token = table.string("token-file", mistakes);
    let allow_writing = table.boolean("allow-writing", mistakes).unwrap_or(false);
    if let Some((path, span)) = &token
        && !comes_with_the_service(Path::new(path), "token-file", span, mistakes)
        && let Err(why) = Token::read(Path::new(path))
    {
        mistakes.add(span, format!("token-file: {why:#}"));
    }
    if token.is_none() {
        if !listen.ip().is_loopback() {
            mistakes.add_missing(
                &place,
                "other machines can reach this address; set token-file to a file with a token, \
                 or listen on 127.0.0.1",
            );
        }
        if allow_writing {
            mistakes.add_missing(
                &table.place("allow-writing"),
                "writing needs a token; set token-file to a file with a token",
            );
        }
    }
    let recipes = recipes(table, mistakes);
    let mqtt = mqtt::read(table, mistakes);
    let modbus = modbus::read(table, mistakes);
    let cameras = if recipes.is_some() && !table.has("camera") {
        Vec::new()
    } else {
        cameras(table, None, mistakes)
    };
    let has_commands = modbus.as_ref().is_some_and(|of| of.allow_commands);
    if let Some(camera) = cameras.iter().find(|of| of.machine.trigger.is_commanded())
        && !has_commands
        // Its own mistakes come first.
        && !table.has("modbus") | modbus.is_some()
    {
        let text = format!(
            "the camera {} waits for triggers, and nothing may give one; set allow-commands = true in [modbus], or leave \
             trigger out",
            camera.name
        );
        mistakes.add_missing(&table.place("camera"), text);
    }
    gpio::check_once(table, &cameras, mistakes);
    if modbus.is_some() {
        modbus::check_cameras(table, cameras.len(), mistakes);
    }
    let frames = table.string("frames", mistakes);
    Config {
        listen,
        token_file: token.map(|(path, _)| path.into()),
        frames: frames.map(|(path, _)| path.into()),
        allow_writing,
        recipes,
        mqtt,
        modbus,
        cameras,
    }
}

/// The folder of the recipes. The station makes it if only its last part is missing.
fn recipes(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<PathBuf> {
    let (folder, span) = table.string("recipes", mistakes)?;
    let folder = PathBuf::from(folder);
    let parent = folder.parent().filter(|parent| parent.is_dir());
    let is_relative_name = folder.parent() == Some(Path::new("")) && !folder.as_os_str().is_empty();
    if !folder.is_dir() && (folder.exists() || (parent.is_none() && !is_relative_name)) {
        let text = format!(
            "recipes = {folder:?} is no folder, and there is no folder in which to make it; set recipes to a folder, for \
             instance \"/var/lib/clinspect-station/recipes\""
        );
        mistakes.add(&span, text);
        return None;
    }
    Some(folder)
}

/// The address, and its place in the file.
fn listen(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> (SocketAddr, Range<usize>) {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    match table.string("listen", mistakes) {
        None => (default, table.span.clone()),
        Some((text, span)) => match text.parse() {
            Ok(address) => (::machine::address::canonical(address), span),
            Err(_) => {
                let zone = match text.contains('%') {
                    true => ", without a zone such as %eth0",
                    false => "",
                };
                mistakes.add(
                    &span,
                    format!("listen = \"{text}\" is no address with a port; write one such as \"{LISTEN}\" or \"[::1]:8080\"{zone}"),
                );
                (default, span)
            }
        },
    }
}

/// The cameras; of a recipe with the station's own cameras as `bases`.
fn cameras(
    table: &mut Table<'_, '_>,
    bases: Option<&[CameraConfig]>,
    mistakes: &mut Mistakes<'_>,
) -> Vec<CameraConfig> {
    let Some(value) = table.value("camera") else {
        mistakes.add_missing(
            &table.span,
            "the file has no camera; add a table [[camera]] with name and source",
        );
        return Vec::new();
    };
    let DeValue::Array(values) = value.get_ref() else {
        mistakes.add(
            &value.span(),
            "camera is no list; write [[camera]] with two brackets, once for each camera",
        );
        return Vec::new();
    };
    if values.is_empty() {
        mistakes.add(
            &value.span(),
            "the list of cameras is empty; add a table [[camera]] with name and source",
        );
    }
    let mut cameras: Vec<CameraConfig> = Vec::new();
    for value in values.iter() {
        let Some(entries) = value.get_ref().as_table() else {
            mistakes.add(&value.span(), "a camera is a table; write [[camera]]");
            continue;
        };
        let mut table = Table::new(entries, value.span(), "[[camera]]");
        let camera = camera::read(&mut table, bases, mistakes);
        if !camera.name.is_empty() && cameras.iter().any(|other| other.name == camera.name) {
            let span = entries.get("name").map_or(value.span(), Spanned::span);
            let text = format!(
                "two cameras have the name {}; give each a name of its own",
                camera.name
            );
            mistakes.add(&span, text);
        }
        table.finish(mistakes);
        cameras.push(camera);
    }
    cameras
}
