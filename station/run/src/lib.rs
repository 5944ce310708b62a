//! What runs the cameras: sources, pipelines and their supervisors, and what they leave: state, pictures and recordings.

mod bounded;
pub mod convert;
pub mod found;
pub mod frame;
pub mod picture_files;
pub mod pictures;
pub mod pipeline;
pub mod properties;
pub mod publishing;
pub mod recorded;
pub mod recording;
pub mod repeats;
pub mod secrets;
pub mod source;
pub mod state;
pub mod stopped;
pub mod supervisor;
mod tag;
pub mod tap;
pub mod trial;
