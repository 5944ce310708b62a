//! Reads the picture `mask` of the property `ignore`.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
};

use clinspect_core::ignored::Bitmap;
use image::{ImageDecoder, ImageFormat, ImageReader, Limits};

/// Most bytes of a decoded picture, and most that a decoder may allocate: a small file must not take
/// all memory. 16384x16384 samples of 8 bits fit.
const MOST_BYTES: u64 = 1 << 28;

/// The pixels of a PNG, PBM or PGM picture that are not 0; transparency does not count.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn read(path: &Path) -> Result<Bitmap, String> {
    decode(path).map_err(|why| {
        format!(
            "{} cannot be read: {why}; name a PNG, PBM or PGM picture",
            path.display()
        )
    })
}

fn decode(path: &Path) -> Result<Bitmap, String> {
    // Opening a pipe would wait for a writer.
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".into());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut file = BufReader::new(file);
    let start = file.fill_buf().map_err(|error| error.to_string())?;
    // In PBM 1 is black, which the decoder turns into sample 0.
    let is_inverted = start.starts_with(b"P1") || start.starts_with(b"P4");
    let mut reader = ImageReader::new(file)
        .with_guessed_format()
        .map_err(|error| error.to_string())?;
    if !matches!(reader.format(), Some(ImageFormat::Png | ImageFormat::Pnm)) {
        return Err("it has another format".into());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 || decoder.total_bytes() > MOST_BYTES {
        return Err(format!(
            "it has {width}x{height} pixels, and its samples must fill 1 to {MOST_BYTES} bytes"
        ));
    }
    let color = decoder.color_type();
    let channels = usize::from(color.channel_count());
    let pixel = usize::from(color.bytes_per_pixel());
    let colors = pixel / channels * (channels - usize::from(color.has_alpha()));
    let mut samples = vec![0; decoder.total_bytes() as usize];
    decoder
        .read_image(&mut samples)
        .map_err(|error| error.to_string())?;
    let mut pixels = samples.chunks_exact(pixel);
    // `from_pixels` asks for the pixels in the order of the samples.
    Ok(Bitmap::from_pixels(
        width as usize,
        height as usize,
        |_, _| {
            let samples = pixels.next().and_then(|pixel| pixel.get(..colors));
            samples.is_some_and(|samples| samples.iter().any(|&s| s != 0)) != is_inverted
        },
    ))
}
