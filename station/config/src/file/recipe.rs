//! A recipe: what a product changes in the settings of the cameras.

use std::{
    ops::Range,
    path::{Component, Path, PathBuf},
};

use plan::{CameraConfig, model_file};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Mistake,
    mistakes::{Mistakes, Purpose},
    table::{Table, integer},
};

/// The largest recipe, bytes.
pub const MOST_BYTES: u64 = 1 << 20;

/// The key of the number by which a PLC asks for the recipe.
pub const NUMBER: &str = "number";
/// The range of these numbers.
const NUMBERS: Range<u64> = 1..u16::MAX as u64;

/// The tables of the analyzers.
pub const ANALYZERS: [&str; 4] = ["pitch", "reference", "texture", "surface"];

/// Reads the text of a recipe. `path` is its file for messages; `file` is where a file of that name lies which belongs to the
/// recipe; `bases` are the station's own cameras, whose settings hold where the recipe says nothing. Returns notes, too.
///
/// # Errors
/// Every mistake in the text, in its order.
pub fn read_recipe(
    text: &str,
    path: &Path,
    file: &dyn Fn(&str) -> PathBuf,
    bases: &[CameraConfig],
    purpose: Purpose,
) -> Result<(Vec<CameraConfig>, Vec<Mistake>), Vec<Mistake>> {
    let mut mistakes = Mistakes::of(text, path, purpose);
    let mut cameras = Vec::new();
    if let Some(mut document) = super::document(text, &mut mistakes) {
        set_files(document.get_mut(), file, &mut mistakes);
        let mut table = Table::new(document.get_ref(), 0..0, "the recipe");
        table.whole(NUMBER, NUMBERS, &mut mistakes);
        cameras = super::cameras(&mut table, Some(bases), &mut mistakes);
        table.finish(&mut mistakes);
        for base in bases {
            if !cameras.iter().any(|camera| camera.name == base.name) {
                let name = &base.name;
                let text = format!(
                    "the recipe lacks the camera {name} of the station's file; add a table [[camera]] with name = \"{name}\""
                );
                mistakes.add_missing(&(0..0), text);
            }
        }
    }
    let [mistakes, notes] = mistakes.into_sorted();
    if mistakes.is_empty() {
        Ok((cameras, notes))
    } else {
        Err(mistakes)
    }
}

/// The number in the text of a recipe, by which a PLC asks for it; `None` without a valid one.
pub fn number_of(text: &str) -> Option<u16> {
    let (document, _) = DeTable::parse_recoverable(text);
    let number = document.get_ref().get(NUMBER)?;
    let number = integer(number.get_ref())?;
    u16::try_from(number).ok().filter(|number| *number > 0)
}

/// Gives the elements of a recipe the files that belong to it: those that the recipe names without a folder, and models and
/// limits that it does not name at all.
fn set_files(
    document: &mut DeTable<'_>,
    file: &dyn Fn(&str) -> PathBuf,
    mistakes: &mut Mistakes<'_>,
) {
    let mut set_file = |table: &mut DeTable<'_>, key, name: Option<&str>| {
        set_file(table, key, name, file, mistakes);
    };
    let Some(DeValue::Array(cameras)) = document.get_mut("camera").map(Spanned::get_mut) else {
        return;
    };
    for camera in cameras.iter_mut() {
        let DeValue::Table(camera) = camera.get_mut() else {
            continue;
        };
        let name = camera.get("name").and_then(|name| name.get_ref().as_str());
        let Some(name) = name.map(str::to_owned) else {
            continue;
        };
        for key in ["flat-field", "reference"] {
            if let Some(table) = table_of(camera, key) {
                set_file(table, "location", Some(&model_file(&name, key)));
            }
        }
        for key in ANALYZERS {
            let Some(analysis) = table_of(camera, key) else {
                continue;
            };
            if !analysis.contains_key("learn") {
                let none = DeValue::Table(DeTable::new());
                analysis.insert(Spanned::new(0..0, "learn".into()), Spanned::new(0..0, none));
            }
            if let Some(learn) = table_of(analysis, "learn") {
                set_file(learn, "location", Some(&model_file(&name, "limits")));
            }
            if let Some(ignore) = table_of(analysis, "ignore") {
                set_file(ignore, "mask", None);
            }
        }
    }
}

fn table_of<'t, 'i>(table: &'t mut DeTable<'i>, key: &str) -> Option<&'t mut DeTable<'i>> {
    match table.get_mut(key)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Sets `key` to a file that belongs to the recipe, unless it names one elsewhere. `name` is the file's name if the table
/// says none.
fn set_file(
    table: &mut DeTable<'_>,
    key: &'static str,
    name: Option<&str>,
    file: &dyn Fn(&str) -> PathBuf,
    mistakes: &mut Mistakes<'_>,
) {
    let said = table.get(key);
    // Another type is a mistake, which the element's table tells.
    if said.is_some_and(|said| !said.get_ref().is_str()) {
        return;
    }
    let span = said.map_or(0..0, Spanned::span);
    let said = said.and_then(|said| said.get_ref().as_str());
    let Some(name) = said.filter(|said| !said.is_empty()).or(name) else {
        return;
    };
    let is_name = |part| matches!(part, Component::Normal(_));
    if !Path::new(name).is_absolute() {
        if !Path::new(name).components().all(is_name) {
            let text = format!(
                "{key} = {name:?} leads out of the recipe's folder; write a name without .., or a path that begins with /"
            );
            mistakes.add(&span, text);
            return;
        }
        let path = file(name).to_string_lossy().into_owned();
        table.insert(
            Spanned::new(span.clone(), key.into()),
            Spanned::new(span, DeValue::String(path.into())),
        );
    }
}
