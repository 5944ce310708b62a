//! A drawn shape as the camera sees it: coverage at any place, blurred by the optics.

use std::ops::Range;

use tiny_skia::{FillRule, Mask, Path, Transform};

/// Samples per pixel along each axis.
const FINE: usize = 4;
/// Standard deviation of the point-spread function, px.
const PSF_PX: f32 = 0.8;
/// Distance from a shape beyond which nothing changes, px: four deviations and half a pixel.
const REACH: i32 = 4;

/// Coverage of a shape, 0..=1, after the point-spread function and the pixel's aperture.
pub struct Layer {
    /// Place of the first sample's corner, px; pixel centres are at integers.
    corner: [f32; 2],
    /// Samples.
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

impl Layer {
    /// Draws a path in pixels. Where it crosses itself an even number of times it is empty.
    pub fn new(path: &Path) -> Self {
        let bounds = path.bounds();
        let left = bounds.left().floor() as i32 - REACH;
        let top = bounds.top().floor() as i32 - REACH;
        let width = (bounds.right().ceil() as i32 + REACH - left) as usize * FINE;
        let height = (bounds.bottom().ceil() as i32 + REACH - top) as usize * FINE;
        let mut mask = Mask::new(width as u32, height as u32).expect("a shape of a label's size");
        let place = Transform::from_translate(-left as f32, -top as f32);
        let place = place.post_scale(FINE as f32, FINE as f32);
        mask.fill_path(path, FillRule::EvenOdd, true, place);
        let samples = mask.data().iter().map(|&c| f32::from(c) / 255.0).collect();
        let mut layer = Self {
            corner: [left as f32, top as f32],
            width,
            height,
            samples,
        };
        layer.blur(&kernel());
        layer
    }

    /// Coverage at a place in px.
    pub fn at(&self, x: f32, y: f32) -> f32 {
        let fine = |at: f32, corner: f32| (at - corner) * FINE as f32 - 0.5;
        let (u, v) = (fine(x, self.corner[0]), fine(y, self.corner[1]));
        let (i, j) = (u.floor(), v.floor());
        let (fx, fy) = (u - i, v - j);
        let (i, j) = (i as isize, j as isize);
        let [a, b, c, d] = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| self.sample(i + x, j + y));
        let (upper, lower) = (a + fx * (b - a), c + fx * (d - c));
        upper + fy * (lower - upper)
    }

    fn sample(&self, i: isize, j: isize) -> f32 {
        let inside = |at: isize, len: usize| usize::try_from(at).ok().filter(|&at| at < len);
        match (inside(i, self.width), inside(j, self.height)) {
            (Some(i), Some(j)) => self.samples[j * self.width + i],
            _ => 0.0,
        }
    }

    /// Columns and rows of a frame of this size that the shape meets if it is moved by `shift` px.
    pub fn extent(&self, shift: [f32; 2], size: [usize; 2]) -> [Range<usize>; 2] {
        let lens = [self.width, self.height].map(|len| (len / FINE) as f32);
        [0, 1].map(|axis| {
            let start = self.corner[axis] + shift[axis];
            // Casts from floats saturate.
            let [start, end] = [start.floor(), (start + lens[axis]).ceil()].map(|at| at as usize);
            start.min(size[axis])..end.min(size[axis])
        })
    }

    fn blur(&mut self, kernel: &[f32]) {
        let half = kernel.len() / 2;
        let (width, height) = (self.width, self.height);
        // The shape ends before the reach of the kernel, so what is outside is 0.
        let mut blurred = vec![0.0; self.samples.len()];
        for (from, to) in (self.samples.chunks_exact(width)).zip(blurred.chunks_exact_mut(width)) {
            for (i, &value) in from.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let start = i.saturating_sub(half);
                let weights = &kernel[half + start - i..];
                for (to, weight) in to[start..].iter_mut().zip(weights) {
                    *to += value * weight;
                }
            }
        }
        self.samples.fill(0.0);
        for (j, from) in blurred.chunks_exact(width).enumerate() {
            for (k, weight) in kernel.iter().enumerate() {
                let Some(row) = (j + k).checked_sub(half).filter(|&row| row < height) else {
                    continue;
                };
                let to = &mut self.samples[row * width..(row + 1) * width];
                for (to, from) in to.iter_mut().zip(from) {
                    *to += weight * from;
                }
            }
        }
    }
}

/// The point-spread function and the square aperture of a pixel, along an axis. Sum 1.
fn kernel() -> Vec<f32> {
    let sigma = PSF_PX * FINE as f32;
    let half = (REACH as usize - 1) * FINE;
    let gauss = |at: f32| (-at * at / (2.0 * sigma * sigma)).exp();
    // The aperture is FINE samples wide: the outer ones of FINE + 1 count half.
    let aperture = |at: f32| {
        let reach = (FINE / 2) as i32;
        let weight = |k: i32| if k.abs() == reach { 0.5 } else { 1.0 };
        (-reach..=reach)
            .map(|k| weight(k) * gauss(at + k as f32))
            .sum::<f32>()
    };
    let taps: Vec<f32> = (0..=2 * half)
        .map(|i| aperture(i as f32 - half as f32))
        .collect();
    let sum: f32 = taps.iter().sum();
    taps.iter().map(|tap| tap / sum).collect()
}
