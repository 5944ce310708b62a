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

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    const NOVELTY: ChannelsInUse = ChannelsInUse {
        novelty: true,
        dark_lines: false,
        bright_lines: false,
    };
    const ALSO_DARK: ChannelsInUse = ChannelsInUse {
        dark_lines: true,
        ..NOVELTY
    };

    #[test]
    fn file_holds_what_was_learned_and_is_refused_if_it_does_not_fit() {
        let folder = env::temp_dir().join(format!("clinspect-surface-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("leather.npz");
        assert_eq!(read_surface(&path, NOVELTY), Ok(None));
        let mean = std::array::from_fn(|i| 100 - 20 * i as i32);
        let weights = std::array::from_fn(|i| [8 * i as i32 - 100; DIMENSIONS]);
        let prototypes = (0..PROTOTYPES as i32).map(|k| [8 * k - 600; DIMENSIONS]);
        let model = Model::new(mean, weights, prototypes.collect()).expect("a model");
        let learned = LearnedSurface {
            model: Arc::new(model),
            limits: vec![12.5],
        };
        write_surface(&path, &learned, NOVELTY).expect("a file");
        assert_eq!(read_surface(&path, NOVELTY), Ok(Some(learned.clone())));
        let why = read_surface(&path, ALSO_DARK).expect_err("other channels");
        let has = why.contains("no limit of dark-0") && why.contains("leather.npz");
        assert!(has, "{why}");
        assert!(write_surface(&path, &learned, ALSO_DARK).is_err());

        let numbers = |count: usize, value: u32| vec![value; count];
        for (mean, prototype, part) in [
            (
                26,
                0,
                "the array \"surface_mean\" has the shape [26] instead of [27]",
            ),
            (27, 1024, "prototypes has 1024"),
            (27, 1023_u32.wrapping_neg() - 1, "prototypes has -1024"),
        ] {
            let samples = [
                numbers(mean, 0),
                numbers(FEATURES * DIMENSIONS, 0),
                numbers(PROTOTYPES * DIMENSIONS, prototype),
                numbers(CHANNELS, 256),
            ];
            let shapes: [&[usize]; 4] = [
                &[mean],
                &[FEATURES, DIMENSIONS],
                &[PROTOTYPES, DIMENSIONS],
                &[CHANNELS],
            ];
            let names = [MEAN, WEIGHTS, PROTOTYPE, LIMITS];
            let arrays: [ArrayRef; 4] = std::array::from_fn(|i| ArrayRef {
                name: names[i],
                shape: shapes[i],
                samples: &samples[i],
            });
            clinspect_models::write(&path, &arrays).expect("a file");
            let why = read_surface(&path, NOVELTY).expect_err("no model");
            assert!(why.contains(part) && why.contains("learn again"), "{why}");
            clinspect_models::write(&path, &arrays[1..]).expect("a file");
            let why = read_surface(&path, NOVELTY).expect_err("no mean");
            assert!(why.contains("surface_mean"), "{why}");
        }
        fs::remove_dir_all(&folder).expect("the folder");
    }
}
