//! The pixels of picture files: the depth of PNM files, and the orientation of PNG and JPEG files.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::Cursor;

use clinspect_pictures::{Picture, decode};
use image::{DynamicImage, GrayImage, ImageFormat, Luma};

fn read(bytes: impl AsRef<[u8]>) -> Picture {
    decode(bytes.as_ref()).unwrap()
}

/// A PNM file whose raster is these samples of two bytes.
fn deep(start: &str, samples: &[u16]) -> Vec<u8> {
    let raster = samples.iter().flat_map(|sample| sample.to_be_bytes());
    start.bytes().chain(raster).collect()
}

#[test]
fn samples_of_a_grey_pnm_are_those_of_the_file_whatever_its_largest_value_is() {
    for maxval in [256, 1023, 4095, 16_383, 65_534, 65_535] {
        let samples = [0, 1, 2, 77, 255, 256, maxval / 2, maxval];
        let text = samples.map(|sample| sample.to_string()).join(" ");
        let pam = "P7\nWIDTH 4\nHEIGHT 2\nDEPTH 1\nMAXVAL";
        for file in [
            deep(&format!("P5\n# a comment\n4 2\n{maxval}\n"), &samples),
            format!("P2 4 2 {maxval}\n{text}\n").into_bytes(),
            deep(
                &format!("{pam} {maxval}\nTUPLTYPE GRAYSCALE\nENDHDR\n"),
                &samples,
            ),
            deep(&format!("{pam} {maxval}\nENDHDR\n"), &samples),
        ] {
            let DynamicImage::ImageLuma16(grey) = read(&file).pixels else {
                panic!("{maxval}: not 16 bits")
            };
            assert_eq!(*grey, samples, "{maxval}");
        }
    }
    for maxval in [1, 15, 100, 254, 255] {
        let samples = [0, 1, maxval / 2, maxval];
        let grey = [format!("P5 4 1 {maxval}\n").as_bytes(), &samples].concat();
        assert_eq!(read(grey).pixels.as_bytes(), samples, "{maxval}");
        let colour = [format!("P6 1 1 {maxval}\n").as_bytes(), &samples[1..]].concat();
        assert_eq!(read(colour).pixels.as_bytes(), &samples[1..], "{maxval}");
    }
}

/// They become RGB of 8 bits, so the largest value must become 255.
#[test]
fn colours_of_a_deep_ppm_fill_their_range() {
    let file = deep("P6 1 1 4095\n", &[0, 2048, 4095]);
    assert_eq!(read(file).pixels.into_rgb8().as_raw(), &[0, 128, 255]);
}

#[test]
fn bitmaps_are_black_and_white() {
    let p1 = read(b"P1 4 1\n0110\n");
    assert!(p1.is_bitmap);
    assert_eq!(p1.pixels.as_bytes(), [255, 0, 0, 255]);
    let pam = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\x00\x01";
    assert_eq!(read(pam).pixels.as_bytes(), [0, 255]);
}

/// Exif with this orientation and no other field.
fn exif(orientation: u8, is_big: bool) -> Vec<u8> {
    let (start, value) = match is_big {
        true => (
            &b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"[..],
            [0, orientation],
        ),
        false => (
            &b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"[..],
            [orientation, 0],
        ),
    };
    [start, &value, &[0; 6]].concat()
}

fn encoded(picture: &GrayImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let crc = [&kind[..], content].concat().iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&len, &kind[..], content, &(!crc).to_be_bytes()].concat()
}

/// The pixel that a viewer shows at `[x, y]` of a file of `[w, h]` pixels: Exif 2.32, table "Orientation".
fn shown([x, y]: [u32; 2], [w, h]: [u32; 2], orientation: u8) -> [u32; 2] {
    match orientation {
        2 => [w - 1 - x, y],
        3 => [w - 1 - x, h - 1 - y],
        4 => [x, h - 1 - y],
        // Row 0 of the file is a side of the picture.
        5 => [y, x],
        6 => [y, h - 1 - x],
        7 => [w - 1 - y, h - 1 - x],
        8 => [w - 1 - y, x],
        _ => [x, y],
    }
}

#[test]
fn pictures_stand_as_viewers_show_them() {
    // Blocks of 8x8 pixels of one grey level outlast JPEG.
    let [w, h] = [24, 16];
    let level = |x: u32, y: u32| (x / 8 * 80 + y / 8 * 40) as u8;
    let file = GrayImage::from_fn(w, h, |x, y| Luma([level(x, y)]));
    let png = encoded(&file, ImageFormat::Png);
    let jpeg = encoded(&file, ImageFormat::Jpeg);
    // After the signature and IHDR, and before IEND.
    let (head, end) = (33, png.len() - 12);
    for orientation in 0..=9 {
        let is_turned = (5..=8).contains(&orientation);
        for is_big in [false, true] {
            let exif = exif(orientation, is_big);
            let prefixed = [&b"Exif\0\0"[..], &exif].concat();
            let put = |at: usize, content: &[u8]| {
                [&png[..at], &chunk(b"eXIf", content), &png[at..]].concat()
            };
            let len = (prefixed.len() as u16 + 2).to_be_bytes();
            let app1 = [&b"\xff\xe1"[..], &len, &prefixed].concat();
            for (kind, bytes) in [
                ("PNG", put(head, &exif)),
                ("PNG, behind the pixels", put(end, &exif)),
                ("PNG, with JPEG's prefix", put(head, &prefixed)),
                ("JPEG", [&jpeg[..2], &app1, &jpeg[2..]].concat()),
            ] {
                let picture = read(bytes);
                assert_eq!(picture.is_turned, is_turned, "{kind} {orientation}");
                let grey = picture.pixels.into_luma8();
                let size = if is_turned { (h, w) } else { (w, h) };
                assert_eq!(grey.dimensions(), size, "{kind} {orientation}");
                for (x, y, of) in grey.enumerate_pixels() {
                    let [from_x, from_y] = shown([x, y], [w, h], orientation);
                    let right = level(from_x, from_y);
                    assert!(of.0[0].abs_diff(right) < 4, "{kind} {orientation} {x} {y}");
                }
            }
        }
    }
}
