//! Finds the parts of frames of any format that is judged, and reads them: docs/semantics.md, "Parts in a frame".

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Bitmap,
    layout::FrameLayout,
    place::{Cut, Light, Motion, Region},
    region::Rect,
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};

use super::{
    Base, Models, PartsSettings,
    part_finder::{FoundPart, PartFinder, PartSettings},
    part_reader::PartReader,
    part_settings::PartEdge,
};
use crate::{
    colour::{Splitter, grey_of, is_colour},
    depth::effective_depth,
};

/// Place scores that differ by less are alike.
const ALIKE: f64 = 0.03;
/// Least place score of what is like the part, but is none.
const LIKE: f64 = 0.4;
/// Least share of a part in the frame; less of it is not told from other things.
const LEAST_INSIDE: f64 = 0.5;

/// The pixels of the trained picture that are the part, and those of them that are judged.
#[derive(Debug, Clone, Copy)]
pub struct PartPixels<'a> {
    /// The part's; empty: what stands out from its background.
    pub rois: &'a [Rect],
    /// Not judged. If they leave no pixel at the edge of the picture, the others are the part.
    pub ignored: Option<&'a Bitmap>,
}

impl PartPixels<'_> {
    /// The part; `None`: to be found.
    fn region(&self, size: [usize; 2]) -> Result<Option<Region>, ClError> {
        let [width, height] = size;
        let is_ignored = |x: usize, y: usize| self.ignored.is_some_and(|of| of.get(x, y));
        let rows = (0..height).flat_map(|y| [(0, y), (width - 1, y)]);
        let mut edge = rows.chain((0..width).flat_map(|x| [(x, 0), (x, height - 1)]));
        if self.rois.is_empty() && edge.any(|(x, y)| !is_ignored(x, y)) {
            return Ok(None);
        }
        Region::new(size, |x, y| self.is_drawn(x, y) && !is_ignored(x, y))
            .map(Some)
            .map_err(ClError::Refused)
    }

    fn is_drawn(&self, x: usize, y: usize) -> bool {
        let holds = |r: &Rect| (r.x0..r.x1).contains(&x) && (r.y0..r.y1).contains(&y);
        self.rois.is_empty() || self.rois.iter().any(holds)
    }
}

/// A part of a frame.
#[derive(Debug, Clone)]
pub(super) struct Located {
    /// Its poses that are about as sure, the surest one first.
    pub poses: Vec<FoundPart>,
    /// The frame's edge cuts it.
    pub is_cut: bool,
}

/// What was found in a frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Sighting {
    /// From top to bottom, then from left to right.
    pub parts: Vec<Located>,
    /// The highest place score of what was taken for no part.
    pub other: Option<f64>,
}

/// What frames with colours need, whose luma is searched.
#[derive(Debug)]
struct Colour {
    splitter: Splitter,
    luma: ClFrame,
    reader: PartReader,
}

/// Finds and reads parts.
#[derive(Debug)]
pub(super) struct PartSearch {
    whole: Base,
    /// Of frames with colours.
    colour: Option<Colour>,
    finder: PartFinder,
    layout: FrameLayout,
    place_score: f64,
    edge: PartEdge,
}

impl PartSearch {
    /// Of frames of `layout`. `models`: whole pictures of the frames' size.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the frames or the part do not suit a search; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        (bit_depth, follows_light): (u32, bool),
        models: &Models,
        pixels: PartPixels,
        settings: &PartsSettings,
    ) -> Result<Self, ClError> {
        settings.check()?;
        let whole = Base::new(context, layout, bit_depth)?;
        let model = models.luma().map_err(ClError::Refused)?;
        let model = model.ok_or_else(|| ClError::Refused("there is no trained picture".into()))?;
        let finder = PartFinder::new(
            context,
            &grey_of(layout),
            &PartSettings {
                model,
                region: pixels.region(whole.size)?,
                scales: settings.tried_scales(),
                most_angle: settings.most_angle(),
                follows_light,
                wanted: settings.wanted[1] as usize,
                bit_depth: effective_depth(bit_depth, layout.sample)?,
            },
        )?;
        let colour = || {
            let meter = Arc::new(Meter::new(false));
            Ok::<_, ClError>(Colour {
                splitter: Splitter::new(context, layout)?,
                luma: ClFrame::grey(context, whole.size, &meter)?,
                reader: PartReader::new(&whole, finder.cut())?,
            })
        };
        Ok(Self {
            colour: is_colour(layout).then(colour).transpose()?,
            layout: layout.of_size(finder.cut().size),
            place_score: settings.place_score,
            edge: settings.edge,
            finder,
            whole,
        })
    }

    /// What kernels need that process whole frames.
    pub fn whole(&self) -> &Base {
        &self.whole
    }

    /// Finds the parts.
    pub fn finder(&self) -> &PartFinder {
        &self.finder
    }

    /// The layout of a part as it is read.
    pub fn layout(&self) -> &FrameLayout {
        &self.layout
    }

    /// The pixels of the cut that are not judged.
    pub fn ignored(&self, pixels: PartPixels) -> Bitmap {
        let Cut {
            first: [x0, y0],
            size: [width, height],
        } = *self.finder.cut();
        Bitmap::from_pixels(width, height, |x, y| {
            let (x, y) = (x + x0, y + y0);
            !(self.finder.region().holds(x, y) && pixels.is_drawn(x, y))
                || pixels.ignored.is_some_and(|of| of.get(x, y))
        })
    }

    /// Finds the parts of a frame. Waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn find(&mut self, frame: &ClFrame, meter: &Meter) -> Result<Sighting, ClError> {
        let frame = match &mut self.colour {
            Some(Colour { splitter, luma, .. }) => {
                let to = std::slice::from_ref(&*luma);
                splitter.run(&self.whole.context, frame, to, self.whole.size, meter)?;
                &*luma
            }
            None => frame,
        };
        let mut sighting = Sighting::default();
        for mut poses in self.finder.find(frame, meter)? {
            let Some(best) = poses.first() else {
                continue;
            };
            let (score, inside) = (best.place_score, best.inside);
            let is_cut = inside < 1.0;
            // What lies outside of the frame shows nothing that could match.
            let least = self.place_score * inside;
            if score < least || inside < LEAST_INSIDE {
                let other = sighting.other.unwrap_or(LIKE).max(score);
                sighting.other = (score >= LIKE).then_some(other).or(sighting.other);
            } else if !(is_cut && self.edge == PartEdge::Ignore) {
                poses.retain(|pose| pose.place_score > score - ALIKE);
                sighting.parts.push(Located { poses, is_cut });
            }
        }
        // All poses are of the finest level.
        let place = |part: &Located| part.poses.first().map(|found| (found.pose.y, found.pose.x));
        sighting.parts.sort_by_key(place);
        Ok(sighting)
    }

    /// Reads a part of a frame, as in the light of the training. Waits until the device has the commands.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        frame: &ClFrame,
        (motion, light): (&Motion, &Light),
        meter: &Meter,
    ) -> Result<(), ClError> {
        match &mut self.colour {
            Some(colour) => (colour.reader).read((&self.whole, frame), motion, light, meter),
            None => self.finder.read(frame, (motion, light), meter),
        }
    }

    /// The part that was read last.
    pub fn part(&self) -> &ClFrame {
        match &self.colour {
            Some(colour) => colour.reader.frame(),
            None => self.finder.part(),
        }
    }
}
