//! Pure functions and plain data, without OpenCL and GStreamer.

pub mod alarm;
pub mod classes;
pub mod components;
pub mod device_caps;
mod eigen;
mod error;
pub mod flat_field;
pub mod ignored;
pub mod kernels;
pub mod lattice;
pub mod lattice_estimate;
pub mod layout;
pub mod learning;
pub mod mask;
pub mod pitch;
pub mod pitch_estimate;
pub mod place;
pub mod presence;
pub mod reference;
pub mod region;
pub mod scale_tiles;
pub mod scales;
pub mod selector;
pub mod sight;
pub mod statistics;
pub mod surface;
pub mod texture;
pub mod threshold;
pub mod unpack;
pub mod variant;
pub mod weights;
pub mod window;

pub use error::ClError;
