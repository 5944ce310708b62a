//! One struct per algorithm: it checks its settings, chooses a kernel variant and enqueues. No
//! GStreamer element is defined here.

mod colour;
mod depth;
mod flat_field;
mod frame_results;
mod gaussian;
mod histogram;
mod inspection;
mod lister;
mod marker;
mod pitch_threshold;
mod presence;
mod probe;
mod reference;
mod regions;
mod self_test;
mod source;
mod submitted;
mod surface;
mod texture;
mod unpack;

pub use colour::{Components, JudgedComponents, grey_of, is_colour};
pub use depth::{check_threshold, largest_depth};
pub use flat_field::{FlatField, FlatFieldMode, FlatFieldSettings, FrameSums};
pub use gaussian::{Arithmetic, Gaussian, GaussianSettings};
pub use histogram::{Histogram, HistogramSettings, Strategy, check_bins};
pub use inspection::{
    Alignment, Basis, Component, FrameParts, Inspection, JudgedPart, JudgedPixels, Limit, Marked,
    MaskTarget, Picture, Repeating, Subject,
};
pub use pitch_threshold::{Borders, Compare, PitchThreshold, PitchThresholdSettings, Polarity};
pub use presence::{Contrast, contrast_q4};
pub use probe::{MiddleProbe, Probe};
pub use reference::{
    Align, Comparison, ComparisonTraining, ComponentTraining, FoundPart, HeldOut, MOST_PARTS,
    Models, NormalizeBy, PartEdge, PartFinder, PartPixels, PartSettings, PartTraining, Parts,
    PartsPlan, PartsSettings, Progress, Reading, Reference, ReferenceSettings, Training,
    check_opening, learns_factor,
};
pub use self_test::{SelfTest, Trial};
pub use submitted::Submitted;
pub use surface::{LearnedSurface, Surface, SurfaceSettings, read_surface, write_surface};
pub use texture::{NoiseFrom, Texture, TextureSettings};
pub use unpack::Unpack;

use source::{sample_options, to_i32, to_u32, upload};

/// Rows of the frame that warms up a kernel.
pub const WARM_UP_ROWS: usize = 64;
