//! The contents of frames that every test uses.

use crate::panel::{PanelGenerator, PanelSpec};

/// A kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// One level everywhere, in 1/255 of the highest level.
    Constant(u32),
    /// Two levels at random.
    TwoRandom,
    /// Two levels, alternating along rows and columns.
    TwoAlternating,
    /// Darkest left, brightest right.
    GradientX,
    /// Darkest on top, brightest at the bottom.
    GradientY,
    /// Every level is equally likely.
    Random,
    /// A synthetic display panel with noise.
    Natural,
    /// Random, but the components of a pixel are equal (R = G = B).
    EqualComponents,
    /// The upper half constant, the lower half random.
    HalfRandom,
    /// Random samples of all bits that the format holds, regardless of the camera's bit depth.
    BeyondDepth,
    /// Squares of 12 samples with two levels at random, a stain in the middle third of long rows and columns, and
    /// noise: the means of blocks of any size differ.
    Stained,
}

impl Content {
    /// Every kind that says something to any filter.
    pub const ALL: [Self; 12] = [
        Self::Constant(0),
        Self::Constant(128),
        Self::Constant(255),
        Self::TwoRandom,
        Self::TwoAlternating,
        Self::GradientX,
        Self::GradientY,
        Self::Random,
        Self::Natural,
        Self::EqualComponents,
        Self::HalfRandom,
        Self::BeyondDepth,
    ];
}

/// A picture of some content, read sample by sample.
pub struct Picture {
    content: Content,
    seed: u64,
    size: [usize; 2],
    highest: u32,
    format_highest: u32,
    panel: Vec<u32>,
}

impl Picture {
    /// A picture of `size` with samples of `bit_depth` bits in a format that holds `format_bits`.
    pub fn new(
        content: Content,
        size: [usize; 2],
        bit_depth: u32,
        format_bits: u32,
        seed: u64,
    ) -> Self {
        let panel = if content == Content::Natural {
            panel(size, bit_depth, seed)
        } else {
            Vec::new()
        };
        Self {
            content,
            seed,
            size,
            highest: (1 << bit_depth) - 1,
            format_highest: (1 << format_bits) - 1,
            panel,
        }
    }

    /// The sample of a component at column and row of that component.
    pub fn sample(&self, component: usize, x: usize, y: usize) -> u32 {
        let [width, height] = self.size;
        let ramp = |at: usize, n: usize| {
            (u64::from(self.highest) * at as u64 / (n.max(2) - 1) as u64) as u32
        };
        let noise = |component: usize| random(self.seed, component, x, y);
        // Levels whose bytes differ, so that a swapped byte order is noticed.
        let two = [self.highest / 5, self.highest - self.highest / 7];
        match self.content {
            Content::Constant(level) => {
                (u64::from(self.highest) * u64::from(level)).div_ceil(255) as u32
            }
            Content::TwoRandom => two[(noise(component) & 1) as usize],
            Content::TwoAlternating => two[(x + y + component) & 1],
            Content::GradientX => ramp(x, width),
            Content::GradientY => ramp(y, height),
            Content::Random => noise(component) & self.highest,
            Content::Natural => self.panel[y * width + x],
            Content::EqualComponents => noise(0) & self.highest,
            Content::HalfRandom if y < height / 2 => two[1],
            Content::HalfRandom => noise(component) & self.highest,
            Content::BeyondDepth => noise(component) & self.format_highest,
            Content::Stained => {
                let unit = self.highest / 255;
                let square = random(self.seed ^ 1, component, x / 12, y / 12) % 2;
                let inside = |at: usize, n: usize| n < 60 || (n..2 * n).contains(&(3 * at));
                let stain = u32::from(inside(x, width) && inside(y, height));
                unit * (80 + 40 * square + 30 * stain) + noise(component) % (24 * unit)
            }
        }
    }
}

/// 32 bits that depend on all inputs and show no pattern (SplitMix64's mixing).
pub fn random(seed: u64, component: usize, x: usize, y: usize) -> u32 {
    let mut z = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((component as u64) << 56)
        .wrapping_add((y as u64) << 28)
        .wrapping_add(x as u64 + 1);
    for multiplier in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        z = (z ^ (z >> 30)).wrapping_mul(multiplier);
    }
    ((z ^ (z >> 31)) >> 16) as u32
}

fn panel([width, height]: [usize; 2], bit_depth: u32, seed: u64) -> Vec<u32> {
    let spec = PanelSpec {
        width,
        height,
        bit_depth,
        ..PanelSpec::default()
    };
    let frame = PanelGenerator::new(spec, seed)
        .expect("the panel can be drawn")
        .next_random(3);
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| u32::from(frame.sample(x, y).expect("a sample inside")))
        .collect()
}
