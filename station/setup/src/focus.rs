//! A figure for the sharpness of a picture, which grows while a lens is turned to its focus.

use gst_video::{VideoFormat, VideoFrameExt};
use run::frame::Frame;

/// Most rows that are looked at, so that a large frame costs no more than a small one.
const ROWS: usize = 512;

/// Brenner's measure, normalised: the mean square of the differences between samples two columns apart, divided by the square
/// of the mean level, in percent. Light and exposure do not change it; noise and contrast do, so only figures of the same
/// object can be compared. `None` for formats without a plane of grey or green samples, and for black frames.
///
/// J. F. Brenner et al., An automated microscope for cytologic research, J. Histochem. Cytochem. 24 (1976).
pub fn focus(frame: &Frame) -> Option<f64> {
    let info = frame.info();
    let picture = gst_video::VideoFrameRef::from_buffer_ref_readable(frame.buffer(), info).ok()?;
    let data = picture.plane_data(0).ok()?;
    let stride = usize::try_from(picture.plane_stride()[0]).ok()?;
    let (width, height) = (info.width() as usize, info.height() as usize);
    let level: fn(&[u8], usize) -> f64 = match info.format() {
        VideoFormat::Gray8 => |row, x| f64::from(row[x]),
        VideoFormat::Gray16Le => {
            |row, x| f64::from(u16::from_le_bytes([row[2 * x], row[2 * x + 1]]))
        }
        VideoFormat::Rgb | VideoFormat::Bgr => |row, x| f64::from(row[3 * x + 1]),
        _ => return None,
    };
    let (mut squares, mut sum, mut count) = (0.0, 0.0, 0.0);
    for row in data
        .chunks(stride)
        .take(height)
        .step_by(height.div_ceil(ROWS).max(1))
    {
        for x in 2..width {
            let here = level(row, x);
            squares += (here - level(row, x - 2)).powi(2);
            sum += here;
            count += 1.0;
        }
    }
    let mean: f64 = sum / count;
    (mean > 0.0).then(|| 100.0 * squares / count / mean.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An edge that takes so many columns from 50 to 200.
    fn edge(columns: usize, factor: u16, format: VideoFormat) -> Frame {
        gst::init().expect("GStreamer");
        let info = gst_video::VideoInfo::builder(format, 64, 8)
            .build()
            .expect("a size");
        let level = |x: usize| {
            let share = (x as f64 - 32.0) / columns as f64 + 0.5;
            (50.0 + 150.0 * share.clamp(0.0, 1.0)) as u16
        };
        let row: Vec<u8> = (0..64)
            .flat_map(|x| match format {
                VideoFormat::Gray16Le => (level(x) * factor).to_le_bytes().to_vec(),
                VideoFormat::Rgb => vec![0, u8::try_from(level(x)).unwrap_or(0), 0],
                _ => vec![u8::try_from(level(x)).unwrap_or(0)],
            })
            .collect();
        let buffer = gst::Buffer::from_mut_slice(row.repeat(8));
        Frame::copy_of(&buffer, &info).expect("a frame")
    }

    #[test]
    fn sharper_edges_have_larger_figures_in_every_format_and_light() {
        for (format, factor) in [
            (VideoFormat::Gray8, 1),
            (VideoFormat::Gray16Le, 1),
            (VideoFormat::Gray16Le, 16),
            (VideoFormat::Rgb, 1),
        ] {
            let figures = [2, 4, 8, 16]
                .map(|columns| focus(&edge(columns, factor, format)).expect("a figure"));
            assert!(
                figures.is_sorted_by(|sharp, blurred| sharp > blurred),
                "{format}: {figures:?}"
            );
        }
        let light = |factor| focus(&edge(4, factor, VideoFormat::Gray16Le)).expect("a figure");
        assert!((light(1) - light(200)).abs() < 1e-9, "light changes it");
    }
}
