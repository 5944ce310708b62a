//! Model files: any bytes, and archives of well-formed and strange arrays with changed bytes. The reader
//! gives arrays whose samples fill their shape, or a sentence. An unchanged array is read back.

use arbitrary::{Result, Unstructured};
use clinspect_models::{MAX_SAMPLES, ModelError, ModelFile};

use crate::npz::{archive, header, npy};

const NAMES: [&str; 5] = [
    "mean.npy",
    "dark.npy",
    "frames.npy",
    "mean",
    "../x\u{e4}.npy",
];
const TYPES: [&str; 6] = ["'<u4'", "'<u4'", "'<f4'", "'>u4'", "'|O'", "[('a', '<u4')]"];
const SHAPES: [&str; 9] = [
    "()",
    "(3,)",
    "(2, 3)",
    "(0, 3)",
    "(65536, 65536)",
    "(18446744073709551615, 2)",
    "(268435456,)",
    "(-1,)",
    "(1, 2, 3)",
];

/// See the module.
pub fn run(data: &[u8]) {
    read(data.to_vec());
    // Too few bytes for a case.
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    while !input.is_empty() {
        let mut files = Vec::new();
        for _ in 0..input.int_in_range(0..=3)? {
            let mut text = header(
                input.choose(&TYPES)?,
                input.choose(&["False", "False", "True", "None"])?,
                input.choose(&SHAPES)?,
            );
            if input.ratio(1_u8, 8_u8)? {
                let at = input.choose_index(text.len())?;
                text.truncate(at);
            }
            let samples: Vec<u32> = (0..input.int_in_range(0..=8)?)
                .map(|_| input.arbitrary())
                .collect::<Result<_>>()?;
            files.push((*input.choose(&NAMES)?, npy(&text, &samples)));
        }
        let mut bytes = archive(&files, input.arbitrary()?);
        for _ in 0..input.int_in_range(0..=4)? {
            let at = input.choose_index(bytes.len())?;
            bytes[at] = input.arbitrary()?;
        }
        if input.ratio(1_u8, 6_u8)? {
            let len = input.choose_index(bytes.len())?;
            bytes.truncate(len);
        }
        read(bytes);
        check_unchanged(input)?;
    }
    Ok(())
}

/// Reads every array in every way.
fn read(bytes: Vec<u8>) {
    let file = match ModelFile::from_bytes("a.npz", bytes) {
        Ok(file) => file,
        Err(error) => return check_sentence(&error),
    };
    for name in ["mean", "dark", "frames", "../x\u{e4}"] {
        if let Err(error) = file.scalar(name) {
            check_sentence(&error);
        }
        check_array::<1>(&file, name);
        check_array::<2>(&file, name);
        check_array::<3>(&file, name);
    }
}

fn check_array<const D: usize>(file: &ModelFile, name: &str) {
    match file.array::<D>(name) {
        Ok(array) => {
            assert!(file.has(name));
            assert_eq!(file.shape(name), Ok(array.shape));
            let count: usize = array.shape.iter().product();
            assert_eq!(array.samples.len(), count);
            assert!((1..=MAX_SAMPLES).contains(&count));
        }
        Err(error) => check_sentence(&error),
    }
}

fn check_sentence(error: &ModelError) {
    let text = error.to_string();
    assert!(text.starts_with("the file a.npz"), "{text}");
    assert!(!error.is_missing());
}

/// A well-formed file is read.
fn check_unchanged(input: &mut Unstructured) -> Result<()> {
    let samples: [u32; 6] = input.arbitrary()?;
    let text = header("'<u4'", "False", "(2, 3)");
    let bytes = archive(&[("mean.npy", npy(&text, &samples))], input.arbitrary()?);
    let file = ModelFile::from_bytes("a.npz", bytes).expect("a well-formed file");
    let array = file.array::<2>("mean").expect("a well-formed array");
    assert_eq!((array.shape, &array.samples[..]), ([2, 3], &samples[..]));
    Ok(())
}
