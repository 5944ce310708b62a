//! Draws the overlay of a frame from its results.

use super::{
    bits::{Bits, MaskFormat},
    canvas::{Canvas, Colour},
    colours::ColourSpace,
    defects,
    found::Found,
    histogram,
    masks::TimedMask,
    placement::Placement,
    properties::Settings,
    shapes::Overlay,
    verdict::{self, Wording},
};
use clinspect_results::{DefectResult, HistogramResult};

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
    let buffers = || [Some(frame), mask.map(|mask| mask.buffer.as_ref())];
    let element = &settings.defects_element;
    let result = newest(buffers(), element, DefectResult::read, |r| &r.element);
    let bits = marked(size, mask, result.as_ref()).unwrap_or_else(|fault| {
        overlay.faults.push(fault);
        None
    });
    let wording = match (&result, &bits) {
        (Some(result), _) => Some(Wording::result(result)),
        (None, Some(bits)) => Some(Wording::mask(Some(bits.count()))),
        (None, None) => mask_expected.then(|| Wording::mask(None)),
    };
    let found = Found::new(layout.frame, result.as_ref(), bits.as_ref());
    let wording = wording.filter(|_| settings.draws_verdict());
    let bar = wording.and_then(|text| Some((layout.bar(settings.verdict_position, &found)?, text)));
    let bar_place = bar.as_ref().map(|(place, _)| *place);
    let mut histogram = None;
    if settings.draws_histogram() {
        let element = &settings.histogram_element;
        histogram = newest(buffers(), element, HistogramResult::read, |r| &r.element);
    }
    let panel = histogram.and_then(|histogram| {
        let channels = histogram::channels(&histogram);
        let place = layout.panel(channels, settings.histogram_corner, bar_place, &found)?;
        Some((place, histogram))
    });
    let panel_place = panel.as_ref().map(|(place, _)| *place);
    let kept_clear: Vec<_> = [bar_place, panel_place].into_iter().flatten().collect();
    if settings.draws_defects() && settings.show_boxes {
        overlay.shapes = defects::draw(&layout, settings, colours, &found.defects, &kept_clear);
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
    if settings.draws_defects() && settings.show_tint {
        let drawn = Colour(settings.tint_color).pixel();
        let colour = colours.pixel(drawn, settings.defects_opacity);
        let bits = bits.filter(|bits| bits.count() > 0 && colour[0] > 0);
        overlay.tint = bits.map(|bits| (bits, colour));
    }
    overlay
}

/// The last result of the requested element, on the last buffer that has one.
fn newest<R>(
    buffers: [Option<&gst::BufferRef>; 2],
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
    [width, height]: [u32; 2],
    mask: Option<&TimedMask>,
    result: Option<&DefectResult>,
) -> Result<Option<Bits>, String> {
    let size = [width as usize, height as usize];
    if let Some(mask) = mask {
        return Bits::read(&mask.buffer, &mask.format, size).map(Some);
    }
    let Some((mask, result)) = result.and_then(|result| Some((result.mask.as_ref()?, result)))
    else {
        return Ok(None);
    };
    let format = MaskFormat::packed([result.width as usize, result.height as usize]);
    Bits::read(mask, &format, size).map(Some)
}
