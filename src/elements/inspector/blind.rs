//! Frames that pass although no limit sees a defect: the verdict is then `none`.

use clinspect_core::sight::Sight;
use clinspect_results::BlindLimit;

use crate::elements::base_filter::ClBaseFilter;

/// Whether the limits were blind when they were looked at last.
#[derive(Debug, Default)]
pub struct Blindness {
    is_told: bool,
}

fn limit_of(Sight { name, limit, reach }: Sight) -> BlindLimit {
    BlindLimit {
        name,
        marks: limit,
        reach,
    }
}

impl Blindness {
    /// Judges what the limits see of a frame that would pass. `advice` says what to check. Posts a warning when this becomes
    /// nothing, and an info message when they see again. Of limits that learning (`is_learning`) replaces it warns nobody.
    pub fn judge(
        &mut self,
        element: &ClBaseFilter,
        sights: Vec<Sight>,
        advice: &str,
        is_learning: bool,
    ) -> Option<BlindLimit> {
        let blind = Sight::best(sights).filter(Sight::is_blind).map(limit_of);
        match &blind {
            Some(_) if is_learning => {}
            Some(limit) if !self.is_told => {
                gst::element_warning!(
                    element,
                    gst::StreamError::Format,
                    ("no limit sees a defect: {limit}; lower it, or learn it from good frames, and {advice}"),
                    ["frames that do not fail get the verdict none"]
                );
            }
            None if self.is_told => {
                gst::element_info!(
                    element,
                    gst::StreamError::Format,
                    ("the limits see defects again"),
                    ["frames that do not fail get the verdict pass"]
                );
            }
            _ => {}
        }
        self.is_told = blind.is_some() && (self.is_told || !is_learning);
        blind
    }
}

/// Why a limit that is set finds nothing, and what to do.
pub fn why_unseen(sight: Sight) -> String {
    format!(
        "{}; lower it, or learn it from good frames",
        limit_of(sight)
    )
}

/// Why a learned limit finds nothing, and what to do. `frame` is the number of the frame that set it.
pub fn why_blind(sight: &Sight, frame: u64, advice: &str) -> String {
    let limit = limit_of(sight.clone());
    format!(
        "a learned limit sees no defect: {limit}; take out frame {frame} with the signal forget if it shows a defect, and \
         {advice}"
    )
}
