//! Picture files: masks of the elements, and frames of the station. The only code of the product that decodes pictures,
//! so a file is the same picture wherever it is read: samples stay as they are in the file, and the picture stands
//! upright, as viewers show it.

use std::{
    fs::{self, File},
    io::{Cursor, Read},
    path::Path,
};

use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, Limits,
    codecs::{
        jpeg::JpegDecoder,
        png::PngDecoder,
        pnm::{ArbitraryHeader, ArbitraryTuplType, GraymapHeader, PixmapHeader, PnmDecoder},
    },
    metadata::Orientation,
};

/// Ends of the names of picture files.
pub const ENDS: [&str; 8] = ["png", "pgm", "ppm", "pbm", "pnm", "pam", "jpg", "jpeg"];
/// Most bytes of a decoded picture: 16384x16384 samples of 8 bits. A small file may hold a very large picture.
pub const MOST_BYTES: u64 = 1 << 28;
/// Largest file, bytes: a picture of `MOST_BYTES` that does not compress.
const MOST_FILE: u64 = 300 << 20;
/// The byte order mark of UTF-8. An editor may have put it before a picture of ASCII digits.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The start of every PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A decoded picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The pixels, upright. Grey samples of a PNM are those of the file whatever its largest value is. Colours of more
    /// than 8 bits are stretched from the largest value to 65535.
    pub pixels: DynamicImage,
    /// The file is a JPEG: its levels are only near those that were saved.
    pub is_lossy: bool,
    /// The file is a PBM, where 1 is black: its pixels are 0 and 255.
    pub is_bitmap: bool,
    /// Rows of the file became columns.
    pub is_turned: bool,
}

/// Reads a picture file.
///
/// # Errors
/// A sentence, without the file's name, if the path is not a file, or the file cannot be read, is longer than 300 MiB,
/// or is refused by [`decode`].
pub fn read(path: &Path) -> Result<Picture, String> {
    // Opening a pipe would wait for a writer.
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".into());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let len = file.take(MOST_FILE + 1).read_to_end(&mut bytes);
    if len.map_err(|error| error.to_string())? as u64 > MOST_FILE {
        return Err(format!("it has more than {MOST_FILE} bytes"));
    }
    decode(&bytes)
}

/// Decodes a PNG, PNM or JPEG picture.
///
/// # Errors
/// A sentence if the bytes are no such picture, or if its pixels take more than [`MOST_BYTES`].
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let format = image::guess_format(bytes).ok();
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    let (pixels, exif) = match format {
        Some(ImageFormat::Png) => {
            let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits.clone());
            (pixels(decoder, limits)?, exif_of_png(bytes))
        }
        Some(ImageFormat::Jpeg) => {
            let mut decoder = JpegDecoder::new(Cursor::new(bytes));
            let exif = decoder.as_mut().ok().and_then(|d| d.exif_metadata().ok());
            (pixels(decoder, limits)?, exif.flatten())
        }
        Some(ImageFormat::Pnm) => (pixels(pnm(bytes), limits)?, None),
        _ => return Err("the file is no PNG, PNM or JPEG picture".into()),
    };
    let orientation = exif.and_then(|exif| Orientation::from_exif_chunk(&exif));
    let orientation = orientation.unwrap_or(Orientation::NoTransforms);
    let mut picture = Picture {
        pixels,
        is_lossy: format == Some(ImageFormat::Jpeg),
        is_bitmap: bytes.starts_with(b"P1") || bytes.starts_with(b"P4"),
        is_turned: matches!(
            orientation,
            Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH
        ),
    };
    picture.pixels.apply_orientation(orientation);
    Ok(picture)
}

fn pixels<D: ImageDecoder>(
    decoder: Result<D, ImageError>,
    limits: Limits,
) -> Result<DynamicImage, String> {
    let mut decoder = decoder.map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(format!("the picture has {width}x{height} pixels"));
    }
    if decoder.total_bytes() > MOST_BYTES {
        return Err(format!(
            "the picture of {width}x{height} pixels is larger than {} MiB",
            MOST_BYTES >> 20
        ));
    }
    decoder.set_limits(limits).map_err(unreadable)?;
    DynamicImage::from_decoder(decoder).map_err(unreadable)
}

fn unreadable(error: ImageError) -> String {
    match error {
        ImageError::Limits(_) => {
            format!("the picture is larger than {} MiB", MOST_BYTES >> 20)
        }
        error => format!("the picture cannot be read: {error}"),
    }
}

/// A decoder of a PNM that leaves samples as they are. The decoder of `image` stretches them from the largest value in
/// the header to 255 or 65535, so it gets a header with that value.
fn pnm(bytes: &[u8]) -> Result<PnmDecoder<impl Read>, ImageError> {
    let decoder = PnmDecoder::new(bytes)?;
    let has_color = decoder.color_type().has_color();
    let (raster, header) = decoder.into_inner();
    let maxval = match header.maximal_sample() {
        ..256 => 255,
        // They become RGB of 8 bits, so they must fill their range.
        of if has_color => of,
        _ => 65_535,
    };
    let header = if let Some(grey) = header.as_graymap() {
        let maxwhite = maxval;
        GraymapHeader { maxwhite, ..*grey }.into()
    } else if let Some(colour) = header.as_pixmap() {
        PixmapHeader { maxval, ..*colour }.into()
    } else if let Some(any) = header.as_arbitrary().filter(|any| any.maxval > 1) {
        // Without a type the decoder would read samples of one byte.
        let of_depth = match any.depth {
            1 => Some(ArbitraryTuplType::Grayscale),
            2 => Some(ArbitraryTuplType::GrayscaleAlpha),
            3 => Some(ArbitraryTuplType::RGB),
            4 => Some(ArbitraryTuplType::RGBAlpha),
            _ => None,
        };
        let tupltype = any.tupltype.clone().or(of_depth);
        ArbitraryHeader {
            maxval,
            tupltype,
            ..*any
        }
        .into()
    } else {
        // One bit a pixel: black and white.
        header
    };
    let mut start = Vec::new();
    header.write(&mut start)?;
    PnmDecoder::new(Cursor::new(start).chain(raster))
}

/// The chunk eXIf of a PNG, which may stand before the pixels or behind them.
fn exif_of_png(png: &[u8]) -> Option<Vec<u8>> {
    let mut rest = png.strip_prefix(PNG)?;
    loop {
        let (len, chunk) = rest.split_first_chunk::<4>()?;
        let (kind, chunk) = chunk.split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*len) as usize;
        let content = chunk.get(..len)?;
        if kind == b"eXIf" {
            // Some programs write the start of JPEG's Exif.
            return Some(
                content
                    .strip_prefix(b"Exif\0\0")
                    .unwrap_or(content)
                    .to_vec(),
            );
        }
        // The check sum has 4 bytes.
        rest = chunk.get(len..)?.get(4..)?;
    }
}
