//! The inputs of all benchmarks, drawn from fixed seeds.

use std::path::PathBuf;

use crate::{
    Error,
    common::panel::{PanelGenerator, PanelSpec},
    skip,
};

/// A panel's pitch along both axes, px, and the size in which it is drawn once and then repeated without a
/// seam: 200 and 100 pitches.
const FINE: (f64, usize) = (7.35, 1470);
const COARSE: (f64, usize) = (16.35, 1635);
const PLANTED: usize = 24;
const SEED: u64 = 1;
/// Two levels that differ in many bits.
const TWO: [u8; 2] = [51, 219];

/// The rows of a picture, without padding; `channels` samples per pixel.
pub fn draw(
    kind: &str,
    [width, height]: [usize; 2],
    channels: usize,
    photographs: &str,
) -> Result<Vec<u8>, Error> {
    let row = width * channels;
    let ramp = |at: usize, n: usize| (255 * at / (n.max(2) - 1)) as u8;
    let fill = |sample: &mut dyn FnMut(usize, usize, usize) -> u8| {
        let mut bytes = Vec::with_capacity(row * height);
        for y in 0..height {
            for x in 0..width {
                for c in 0..channels {
                    bytes.push(sample(x, y, c));
                }
            }
        }
        bytes
    };
    let mut noise = Noise::new(SEED);
    Ok(match kind {
        "constant 0" => vec![0; row * height],
        "constant 128" => vec![128; row * height],
        "constant 255" => vec![255; row * height],
        "two values, random" => fill(&mut |_, _, _| TWO[usize::from(noise.byte() & 1)]),
        "two values, alternating" => fill(&mut |x, y, c| TWO[(x + y + c) & 1]),
        "gradient along x" => fill(&mut |x, _, _| ramp(x, width)),
        "gradient along y" => fill(&mut |_, y, _| ramp(y, height)),
        "random" => fill(&mut |_, _, _| noise.byte()),
        "R=G=B" => {
            let mut level = 0;
            fill(&mut |_, _, c| {
                if c == 0 {
                    level = noise.byte();
                }
                level
            })
        }
        "half constant, half random" => fill(&mut |_, y, _| {
            if y < height / 2 { TWO[1] } else { noise.byte() }
        }),
        "panel" => panel([width, height], channels, FINE, PLANTED)?,
        "clean panel" => panel([width, height], channels, FINE, 0)?,
        "clean panel, pitch 16.35" => panel([width, height], channels, COARSE, 0)?,
        _ => match kind.strip_prefix("photograph ") {
            Some(number) => {
                let index = number.parse::<usize>()?.saturating_sub(1);
                photograph([width, height], channels, photographs, index)?
            }
            None => return Err(format!("no picture is called {kind}").into()),
        },
    })
}

/// SplitMix64, eight bytes at a time.
struct Noise {
    state: u64,
    bytes: [u8; 8],
    used: usize,
}

impl Noise {
    fn new(seed: u64) -> Self {
        Self {
            state: seed,
            bytes: [0; 8],
            used: 8,
        }
    }

    fn byte(&mut self) -> u8 {
        if self.used == 8 {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.state;
            for multiplier in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
                z = (z ^ (z >> 30)).wrapping_mul(multiplier);
            }
            self.bytes = (z ^ (z >> 31)).to_le_bytes();
            self.used = 0;
        }
        self.used += 1;
        self.bytes[self.used - 1]
    }
}

/// Each channel has its own phase of the panel, as subpixels have.
fn panel(
    [width, height]: [usize; 2],
    channels: usize,
    (pitch, tile): (f64, usize),
    planted: usize,
) -> Result<Vec<u8>, Error> {
    let tile = [width.min(tile), height.min(tile)];
    let spec = PanelSpec {
        width: tile[0],
        height: tile[1],
        pitch_x: pitch,
        pitch_y: pitch,
        ..PanelSpec::default()
    };
    let mut generator = PanelGenerator::new(spec, SEED)?;
    let tiles: Vec<Vec<u8>> = (0..channels)
        .map(|_| generator.next_random(planted).samples)
        .collect();
    let mut bytes = Vec::with_capacity(width * height * channels);
    for y in 0..height {
        for x in 0..width {
            let at = (y % tile[1]) * tile[0] + x % tile[0];
            bytes.extend(tiles.iter().map(|tile| tile[at]));
        }
    }
    Ok(bytes)
}

/// A photograph of a folder, mirrored at its edges until it fills the frame.
fn photograph(
    [width, height]: [usize; 2],
    channels: usize,
    folder: &str,
    index: usize,
) -> Result<Vec<u8>, Error> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(|_| skip("there is no folder of photographs"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "png"))
        .collect();
    paths.sort();
    let path = paths
        .get(index)
        .ok_or_else(|| skip("there are too few photographs"))?;
    let photograph = image::open(path)?;
    let size = [photograph.width() as usize, photograph.height() as usize];
    let samples = if channels == 1 {
        photograph.into_luma8().into_raw()
    } else {
        photograph.into_rgb8().into_raw()
    };
    let mirror = |at: usize, n: usize| {
        let at = at % (2 * n);
        at.min(2 * n - 1 - at)
    };
    let mut bytes = Vec::with_capacity(width * height * channels);
    for y in 0..height {
        let line = mirror(y, size[1]) * size[0];
        for x in 0..width {
            let at = (line + mirror(x, size[0])) * channels;
            bytes.extend_from_slice(&samples[at..at + channels]);
        }
    }
    Ok(bytes)
}
