//! Rows of a frame in GStreamer's unpacked form, for frames of any format.

use gst::glib::translate::IntoGlib;
use gst_video::{ffi, prelude::*};

use super::blend::{Alpha, Row};

/// Pixels after a row that GStreamer's functions may write; its own blender allocates them too.
const BEHIND: usize = 8;

/// Whether rows of a format can be unpacked and packed: into four components of 8 or 16 bits, row
/// by row.
pub(super) fn can_be_edited(format: gst_video::VideoFormat) -> bool {
    use gst_video::VideoFormat as Format;
    let info = gst_video::VideoFormatInfo::from_format(format);
    let unpacked = [Format::Ayuv, Format::Argb, Format::Ayuv64, Format::Argb64];
    unpacked.contains(&info.unpack_format()) && info.pack_lines() == 1 && !info.has_palette()
}

/// The rows of a frame that is mapped for writing.
pub(super) struct Rows<'f, 'b> {
    frame: &'f mut gst_video::VideoFrameRef<&'b mut gst::BufferRef>,
    /// GStreamer's functions for the format.
    format: &'static ffi::GstVideoFormatInfo,
    flags: ffi::GstVideoPackFlags,
    is_wide: bool,
    alpha: Alpha,
    line: Vec<[u16; 4]>,
}

impl<'f, 'b> Rows<'f, 'b> {
    /// The frame's planes must lie in its memory (see `planes::check`).
    ///
    /// # Errors
    /// A sentence if GStreamer cannot unpack and pack this format.
    pub fn new(
        frame: &'f mut gst_video::VideoFrameRef<&'b mut gst::BufferRef>,
    ) -> Result<Self, String> {
        let info = frame.format_info();
        let format = info.format();
        if !can_be_edited(format) {
            return Err(format!("GStreamer cannot unpack rows of {format}"));
        }
        // SAFETY: the descriptions of formats are GStreamer's static tables.
        let functions = unsafe { &*ffi::gst_video_format_get_info(format.into_glib()) };
        let is_interlaced = frame
            .flags()
            .contains(gst_video::VideoFrameFlags::INTERLACED);
        // If the rows of a field do not divide evenly among the rows of chroma, GStreamer would
        // access one chroma row more than the frame is sure to have.
        let shared = info.h_sub().iter().copied().max().unwrap_or(0);
        let is_even = frame.height().is_multiple_of(2 << shared);
        let flags = if is_interlaced && is_even {
            ffi::GST_VIDEO_PACK_FLAG_INTERLACED
        } else {
            ffi::GST_VIDEO_PACK_FLAG_NONE
        };
        let is_premultiplied =
            (frame.info().flags()).contains(gst_video::VideoFlags::PREMULTIPLIED_ALPHA);
        let alpha = if info.has_alpha() && !is_premultiplied {
            Alpha::Straight
        } else {
            Alpha::Plain
        };
        let unpacked = gst_video::VideoFormatInfo::from_format(info.unpack_format());
        Ok(Self {
            format: functions,
            flags,
            is_wide: unpacked.depth().first().is_some_and(|&depth| depth > 8),
            alpha,
            line: vec![[0; 4]; frame.width() as usize + BEHIND],
            frame,
        })
    }

    /// Number of rows.
    pub fn height(&self) -> i32 {
        self.frame.height() as i32
    }

    /// Calls `draw` on a row; ignores rows outside the frame.
    ///
    /// If rows share chroma, the chroma of the first of them is kept, as in GStreamer's own
    /// packing.
    pub fn edit(&mut self, y: i32, draw: impl FnOnce(&mut Row)) {
        let (Some(unpack), Some(pack)) = (self.format.unpack_func, self.format.pack_func) else {
            return;
        };
        if !(0..self.height()).contains(&y) {
            return;
        }
        let width = self.frame.width() as usize;
        let frame = self.frame.as_mut_ptr();
        // SAFETY: the frame is mapped for writing while it is borrowed here. Its planes hold the
        // rows that strides and height describe. The line has room for the row in 16-bit samples
        // and for the pixels that are written after it.
        unsafe {
            let frame = &*frame;
            unpack(
                frame.info.finfo,
                self.flags,
                self.line.as_mut_ptr().cast(),
                frame.data.as_ptr(),
                frame.info.stride.as_ptr(),
                0,
                y,
                width as i32,
            );
        }
        let mut row = if self.is_wide {
            Row::Words(&mut self.line[..width], self.alpha)
        } else {
            let bytes: &mut [[u8; 4]] = bytemuck::cast_slice_mut(&mut self.line);
            Row::Bytes(&mut bytes[..width], self.alpha)
        };
        draw(&mut row);
        // SAFETY: as above; the line holds a row in the format's unpacked form.
        unsafe {
            let frame = &mut *frame;
            pack(
                frame.info.finfo,
                self.flags,
                self.line.as_mut_ptr().cast(),
                width as i32,
                frame.data.as_mut_ptr(),
                frame.info.stride.as_ptr(),
                frame.info.chroma_site,
                y,
                width as i32,
            );
        }
    }
}
