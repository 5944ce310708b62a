//! A text in a PNG file.

use flate2::Crc;

/// The signature and the chunk of the picture's size, which comes first in every PNG: bytes.
const HEAD: usize = 8 + 4 + 4 + 13 + 4;

/// Adds a text behind the head of a PNG. `key` and `text` are ASCII; viewers show them among the picture's properties.
pub fn add(png: &mut Vec<u8>, key: &str, text: &str) {
    let content = [b"tEXt", key.as_bytes(), b"\0", text.as_bytes()].concat();
    let Ok(length) = u32::try_from(content.len() - 4) else {
        return;
    };
    if png.len() < HEAD {
        return;
    }
    let mut crc = Crc::new();
    crc.update(&content);
    let chunk = [&length.to_be_bytes(), &*content, &crc.sum().to_be_bytes()].concat();
    png.splice(HEAD..HEAD, chunk);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_png_is_read_with_its_sum_and_the_pixels_stay() {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(png::ColorType::Grayscale);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&[7, 9]).unwrap();
        writer.finish().unwrap();
        add(&mut file, "recipe", "cloth 0123456789abcdef");
        let mut decoder = png::Decoder::new(std::io::Cursor::new(&file));
        decoder.ignore_checksums(false);
        let mut reader = decoder.read_info().unwrap();
        let texts = &reader.info().uncompressed_latin1_text;
        let found: Vec<_> = texts.iter().map(|of| (&*of.keyword, &*of.text)).collect();
        assert_eq!(found, [("recipe", "cloth 0123456789abcdef")]);
        let mut pixels = [0; 2];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [7, 9]);
    }
}
