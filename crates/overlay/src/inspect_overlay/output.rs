//! Outputs an overlay: blends it into the frame, or attaches it for a sink to draw.

use super::{colours::ColourSpace, planes, rows::Rows, shapes::Overlay};

/// Draws on frames of the negotiated caps.
#[derive(Debug)]
pub(super) struct Output {
    /// Format of what is drawn on: of the attached picture, otherwise of the frames.
    pub drawn: gst_video::VideoInfo,
    pub colours: ColourSpace,
    is_attached: bool,
}

impl Output {
    /// `attach` is true if downstream accepts a GstVideoOverlayCompositionMeta.
    pub fn new(frames: gst_video::VideoInfo, attach: bool) -> Self {
        let (width, height) = (frames.width(), frames.height());
        let picture = gst_video::VideoInfo::builder(gst_video::VideoFormat::Bgra, width, height)
            .par(frames.par())
            .flags(gst_video::VideoFlags::PREMULTIPLIED_ALPHA);
        let attached = attach.then(|| picture.build().ok()).flatten();
        let is_attached = attached.is_some();
        let drawn = attached.unwrap_or(frames);
        Self {
            colours: ColourSpace::of(&drawn),
            drawn,
            is_attached,
        }
    }

    /// Puts an overlay on a frame.
    ///
    /// # Errors
    /// A sentence if the frame cannot be drawn on; the frame is unchanged then.
    pub fn put(&self, overlay: &Overlay, frame: &mut gst::Buffer) -> Result<(), String> {
        if self.is_attached {
            return attach(overlay, &self.drawn, frame.make_mut());
        }
        planes::check(frame, &self.drawn)?;
        draw(overlay, &self.drawn, frame.make_mut())
    }
}

fn draw(
    overlay: &Overlay,
    info: &gst_video::VideoInfo,
    frame: &mut gst::BufferRef,
) -> Result<(), String> {
    let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(frame, info)
        .map_err(|_| "the frame cannot be written".to_owned())?;
    overlay.blend(&mut Rows::new(&mut frame)?);
    Ok(())
}

/// Adds a picture of the frame's size to the composition that other elements attached.
fn attach(
    overlay: &Overlay,
    info: &gst_video::VideoInfo,
    frame: &mut gst::BufferRef,
) -> Result<(), String> {
    let (width, height) = (info.width(), info.height());
    let mut picture = gst::Buffer::from_mut_slice(vec![0_u8; info.size()]);
    let pixels = picture.make_mut();
    let flags = gst_video::VideoFrameFlags::empty();
    gst_video::VideoMeta::add(pixels, flags, info.format(), width, height)
        .map_err(|error| error.to_string())?;
    draw(overlay, info, pixels)?;
    let premultiplied = gst_video::VideoOverlayFormatFlags::PREMULTIPLIED_ALPHA;
    let drawn =
        gst_video::VideoOverlayRectangle::new_raw(&picture, 0, 0, width, height, premultiplied);
    let meta = frame.meta_mut::<gst_video::VideoOverlayCompositionMeta>();
    let mut rectangles = meta
        .as_ref()
        .map_or(Vec::new(), |meta| meta.overlay().iter().collect());
    rectangles.push(drawn);
    let composition =
        gst_video::VideoOverlayComposition::new(&rectangles).map_err(|error| error.to_string())?;
    match meta {
        Some(mut meta) => meta.set_overlay(&composition),
        None => {
            gst_video::VideoOverlayCompositionMeta::add(frame, &composition);
        }
    }
    Ok(())
}
