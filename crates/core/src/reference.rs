//! Comparison of a frame with a trained picture: docs/semantics.md, "Comparison with a reference".

mod affine;
mod brightness;
mod inside;
mod judged;
mod limits;
mod model;
mod place;
mod sight;
mod warp;

pub use affine::{Aligner, Alignment, Freedom, Step, check_size};
pub use brightness::{Brightness, FrameSums, Normalize, UNIT_SCALE};
pub use inside::Inside;
pub use judged::{JudgedArea, Totals};
pub use limits::{Deviations, Limits, mean_range};
pub use model::{MOST_FRAMES, Model};
pub use sight::sight;
pub(crate) use warp::first;
pub use warp::{MOST_LOCAL, MOST_WARPED, NODE_TILE, Nodes, UNITS, Warp};
