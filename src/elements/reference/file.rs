//! The file of the model.

use std::{path::Path, sync::Arc};

use clinspect_core::reference::Model;
use clinspect_models::{ArrayRef, ModelError, ModelFile};
use clinspect_operators::Models;

const MEAN: &str = "mean";
const DEVIATION: &str = "deviation";
const FRAMES: &str = "frames";
/// Bits of the samples. A file without this array fits samples of any bits.
const BITS: &str = "bits";

/// The ends of the arrays' names: of grey or luma, or of red, green and blue.
fn suffixes(are_apart: bool) -> &'static [&'static str] {
    if are_apart {
        &["_red", "_green", "_blue"]
    } else {
        &[""]
    }
}

/// The sentence for a model of other components than those of the frames, which are judged apart or not.
pub(super) fn other_components(are_apart: bool) -> String {
    let (of, frames, choice) = if are_apart {
        ("grey", "red, green and blue", "luma")
    } else {
        (
            "red, green and blue",
            "grey or luma",
            "each, with RGB frames",
        )
    };
    format!(
        "the model is of {of}, but frames are judged by {frames}; train with these frames, or set components={choice}"
    )
}

/// Reads the models for frames of this size with samples of `bits` bits; `None` if there is no file yet. `are_apart`: red,
/// green and blue have a model each.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn read(
    path: &Path,
    size: [usize; 2],
    bits: u32,
    are_apart: bool,
) -> Result<Option<Models>, String> {
    let file = match ModelFile::open(path) {
        Err(error) if error.is_missing() => return Ok(None),
        file => file.map_err(text)?,
    };
    let named = |why: String| format!("{}: {why}", path.display());
    let has = |are_apart: bool| file.has(&format!("{MEAN}{}", suffixes(are_apart)[0]));
    if !has(are_apart) && has(!are_apart) {
        return Err(named(other_components(are_apart)));
    }
    let of_bits = if file.has(BITS) {
        file.scalar(BITS).map_err(text)?
    } else {
        bits
    };
    let frames = file.scalar(FRAMES).map_err(text)?;
    let mut models = Vec::new();
    for suffix in suffixes(are_apart) {
        let [mean, deviation] = [MEAN, DEVIATION].map(|name| format!("{name}{suffix}"));
        // The header tells the size, so nothing is unpacked of a model of other frames.
        for array in [&mean, &deviation] {
            let [height, width] = file.shape::<2>(array).map_err(text)?;
            if [width, height] != size || of_bits != bits {
                let [w, h] = size;
                return Err(named(format!(
                    "the array \"{array}\" is of {width}x{height} frames with {of_bits}-bit samples, but frames are \
                     {w}x{h} with {bits}-bit samples; train with these frames, or name another file"
                )));
            }
        }
        let samples = |array| Ok::<_, String>(file.array::<2>(array).map_err(text)?.samples);
        let model = Model::new(size, bits, frames, samples(&mean)?, samples(&deviation)?);
        let model =
            model.map_err(|why| named(format!("{why}; train again, or name another file")))?;
        models.push(Arc::new(model));
    }
    Ok(Some(Models::new(models)))
}

/// Reads the models of a file, whatever frames they are of; `None` if there is no file yet.
///
/// # Errors
/// See [`read`].
pub(super) fn read_any(path: &Path) -> Result<Option<Models>, String> {
    let file = match ModelFile::open(path) {
        Err(error) if error.is_missing() => return Ok(None),
        file => file.map_err(text)?,
    };
    let name = |are_apart: bool| format!("{MEAN}{}", suffixes(are_apart)[0]);
    let are_apart = file.has(&name(true));
    let [height, width] = file.shape::<2>(&name(are_apart)).map_err(text)?;
    let bits = if file.has(BITS) {
        file.scalar(BITS).map_err(text)?
    } else {
        8
    };
    read(path, [width, height], bits, are_apart)
}

/// Writes the models.
///
/// # Errors
/// A sentence that names the file; the file before is unchanged.
pub(super) fn write(path: &Path, models: &Models) -> Result<(), String> {
    let Some(first) = models.all().first() else {
        return Ok(());
    };
    let [width, height] = first.size();
    let picture = [height, width];
    let (frames, bits) = ([first.frames()], [first.bits()]);
    let names = suffixes(models.all().len() > 1).iter();
    let names: Vec<[String; 2]> = names
        .map(|suffix| [MEAN, DEVIATION].map(|name| format!("{name}{suffix}")))
        .collect();
    let pictures = models
        .all()
        .iter()
        .zip(&names)
        .flat_map(|(model, [mean, deviation])| {
            [(mean, model.mean()), (deviation, model.deviation())]
        });
    let mut arrays: Vec<ArrayRef> = pictures
        .map(|(name, samples)| ArrayRef {
            name,
            shape: &picture,
            samples,
        })
        .collect();
    let scalar = |name, samples| ArrayRef {
        name,
        shape: &[],
        samples,
    };
    arrays.extend([scalar(FRAMES, &frames), scalar(BITS, &bits)]);
    clinspect_models::write(path, &arrays).map_err(text)
}

fn text(error: ModelError) -> String {
    error.to_string()
}
