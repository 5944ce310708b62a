//! The header of a `.npy` file.
//!
//! # Source
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>

use std::io::Read;

/// The type of all arrays, little-endian `u32`, as NumPy writes it.
const TYPE: &str = "<u4";
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest text of a header, bytes. NumPy refuses longer ones, too.
const MAX_TEXT: usize = 10_000;
/// NumPy aligns the data, for maps of the file.
const ALIGNMENT: usize = 64;
/// Most dimensions that NumPy knows.
const MAX_DIMENSIONS: usize = 64;

/// The shape of an array of `u32` in C order, and the bytes that were read. The reader is then at the
/// first sample.
///
/// # Errors
/// What is wrong with the array, and what to do.
pub(crate) fn read_header(data: &mut impl Read) -> Result<(Vec<usize>, u64), String> {
    let mut start = [0; 8];
    read(data, &mut start)?;
    if !start.starts_with(MAGIC) {
        return Err("is not in NumPy's .npy format; write it with numpy.savez".into());
    }
    // The length has two bytes in version 1, and four later.
    let (mut short, mut long) = ([0; 2], [0; 4]);
    let (len, bytes) = match start[6] {
        1 => {
            read(data, &mut short)?;
            (u16::from_le_bytes(short) as usize, 10)
        }
        2 | 3 => {
            read(data, &mut long)?;
            (u32::from_le_bytes(long) as usize, 12)
        }
        version => {
            return Err(format!(
                "has version {version} of the .npy format, which is not known; write it with numpy.savez"
            ));
        }
    };
    if len > MAX_TEXT {
        return Err(format!(
            "has a header of {len} bytes, and at most {MAX_TEXT} are accepted; write it with numpy.savez"
        ));
    }
    let mut text = vec![0; len];
    read(data, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let header = Text(&text).header().ok_or_else(|| {
        format!(
            "has a header that cannot be understood ({:?}); write it with numpy.savez",
            text.chars().take(80).collect::<String>().trim_end()
        )
    })?;
    match header.descr {
        Some(TYPE) => {}
        Some(descr) if descr.contains('O') => {
            return Err("holds Python objects (a pickle), which are never loaded; save numbers of the type numpy.uint32".into());
        }
        descr => {
            return Err(format!(
                "has the type {}, and must have '{TYPE}'; convert it with astype(numpy.uint32)",
                descr.map_or("of a structure".into(), |descr| format!("'{descr}'"))
            ));
        }
    }
    if header.fortran_order {
        return Err(
            "is in Fortran order, and must be in C order; convert it with numpy.ascontiguousarray"
                .into(),
        );
    }
    Ok((header.shape, bytes + len as u64))
}

fn read(data: &mut impl Read, into: &mut [u8]) -> Result<(), String> {
    data.read_exact(into).map_err(|error| damaged(&error))
}

/// The sentence for data that cannot be read to its end.
pub(crate) fn damaged(error: &std::io::Error) -> String {
    format!(
        "is damaged or cut short ({error}); restore the file, or let the element write it again"
    )
}

/// The header of an array of `u32`; the samples follow.
pub(crate) fn header(shape: &[usize]) -> Vec<u8> {
    let mut lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    // A tuple with one element ends with a comma.
    if let [only] = &mut lengths[..] {
        only.push(',');
    }
    let text = format!(
        "{{'descr': '{TYPE}', 'fortran_order': False, 'shape': ({}), }}",
        lengths.join(", ")
    );
    let start = MAGIC.len() + 4;
    let len = (start + text.len() + 1).next_multiple_of(ALIGNMENT) - start;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // 64 dimensions of 20 digits fit into 16 bits.
    bytes.extend((len as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(start + len - 1, b' ');
    bytes.push(b'\n');
    bytes
}

struct Header<'a> {
    /// `None` if it is a structure.
    descr: Option<&'a str>,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// What is left of a header: a Python dictionary with three keys.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn header(mut self) -> Option<Header<'a>> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.accept("}") {
            let key = self.quoted()?;
            self.expect(":")?;
            match key {
                "descr" if descr.is_none() => descr = Some(self.descr()?),
                "fortran_order" if fortran_order.is_none() => {
                    fortran_order = Some(self.accept("True"));
                    if fortran_order == Some(false) {
                        self.expect("False")?;
                    }
                }
                "shape" if shape.is_none() => shape = Some(self.shape()?),
                _ => return None,
            }
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.0.trim().is_empty().then_some(Header {
            descr: descr?,
            fortran_order: fortran_order?,
            shape: shape?,
        })
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.accept(token).then_some(())
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let quote = rest.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        let (text, rest) = rest[1..].split_once(quote)?;
        self.0 = rest;
        Some(text)
    }

    /// The type; the list of a structure's fields is skipped.
    fn descr(&mut self) -> Option<Option<&'a str>> {
        if !self.accept("[") {
            return self.quoted().map(Some);
        }
        let mut depth = 1;
        let end = self.0.find(|c| {
            depth += match c {
                '[' => 1,
                ']' => -1,
                _ => 0,
            };
            depth == 0
        })?;
        self.0 = &self.0[end + 1..];
        Some(None)
    }

    fn shape(&mut self) -> Option<Vec<usize>> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            let rest = self.0.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            shape.push(rest[..end].parse().ok()?);
            self.0 = &rest[end..];
            if shape.len() > MAX_DIMENSIONS {
                return None;
            }
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Some(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<usize>, String> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        read_header(&mut &bytes[..]).map(|(shape, len)| {
            assert_eq!(len, bytes.len() as u64);
            shape
        })
    }

    #[test]
    fn written_headers_are_aligned_and_read_back() {
        for shape in [&[][..], &[7], &[3, 4], &[usize::MAX; 5]] {
            let bytes = header(shape);
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            assert_eq!(bytes.last(), Some(&b'\n'));
            let found = read_header(&mut &bytes[..]);
            assert_eq!(found, Ok((shape.to_vec(), bytes.len() as u64)));
        }
    }

    #[test]
    fn dictionaries_of_other_writers_are_read() {
        for text in [
            r#"{"shape":(2,3),"fortran_order":False,"descr":"<u4"}"#,
            "{ 'shape' : ( 2 , 3 , ) , 'descr': '<u4', 'fortran_order': False , }  \n",
        ] {
            assert_eq!(read(text), Ok(vec![2, 3]), "{text}");
        }
    }

    #[test]
    fn wrong_headers_are_refused_with_what_to_do() {
        let of = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        for (text, word) in [
            (of("'<f4'", "False", "(2,)"), "has the type '<f4'"),
            (of("'>u4'", "False", "(2,)"), "has the type '>u4'"),
            (of("'|O'", "False", "(2,)"), "pickle"),
            (of("[('a', '<u4', [2])]", "False", "(2,)"), "a structure"),
            (of("'<u4'", "True", "(2, 2)"), "Fortran order"),
            (of("'<u4'", "Maybe", "(2, 2)"), "cannot be understood"),
            (of("'<u4'", "False", "(-2,)"), "cannot be understood"),
            (of("'<u4'", "False", "(2"), "cannot be understood"),
            (of("'<u4'", "False", "2"), "cannot be understood"),
            (
                of("'<u4'", "False", &format!("({})", "1,".repeat(65))),
                "understood",
            ),
            (
                of("'<u4'", "False", "(99999999999999999999,)"),
                "understood",
            ),
            ("{}".into(), "cannot be understood"),
            ("{'descr': '<u4'}".into(), "cannot be understood"),
            ("{'descr".into(), "cannot be understood"),
            (String::new(), "cannot be understood"),
            ("x".repeat(20_000), "at most 10000"),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.contains(word), "{text}: {error}");
            assert!(
                error.contains("; ") || error.contains("never loaded"),
                "{error}"
            );
        }
        let other = read_header(&mut &b"\x93NUMPY\x04\x00\x00\x00"[..]);
        assert!(other.is_err_and(|error| error.contains("version 4")));
        let cut = read_header(&mut &header(&[2])[..20]);
        assert!(cut.is_err_and(|error| error.contains("cut short")));
    }
}
