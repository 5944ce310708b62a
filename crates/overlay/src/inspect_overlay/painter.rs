//! Draws the overlay of a frame from its results.

use super::{
    bits::{Bits, MaskFormat},
    canvas::Colour,
    colours::ColourSpace,
    defects, histogram,
    placement::Placement,
    properties::Settings,
    shapes::{Overlay, Shape},
    text::Type,
    verdict::{self, Wording},
};
use clinspect_results::{DefectResult, HistogramResult};

/// The results of a frame.
pub(super) struct Findings<'a> {
    /// The frame, with its metas.
    pub frame: &'a gst::BufferRef,
    /// The frame's mask from the mask pad, with its metas.
    pub mask: Option<(&'a gst::BufferRef, &'a MaskFormat)>,
    /// Whether a mask was expected.
    pub mask_expected: bool,
}

/// Draws overlays.
#[derive(Debug)]
pub(super) struct Painter {
    size: [u32; 2],
    colours: ColourSpace,
    letters: Type,
}

impl Painter {
    /// A painter for frames of these caps.
    pub fn new(info: &gst_video::VideoInfo) -> Self {
        Self {
            size: [info.width(), info.height()],
            colours: ColourSpace::of(info),
            letters: Type::default(),
        }
    }

    /// The overlay of a frame; empty if there is nothing to draw.
    pub fn draw(&mut self, settings: &Settings, findings: &Findings) -> Overlay {
        let mut overlay = Overlay::default();
        let size = self.size;
        let layout = Placement::new(size, settings.scale);
        let buffers = || [Some(findings.frame), findings.mask.map(|mask| mask.0)];
        let (mut result, mut bits) = (None, None);
        if settings.draws_defects() || settings.draws_verdict() {
            let element = &settings.defects_element;
            result = newest(buffers(), element, DefectResult::read, |r| &r.element);
            bits = marked(size, findings, result.as_ref()).unwrap_or_else(|fault| {
                overlay.faults.push(fault);
                None
            });
        }
        let wording = match (&result, &bits) {
            (Some(result), _) => Some(Wording::result(result)),
            (None, Some(bits)) => Some(Wording::mask(Some(bits.count()))),
            (None, None) => findings.mask_expected.then(|| Wording::mask(None)),
        };
        let wording = wording.filter(|_| settings.draws_verdict());
        let bar = wording.and_then(|text| Some((layout.bar(settings.verdict_position)?, text)));
        let mut histogram = None;
        if settings.draws_histogram() {
            let element = &settings.histogram_element;
            histogram = newest(buffers(), element, HistogramResult::read, |r| &r.element);
        }
        let panel = histogram.and_then(|histogram| {
            let bar = bar.as_ref().map(|(place, _)| *place);
            let place = histogram::place(&layout, settings, &histogram, bar)?;
            Some((place, histogram))
        });

        let mut kept_clear = Vec::new();
        kept_clear.extend(bar.as_ref().map(|(place, _)| *place));
        kept_clear.extend(panel.as_ref().map(|(place, _)| place.area));
        let (letters, colours) = (&mut self.letters, &self.colours);
        if settings.draws_defects() {
            if let Some(result) = result.as_ref().filter(|_| settings.show_boxes) {
                let style = (&mut *letters, colours);
                overlay.shapes = defects::draw(&layout, settings, style, result, &kept_clear);
            }
            let marked = bits.filter(|bits| settings.show_tint && bits.count() > 0);
            overlay.tint = marked.map(|bits| {
                let drawn = Colour(settings.tint_color).pixel();
                (bits, colours.pixel(drawn, settings.defects_opacity))
            });
        }
        if let Some((place, histogram)) = panel {
            let panel = histogram::draw(&layout, letters, &histogram, &place);
            let piece = panel.finish(colours, settings.histogram_opacity);
            overlay.shapes.push(Shape::Sprite(piece));
        }
        if let Some((place, wording)) = bar {
            let bar = verdict::draw(&layout, letters, place, &wording);
            let piece = bar.finish(colours, settings.verdict_opacity);
            overlay.shapes.push(Shape::Sprite(piece));
        }
        overlay.tint.take_if(|(_, colour)| colour[0] == 0);
        overlay
    }
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
    findings: &Findings,
    result: Option<&DefectResult>,
) -> Result<Option<Bits>, String> {
    let size = [width as usize, height as usize];
    if let Some((mask, format)) = findings.mask {
        return Bits::read(mask, format, size).map(Some);
    }
    let Some((mask, result)) = result.and_then(|result| Some((result.mask.as_ref()?, result)))
    else {
        return Ok(None);
    };
    let format = MaskFormat::packed([result.width as usize, result.height as usize]);
    Bits::read(mask, &format, size).map(Some)
}
