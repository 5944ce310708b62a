//! What textures and surfaces have in common: smoothed grey levels, and tiles.
//!
//! Source: docs/semantics.md, "Textures".

use crate::plane::Samples;

/// The samples, smoothed, in 1/16 grey level of 8 bits.
pub fn smoothed(source: Samples, depth: u32) -> Vec<i64> {
    let level = |value: u32| {
        let value = i64::from(value).min((1 << depth) - 1);
        if depth < 12 {
            value << (12 - depth)
        } else {
            value >> (depth - 12)
        }
    };
    let levels: Vec<i64> = source.values().into_iter().map(level).collect();
    smooth(&levels, source.width, source.height)
}

/// Values, smoothed; those outside are the ones at the edge.
pub fn smooth(values: &[i64], width: usize, height: usize) -> Vec<i64> {
    let sample = |x: i64, y: i64| {
        let x = x.clamp(0, width as i64 - 1) as usize;
        let y = y.clamp(0, height as i64 - 1) as usize;
        values[y * width + x]
    };
    let mut smooth = Vec::new();
    for y in 0..height as i64 {
        for x in 0..width as i64 {
            let mut sum = 8;
            for (dy, wy) in [(-1, 1), (0, 2), (1, 1)] {
                for (dx, wx) in [(-1, 1), (0, 2), (1, 1)] {
                    sum += wy * wx * sample(x + dx, y + dy);
                }
            }
            smooth.push(sum >> 4);
        }
    }
    smooth
}

/// The tile of a row or column: a partial last tile belongs to the one before.
pub fn tile_of(at: usize, n: usize, tile: usize) -> usize {
    (at / tile).min((n / tile).max(1) - 1)
}
