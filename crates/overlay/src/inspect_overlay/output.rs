//! How an overlay leaves: drawn into the frame, or beside it for a sink to draw.

use super::{painter::Painter, planes, rows::Rows, shapes::Overlay};

/// What frames of the negotiated caps are drawn with.
#[derive(Debug)]
pub(super) struct Output {
    /// Of the frames.
    frames: gst_video::VideoInfo,
    /// Of the picture that is attached; `None` where frames are drawn on.
    attached: Option<gst_video::VideoInfo>,
    pub painter: Painter,
}

impl Output {
    /// `attach`: downstream takes a GstVideoOverlayCompositionMeta.
    pub fn new(frames: gst_video::VideoInfo, attach: bool) -> Self {
        let (width, height) = (frames.width(), frames.height());
        let picture = gst_video::VideoInfo::builder(gst_video::VideoFormat::Bgra, width, height)
            .flags(gst_video::VideoFlags::PREMULTIPLIED_ALPHA);
        let attached = attach.then(|| picture.build().ok()).flatten();
        Self {
            painter: Painter::new(attached.as_ref().unwrap_or(&frames)),
            frames,
            attached,
        }
    }

    /// Puts an overlay on a frame.
    ///
    /// # Errors
    /// A sentence where the frame cannot be drawn on; it is as it was.
    pub fn put(&self, overlay: &Overlay, frame: &mut gst::Buffer) -> Result<(), String> {
        if let Some(picture) = &self.attached {
            return attach(overlay, picture, frame.make_mut());
        }
        planes::check(frame, &self.frames)?;
        draw(overlay, &self.frames, frame.make_mut())
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

/// Adds a picture of the frame's size to what other elements attached to the frame.
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
    let others = meta.as_ref().map(|meta| meta.overlay_owned());
    let rectangles = others
        .iter()
        .flat_map(|others| others.iter().collect::<Vec<_>>());
    let rectangles: Vec<_> = rectangles.chain([drawn]).collect();
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
