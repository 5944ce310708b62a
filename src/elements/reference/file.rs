//! The file of the model.

use std::{path::Path, sync::Arc};

use clinspect_core::reference::Model;
use clinspect_models::{ArrayRef, ModelError, ModelFile};

const MEAN: &str = "mean";
const DEVIATION: &str = "deviation";
const FRAMES: &str = "frames";
/// Bits of the samples. A file without this array fits samples of any bits.
const BITS: &str = "bits";

/// Reads the model for frames of this size with samples of `bits` bits; `None` if there is no file yet.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn read(path: &Path, size: [usize; 2], bits: u32) -> Result<Option<Arc<Model>>, String> {
    let file = match ModelFile::open(path) {
        Err(error) if error.is_missing() => return Ok(None),
        file => file.map_err(text)?,
    };
    let named = |why: String| format!("{}: {why}", path.display());
    let of_bits = if file.has(BITS) {
        file.scalar(BITS).map_err(text)?
    } else {
        bits
    };
    // The header tells the size, so nothing is unpacked of a model of other frames.
    for array in [MEAN, DEVIATION] {
        let [height, width] = file.shape::<2>(array).map_err(text)?;
        if [width, height] != size || of_bits != bits {
            let [w, h] = size;
            return Err(named(format!(
                "the array \"{array}\" is of {width}x{height} frames with {of_bits}-bit samples, but frames are {w}x{h} \
                 with {bits}-bit samples; train with these frames, or name another file"
            )));
        }
    }
    let samples = |array| Ok::<_, String>(file.array::<2>(array).map_err(text)?.samples);
    let frames = file.scalar(FRAMES).map_err(text)?;
    Model::new(size, bits, frames, samples(MEAN)?, samples(DEVIATION)?)
        .map(|model| Some(Arc::new(model)))
        .map_err(|why| named(format!("{why}; train again, or name another file")))
}

/// Writes a model.
///
/// # Errors
/// A sentence that names the file; the file before is unchanged.
pub(super) fn write(path: &Path, model: &Model) -> Result<(), String> {
    let [width, height] = model.size();
    let picture = [height, width];
    let (frames, bits) = ([model.frames()], [model.bits()]);
    let array = |name, shape, samples| ArrayRef {
        name,
        shape,
        samples,
    };
    let arrays = [
        array(MEAN, &picture[..], model.mean()),
        array(DEVIATION, &picture[..], model.deviation()),
        array(FRAMES, &[], &frames),
        array(BITS, &[], &bits),
    ];
    clinspect_models::write(path, &arrays).map_err(text)
}

fn text(error: ModelError) -> String {
    error.to_string()
}
