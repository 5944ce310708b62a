//! Whether a buffer holds the planes that its GstVideoMeta promises. GStreamer maps a plane by its
//! first byte, and blends and reads as far as stride and height say.

/// What a plane needs of its memory.
struct PlaneSize {
    /// Bytes of a row that are read or written.
    row: usize,
    rows: usize,
}

/// The planes of a format; `None` where the caps' own strides have overflowed.
fn plane_sizes(info: &gst_video::VideoInfo) -> Option<Vec<PlaneSize>> {
    let format = info.format_info();
    let mut planes: Vec<PlaneSize> = Vec::new();
    for plane in 0..info.n_planes() as usize {
        let stride = usize::try_from(*info.stride().get(plane)?).ok()?;
        let mut size = PlaneSize { row: 0, rows: 0 };
        for component in 0..format.n_components() as usize {
            if format.plane().get(component).copied() != Some(plane as u32) {
                continue;
            }
            let pixel = usize::try_from(*format.pixel_stride().get(component)?).ok()?;
            let width = format.scale_width(component as u8, info.width()) as usize;
            let height = format.scale_height(component as u8, info.height()) as usize;
            // Groups of pixels have no stride of one: their rows are as long as GStreamer makes them.
            let row = if format.is_complex() || pixel == 0 {
                stride
            } else {
                width.checked_mul(pixel)?
            };
            size = PlaneSize {
                row: size.row.max(row),
                rows: size.rows.max(height),
            };
        }
        if size.row > stride {
            return None;
        }
        planes.push(size);
    }
    Some(planes)
}

/// Whether frames of these caps can be drawn on.
pub(super) fn are_sound(info: &gst_video::VideoInfo) -> bool {
    info.format_info().is_tiled() || plane_sizes(info).is_some()
}

/// # Errors
/// A sentence where a plane reaches beyond its memory.
pub(super) fn check(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Result<(), String> {
    let Some(meta) = buffer.meta::<gst_video::VideoMeta>() else {
        // GStreamer compares the buffer's size with that of the caps.
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
            // A stride holds numbers of tiles there: only GStreamer's own arrangement is known.
            let known = meta.stride() == info.stride() && meta.offset() == info.offset();
            return (known && buffer.size() >= info.size()).then_some(());
        }
        for (plane, size) in plane_sizes(info)?.iter().enumerate() {
            let stride = usize::try_from(*meta.stride().get(plane)?).ok()?;
            let offset = *meta.offset().get(plane)?;
            let before_last = stride.checked_mul(size.rows.checked_sub(1)?)?;
            let len = before_last.checked_add(size.row)?;
            let end = offset.checked_add(len)?;
            if stride < size.row {
                return None;
            }
            // A plane is mapped with the memory that its first byte lies in. Nothing is found
            // where it ends behind the buffer.
            let (memories, _) = buffer.find_memory(offset..end)?;
            if memories.len() != 1 {
                return None;
            }
        }
        Some(())
    };
    fits().ok_or_else(|| "the GstVideoMeta of a frame reaches beyond its memory".to_owned())
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat as Format;

    use super::*;

    fn info(format: Format, width: u32, height: u32) -> Option<gst_video::VideoInfo> {
        gst::init().ok();
        gst_video::VideoInfo::builder(format, width, height)
            .build()
            .ok()
    }

    /// Whether a buffer of so many bytes passes with a meta that says so.
    fn passes(len: usize, offset: &[usize], stride: &[i32]) -> bool {
        let Some(info) = info(Format::Nv12, 7, 5) else {
            return false;
        };
        let mut buffer = gst::Buffer::from_slice(vec![0_u8; len]);
        let added = buffer.get_mut().is_some_and(|buffer| {
            let flags = gst_video::VideoFrameFlags::empty();
            gst_video::VideoMeta::add_full(buffer, flags, Format::Nv12, 7, 5, offset, stride)
                .is_ok()
        });
        added && check(&buffer, &info).is_ok()
    }

    #[test]
    fn planes_that_fit_to_the_byte_pass_and_others_do_not() {
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
            // Room for planes that are shifted, which are refused although they fit.
            let len = info.size() + offset_by - missing;
            let mut buffer = gst::Buffer::from_slice(vec![0_u8; len]);
            let offset: Vec<usize> = info.offset().iter().map(|at| at + offset_by).collect();
            let added = buffer.get_mut().is_some_and(|buffer| {
                let flags = gst_video::VideoFrameFlags::empty();
                let (format, stride) = (info.format(), info.stride());
                gst_video::VideoMeta::add_full(buffer, flags, format, 64, 32, &offset, stride)
                    .is_ok()
            });
            let passes = added && check(&buffer, &info).is_ok();
            assert_eq!(passes, wanted, "{missing} {offset_by}");
        }
    }

    #[test]
    fn every_format_of_a_common_size_is_sound() {
        for &format in super::super::formats().iter() {
            let sound = info(format, 97, 65).is_some_and(|info| are_sound(&info));
            assert!(sound, "{format}");
        }
        // GStreamer's stride has overflowed, or it refuses the size itself.
        let wide = info(Format::Rgb, i32::MAX as u32, 1);
        assert!(!wide.is_some_and(|info| are_sound(&info)));
    }
}
