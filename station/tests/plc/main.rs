//! The body of the fuzz target `plc` on seeded random bytes, and on the inputs in `seeds/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod body;

use std::{fs, panic::catch_unwind, path::Path};

use rand::{Rng, SeedableRng};

/// Longest input, bytes.
const MAX_LEN: usize = 3000;
/// Random inputs.
const CASES: u32 = 1500;

#[test]
fn any_plc_sees_each_answer_once_and_in_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plc/seeds");
    let entries = fs::read_dir(folder).unwrap();
    let mut inputs: Vec<_> = entries
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(!inputs.is_empty());
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(0x0c11_5bec);
    for _ in 0..CASES {
        let mut bytes = vec![0; random.random_range(8..MAX_LEN)];
        random.fill(&mut bytes[..]);
        inputs.push(bytes);
    }
    for bytes in inputs {
        if catch_unwind(|| body::run(&bytes)).is_err() {
            panic!("on {bytes:?}");
        }
    }
}
