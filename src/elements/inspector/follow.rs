//! Regions of interest that follow a part which an element ahead finds.

use std::sync::Arc;

use gst::{prelude::*, subclass::prelude::*};

use super::{Comparing, Ignore, InspectorStream, regions};
use crate::elements::{
    base_filter::{ClBaseFilter, Frame, Target},
    checked::CheckedValue,
    property_table::{Row, properties},
};
use clinspect_core::{
    ClError,
    ignored::{Ignored, Polygon},
    region::Rect,
};
use clinspect_operators::Inspection;
use clinspect_results::{Alignment, DefectResult, Unplaced};

/// Regions of interest that may follow a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoiSettings {
    /// Places of the frame, or of the model.
    pub rois: CheckedValue<Vec<[u32; 4]>>,
    /// They follow.
    pub follow: bool,
}

/// The pixels that are judged.
pub struct Regions<'a> {
    /// In these regions.
    pub rois: &'a RoiSettings,
    /// Without these.
    pub ignore: &'a Ignore,
}

pub fn roi_rows() -> Vec<Row<RoiSettings>> {
    properties!(RoiSettings {
        regions(
            "rois", "Regions of interest",
            "Pixels to judge, <<x, y, width, height>, ...>; empty = whole frame"
        ) = rois;
        boolean(
            "rois-follow", "Regions follow",
            "rois are places of the model of a clreference ahead (output=frame), and lie in each frame where it has found \
             the part; a frame without a found part gets the verdict none; false = rois are places of the frame"
        ) = follow;
    })
}

/// Where the part lies in the last frame.
#[derive(Default)]
pub(super) struct Place {
    /// Pixels that are not judged, if regions follow.
    pub ignored: Option<Arc<Ignored>>,
    /// Why the place is not known.
    pub unplaced: Option<Unplaced>,
    /// The reason that was warned of.
    warned: Option<Unplaced>,
}

/// The pixels to judge in the frames of a target: rectangles, empty for all, and pixels that are ignored. Those of regions
/// that follow a part change from frame to frame; these are the ones of a frame that lies as the model does.
///
/// # Errors
/// [`ClError::Refused`] for a region outside the frames, for a mask that does not fit, and for regions that follow in strips
/// of a web.
pub fn judged_pixels(
    target: &Target,
    Regions { rois, ignore }: Regions,
) -> Result<(Vec<Rect>, Option<Arc<Ignored>>), ClError> {
    let rects = regions(&rois.rois, target)?;
    let size @ [width, height] = [target.layout.width, target.layout.height];
    if !rois.follow {
        let height = (!target.line_scan).then_some(height);
        return Ok((rects, ignore.pixels(width, height)?));
    }
    if target.line_scan {
        return Err(ClError::Refused(
            "rois-follow=true needs frames, because no part is found in the strips of a web; set line-scan=false".into(),
        ));
    }
    let still = Alignment::translation([0.0; 2]);
    let polygons = polygons(&corners(size, rois, &still)).map_err(ClError::Refused)?;
    Ok((Vec::new(), Some(outside(ignore, size, polygons)?)))
}

/// The pixels of frames that are ignored, and those outside of polygons.
fn outside(
    ignore: &Ignore,
    [width, height]: [usize; 2],
    polygons: Vec<Polygon>,
) -> Result<Arc<Ignored>, ClError> {
    let ignored = match ignore.pixels(width, Some(height))? {
        Some(ignored) => ignored.outside(polygons),
        None => Ignored::new(width, Some(height), None, Vec::new())
            .map_err(ClError::Refused)?
            .outside(polygons),
    };
    Ok(Arc::new(ignored))
}

/// The corners of the regions in the frame; without regions, those of the model's picture.
fn corners(size: [usize; 2], rois: &RoiSettings, transform: &[f64; 6]) -> Vec<[f64; 8]> {
    let whole = [[0, 0, size[0] as u32, size[1] as u32]];
    let rois = match &rois.rois.usable()[..] {
        [] => &whole[..],
        rois => rois,
    };
    let [x0, xx, xy, y0, yx, yy] = *transform;
    // A transform tells where the centre of a pixel goes, which is half a pixel away from its corner.
    let moved = |x: f64, y: f64| {
        let (x, y) = (x - 0.5, y - 0.5);
        [x0 + xx * x + xy * y + 0.5, y0 + yx * x + yy * y + 0.5]
    };
    let corners = rois.iter().map(|&[x, y, width, height]| {
        let (left, top) = (f64::from(x), f64::from(y));
        let (right, bottom) = (left + f64::from(width), top + f64::from(height));
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        let [a, b, c, d] = corners.map(|(x, y)| moved(x, y));
        [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
    });
    corners.collect()
}

fn polygons(corners: &[[f64; 8]]) -> Result<Vec<Polygon>, String> {
    corners.iter().map(|points| Polygon::new(points)).collect()
}

/// Whether a polygon's box has a part in a frame.
fn touches(size: [usize; 2], corners: &[f64; 8]) -> bool {
    let along = |axis: usize| {
        let at = corners.iter().skip(axis).step_by(2).copied();
        let (least, most) = (
            at.clone().fold(f64::INFINITY, f64::min),
            at.fold(f64::NEG_INFINITY, f64::max),
        );
        most > 0.0 && least < size[axis] as f64
    };
    along(0) && along(1)
}

/// The transform from the model to a frame of this size, by the last element ahead that has compared the frame with one.
fn transform_of(results: Vec<DefectResult>, size: [usize; 2]) -> Result<[f64; 6], Unplaced> {
    let aligned = |result: DefectResult| result.alignment.map(|found| (result, found));
    let (result, found) = (results.into_iter().rev())
        .find_map(aligned)
        .ok_or(Unplaced::NoPlace)?;
    if result.is_moved {
        return Err(Unplaced::Moved);
    }
    if !found.matched {
        return Err(Unplaced::Unmatched);
    }
    // A scaler may have changed the size, but not the shape.
    let [x, y] = [(size[0], result.width), (size[1], result.height)]
        .map(|(now, then)| now as f64 / f64::from(then));
    let [x0, xx, xy, y0, yx, yy] = found.transform;
    Ok([x * x0, x * xx, x * xy, y * y0, y * yx, y * yy])
}

impl<C: Comparing> InspectorStream<C> {
    /// Gives the operator the regions where the part lies in a frame, if they follow one. If this is not known, no pixel is
    /// judged.
    pub(super) fn follow_part(&mut self, frame: &Frame) -> Result<(), ClError> {
        let in_force = self.live.in_force()?;
        let regions = C::regions(&in_force.settings).filter(|regions| regions.rois.follow);
        let Some(Regions { rois, ignore }) = regions else {
            self.place = Place::default();
            return Ok(());
        };
        let (size, _) = self.frames;
        let results = DefectResult::read(frame.buffer());
        let is_training = results.iter().any(|result| result.training.is_some());
        let found = transform_of(results, size).and_then(|transform| {
            let corners = corners(size, rois, &transform);
            match polygons(&corners) {
                Ok(polygons) if corners.iter().any(|corners| touches(size, corners)) => {
                    Ok(polygons)
                }
                Ok(_) => Err(Unplaced::Outside),
                // Another program has written numbers that are none.
                Err(_) => Err(Unplaced::NoPlace),
            }
        });
        let unplaced = found.as_ref().err().copied();
        let ignored = outside(ignore, size, found.unwrap_or_default())?;
        in_force.operator.set_ignored(&ignored)?;
        self.place.ignored = Some(ignored);
        self.place.unplaced = unplaced;
        if !is_training {
            self.warn_unplaced();
        }
        Ok(())
    }

    /// Warns of a reason that lies in the pipeline, once.
    fn warn_unplaced(&mut self) {
        let now = self.place.unplaced;
        let lies_in_pipeline = matches!(now, Some(Unplaced::NoPlace | Unplaced::Moved));
        if lies_in_pipeline && self.place.warned != now {
            let element = self.element.obj();
            let element: &ClBaseFilter = element.upcast_ref();
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                ("{}", now.map(|why| why.to_string()).unwrap_or_default()),
                ["frames get the verdict none"]
            );
            self.place.warned = now;
        }
    }
}
