//! The bodies of the fuzz targets. `fuzz/` runs them under libFuzzer, `cargo test` on seeded random
//! bytes and on the inputs kept in `seeds/`.
//!
//! A body fails by panicking. It makes its choices from the bytes and ends when they are used up.

pub mod caps;
pub mod components;
pub mod events;
pub mod mask;
pub mod metas;
pub mod models;
pub mod properties;
pub mod rules;
pub mod unpack;
pub mod video_meta;
