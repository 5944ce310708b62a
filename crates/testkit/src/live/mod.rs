//! What the programs among the examples share to run live pipelines. Apart from `common`, which
//! tests and fuzz targets take in too, without the crates that this needs.

pub mod frames;
pub mod running;
pub mod source;
pub mod stop;
