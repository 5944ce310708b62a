//! Checks that a buffer holds the planes of its GstVideoMeta. GStreamer maps a plane by its first
//! byte only, and then reads and blends as far as stride and height reach.

/// Bytes per row that are accessed, and the number of rows; `None` if the stride of the caps
/// overflowed.
fn plane_size(info: &gst_video::VideoInfo, plane: usize) -> Option<[usize; 2]> {
    let stride = usize::try_from(*info.stride().get(plane)?).ok()?;
    let (mut row, mut rows) = (0, 0);
    for component in 0..info.n_components() as u8 {
        if info.comp_plane(component) != plane as u32 {
            continue;
        }
        let pixel = usize::try_from(info.comp_pstride(component)).ok()?;
        // Formats that group pixels have no single pixel stride: use GStreamer's own row length.
        let is_grouped = info.format_info().is_complex() || pixel == 0;
        row = row.max(if is_grouped {
            stride
        } else {
            pixel.checked_mul(info.comp_width(component) as usize)?
        });
        rows = rows.max(info.comp_height(component) as usize);
    }
    (row <= stride).then_some([row, rows])
}

/// The format of frames of these caps.
///
/// # Errors
/// A sentence if such frames cannot be drawn on.
pub(super) fn info(caps: &gst::CapsRef) -> Result<gst_video::VideoInfo, String> {
    let info = gst_video::VideoInfo::from_caps(caps).map_err(|error| error.to_string())?;
    let mut planes = 0..info.n_planes() as usize;
    let is_sound = info.format_info().is_tiled() || planes.all(|n| plane_size(&info, n).is_some());
    is_sound
        .then_some(info)
        .ok_or_else(|| format!("{caps} is too wide for a frame"))
}

/// # Errors
/// A sentence if a plane exceeds its memory.
pub(super) fn check(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Result<(), String> {
    let Some(meta) = buffer.meta::<gst_video::VideoMeta>() else {
        // GStreamer itself compares the buffer's size with that of the caps.
        return Ok(());
    };
    let fits = || {
        let same = meta.format() == info.format()
            && [meta.width(), meta.height()] == [info.width(), info.height()]
            && meta.n_planes() == info.n_planes();
        if !same {
            return None;
        }
        if info.format_info().is_tiled() {
            // For tiled formats a stride holds numbers of tiles, so only GStreamer's own layout is
            // accepted.
            let known = meta.stride() == info.stride() && meta.offset() == info.offset();
            return (known && buffer.size() >= info.size()).then_some(());
        }
        for plane in 0..info.n_planes() as usize {
            let [row, rows] = plane_size(info, plane)?;
            let stride = usize::try_from(*meta.stride().get(plane)?).ok()?;
            let offset = *meta.offset().get(plane)?;
            let before_last = stride.checked_mul(rows.checked_sub(1)?)?;
            let len = before_last.checked_add(row)?;
            let end = offset.checked_add(len)?;
            if stride < row {
                return None;
            }
            // GStreamer maps a plane with the memory that holds its first byte. `find_memory` fails
            // if the plane ends after the buffer.
            let (memories, _) = buffer.find_memory(offset..end)?;
            if memories.len() != 1 {
                return None;
            }
        }
        Some(())
    };
    fits().ok_or_else(|| "the GstVideoMeta of a frame exceeds the frame's memory".to_owned())
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat as Format;

    use super::*;

    /// Whether a buffer of `len` bytes with such a meta passes as a frame of `format`.
    fn passes(info: &gst_video::VideoInfo, len: usize, offset: &[usize], stride: &[i32]) -> bool {
        let mut buffer = gst::Buffer::from_slice(vec![0_u8; len]);
        let (flags, format) = (gst_video::VideoFrameFlags::empty(), info.format());
        let (width, height) = (info.width(), info.height());
        let added = buffer.get_mut().is_some_and(|buffer| {
            gst_video::VideoMeta::add_full(buffer, flags, format, width, height, offset, stride)
                .is_ok()
        });
        added && check(&buffer, info).is_ok()
    }

    fn info(format: Format, width: u32, height: u32) -> Option<gst_video::VideoInfo> {
        gst::init().ok();
        let info = gst_video::VideoInfo::builder(format, width, height);
        info.build().ok()
    }

    #[test]
    fn planes_that_fit_to_the_byte_pass_and_others_do_not() {
        let info = info(Format::Nv12, 7, 5);
        let passes = |len, offset: &[usize], stride: &[i32]| {
            (info.as_ref()).is_some_and(|info| passes(info, len, offset, stride))
        };
        // Luma: 5 rows of 7; chroma: 3 rows of 4 pairs.
        let end = 35 + 2 * 8 + 8;
        assert!(passes(end, &[0, 35], &[7, 8]));
        assert!(!passes(end - 1, &[0, 35], &[7, 8]));
        assert!(!passes(end, &[1, 36], &[7, 8]));
        assert!(!passes(end, &[0, 35], &[7, 9]));
        assert!(!passes(end, &[0, 35], &[6, 8]));
        assert!(!passes(end, &[0, 35], &[7, -8]));
        assert!(!passes(end, &[0, usize::MAX - 3], &[7, 8]));
    }

    #[test]
    fn tiled_planes_pass_as_gstreamer_arranges_them() {
        let info = info(Format::Nv124l4, 64, 32);
        assert!(info.is_some());
        let Some(info) = info else { return };
        for (missing, offset_by, wanted) in [(0, 0, true), (1, 0, false), (0, 16, false)] {
            // Shifted planes are refused although they fit.
            let len = info.size() + offset_by - missing;
            let offset: Vec<usize> = info.offset().iter().map(|at| at + offset_by).collect();
            let passes = passes(&info, len, &offset, info.stride());
            assert_eq!(passes, wanted, "{missing} {offset_by}");
        }
    }

    #[test]
    fn caps_whose_strides_overflow_are_refused() {
        // Every format of a common size passes: `every_raw_format_is_drawn_on`.
        for (width, wanted) in [(97, true), (i32::MAX, false)] {
            gst::init().ok();
            let caps = gst::Caps::builder("video/x-raw").field("format", "RGB");
            let caps = caps.field("width", width).field("height", 1);
            let caps = caps.field("framerate", gst::Fraction::new(25, 1));
            assert_eq!(super::info(&caps.build()).is_ok(), wanted, "{width}");
        }
    }
}
