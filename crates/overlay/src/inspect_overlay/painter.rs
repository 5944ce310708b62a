//! What a frame's overlay is made of, and the overlay itself.

use super::{
    bits::{Bits, MaskFormat},
    canvas::Colour,
    colours::ColourSpace,
    defects,
    histogram::Panel,
    layout::Layout,
    properties::Settings,
    shapes::Overlay,
    text::Type,
    verdict::{Bar, Known, Wording},
};
use clinspect_core::mask::packed_stride;
use clinspect_results::{DefectResult, HistogramResult};

/// What belongs to a frame.
pub(super) struct Findings<'a> {
    /// The frame, with its metas.
    pub frame: &'a gst::BufferRef,
    /// Its mask from the mask pad, with metas.
    pub mask: Option<(&'a gst::BufferRef, &'a MaskFormat)>,
    /// A mask was to come.
    pub mask_expected: bool,
}

/// Draws overlays; keeps what looks the same on the next frame.
#[derive(Debug)]
pub(super) struct Painter {
    size: [u32; 2],
    colours: ColourSpace,
    letters: Type,
    panel: Panel,
    bar: Bar,
}

impl Painter {
    /// Draws on frames of these caps.
    pub fn new(info: &gst_video::VideoInfo) -> Self {
        Self {
            size: [info.width(), info.height()],
            colours: ColourSpace::of(info),
            letters: Type::default(),
            panel: Panel::default(),
            bar: Bar::default(),
        }
    }

    /// The overlay of a frame; empty where there is nothing to draw.
    pub fn draw(&mut self, settings: &Settings, findings: &Findings) -> Overlay {
        let mut overlay = Overlay::default();
        let size = self.size;
        let layout = Layout::new(size, settings.scale);
        let buffers = || [Some(findings.frame), findings.mask.map(|mask| mask.0)];
        let wants_result = settings.draws_defects() || settings.draws_verdict();
        let result = wants_result
            .then(|| {
                newest(
                    buffers(),
                    &settings.defects_element,
                    DefectResult::read,
                    |r| &r.element,
                )
            })
            .flatten();
        let bits = wants_result
            .then(|| bits(size, findings, result.as_ref()).transpose())
            .flatten();
        let bits = match bits {
            Some(Ok(bits)) => Some(bits),
            Some(Err(fault)) => {
                overlay.faults.push(fault);
                None
            }
            None => None,
        };

        let known = match (&result, &bits) {
            (Some(result), _) => Some(Known::Result(result)),
            (None, Some(bits)) => Some(Known::Mask(bits.count())),
            (None, None) => findings.mask_expected.then_some(Known::Missing),
        };
        let known = known.filter(|_| settings.draws_verdict());
        let bar = known
            .and_then(|known| Some((layout.bar(settings.verdict_position)?, Wording::new(known))));
        let histogram = settings.draws_histogram().then(|| {
            let element = &settings.histogram_element;
            newest(buffers(), element, HistogramResult::read, |r| &r.element)
        });
        let panel = histogram.flatten().and_then(|histogram| {
            let bar = bar.as_ref().map(|(place, _)| *place);
            let place = Panel::place(&layout, settings, &histogram, bar)?;
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
            let marked = bits.filter(|bits| settings.show_tint && !bits.is_clear());
            overlay.tint = marked.map(|bits| {
                let drawn = Colour(settings.tint_color).pixel();
                (bits, colours.pixel(drawn, settings.defects_opacity))
            });
        }
        if let Some((place, histogram)) = panel {
            let style = (&mut *letters, colours);
            let drawn = self.panel.draw(&layout, settings, style, histogram, place);
            overlay.shapes.extend(drawn);
        }
        if let Some((place, wording)) = bar {
            let opacity = settings.verdict_opacity;
            let style = (letters, colours);
            let drawn = self.bar.draw(&layout, style, place, opacity, wording);
            overlay.shapes.extend(drawn);
        }
        overlay.tint.take_if(|(_, colour)| colour[0] == 0);
        overlay
    }
}

/// The last result on the last buffer that has one, of the element that is asked for.
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

/// The marked pixels: the mask pad's, else those that the result came with.
fn bits(
    [width, height]: [u32; 2],
    findings: &Findings,
    result: Option<&DefectResult>,
) -> Result<Option<Bits>, String> {
    let size = [width as usize, height as usize];
    if let Some((mask, format)) = findings.mask {
        return Bits::read(mask, format, size).map(Some);
    }
    let Some(result) = result else {
        return Ok(None);
    };
    let Some(mask) = &result.mask else {
        return Ok(None);
    };
    let (width, height) = (result.width as usize, result.height as usize);
    let format = MaskFormat::packed(width, height, packed_stride(width));
    Bits::read(mask, &format, size).map(Some)
}
