//! What people write: the station's file, its recipes and its token, read into the plan of the cameras.

pub mod file;
pub mod recipes;
pub mod token;
