//! The confusion table: object by answer. Needs downloaded pictures; lab/figures/real-pictures.md says from where.
//!
//! `CLINSPECT_AITEX=FOLDER CLINSPECT_DEEPPCB=FOLDER cargo test --test advice -- --ignored --nocapture`,
//! with `CLINSPECT_SPLIT=tune` for the part on which limits may be chosen.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use clinspect_testkit::{label::LabelSpec, panel::PanelSpec};
use setup::advice::{Advice, Picture, advise_pictures};

use super::drawn::{labels, panels, picture};

/// Frames of a group.
const GROUP: usize = 4;
/// Columns that are left out: the selvedge, the longest of which ends before.
const SELVEDGE: u32 = 1024;

/// Files below a folder whose name ends so, sorted.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path, crop: Option<[u32; 4]>) -> Picture {
    let mut grey = image::open(path).unwrap().into_luma8();
    if let Some([x, y, width, height]) = crop {
        grey = image::imageops::crop_imm(&grey, x, y, width, height).to_image();
    }
    let width = grey.width() as usize;
    picture(&grey.into_raw(), width)
}

#[derive(Default)]
struct Confusion {
    /// Object, answer: count.
    cells: BTreeMap<(String, String), usize>,
    seconds: f64,
    groups: usize,
}

impl Confusion {
    fn add(&mut self, object: &str, pictures: &[Picture]) -> Option<Advice> {
        let start = Instant::now();
        let advice = advise_pictures(pictures, 8);
        self.seconds += start.elapsed().as_secs_f64();
        self.groups += 1;
        let answer = advice.as_ref().map_or("nothing".to_owned(), |advice| {
            format!("{:?}", advice.object)
        });
        *self.cells.entry((object.to_owned(), answer)).or_default() += 1;
        advice.ok()
    }
}

#[test]
#[ignore = "needs pictures that someone has downloaded"]
fn confusion_table() {
    let is_tuning = std::env::var("CLINSPECT_SPLIT").is_ok_and(|split| split == "tune");
    let mut table = Confusion::default();
    let mut pitches = Vec::new();
    let seed = if is_tuning { 100 } else { 200 };
    for (number, pitch) in [5.2, 6.3, 7.35, 9.8, 14.2, 21.7, 33.3, 48.0]
        .into_iter()
        .enumerate()
    {
        for noise_sigma in [1.0, 4.0, 10.0] {
            let spec = PanelSpec {
                pitch_x: pitch,
                pitch_y: 1.1 * pitch,
                noise_sigma,
                vignetting: 0.2,
                ..PanelSpec::default()
            };
            if let Some(advice) =
                table.add("drawn panel", &panels(spec, seed + number as u64, GROUP))
            {
                pitches.push(
                    (advice.pitch_x / pitch - 1.0)
                        .abs()
                        .max((advice.pitch_y / (1.1 * pitch) - 1.0).abs()),
                );
            }
            let spec = LabelSpec {
                noise_sigma,
                shift_px: 2.0 * number as f64,
                ..LabelSpec::default()
            };
            table.add("drawn label", &labels(spec, seed + number as u64, GROUP));
        }
    }
    if let Some(folder) = std::env::var_os("CLINSPECT_AITEX") {
        let mut fabrics: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in files(&Path::new(&folder).join("NoDefect_images"), ".png") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let fabric = name.rsplit('_').next().unwrap();
            if ["00", "01", "03"].contains(&fabric) == is_tuning {
                fabrics.entry(fabric.to_owned()).or_default().push(path);
            }
        }
        for (fabric, paths) in fabrics {
            for group in paths.chunks_exact(GROUP) {
                for (window, crop) in [
                    ("2048", [SELVEDGE, 0, 2048, 256]),
                    ("640", [SELVEDGE + 704, 0, 640, 256]),
                ] {
                    let pictures: Vec<Picture> =
                        group.iter().map(|path| read(path, Some(crop))).collect();
                    let advice = table.add(&format!("cloth {fabric}, {window} px"), &pictures);
                    if let Some(advice) = advice {
                        println!(
                            "cloth {fabric} {window}: {:?} {:.2} {:.2}",
                            advice.object, advice.pitch_x, advice.pitch_y
                        );
                    }
                }
                let crop = Some([SELVEDGE, 0, 2048, 256]);
                table.add(
                    "cloth, one picture again",
                    &vec![read(&group[0], crop); GROUP],
                );
            }
        }
    }
    if let Some(folder) = std::env::var_os("CLINSPECT_DEEPPCB") {
        let templates = files(Path::new(&folder), "_temp.jpg");
        let kept = templates
            .iter()
            .enumerate()
            .filter(|(i, _)| i % 7 == if is_tuning { 3 } else { 0 });
        let mut others = Vec::new();
        for (_, template) in kept {
            let test = template.to_str().unwrap().replace("_temp", "_test");
            let pair = [read(template, None), read(test.as_ref(), None)];
            table.add("board", &pair);
            others.push(pair[0].clone());
            if others.len() == GROUP {
                table.add("boards, all different", &others);
                others.clear();
            }
        }
    }
    for ((object, answer), count) in &table.cells {
        println!("{object:28} {answer:10} {count}");
    }
    let worst = pitches.iter().copied().fold(0.0, f64::max);
    println!(
        "worst pitch of panels: {:.4} %; {:.3} s a group",
        100.0 * worst,
        table.seconds / table.groups as f64
    );
}
