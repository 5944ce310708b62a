//! Text files that people write, on any system: the one place where they are read.

use std::{fs::File, io::Read, path::Path};

/// What editors of Windows put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// What stands before UTF-16, in either order of bytes.
const MARKS_OF_UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];
const UTF_16: &str = "it is UTF-16 and not UTF-8; save it as UTF-8";

/// The text of a file of at most `most` bytes, without a byte order mark, and with `\n` at the ends of its lines.
///
/// # Errors
/// A sentence without the file's name and contents.
pub fn read(path: &Path, most: u64) -> Result<String, String> {
    let bytes = read_bytes(path, most)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} holds a character that is not UTF-8; save it as UTF-8")
    })?;
    Ok(text)
}

/// As [`read`], for formats whose comments may have another encoding, such as PEM.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.by_ref().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!(
            "it is larger than {most} bytes; is it the right file?"
        ));
    }
    // Without a mark, every second byte of UTF-16 is 0 where the text is ASCII.
    if MARKS_OF_UTF_16.iter().any(|mark| bytes.starts_with(mark)) || bytes.contains(&0) {
        return Err(UTF_16.into());
    }
    let text = bytes.strip_prefix(MARK).unwrap_or(&bytes);
    let mut lines = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if *byte != b'\r' || text.get(at + 1) != Some(&b'\n') {
            lines.push(*byte);
        }
    }
    Ok(lines)
}

/// The lines of a text without the blanks at their ends, and without the empty lines at its end.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.trim_ascii_end().lines().map(str::trim_ascii_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, bytes: &[u8]) -> Result<String, String> {
        let name = format!("clinspect-text-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let text = read(&path, 64);
        std::fs::remove_file(path).unwrap();
        text
    }

    #[test]
    fn text_is_the_same_from_every_system() {
        for bytes in [
            b"a\nb\xC3\xA9\n".as_slice(),
            b"\xEF\xBB\xBFa\nb\xC3\xA9\n",
            b"a\r\nb\xC3\xA9\r\n",
            b"\xEF\xBB\xBFa\r\nb\xC3\xA9\r\n",
        ] {
            assert_eq!(of("same", bytes).as_deref(), Ok("a\nb\u{e9}\n"));
        }
        assert_eq!(of("none", b"").as_deref(), Ok(""));
        assert_eq!(of("mark", b"\xEF\xBB\xBF").as_deref(), Ok(""));
        let seen: Vec<&str> = lines("a \t\n\n b\t\r\n\n \n").collect();
        assert_eq!(seen, ["a", "", " b"]);
    }

    #[test]
    fn other_encodings_are_refused_with_a_sentence() {
        for bytes in [
            b"\xFF\xFEa\0\n\0".as_slice(),
            b"\xFE\xFF\0a\0\n",
            b"a\0\n\0",
            b"\0a\0\n",
        ] {
            let error = of("utf-16", bytes).unwrap_err();
            assert!(error.contains("save it as UTF-8"), "{error}");
        }
        let error = of("latin", b"a\nb\xE9\n").unwrap_err();
        assert!(error.contains("line 2"), "{error}");
        let error = of("long", &[b'a'; 65]).unwrap_err();
        assert!(error.contains("64 bytes"), "{error}");
    }
}
