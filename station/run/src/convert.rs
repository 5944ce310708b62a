//! Frames in another format or size.
//!
//! GStreamer's converter is called as a function: its elements refuse frames of more than 32 767 rows or columns, which
//! line cameras send.

/// Width and height of a picture with square pixels that shows a frame: within `most`, and not larger than needed to
/// keep every row and column of the frame.
pub fn square_size(info: &gst_video::VideoInfo, most: [u32; 2]) -> [u32; 2] {
    let pixel = info.par();
    let is_given = pixel.numer() > 0 && pixel.denom() > 0;
    let ratio = if is_given {
        f64::from(pixel.numer()) / f64::from(pixel.denom())
    } else {
        1.0
    };
    let width = f64::from(info.width()) * ratio.max(1.0);
    let height = f64::from(info.height()) / ratio.min(1.0);
    let [most_width, most_height] = most.map(f64::from);
    let scale = (most_width / width).min(most_height / height).min(1.0);
    // A very narrow frame keeps a column, and a very low one keeps a row.
    [width, height].map(|side| ((side * scale).round() as u32).max(1))
}

/// A copy of the frame's pixels in this format and size, and its description. The description has square pixels.
///
/// # Errors
/// A sentence if the frame cannot be read or converted.
pub fn converted(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    format: gst_video::VideoFormat,
    [width, height]: [u32; 2],
) -> Result<(gst::Buffer, gst_video::VideoInfo), String> {
    let from = info.format();
    let failed = |error| format!("GStreamer cannot convert {from} to {format}: {error}");
    // The converter refuses another frame rate or interlacing.
    let target = gst_video::VideoInfo::builder(format, width, height)
        .fps(info.fps())
        .interlace_mode(info.interlace_mode())
        .build()
        .map_err(failed)?;
    let converter = gst_video::VideoConverter::new(info, &target, None).map_err(failed)?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
    let frame = frame.map_err(|_| format!("GStreamer cannot read the {from} frame"))?;
    let copy = gst::Buffer::with_size(target.size()).map_err(failed)?;
    let copy = gst_video::VideoFrame::from_buffer_writable(copy, &target);
    let mut copy = copy.map_err(|_| "no memory for a picture".to_owned())?;
    converter.frame_ref(&frame, &mut copy.as_mut_video_frame_ref());
    Ok((copy.into_buffer(), target))
}

#[cfg(test)]
mod tests {
    use gst_video::{VideoFormat, VideoInfo};

    use super::*;

    #[test]
    fn pictures_are_square_and_within_the_limits_on_both_axes() {
        gst::init().unwrap_or_else(|error| eprintln!("{error}"));
        let most = [1280, 16_384];
        for (size, pixel, expected) in [
            ([640, 480], (1, 1), [640, 480]),
            ([2560, 100], (1, 1), [1280, 50]),
            ([960, 1080], (2, 1), [1280, 720]),
            ([960, 540], (1, 2), [960, 1080]),
            ([720, 576], (16, 15), [768, 576]),
            ([64, 32_768], (1, 1), [32, 16_384]),
            ([100_000, 1], (1, 1), [1280, 1]),
            ([1, 100_000], (1, 1), [1, 16_384]),
            ([1000, 1000], (100_000, 1), [1280, 1]),
            ([1, 1], (1, 1), [1, 1]),
        ] {
            let info = VideoInfo::builder(VideoFormat::Gray8, size[0], size[1])
                .par(gst::Fraction::new(pixel.0, pixel.1))
                .build()
                .expect("a size");
            assert_eq!(square_size(&info, most), expected, "{size:?} {pixel:?}");
        }
    }
}
