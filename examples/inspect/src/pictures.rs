//! Pictures of failed frames.

use std::path::Path;

use anyhow::{Context, Result};
use gst_video::prelude::*;
use gstclinspect::results::{DefectResult, HistogramResult};
use image::{Rgb, RgbImage};

const BOX: Rgb<u8> = Rgb([255, 210, 0]);
/// Distance of a box from its defect, px.
const BOX_DISTANCE: i64 = 3;

/// Writes a picture of a frame. The next frames wait in the pipeline meanwhile, up to eight.
pub fn save(file: &Path, sample: &gst::Sample) -> Result<()> {
    let saved = overlay(sample)?.save(file);
    saved.with_context(|| file.display().to_string())
}

/// The frame in grey, boxes around defects in yellow, and marked pixels in red.
fn overlay(sample: &gst::Sample) -> Result<RgbImage> {
    let buffer = sample.buffer().context("a sample without a frame")?;
    let info = gst_video::VideoInfo::from_caps(sample.caps().context("a sample without caps")?)?;
    let result = DefectResult::read(buffer).pop();
    let result = result.context("a frame without a verdict")?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
    let (plane, stride) = (
        frame.plane_data(0)?,
        usize::try_from(frame.plane_stride()[0])?,
    );
    let is_deep = info.format() == gst_video::VideoFormat::Gray16Le;
    let bits = HistogramResult::read(buffer)
        .pop()
        .map_or(8, |histogram| histogram.bit_depth);
    let level = |x: u32, y: u32| {
        let (row, x) = (&plane[y as usize * stride..], x as usize);
        if is_deep {
            (u16::from_le_bytes([row[2 * x], row[2 * x + 1]]) >> bits.saturating_sub(8)) as u8
        } else {
            row[x]
        }
    };
    let mut picture = RgbImage::from_fn(info.width(), info.height(), |x, y| Rgb([level(x, y); 3]));
    let mut put = |x: i64, y: i64, colour: &dyn Fn(u8) -> Rgb<u8>| {
        if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y))
            && let Some(pixel) = picture.get_pixel_mut_checked(x, y)
        {
            *pixel = colour(level(x, y));
        }
    };

    for defect in &result.defects {
        let (left, top) = (i64::from(defect.x), i64::from(defect.y));
        let (right, bottom) = (
            left + i64::from(defect.width),
            top + i64::from(defect.height),
        );
        let [left, top] = [left, top].map(|edge| edge - 1 - BOX_DISTANCE);
        let [right, bottom] = [right, bottom].map(|edge| edge + BOX_DISTANCE);
        let across = (left..=right).flat_map(|x| [(x, top), (x, bottom)]);
        let along = (top..=bottom).flat_map(|y| [(left, y), (right, y)]);
        across.chain(along).for_each(|(x, y)| put(x, y, &|_| BOX));
    }
    let mask = result
        .mask
        .as_ref()
        .context("a result without a mask")?
        .map_readable()?;
    let row_bytes = (result.width as usize).div_ceil(8);
    for (y, row) in (0..).zip(mask.chunks(row_bytes)) {
        let is_marked = |x: &usize| row[x / 8] & (0x80 >> (x % 8)) != 0;
        for x in (0..result.width as usize).filter(is_marked) {
            put(x as i64, y, &|grey| {
                Rgb([128 + grey / 2, grey / 4, grey / 4])
            });
        }
    }
    Ok(picture)
}
