//! Noise and structure of pictures.

use super::picture::{Picture, median};

/// Side of a tile, px.
const TILE: usize = 16;
/// Largest crop that is measured, px.
const CROP: [usize; 2] = [1024, 768];
/// Rank of the tile whose noise counts: the flattest ones, without those that a lamp saturates.
const RANK: f64 = 0.1;
/// Grey levels that count as black or as white, and the share of such samples in a binary picture.
const NEAR: f32 = 16.0;
const BINARY_SHARE: f64 = 0.95;
/// The mean magnitude of a normal variable, in standard deviations.
const MEAN_MAGNITUDE: f64 = 0.797_884_560_802_865_4;

/// The standard deviation of the noise, grey levels of 8 bits: of the flattest tiles of all pictures.
///
/// Source: J. Immerkær, Fast Noise Variance Estimation, Computer Vision and Image Understanding 64, 1996. A mask that
/// neither a slope nor a curve changes; noise has six times its standard deviation behind it. In tiles, because a picture
/// without flat places is full of edges.
pub fn noise(pictures: &[&Picture]) -> f64 {
    let of_picture = pictures.iter().map(|picture| {
        let crop = picture.middle(CROP);
        let mut tiles = Vec::new();
        for top in (1..crop.height.saturating_sub(TILE)).step_by(TILE) {
            for left in (1..crop.width.saturating_sub(TILE)).step_by(TILE) {
                tiles.push(of_tile(&crop, left, top));
            }
        }
        tiles.sort_by(f64::total_cmp);
        let rank = (tiles.len() as f64 * RANK) as usize;
        tiles.get(rank).copied().unwrap_or(0.0)
    });
    median(of_picture.collect())
}

fn of_tile(picture: &Picture, left: usize, top: usize) -> f64 {
    let mut sum = 0.0;
    for y in top..top + TILE {
        let rows = [y - 1, y, y + 1].map(|y| &picture.row(y)[left - 1..=left + TILE]);
        for x in 1..=TILE {
            let of = |row: &[f32]| row[x - 1] - 2.0 * row[x] + row[x + 1];
            sum += f64::from((of(rows[0]) - 2.0 * of(rows[1]) + of(rows[2])).abs());
        }
    }
    sum / (TILE * TILE) as f64 / (6.0 * MEAN_MAGNITUDE)
}

/// The standard deviation of the structure, without the noise, grey levels of 8 bits: of what repeats every `pitch` px, or
/// with a pitch of 0 of whole pictures.
pub fn contrast(pictures: &[&Picture], pitch: f64, noise: f64) -> f64 {
    let mut variances = Vec::new();
    for picture in pictures {
        let crop = picture.middle(CROP);
        let whole = crop.width.min(crop.height);
        // Two repeats, so that the tile's place does not count. Uneven light does not either.
        let side = if pitch > 0.0 {
            (2.0 * pitch).ceil() as usize
        } else {
            whole
        };
        let side = side.clamp(TILE.min(whole), whole).max(1);
        for top in (0..(crop.height + 1).saturating_sub(side)).step_by(side) {
            for left in (0..(crop.width + 1).saturating_sub(side)).step_by(side) {
                let (mut sum, mut squares) = (0.0, 0.0);
                for y in top..top + side {
                    for &sample in &crop.row(y)[left..left + side] {
                        sum += f64::from(sample);
                        squares += f64::from(sample) * f64::from(sample);
                    }
                }
                let count = (side * side) as f64;
                variances.push(squares / count - (sum / count) * (sum / count));
            }
        }
    }
    (median(variances) - noise * noise).max(0.0).sqrt()
}

/// Whether nearly all samples are black or white: pictures that were made binary, with some grey where they were packed.
pub fn is_binary(pictures: &[&Picture]) -> bool {
    let samples = || {
        pictures
            .iter()
            .flat_map(|picture| &picture.samples)
            .copied()
    };
    let (least, most) = samples().fold((f32::MAX, f32::MIN), |(least, most), v| {
        (least.min(v), most.max(v))
    });
    let count = samples()
        .filter(|&v| v - least <= NEAR || most - v <= NEAR)
        .count();
    let all: usize = pictures.iter().map(|picture| picture.samples.len()).sum();
    most - least > 8.0 * NEAR && count as f64 >= BINARY_SHARE * all as f64
}
