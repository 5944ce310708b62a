//! The file of the references.

use std::path::Path;

use clinspect_core::flat_field::{Reference, Shape};
use clinspect_models::{Array, ArrayRef, ModelError, ModelFile};

use super::taking::References;

const DARK: &str = "dark";
const WHITE: &str = "white";

/// Reads the references for frames whose references have `shape` and values up to `most`; `None` if there
/// is no file yet.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn read(path: &Path, shape: Shape, most: u32) -> Result<Option<References>, String> {
    let file = match ModelFile::open(path) {
        Err(error) if error.is_missing() => return Ok(None),
        file => file.map_err(|error| error.to_string())?,
    };
    let read = |name: &str| {
        (file.has(name))
            .then(|| read_array(&file, path, name, shape, most))
            .transpose()
    };
    let references = References {
        dark: read(DARK)?,
        white: read(WHITE)?,
    };
    if references == References::default() {
        return Err(format!(
            "{} has neither an array \"{DARK}\" nor an array \"{WHITE}\"; name a file of references",
            path.display()
        ));
    }
    Ok(Some(references))
}

fn read_array(
    file: &ModelFile,
    path: &Path,
    name: &str,
    shape: Shape,
    most: u32,
) -> Result<std::sync::Arc<Reference>, String> {
    let text = |error: ModelError| error.to_string();
    let wanted = [shape.rows, shape.width, shape.components];
    let is_grey = shape.components == 1;
    let found: Vec<usize> = if is_grey {
        file.shape::<2>(name).map_err(text)?.to_vec()
    } else {
        file.shape::<3>(name).map_err(text)?.to_vec()
    };
    let wanted = &wanted[..found.len()];
    if found != wanted {
        return Err(format!(
            "the array \"{name}\" of {} has the shape {found:?}, and these frames need {wanted:?}; take the \
             references again, or name another file",
            path.display()
        ));
    }
    let values = if is_grey {
        let Array { samples, .. } = file.array::<2>(name).map_err(text)?;
        samples
    } else {
        let Array { samples, .. } = file.array::<3>(name).map_err(text)?;
        samples
    };
    if let Some(value) = values.iter().find(|&&value| value > most) {
        return Err(format!(
            "the array \"{name}\" of {} has the value {value}, and values are 1/256 grey level, at most \
             {most}; take the references again",
            path.display()
        ));
    }
    Ok(Reference { shape, values }.into())
}

/// Writes the references that there are.
///
/// # Errors
/// A sentence that names the file; the file before is unchanged.
pub(super) fn write(path: &Path, references: &References) -> Result<(), String> {
    let named = [(DARK, &references.dark), (WHITE, &references.white)];
    let there: Vec<(&str, Vec<usize>, &[u32])> = named
        .iter()
        .filter_map(|(name, reference)| {
            let Reference { shape, values } = &**reference.as_ref()?;
            let mut lengths = vec![shape.rows, shape.width, shape.components];
            lengths.truncate(if shape.components == 1 { 2 } else { 3 });
            Some((*name, lengths, values.as_slice()))
        })
        .collect();
    let arrays: Vec<ArrayRef> = there
        .iter()
        .map(|(name, shape, samples)| ArrayRef {
            name,
            shape,
            samples,
        })
        .collect();
    clinspect_models::write(path, &arrays).map_err(|error| error.to_string())
}
