//! The results of the elements as typed values: metas on buffers and messages on the bus.
//!
//! Applications in Rust use these readers. In other languages the metas are GstCustomMeta, with the
//! fields named here in their structures.

mod alignment;
#[cfg(feature = "analytics")]
mod analytics;
mod defect;
mod defect_event;
mod defects;
mod histogram;
pub mod mask_caps;
mod metas;
mod parts;
#[cfg(feature = "report")]
pub mod report;
mod semu;
#[cfg(feature = "report")]
pub mod text;
#[cfg(feature = "report")]
pub mod time;
mod unplaced;
mod verdict;
mod words;

pub use alignment::{AlignStep, Alignment};
pub use defect::Defect;
pub use defect_event::MOST_DEFECTS;
pub use defects::{BlindLimit, DEFECT_META, DefectResult};
pub use histogram::{HISTOGRAM_META, HistogramResult};
pub use metas::{FrameTimes, is_same_shape, register};
pub use parts::{NoPart, Part, Parts};
pub use semu::semu;
pub use unplaced::Unplaced;
pub use verdict::{NoneReason, Verdict, VerdictLimits};
