//! A web cut into strips and a frame in one [`Finder`], compared with the reference; then a mask of any
//! length, stride and size, which the finder must read without leaving it.

use arbitrary::{Result, Unstructured};
use clinspect_core::components::{Finder, Limits, RunDifference};

use crate::picture::{MaskLayout, Picture, compare, list};

const MAX_WIDTH: usize = 200;
const MAX_HEIGHT: usize = 48;

/// See the module.
pub fn run(data: &[u8]) {
    // Too few bytes for a case.
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    let limits = limits(input)?;
    let layout = MaskLayout {
        offset: input.int_in_range(0..=8)?,
        gap: input.int_in_range(0..=16)?,
    };
    let mut finder = Finder::default();
    for _ in 0..2 {
        let picture = picture(input)?;
        let heights = heights(input, picture.height)?;
        let compared = list(&mut finder, &picture, &heights, layout, &limits)
            .and_then(|lists| compare(&lists, &picture, &heights, &limits));
        if let Err(difference) = compared {
            panic!("{difference}\nwith {limits:?}, {layout:?}, {heights:?} in {picture:?}");
        }
    }
    hostile(input, &mut finder, &limits)
}

/// Heights of strips that make up `height` rows.
fn heights(input: &mut Unstructured, height: usize) -> Result<Vec<usize>> {
    let mut heights = Vec::new();
    let mut rest = height;
    while rest > 0 {
        let rows = input.int_in_range(1..=rest)?;
        heights.push(rows);
        rest -= rows;
    }
    Ok(heights)
}

fn limits(input: &mut Unstructured) -> Result<Limits> {
    Ok(Limits {
        min_area: input.int_in_range(0..=40)?,
        merge_distance: match input.int_in_range(0..=3)? {
            0 => 0,
            1 => input.int_in_range(1..=20)?,
            2 => input.int_in_range(1..=300)?,
            _ => input.arbitrary()?,
        },
        max_defects: match input.int_in_range(0..=2)? {
            0 => usize::MAX,
            1 => input.int_in_range(0..=5)?,
            _ => input.int_in_range(0..=200)?,
        },
        max_runs: usize::MAX,
        max_defect_rows: match input.int_in_range(0..=2)? {
            0 => u32::MAX,
            1 => input.int_in_range(1..=5)?,
            _ => input.int_in_range(1..=60)?,
        },
    })
}

/// A picture drawn pixel by pixel, as noise of some density, or as rectangles.
fn picture(input: &mut Unstructured) -> Result<Picture> {
    let width = input.int_in_range(1..=MAX_WIDTH)?;
    let height = input.int_in_range(1..=MAX_HEIGHT)?;
    Ok(match input.int_in_range(0..=2)? {
        0 => {
            let count = (width * height).div_ceil(8).min(input.len());
            let bits = input.bytes(count)?;
            Picture::of(width, height, |x, y| {
                let at = y * width + x;
                bits.get(at / 8)
                    .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
            })
        }
        1 => Picture::noise(
            width,
            height,
            input.int_in_range(0..=100)?,
            input.arbitrary()?,
        ),
        _ => {
            let mut rectangles = Vec::new();
            for _ in 0..input.int_in_range(0..=40)? {
                rectangles.push([
                    input.int_in_range(0..=MAX_WIDTH)?,
                    input.int_in_range(0..=MAX_HEIGHT)?,
                    input.int_in_range(1..=MAX_WIDTH)?,
                    input.int_in_range(1..=MAX_HEIGHT)?,
                ]);
            }
            Picture::of(width, height, |_, _| false).with_rectangles(&rectangles)
        }
    })
}

/// Strips whose masks may be shorter than their rows; so may their strides. A strip may be of another
/// width, may have more runs than are allowed, and may be scanned without being listed.
fn hostile(input: &mut Unstructured, finder: &mut Finder, limits: &Limits) -> Result<()> {
    let mut width = input.int_in_range(0..=300)?;
    for _ in 0..3 {
        let height = input.int_in_range(0..=64)?;
        let stride = input.int_in_range(0..=64)?;
        let max_runs = input.int_in_range(0..=2000)?;
        let ends = input.arbitrary()?;
        let len = input.int_in_range(0..=input.len())?;
        let mask = input.bytes(len)?;
        let limits = Limits {
            max_runs,
            ..*limits
        };
        let runs = finder.scan(mask, stride, width, height, &limits, ends);
        for run in runs {
            let inside = run.x0 < run.x1 && run.x1 as usize <= width && (run.y as usize) < height;
            assert!(inside, "{run:?} of {width}x{height}");
        }
        let measured = vec![RunDifference::default(); runs.len()];
        if input.arbitrary()? {
            let listed = finder.list(&measured);
            assert!(listed.defects.len() <= limits.max_defects);
            if ends {
                assert_eq!(listed.largest_open, 0);
            }
        }
        if input.arbitrary()? {
            width = input.int_in_range(0..=300)?;
        }
    }
    Ok(())
}
