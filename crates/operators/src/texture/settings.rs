//! What a texture comparison is built from.

use std::sync::Arc;

use gst::glib;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    lattice::{Lattice, VectorComparison},
    layout::FrameLayout,
    region::Rect,
    texture::{
        BORDER, CHANNEL_NAMES, CHANNELS, FLATNESS_NAME, LIMITS, MAX_THRESHOLD, Neighbourhood,
        Repeat, Repeats, threshold_q8,
    },
    variant::TextureVariant,
    window::{Reach, Window},
};

use crate::{
    Contrast,
    regions::{check_inside, inside_border},
};

/// Which tiles give the local noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClNoiseFrom")]
#[repr(C)]
pub enum NoiseFrom {
    /// The tiles around.
    #[default]
    #[enum_value(
        name = "The nine rows of tiles around; strips of a web wait for 192 rows more than a pitch",
        nick = "around"
    )]
    Around,
    /// The tiles above.
    #[enum_value(
        name = "The tile and the eight rows of tiles above; strips of a web wait for 64 rows more than a pitch",
        nick = "above"
    )]
    Above,
}

impl NoiseFrom {
    pub(super) fn neighbourhood(self) -> Neighbourhood {
        match self {
            Self::Around => Neighbourhood::AROUND,
            Self::Above => Neighbourhood::ABOVE,
        }
    }
}

/// Settings of a texture comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct TextureSettings {
    /// Pitches along x and y, px; 0 for unknown: nothing is judged.
    pub pitches: [f64; 2],
    /// The vectors after which the texture repeats, instead of the pitches.
    pub lattice: Option<Lattice>,
    /// Vectors of any angle may follow: their kernels are compiled at the start.
    pub may_turn: bool,
    /// Thresholds of the channels in units of the local noise, and the largest flatness of a tile, which [`Contrast`]
    /// needs only while it is learned; empty if they are not learned: nothing is judged.
    pub thresholds: Vec<f64>,
    /// Which tiles give the local noise.
    pub noise_from: NoiseFrom,
    /// The minimum contrast of a tile.
    pub contrast: Contrast,
    /// Regions to judge; empty for whole frames.
    pub rois: Vec<Rect>,
    /// Pixels that are not judged.
    pub ignored: Option<Arc<Ignored>>,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// Read from images instead of buffers.
    pub image: bool,
    /// Forces a variant.
    pub variant: Option<TextureVariant>,
}

/// A pitch for error messages.
const PITCHES: [&str; 2] = ["pitch-x", "pitch-y"];

impl TextureSettings {
    /// Checks what neither frames nor a device decide.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that no frame can be compared with.
    pub fn check(&self) -> Result<(), ClError> {
        self.thresholds_q8()?;
        for [x, y] in self.lattice.iter().flat_map(Lattice::both) {
            if x.abs().max(y.abs()) < Repeat::MIN_PITCH_PX {
                return Err(ClError::Refused(format!(
                    "the vector ({x}, {y}) of lattice is shorter than {} pixels along both axes; set the distance after \
                     which the texture repeats, in pixels",
                    Repeat::MIN_PITCH_PX
                )));
            }
        }
        for (name, &pitch) in PITCHES.iter().zip(&self.pitches) {
            if pitch != 0.0 && Repeat::new(pitch, true, usize::MAX).is_none() {
                return Err(ClError::Refused(format!(
                    "{name}={pitch} is not a pitch; set it to the distance after which the texture repeats, at least \
                     {} pixels, or to -1 for an estimate",
                    Repeat::MIN_PITCH_PX
                )));
            }
        }
        Ok(())
    }

    /// The thresholds of the channels in 1/256; `None` if they are not learned.
    ///
    /// # Errors
    /// [`ClError::Refused`] for another number of thresholds, or one that is not a number in its range.
    pub fn thresholds_q8(&self) -> Result<Option<[u32; CHANNELS]>, ClError> {
        let count = self.thresholds.len();
        if count == 0 {
            return Ok(None);
        }
        let q8: Vec<u32> = self
            .thresholds
            .iter()
            .copied()
            .map_while(threshold_q8)
            .collect();
        let channels = q8.get(..CHANNELS).and_then(|q8| q8.try_into().ok());
        let is_flatness_usable = q8.get(CHANNELS).is_none_or(|&flatness| flatness > 0);
        match channels {
            Some(channels) if q8.len() == count && count <= LIMITS && is_flatness_usable => {
                Ok(Some(channels))
            }
            _ => Err(ClError::Refused(format!(
                "thresholds={:?} cannot be used; set {CHANNELS} numbers from 0 to {MAX_THRESHOLD} ({}) and, after them, \
                 the {FLATNESS_NAME}, which is above 0, or learn them",
                self.thresholds,
                CHANNEL_NAMES.join(", ")
            ))),
        }
    }

    /// The lattice, if its vectors do not lie along the rows, then along the columns.
    pub fn turned(&self) -> Option<Lattice> {
        let is_parallel = |lattice: &Lattice| matches!(lattice.both(), [[_, 0.0], [0.0, _]]);
        self.lattice.filter(|lattice| !is_parallel(lattice))
    }

    /// The pitches along x and y, or the lengths of the vectors, px; 0 for unknown.
    pub(super) fn lengths(&self) -> [f64; 2] {
        match self.lattice {
            Some(lattice) if self.turned().is_some() => lattice.lengths(),
            Some(lattice) => {
                let [[x, _], [_, y]] = lattice.both();
                [x.abs(), y.abs()]
            }
            None => self.pitches,
        }
    }

    /// Width and height of the box around a cell of the pattern, px; 0 along an axis without a pitch.
    pub(super) fn cell_box(&self) -> [f64; 2] {
        self.lattice.map_or(self.pitches, |l| l.cell_box())
    }

    /// The comparisons with the next repeats: along each vector, or along the axes whose pitch is known.
    pub(super) fn comparisons(&self) -> Vec<VectorComparison> {
        let [x, y] = self.pitches;
        let of_pitches = [[x, 0.0], [0.0, y]];
        let lattice = self.lattice;
        let vectors = lattice.as_ref().map_or(&of_pitches[..], Lattice::vectors);
        let along = vectors.iter().enumerate();
        along
            .filter_map(|(number, &v)| VectorComparison::new(number, v, 1))
            .collect()
    }

    /// The repeats; `None` while a pitch is unknown.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a pitch or a vector that the frames do not hold.
    pub(super) fn repeats(
        &self,
        width: usize,
        frame_height: usize,
    ) -> Result<Option<Repeats>, ClError> {
        self.check()?;
        let vectors = match self.lattice {
            Some(lattice) => lattice.both(),
            None if self.pitches.contains(&0.0) => return Ok(None),
            None => [[self.pitches[0], 0.0], [0.0, self.pitches[1]]],
        };
        let height = if self.line_scan {
            usize::MAX
        } else {
            frame_height
        };
        let refused = |number: usize| {
            let [x, y] = vectors[number];
            let size = format!("{width}x{frame_height}");
            ClError::Refused(match self.lattice {
                Some(_) => format!(
                    "the vector ({x}, {y}) of lattice does not fit frames of {size}, which must be longer than two of it \
                     along each axis; use larger frames, or set shorter vectors"
                ),
                None => format!(
                    "{}={} does not fit frames of {size}, which must have more than two pitches; use larger frames",
                    PITCHES[number], self.pitches[number]
                ),
            })
        };
        Repeats::new(vectors, [width, height])
            .map(Some)
            .map_err(refused)
    }

    /// The processed pixels that are judged if none is ignored, as rectangles without common pixels. Row 0 is the
    /// plane's.
    pub(super) fn judged(&self, width: usize, window: &Window, border: usize) -> Vec<Rect> {
        inside_border(&self.rois, width, window, border)
    }

    /// Refuses settings under which no pixel of a frame is judged. A web has no last row.
    pub(super) fn check_judged(&self, layout: &FrameLayout) -> Result<(), ClError> {
        let size = [layout.width, layout.height];
        check_inside(
            &self.rois,
            self.ignored.as_deref(),
            size,
            self.line_scan,
            BORDER,
        )
    }

    /// Rows of a web that a strip needs besides its own. `tile`: height of a row of the tiles in which the texture is
    /// looked for, 0 without a search.
    pub(super) fn reach(&self, repeats: Option<&Repeats>, tile: usize) -> Reach {
        let reach = match repeats {
            Some(repeats) => self.noise_from.neighbourhood().reach(repeats),
            None => Reach {
                both: 1,
                ..Reach::default()
            },
        };
        Reach { tile, ..reach }
    }
}
