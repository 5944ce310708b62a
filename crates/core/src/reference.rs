//! Comparison of a frame with a trained picture: docs/semantics.md, "Comparison with a reference".

mod affine;
mod brightness;
mod inside;
mod judged;
mod limits;
mod model;
mod place;
mod warp;

pub use affine::{Aligner, Found, Freedom, Step, check_size};
pub use brightness::{Brightness, FrameSums, Normalize};
pub use inside::Inside;
pub use judged::{Judged, Totals};
pub use limits::{Deviations, Limits, mean_range};
pub use model::{MOST_FRAMES, Model};
pub use warp::{MOST_LOCAL, MOST_WARPED, NODE_TILE, Nodes, UNITS, Warp};
