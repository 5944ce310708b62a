//! Draws the overlay of a frame from its results.

use super::{
    bits::{Bits, MaskFormat},
    canvas::{Canvas, Colour},
    colours::{ColourSpace, Pixel},
    defects,
    found::FrameMarks,
    histogram,
    masks::TimedMask,
    placement::Placement,
    properties::Settings,
    shapes::Overlay,
    verdict::{self, Wording},
};
use clinspect_results::{DefectResult, HistogramResult, is_same_shape};

/// Stripes on pixels that are not judged.
const HATCH_LIGHT: Colour = Colour(0x80ff_ffff);
const HATCH_DARK: Colour = Colour(0x8010_1418);

/// The overlay of a frame; empty if there is nothing to draw.
pub(super) fn draw(
    info: &gst_video::VideoInfo,
    colours: &ColourSpace,
    settings: &Settings,
    frame: &gst::BufferRef,
    mask: Option<&TimedMask>,
    mask_expected: bool,
) -> Overlay {
    let mut overlay = Overlay::default();
    if !settings.draws_anything() {
        return overlay;
    }
    let size = [info.width(), info.height()];
    let layout = Placement::new(size, settings.scale);
    let of_mask = mask.map(|mask| mask.buffer.as_ref());
    let other_shape = mask.and_then(|mask| other_shape(info, mask));
    let element = &settings.defects_element;
    let newest_of = |buffer| newest([buffer], element, DefectResult::read, |r| &r.element);
    let result = match newest_of(of_mask) {
        Some(result) => Some(DefectResult {
            is_moved: result.is_moved || other_shape.is_some(),
            ..result
        }),
        None => newest_of(Some(frame)),
    };
    // The verdict holds wherever the defects are.
    let placed = result.as_ref().filter(|result| !result.is_moved);
    if settings.draws_defects() {
        if let Some(fault) = &other_shape {
            overlay.faults.push(fault.clone());
        } else if result.is_some() && placed.is_none() {
            overlay.faults.push(
                "the picture was mirrored, turned, cropped or scaled to another shape after it was inspected, so the places \
                 of the defects are unknown; put inspectoverlay in front of the element that does this"
                    .into(),
            );
        }
    }
    let placed_mask = mask.filter(|_| other_shape.is_none());
    let bits = marked(size, placed_mask, placed).unwrap_or_else(|fault| {
        overlay.faults.push(fault);
        None
    });
    let wording = match (&result, &bits) {
        (Some(result), _) => Some(Wording::result(result)),
        (None, Some(bits)) => Some(Wording::mask(Some(bits.count()))),
        (None, None) if other_shape.is_some() => Some(Wording::no_places()),
        (None, None) => mask_expected.then(|| Wording::mask(None)),
    };
    let found = FrameMarks::new(layout.frame, placed, bits.as_ref());
    let wording = wording.filter(|_| settings.draws_verdict());
    let bar = wording.and_then(|text| Some((layout.bar(settings.verdict_position, &found)?, text)));
    let bar_place = bar.as_ref().map(|(place, _)| *place);
    let mut histogram = None;
    if settings.draws_histogram() {
        let element = &settings.histogram_element;
        let buffers = [Some(frame), of_mask];
        histogram = newest(buffers, element, HistogramResult::read, |r| &r.element);
    }
    let panel = histogram.and_then(|histogram| {
        let channels = histogram::channels(&histogram);
        let place = layout.panel(channels, settings.histogram_corner, bar_place, &found)?;
        Some((place, histogram))
    });
    let panel_place = panel.as_ref().map(|(place, _)| *place);
    let kept_clear: Vec<_> = [bar_place, panel_place].into_iter().flatten().collect();
    if let Some(result) = placed
        && settings.draws_defects()
        && settings.show_boxes
    {
        let found = (result, found.defects.as_slice());
        overlay.shapes = defects::draw(&layout, settings, colours, found, &kept_clear);
    }
    let mut add = |mut canvas: Canvas, opacity| {
        if settings.draws_defects() {
            let ink = Colour(settings.box_color).with_alpha(0xff);
            canvas.mark(&layout, &found, ink);
        }
        overlay.shapes.push(canvas.finish(colours, opacity));
    };
    if let Some((place, histogram)) = panel {
        let panel = histogram::draw(&layout, &histogram, place);
        add(panel, settings.histogram_opacity);
    }
    if let Some((place, wording)) = bar {
        let bar = verdict::draw(&layout, place, &wording);
        add(bar, settings.verdict_opacity);
    }
    if let Some(result) = placed.filter(|_| settings.show_ignored) {
        match packed(size, result, result.ignored.as_ref()) {
            Ok(ignored) => overlay.tints.extend(hatch(&layout, ignored, colours)),
            Err(fault) => overlay.faults.push(fault),
        }
    }
    if settings.draws_defects() && settings.show_tint {
        let drawn = Colour(settings.tint_color).pixel();
        let colour = colours.pixel(drawn, settings.defects_opacity);
        let bits = bits.filter(|bits| bits.count() > 0 && colour[0] > 0);
        overlay.tints.extend(bits.map(|bits| (bits, colour)));
    }
    overlay
}

/// Light and dark stripes on pixels: one of them shows on every picture.
fn hatch(layout: &Placement, bits: Option<Bits>, colours: &ColourSpace) -> Vec<(Bits, Pixel)> {
    let Some(bits) = bits.filter(|bits| bits.count() > 0) else {
        return Vec::new();
    };
    let stripe = 2 * layout.line as usize;
    let stripes = [HATCH_LIGHT, HATCH_DARK].into_iter().zip(0..);
    stripes
        .map(|(colour, n)| (bits.striped(stripe, n), colours.pixel(colour.pixel(), 1.0)))
        .collect()
}

/// Why the marks of a mask have no place in the picture, if its shape is another one: the frames were cropped or turned on
/// their way, or got borders. The pixel aspect ratio of a mask is not known: the inspected frames had that of the picture, or
/// square pixels.
fn other_shape(info: &gst_video::VideoInfo, mask: &TimedMask) -> Option<String> {
    let ratio = f64::from(info.par().numer()) / f64::from(info.par().denom());
    let [width, height] = [info.width(), info.height()].map(f64::from);
    let [mask_width, mask_height] = mask.format.size.map(|n| n as f64);
    let fits = [ratio, 1.0]
        .iter()
        .any(|of_mask| is_same_shape([mask_width, mask_height, *of_mask], [width, height, ratio]));
    (!fits).then(|| {
        format!(
            "the picture of {width}x{height} has another shape than the mask of {mask_width}x{mask_height}, so the places of \
             the defects are unknown; show the whole inspected picture, and mirror, turn or crop behind inspectoverlay"
        )
    })
}

/// The last result of the requested element, on the last buffer that has one.
fn newest<R, const N: usize>(
    buffers: [Option<&gst::BufferRef>; N],
    element: &str,
    read: impl Fn(&gst::BufferRef) -> Vec<R>,
    name: impl Fn(&R) -> &String,
) -> Option<R> {
    let found = buffers.into_iter().flatten().flat_map(read);
    found
        .filter(|result| element.is_empty() || name(result) == element)
        .last()
}

/// The marked pixels: from the mask pad, otherwise from the result's own mask.
fn marked(
    size: [u32; 2],
    mask: Option<&TimedMask>,
    result: Option<&DefectResult>,
) -> Result<Option<Bits>, String> {
    match (mask, result) {
        (Some(mask), _) => Bits::read(&mask.buffer, &mask.format, usizes(size)).map(Some),
        (None, Some(result)) => packed(size, result, result.mask.as_ref()),
        (None, None) => Ok(None),
    }
}

/// The pixels of a packed mask of a result, if there is one.
fn packed(
    size: [u32; 2],
    result: &DefectResult,
    mask: Option<&gst::Buffer>,
) -> Result<Option<Bits>, String> {
    let format = MaskFormat::packed(usizes([result.width, result.height]));
    let read = |mask: &gst::Buffer| Bits::read(mask, &format, usizes(size));
    mask.map(read).transpose()
}

fn usizes(size: [u32; 2]) -> [usize; 2] {
    size.map(|n| n as usize)
}
