//! The file of what was learned of a surface.

use std::{path::Path, sync::Arc};

use clinspect_core::surface::{CHANNELS, ChannelsInUse, DIMENSIONS, FEATURES, Model, PROTOTYPES};
use clinspect_models::{ArrayRef, ModelError, ModelFile};

use super::{LearnedSurface, NO_LIMIT};

const MEAN: &str = "surface_mean";
const WEIGHTS: &str = "surface_weights";
const PROTOTYPE: &str = "surface_prototypes";
const LIMITS: &str = "surface_limits";

/// Reads what was learned for these channels; `None` if there is no file yet.
///
/// # Errors
/// A sentence that names the file: it is damaged, of another element or of other channels, or its numbers are out of bounds.
pub fn read_surface(
    path: &Path,
    channels: ChannelsInUse,
) -> Result<Option<LearnedSurface>, String> {
    let file = match ModelFile::open(path) {
        Err(error) if error.is_missing() => return Ok(None),
        file => file.map_err(text)?,
    };
    let wrong = |why: String| {
        format!(
            "{}: {why}; learn again, or name another file",
            path.display()
        )
    };
    let mean = signed(&file, MEAN, [FEATURES]).map_err(wrong)?;
    let weights = signed(&file, WEIGHTS, [FEATURES, DIMENSIONS]).map_err(wrong)?;
    let prototypes = signed(&file, PROTOTYPE, [PROTOTYPES, DIMENSIONS]).map_err(wrong)?;
    let limits = signed(&file, LIMITS, [CHANNELS]).map_err(wrong)?;
    let (weights, _) = weights.as_chunks::<DIMENSIONS>();
    let (prototypes, _) = prototypes.as_chunks::<DIMENSIONS>();
    let mean = <[i32; FEATURES]>::try_from(mean).ok();
    let parts = mean.zip(<[_; FEATURES]>::try_from(weights).ok());
    let (mean, weights) = parts.ok_or_else(|| wrong("it is of another size".into()))?;
    let model = Model::new(mean, weights, prototypes.to_vec()).map_err(wrong)?;
    let limits = channels.numbers().map(|channel| {
        let limit = limits[channel].cast_unsigned();
        let name = clinspect_core::surface::CHANNEL_NAMES[channel];
        match limit {
            NO_LIMIT => Err(wrong(format!("it has no limit of {name}"))),
            limit => Ok(f64::from(limit) / 256.0),
        }
    });
    Ok(Some(LearnedSurface {
        limits: limits.collect::<Result<_, _>>()?,
        model: Arc::new(model),
    }))
}

/// An array of this shape as signed numbers.
fn signed<const D: usize>(
    file: &ModelFile,
    name: &str,
    shape: [usize; D],
) -> Result<Vec<i32>, String> {
    // The header tells the size, so nothing else is unpacked.
    let found = file.shape::<D>(name).map_err(text)?;
    if found != shape {
        return Err(format!(
            "the array \"{name}\" has the shape {found:?} instead of {shape:?}"
        ));
    }
    let samples = file.array::<D>(name).map_err(text)?.samples;
    Ok(samples.into_iter().map(u32::cast_signed).collect())
}

/// Writes what was learned for these channels. Signed numbers are stored in two's complement.
///
/// # Errors
/// A sentence that names the file, which is then as before; or that tells which limits do not fit the channels.
pub fn write_surface(
    path: &Path,
    learned: &LearnedSurface,
    channels: ChannelsInUse,
) -> Result<(), String> {
    let unsigned =
        |values: &[i32]| -> Vec<u32> { values.iter().copied().map(i32::cast_unsigned).collect() };
    let model = &learned.model;
    let limits = super::device_limits(channels.limits_q8(&learned.limits)?);
    let mean = unsigned(model.mean());
    let weights = unsigned(model.weights().as_flattened());
    let prototypes = unsigned(model.prototypes().as_flattened());
    let array = |name, shape, samples| ArrayRef {
        name,
        shape,
        samples,
    };
    let arrays = [
        array(MEAN, &[FEATURES][..], &mean[..]),
        array(WEIGHTS, &[FEATURES, DIMENSIONS], &weights),
        array(PROTOTYPE, &[PROTOTYPES, DIMENSIONS], &prototypes),
        array(LIMITS, &[CHANNELS], &limits),
    ];
    clinspect_models::write(path, &arrays).map_err(text)
}

fn text(error: ModelError) -> String {
    error.to_string()
}
