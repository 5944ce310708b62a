//! A recipe in a file of its own, without a station.

use std::path::Path;

use clinspect_results::report::RecipeId;
use plan::{CameraConfig, is_name};

use super::{NO_NAME, RecipeContent, Recipes, folder::Folder, whole};
use crate::file::{Mistake, Purpose, number_of, read_recipe};

impl Recipes {
    /// Reads a recipe, with the files that belong to it in the folder of its name beside it. `bases` are the cameras of the
    /// station's file; without it nothing but the recipe holds, which then needs no sources, because frames come from
    /// elsewhere.
    ///
    /// # Errors
    /// Its mistakes. One at 1:1 if there is no such recipe.
    pub fn read_file(
        path: &Path,
        bases: Option<&[CameraConfig]>,
    ) -> Result<RecipeContent, Vec<Mistake>> {
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.filter(|name| is_name(name));
        let name = name.ok_or_else(|| whole(NO_NAME.to_owned()))?;
        let folder = Folder::at(path.parent().unwrap_or(Path::new("")));
        let text = folder.text(name).map_err(whole)?;
        let hash = folder.hash(name, &text);
        let hash = hash.map_err(|error| whole(format!("its files cannot be read: {error}")))?;
        let file = |file: &str| folder.of_recipe(name).join(file);
        let without_sources: Vec<CameraConfig>;
        let bases = match bases {
            Some(bases) => bases,
            None => {
                without_sources = names(&text).map(CameraConfig::without_source).collect();
                &without_sources
            }
        };
        let (mut cameras, _) = read_recipe(&text, path, &file, bases, Purpose::Run)?;
        let name = name.to_owned();
        let id = RecipeId { name, hash };
        for camera in &mut cameras {
            camera.recipe = Some(id.clone());
        }
        let number = number_of(&text);
        Ok(RecipeContent {
            id,
            number,
            cameras,
        })
    }
}

/// The names of a recipe's cameras.
fn names(text: &str) -> impl Iterator<Item = String> {
    let cameras = text.parse::<toml::Table>().ok();
    let cameras = cameras.and_then(|mut table| table.remove("camera"));
    let cameras = cameras.and_then(|of| of.as_array().cloned());
    let names = cameras.unwrap_or_default().into_iter();
    names.filter_map(|camera| Some(camera.get("name")?.as_str()?.to_owned()))
}
