//! The references in force, and their file.

use std::{path::Path, sync::Arc};

use clinspect_core::flat_field::{Correction, Reference, Shape};
use clinspect_models::{Array, ArrayRef, ModelError, ModelFile};

const DARK: &str = "dark";
const WHITE: &str = "white";

/// The references in force; shared, because the settings are copied for each frame.
#[derive(Debug, Clone, Default)]
pub struct References {
    pub dark: Option<Arc<Reference>>,
    pub white: Option<Arc<Reference>>,
}

impl PartialEq for References {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Option<Arc<Reference>>, b: &Option<Arc<Reference>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same(&self.dark, &other.dark) && same(&self.white, &other.white)
    }
}

/// A number of grey levels in 1/256 grey level.
fn fixed(levels: f64) -> u32 {
    (256.0 * levels).round() as u32
}

impl References {
    /// The correction with these references; `None` without a white one.
    ///
    /// # Errors
    /// A sentence that says why they cannot be used.
    pub fn correction(&self, target: f64, min_range: f64) -> Result<Option<Correction>, String> {
        let Some(white) = &self.white else {
            return Ok(None);
        };
        // A dark reference of frames of another size is no longer in force.
        let dark = self
            .dark
            .as_deref()
            .filter(|dark| dark.shape == white.shape);
        // A target that rounds to 0 would stand for the mean.
        let target = if target > 0.0 {
            fixed(target).max(1)
        } else {
            0
        };
        Correction::new(dark, white, target, fixed(min_range)).map(Some)
    }

    /// The warning that frames are not corrected. `absent` is the file of references if it does not exist.
    pub fn why_unchanged(&self, absent: Option<&Path>) -> String {
        if self.white.is_some() {
            return "the white reference was taken of frames of another size: frames pass unchanged; emit take-white"
                .into();
        }
        let absent = absent.map_or_else(String::new, |path| {
            format!(", and the file {} does not exist", path.display())
        });
        format!(
            "there is no white reference{absent}: frames pass unchanged; emit take-dark while no light reaches the \
             sensor, then take-white over an even white surface, or set location to a file of references"
        )
    }
}

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
) -> Result<Arc<Reference>, String> {
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
