//! Where parts lie in a frame, at any place and angle: docs/semantics.md, "Free placement".
//!
//! A search over reduced pictures, coarse to fine, that compares directions of gradients. All of it is integers, so the
//! poses are the same on every device and every CPU.

mod candidates;
mod choice;
mod climb;
mod field;
mod gradient;
mod level;
mod light;
mod model;
mod motion;
mod points;
mod pose;
mod products;
mod region;
mod score;
mod search;
mod strong;
mod turn;

pub use light::Light;
pub use model::{Model, SCALES};
pub use motion::{Cut, Motion};
pub use pose::Pose;
pub use region::Region;
pub use score::edge_share;
pub use search::Search;
pub use turn::{ONE, TURN, cosine, sine};
