//! Two masks in one [`Finder`], compared with the flood fill of the reference; then a mask of any
//! length, stride and size, which the finder must read without leaving it.

use arbitrary::{Result, Unstructured};
use clinspect_core::components::{Finder, Limits};

use crate::picture::{MaskLayout, Picture, compare, find};

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
        let found = find(&mut finder, &picture, layout, &limits);
        if let Err(difference) = compare(&found, &picture, &limits) {
            panic!("{difference}\nwith {limits:?}, {layout:?} in {picture:?}");
        }
    }
    hostile(input, &mut finder, &limits)
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

/// A mask that may be shorter than its rows; so may its stride.
fn hostile(input: &mut Unstructured, finder: &mut Finder, limits: &Limits) -> Result<()> {
    let width = input.int_in_range(0..=300)?;
    let height = input.int_in_range(0..=64)?;
    let stride = input.int_in_range(0..=64)?;
    let mask = input.bytes(input.len())?;
    let found = finder.find(mask, stride, width, height, limits);
    for run in &found.runs {
        let inside = run.x0 < run.x1 && run.x1 as usize <= width && (run.y as usize) < height;
        assert!(inside, "{run:?} of {width}x{height}");
        assert!((run.defect as usize) < found.shapes.len(), "{run:?}");
    }
    let row = width.div_ceil(8);
    if stride < row || width == 0 {
        return Ok(());
    }
    // Incomplete rows are clear.
    let picture = Picture::of(width, height.max(1), |x, y| {
        let start = y * stride;
        start + row <= mask.len() && y < height && mask[start + x / 8] & (0x80 >> (x % 8)) != 0
    });
    if let Err(difference) = compare(found, &picture, limits) {
        panic!("{difference}\nwith {limits:?}, stride {stride} in {picture:?}");
    }
    Ok(())
}
