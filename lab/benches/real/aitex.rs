//! The folder of AITEX: pictures of woven cloth, 4096x256, with masks of the defects.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    marks::{Area, Mask},
    pictures::Grey,
    split::median,
};

/// A mark counts as on the defect up to this distance from the defect's box, px.
const BOX_MARGIN_PX: usize = 4;
/// Widths are multiples of this, so that rows have no padding.
const WIDTH_STEP: usize = 8;
/// Columns over which the means of columns are smoothed.
const SMOOTHED: usize = 16;
/// Columns whose medians say what the cloth looks like: this far to the right of a column.
const CLOTH: [usize; 2] = [64, 576];
/// Columns that are cut behind the last one of the selvedge: the yarns beside a selvedge are denser than in the cloth.
const BEHIND: usize = 80;

/// A frame: the columns behind the selvedge.
#[derive(Debug)]
pub struct Frame {
    pub path: PathBuf,
    pub name: String,
    pub fabric: u32,
    pub is_clean: bool,
    /// First column of the frame in the picture.
    pub first_column: usize,
    pub grey: Grey,
    /// Boxes of the defects, with a margin.
    pub boxes: Vec<Area>,
}

/// The number of columns to cut, so that the frame shows cloth alone: up to the last column in the left half whose
/// mean or roughness is not that of the cloth to its right.
pub fn columns_to_cut(picture: &Grey) -> usize {
    let [width, height] = picture.size;
    let column = |of: &dyn Fn(usize, usize) -> f64, rows: usize| -> Vec<f64> {
        let sum = |x: usize| (0..rows).map(|y| of(x, y)).sum::<f64>();
        (0..width).map(|x| sum(x) / rows.max(1) as f64).collect()
    };
    let at = |x: usize, y: usize| f64::from(picture.samples[y * width + x]);
    let means = smoothed(&column(&at, height));
    let rough = |x: usize, y: usize| (at(x, y + 1) - at(x, y)).abs();
    let roughness = smoothed(&column(&rough, height - 1));
    let mut last = 0;
    for x in SMOOTHED / 2..width / 2 {
        let cloth = (x + CLOTH[0]).min(width)..(x + CLOTH[1]).min(width);
        let of = |values: &[f64]| median(values[cloth.clone()].to_vec()).unwrap_or(0.0);
        let (mean, rough) = (of(&means), of(&roughness));
        let is_as_rough = (0.65 * rough..=1.5 * rough).contains(&roughness[x]);
        if (means[x] - mean).abs() > 0.12 * mean || !is_as_rough {
            last = x;
        }
    }
    if last == 0 {
        return 0;
    }
    (last + BEHIND).next_multiple_of(WIDTH_STEP)
}

/// Moving mean; beyond the ends the values are 0.
fn smoothed(values: &[f64]) -> Vec<f64> {
    let mean = |x: usize| {
        let (from, past) = (
            x.saturating_sub(SMOOTHED / 2),
            (x + SMOOTHED / 2).min(values.len()),
        );
        values[from..past].iter().sum::<f64>() / SMOOTHED as f64
    };
    (0..values.len()).map(mean).collect()
}

/// The frames of each fabric that has clean ones: the clean ones first, each kind in the order of the file names.
///
/// # Errors
/// The folder lacks AITEX's folders, or a picture cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Frame>> {
    let mut clean = Vec::new();
    for fabric in listed(&folder.join("NoDefect_images"))? {
        if fabric.is_dir() {
            clean.extend(listed(&fabric)?);
        }
    }
    let defective = listed(&folder.join("Defect_images"))?;
    let masks = listed(&folder.join("Mask_images"))?;
    let mut frames = Vec::new();
    for (paths, is_clean) in [(clean, true), (defective, false)] {
        for path in paths {
            let Some((name, fabric)) = named(&path) else {
                continue;
            };
            let grey = Grey::png(&path)?;
            frames.push(Frame {
                first_column: columns_to_cut(&grey),
                name,
                fabric,
                is_clean,
                grey,
                boxes: Vec::new(),
                path,
            });
        }
    }
    let mut widths = BTreeMap::new();
    for frame in &frames {
        if frames
            .iter()
            .any(|other| other.is_clean && other.fabric == frame.fabric)
        {
            let width = (frame.grey.size[0] - frame.first_column) / WIDTH_STEP * WIDTH_STEP;
            let least = widths.entry(frame.fabric).or_insert(width);
            *least = width.min(*least);
        }
    }
    frames.retain(|frame| widths.contains_key(&frame.fabric));
    for frame in &mut frames {
        let width = widths[&frame.fabric];
        frame.grey = frame.grey.columns(frame.first_column, width);
        if !frame.is_clean {
            frame.boxes = boxes(frame, &masks)?;
        }
    }
    // A defect under the selvedge or without a mask tells nothing.
    frames.retain(|frame| frame.is_clean || !frame.boxes.is_empty());
    if frames.is_empty() {
        bail!(
            "{} has no pictures of fabrics with clean frames",
            folder.display()
        );
    }
    frames.sort_by_key(|frame| (frame.fabric, !frame.is_clean));
    Ok(frames)
}

/// The boxes of a frame's defects.
fn boxes(frame: &Frame, masks: &[PathBuf]) -> Result<Vec<Area>> {
    let prefix = format!("{}_mask", frame.name);
    let size = frame.grey.size;
    let mut defects = Mask {
        size,
        is_marked: vec![false; size[0] * size[1]],
    };
    for path in masks {
        let is_of = |name: &str| name.starts_with(&prefix);
        if !path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(is_of)
        {
            continue;
        }
        let mask = Grey::png(path)?;
        if mask.size[0] < frame.first_column + size[0] || mask.size[1] != size[1] {
            bail!("{} has another size than its picture", path.display());
        }
        let mask = mask.columns(frame.first_column, size[0]);
        for (is_marked, sample) in defects.is_marked.iter_mut().zip(mask.samples) {
            *is_marked |= sample > 0;
        }
    }
    Ok(defects
        .boxes()
        .iter()
        .map(|area| area.grown(BOX_MARGIN_PX, size))
        .collect())
}

/// Name and fabric of a picture, `0001_002_00.png`.
fn named(path: &Path) -> Option<(String, u32)> {
    let name = path.file_stem()?.to_str()?.to_owned();
    let fabric = name.rsplit('_').next()?.parse().ok()?;
    (path.extension()? == "png").then_some((name, fabric))
}

/// The files of a folder in the order of their names.
fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cloth with a pitch of 8 px, and a band at the left that is brighter, or smooth.
    fn cloth(band: usize, draw: impl Fn(usize, usize, u8) -> u8) -> Grey {
        let size = [1600, 32];
        let at = |x: usize, y: usize| {
            let cloth = 90 + 20 * ((x / 4 + y / 4) % 2) as u8;
            if x < band { draw(x, y, cloth) } else { cloth }
        };
        Grey {
            size,
            samples: (0..size[1])
                .flat_map(|y| (0..size[0]).map(move |x| (x, y)))
                .map(|(x, y)| at(x, y))
                .collect(),
        }
    }

    #[test]
    fn selvedge_is_cut_and_cloth_alone_is_not() {
        assert_eq!(columns_to_cut(&cloth(0, |_, _, cloth| cloth)), 0);
        for cut in [
            columns_to_cut(&cloth(100, |_, _, cloth| cloth + 60)),
            columns_to_cut(&cloth(100, |_, _, _| 100)),
        ] {
            assert!(cut.is_multiple_of(WIDTH_STEP));
            assert!((172..=192).contains(&cut), "{cut}");
        }
    }

    #[test]
    fn names_tell_the_fabric() {
        let of = |name: &str| named(Path::new(name)).map(|(_, fabric)| fabric);
        assert_eq!(of("a/0001_002_05.png"), Some(5));
        assert_eq!(of("a/0001_002_05.txt"), None);
        assert_eq!(of("a/readme.png"), None);
    }
}
