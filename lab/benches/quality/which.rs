//! The pictures of docs/which-element.md: a frame of each kind of object, and the marked pixels in red.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use image::{
    Rgb, RgbImage,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};

use crate::{
    common::{
        cloth::{ClothSpec, ClothWeb},
        panel::{DefectKind, PanelGenerator, PanelSpec},
    },
    detector::{Bench, Detector, Judgement},
    labels,
};

const SIZE: [usize; 2] = [640, 480];
/// Of the panel, and of the cloth.
const PITCHES_PX: [f64; 2] = [7.35, 16.35];
const THRESHOLD: f64 = 12.0;
/// Rows of the web from which those with most defects are shown, and the seed of the web.
const WEB_ROWS: u64 = 30_000;
const WEB_SEED: u64 = 17;
/// Width and height of the part that is shown, px.
const PART: [u32; 2] = [240, 180];
const GAP_PX: u32 = 6;
/// Least distance of a defect that counts from the edge of the part, px.
const MARGIN_PX: i64 = 12;
/// Steps of the grey levels: noise in all levels makes large files.
const STEP: u8 = 8;
const RED: Rgb<u8> = Rgb([255, 40, 30]);

/// Writes `which-*.png` into the folder.
///
/// # Errors
/// A pipeline's error, or a file that cannot be written.
pub fn write(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let [panel_px, cloth_px] = PITCHES_PX;
    let spec = PanelSpec {
        pitch_x: panel_px,
        pitch_y: panel_px,
        ..PanelSpec::default()
    };
    let mut panels = PanelGenerator::new(spec, 4).map_err(|why| anyhow!(why))?;
    use DefectKind::{Blob, MissingCell, Particle, Scratch};
    let panel = panels.next_random_of(&[Blob, MissingCell, Particle, Scratch], 40, 90.0);
    let panel = panel.samples;
    let bench = Bench::new(&Detector::RECOMMENDED, SIZE, [panel_px; 2])?;
    let judged = bench.judge(&panel, THRESHOLD)?;
    save(folder, "panel", &panel, &judged)?;

    let spec = ClothSpec {
        width: SIZE[0],
        pitch_px: cloth_px,
        ..ClothSpec::default()
    };
    let mut web = ClothWeb::new(spec, WEB_SEED).map_err(|why| anyhow!(why))?;
    let mut cloth = Vec::new();
    let rows = |first: u64| first..first + SIZE[1] as u64;
    let firsts = (0..WEB_ROWS).step_by(SIZE[1] / 2);
    let first = firsts.max_by_key(|&first| spec.planted(WEB_SEED, rows(first)).len());
    rows(first.unwrap_or(0)).for_each(|y| web.row(y, &mut cloth));
    let bench = Bench::new(&Detector::RECOMMENDED, SIZE, [cloth_px; 2])?;
    let judged = bench.judge(&cloth, THRESHOLD)?;
    save(folder, "cloth", &cloth, &judged)?;

    let (label, judged) = labels::shown()?;
    save(folder, "label", &label, &judged)
}

/// The upper left corner of the part of the frame that shows most of the defects.
fn corner(judged: &Judgement) -> [u32; 2] {
    let inside = |at: i32, len: u32, start: u32, part: u32| {
        let (at, start) = (i64::from(at), i64::from(start));
        at >= start + MARGIN_PX && at + i64::from(len) <= start + i64::from(part) - MARGIN_PX
    };
    let shown = |[left, top]: [u32; 2]| -> u32 {
        let defects = judged.result.defects.iter();
        defects
            .filter(|d| inside(d.x, d.width, left, PART[0]) && inside(d.y, d.height, top, PART[1]))
            .map(|d| d.area.isqrt())
            .sum()
    };
    let steps = |axis: usize| (0..=SIZE[axis] as u32 - PART[axis]).step_by(8);
    let corners = steps(1).flat_map(|y| steps(0).map(move |x| [x, y]));
    corners
        .max_by_key(|&corner| shown(corner))
        .unwrap_or_default()
}

/// Writes a part of the frame, and beside it the same with the marked pixels.
fn save(folder: &Path, name: &str, frame: &[u8], judged: &Judgement) -> Result<()> {
    let [width, height] = PART;
    let corner = corner(judged);
    let picture = RgbImage::from_fn(2 * width + GAP_PX, height, |x, y| {
        let is_right = x >= width + GAP_PX;
        if !is_right && x >= width {
            return Rgb([255; 3]);
        }
        let x = (if is_right { x - width - GAP_PX } else { x } + corner[0]) as usize;
        let y = (y + corner[1]) as usize;
        if is_right && judged.is_marked(x, y) {
            RED
        } else {
            Rgb([frame[y * SIZE[0] + x] / STEP * STEP; 3])
        }
    });
    let file = folder.join(format!("which-{name}.png"));
    let written = std::fs::File::create(&file)?;
    let (level, filter) = (CompressionType::Best, FilterType::NoFilter);
    let encoder = PngEncoder::new_with_quality(written, level, filter);
    (picture.write_with_encoder(encoder)).with_context(|| file.display().to_string())
}
