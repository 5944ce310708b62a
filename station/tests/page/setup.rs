//! The set-up page in chromium, driven by `setup.py`, at a real station that has no camera yet.

use std::{fs, path::Path, process::Command, time::Duration};

use clinspect_testkit::{
    cloth::quantised,
    parts::{Part, Placed, View},
    tools::Sandbox,
};

use crate::{browser, fake::TOKEN};

const SIZE: [u32; 2] = [640, 480];
/// The repeat of the cloth, px.
const PITCH: [f64; 2] = [11.3, 8.7];

/// Writes pictures of cloth, coarser by `scale`; each lies elsewhere. With a stain each has a pale thread and a dark spot.
fn draw(folder: &Path, count: u32, has_stain: bool, scale: f64) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let shift = [f64::from(number * 7 % 23), f64::from(number * 5 % 17)];
        let mut noise = number + 1;
        let picture = image::GrayImage::from_fn(SIZE[0], SIZE[1], |x, y| {
            let turns = |at: u32, axis: usize| {
                (std::f64::consts::TAU * (f64::from(at) + shift[axis]) / PITCH[axis] / scale).sin()
            };
            let (warp, weft) = (turns(x, 0), turns(y, 1));
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut level = 110.0 + 28.0 * warp * weft.signum() + 14.0 * weft;
            level += f64::from(noise >> 28) - 7.5;
            if has_stain {
                let (dx, dy) = (x.abs_diff(200 + 40 * number), y.abs_diff(150 + 30 * number));
                level += if dy < 3 && dx < 40 { 60.0 } else { 0.0 };
                level -= if dx * dx + dy.abs_diff(60).pow(2) < 80 {
                    60.0
                } else {
                    0.0
                };
            }
            image::Luma([quantised(level as f32)])
        });
        picture
            .save(folder.join(format!("{number:04}.png")))
            .unwrap();
    }
}

/// Writes pictures of a sheet with a pale dot in each cell; its cell is 25.12 by 20.14 px, turned by 12 degrees.
fn draw_turned(folder: &Path, count: u32) {
    const VECTORS: [[f64; 2]; 2] = [[24.57, 5.22], [-4.19, 19.70]];
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let mut noise = number + 1;
        let picture = image::GrayImage::from_fn(SIZE[0], SIZE[1], |x, y| {
            let wave = |[right, down]: [f64; 2]| {
                let [x, y] = [f64::from(x + 5 * number), f64::from(y + 3 * number)];
                let turns = (right * x + down * y) / (right * right + down * down);
                0.5 + 0.5 * (std::f64::consts::TAU * turns).cos()
            };
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [first, second] = VECTORS.map(wave);
            let level = 80.0 + 120.0 * first * second + f64::from(noise >> 28) - 7.5;
            image::Luma([quantised(level as f32)])
        });
        picture
            .save(folder.join(format!("{number:04}.png")))
            .unwrap();
    }
}

/// Writes pictures of a board that lies elsewhere in each.
fn draw_boards(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    let part = Part::board(5, 180.0, 130.0);
    for number in 0..count {
        let n = f64::from(number);
        let view = View {
            seed: u64::from(number),
            ..View::new(SIZE[0] as usize, SIZE[1] as usize)
        };
        let placed = Placed::new(160.0 + 41.0 * n % 300.0, 140.0 + 29.0 * n % 180.0, 47.0 * n);
        let drawn = view.draw(&part, &[placed]);
        let samples = drawn.samples.iter().map(|&sample| sample as u8).collect();
        let picture = image::GrayImage::from_raw(SIZE[0], SIZE[1], samples).unwrap();
        picture
            .save(folder.join(format!("{number:04}.png")))
            .unwrap();
    }
}

/// Writes pictures of leather, on which nothing repeats; with a dark line each that no other picture has.
fn draw_leather(folder: &Path, seed: u32, count: u32, has_crack: bool) {
    fs::create_dir_all(folder).unwrap();
    let [width, height] = SIZE.map(|side| side as usize);
    let mut state = seed;
    for number in 0..count {
        let mut grain = vec![0_u32; width * height];
        for value in &mut grain {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *value = state >> 24;
        }
        let picture = image::GrayImage::from_fn(SIZE[0], SIZE[1], |x, y| {
            let row = |y: u32| {
                let start = y as usize % height * width;
                (0..3)
                    .map(|n| grain[start + (x as usize + n) % width])
                    .sum::<u32>()
            };
            let sum = row(y) + row(y + 1) + row(y + 2);
            let is_crack =
                has_crack && (200..420).contains(&x) && y.abs_diff(120 + 60 * number) < 3;
            image::Luma([(sum / 9) as u8 / if is_crack { 2 } else { 1 }])
        });
        picture
            .save(folder.join(format!("{number:04}.png")))
            .unwrap();
    }
}

#[test]
fn set_up_leads_from_an_empty_page_to_an_inspection() {
    let sandbox = Sandbox::new("page-setup");
    let folder = sandbox.path();
    draw(&folder.join("frames/cloth"), 24, false, 1.0);
    draw(&folder.join("frames/stained"), 4, true, 1.0);
    draw(&folder.join("frames/coarse"), 8, false, 1.5);
    draw_turned(&folder.join("frames/turned"), 8);
    draw_boards(&folder.join("frames/boards"), 24);
    draw_leather(&folder.join("frames/leather"), 1, 24, false);
    draw_leather(&folder.join("frames/cracked"), 2, 4, true);
    let mixed = folder.join("frames/mixed");
    draw(&mixed, 12, false, 1.0);
    for number in 0..4 {
        let name = format!("{number:04}.png");
        let stained = folder.join("frames/stained").join(&name);
        fs::copy(stained, mixed.join(format!("stained-{name}"))).unwrap();
    }
    let token = folder.join("token");
    fs::write(&token, TOKEN).unwrap();
    let kept = Command::new("chmod").arg("600").arg(&token).status();
    assert!(kept.unwrap().success());
    let text = format!(
        "listen = \"127.0.0.1:0\"\ntoken-file = {token:?}\nallow-writing = true\nrecipes = {:?}\nframes = {:?}\n",
        folder.join("recipes"),
        folder.join("frames"),
    );
    let station = browser::RealStation::start(folder, &text);
    browser::drive(
        "setup.py",
        &station.url(),
        Duration::from_secs(480),
        |line| eprintln!("{line}"),
    );
    // What was saved is a recipe that people read, and that the station checks.
    let recipe = fs::read_to_string(folder.join("recipes/cloth.toml")).unwrap();
    // It was saved last by a browser that had moved no limit, so the remark is true.
    assert!(
        recipe.contains("min-area = 7") && recipe.contains("# Learned from 24 good pieces"),
        "{recipe}"
    );
    let recipe = fs::read_to_string(folder.join("recipes/leather.toml")).unwrap();
    assert!(
        recipe.contains("channels = \"novelty+dark-lines\"") && recipe.contains("[camera.surface]"),
        "{recipe}"
    );
    let check = Command::new(browser::PROGRAM)
        .arg("--check")
        .arg(folder.join("station.toml"))
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
}
