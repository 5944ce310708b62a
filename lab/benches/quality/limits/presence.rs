//! What presence marks, and when the verdict is `none`.

use anyhow::{Result, anyhow};
use gstclinspect::results::{DefectResult, Verdict};

use super::{
    DEFAULTS, Inspector, LimitsEffort, NOISE, ONE, PITCH_PX, SEED_SCENE, SIZE, Table, WEAVE, panel,
    percent,
};
use crate::{
    common::panel::{DefectKind, PanelGenerator, PanelSpec},
    detector::Bench,
    scene::{MEAN_LEVEL, Picture, Texture},
};

const NOISES: [f32; 3] = [2.0, 4.0, 8.0];
const SEED_LEARN: u64 = 12;
const SEED_PRESENCE: u64 = 14;

/// Presence on clean frames: what it marks there.
pub fn presence(effort: &LimitsEffort) -> Result<Table> {
    let frames = effort.clean_frames;
    let mut table = Table::new(
        "Presence on clean frames",
        "`min-contrast=-1` learned from the first frame. No frame may have `missing-pixels`.",
        &[
            "texture",
            "pitch",
            "σ",
            "frames",
            "contrast",
            "frames with missing-pixels",
            "verdict none",
        ],
    );
    let panels = [7.35, PITCH_PX, 61.13].map(|pitch| {
        Texture::Panel(PanelSpec {
            pitch_x: pitch,
            pitch_y: pitch,
            ..panel()
        })
    });
    for texture in panels.into_iter().chain([WEAVE]) {
        for sigma in NOISES {
            // Multiple 4 of 61 px cannot judge along y, which is not the question here.
            let bench = Bench::launch(&ONE.elements(texture.pitch()), texture.size())?;
            let (mut missing, mut none) = (0, 0);
            for number in 0..frames {
                let picture = texture.picture(SEED_PRESENCE, number)?;
                // A high threshold: only presence marks pixels.
                let result = bench.judge(&picture.frame(sigma, number), 128.0)?.result;
                missing += u64::from(result.missing_pixels > 0);
                none += u64::from(result.verdict == Verdict::None);
            }
            table.rows.push(vec![
                texture.name().into(),
                texture.pitch()[0].to_string(),
                sigma.to_string(),
                frames.to_string(),
                format!("{:.1}", bench.expected_contrast()),
                missing.to_string(),
                none.to_string(),
            ]);
        }
    }
    Ok(table)
}

/// What presence changes on frames with defects of every class: nothing.
pub fn presence_with_defects(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Presence on frames with planted defects",
        "Panels with up to 12 random defects of every class at contrast 60, default settings. Without \
         `missing-pixels` the mask is the one without presence, bit for bit.",
        &["pitch", "frames", "defects", "frames with missing-pixels"],
    );
    for pitch in [7.35, PITCH_PX] {
        let spec = PanelSpec {
            pitch_x: pitch,
            pitch_y: pitch,
            ..panel()
        };
        let bench = Bench::launch(&DEFAULTS.elements([pitch; 2]), SIZE)?;
        let mut generator = PanelGenerator::new(spec, SEED_PRESENCE).map_err(|why| anyhow!(why))?;
        bench.judge(&generator.clean_frame().samples, 10.0)?;
        let frames = effort.clean_frames / 2;
        let (mut planted, mut missing) = (0, 0);
        for _ in 0..frames {
            let frame = generator.next_random_of(&DefectKind::ALL, 12, 60.0);
            let result = bench.judge(&frame.samples, 10.0)?.result;
            planted += frame.planted.len();
            missing += u64::from(result.missing_pixels > 0);
        }
        table.rows.push(vec![
            pitch.to_string(),
            frames.to_string(),
            planted.to_string(),
            missing.to_string(),
        ]);
    }
    Ok(table)
}

/// A lamp that fades: presence judges the pattern's contrast.
pub fn light(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Less light",
        format!(
            "The whole frame, or its right half, gets a share of the light. Frames that fail of {}, with \
             presence off and on, and the share of the frame that presence marks. T allows 0.3 false \
             blobs a frame.",
            effort.scenes
        ),
        &[
            "light",
            "whole frame: off",
            "on",
            "marked",
            "right half: off",
            "on",
            "marked",
        ],
    );
    let panel = Texture::Panel(panel());
    let [off, on] = [DEFAULTS.off(), DEFAULTS].map(|s| Inspector::new(s, panel, effort));
    let (off, on) = (off?, on?);
    for share in [0.9, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4, 0.3] {
        let mut cells = vec![percent(f64::from(share))];
        for left in [0, SIZE[0] / 2] {
            let (mut fails, mut missing) = ([0, 0], 0.0);
            for number in 0..effort.scenes {
                let dim = |picture: &mut Picture| {
                    let area = [left, 0, SIZE[0] - left, SIZE[1]];
                    picture.change(area, |_, _, level| level * share);
                };
                for (i, inspector) in [&off, &on].into_iter().enumerate() {
                    let result = inspector.judge(number, dim)?.result;
                    fails[i] += u64::from(result.verdict == Verdict::Fail);
                    let pixels = (SIZE[0] * SIZE[1]) as f64;
                    missing += result.missing_pixels as f64 / pixels / effort.scenes as f64;
                }
            }
            cells.extend([fails[0].to_string(), fails[1].to_string(), percent(missing)]);
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// A weak pattern in noise.
pub fn low_contrast(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        format!("Low contrast against noise of σ {NOISE}"),
        format!(
            "A panel by the range of its pattern, lowest to highest level. Ten frames decide on pitch \
             and contrast; then {} clean frames, and {} frames of one level with the same noise.",
            effort.scenes, effort.scenes
        ),
        &[
            "range",
            "estimated pitch",
            "contrast",
            "clean frames with missing-pixels",
            "blank frames: share marked as missing",
            "blank frames: verdict",
        ],
    );
    for contrast in [120.0, 60.0, 30.0, 20.0, 15.0, 10.0, 6.0] {
        let texture = Texture::Panel(PanelSpec {
            contrast,
            ..panel()
        });
        let bench = Bench::launch(&DEFAULTS.elements([-1.0; 2]), SIZE)?;
        let judge = |picture: Picture, n: u64| -> Result<DefectResult> {
            Ok(bench.judge(&picture.frame(NOISE, n), 128.0)?.result)
        };
        for n in 0..10 {
            judge(texture.picture(SEED_LEARN, n)?, n)?;
        }
        let (mut missing, mut marked, mut verdicts) = (0, 0.0, [0; 3]);
        for n in 10..10 + effort.scenes {
            let clean = judge(texture.picture(SEED_LEARN, n)?, n)?;
            missing += u64::from(clean.missing_pixels > 0);
        }
        let [x, y] = bench.estimated_pitch();
        let expected = bench.expected_contrast();
        for n in 0..effort.scenes {
            let blank = judge(Picture::flat(SIZE, MEAN_LEVEL), n)?;
            let pixels = (SIZE[0] * SIZE[1]) as f64;
            marked += blank.missing_pixels as f64 / pixels / effort.scenes as f64;
            count(&mut verdicts, blank.verdict);
        }
        table.rows.push(vec![
            contrast.to_string(),
            format!("{x:.2} × {y:.2}"),
            format!("{expected:.2}"),
            missing.to_string(),
            percent(marked),
            in_words(verdicts),
        ]);
    }
    Ok(table)
}

fn count(verdicts: &mut [u64; 3], verdict: Verdict) {
    for (count, other) in verdicts.iter_mut().zip(Verdict::ALL) {
        *count += u64::from(other == verdict);
    }
}

fn in_words(verdicts: [u64; 3]) -> String {
    let words = verdicts
        .iter()
        .zip(Verdict::ALL)
        .filter(|(count, _)| **count > 0)
        .map(|(count, verdict)| format!("{} {count}", verdict.name()));
    words.collect::<Vec<_>>().join(", ")
}

/// Frames without a pattern from the start, and after good frames.
pub fn nothing_there(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "No pattern",
        format!("Verdicts of {} frames.", effort.scenes),
        &[
            "frames",
            "pitch estimated",
            "pitch set",
            "pitch set, min-contrast=0",
            "pitch set, after good frames",
        ],
    );
    let panel = Texture::Panel(panel());
    let blurred = Texture::Panel(PanelSpec {
        psf_sigma_px: 8.0,
        contrast: 4.0,
        ..self::panel()
    });
    type Make = Box<dyn Fn(u64) -> Result<Picture>>;
    let scenes: [(&str, Make, [f64; 2]); 6] = [
        (
            "black",
            Box::new(|_| Ok(Picture::flat(SIZE, 0.0))),
            [PITCH_PX; 2],
        ),
        (
            "white",
            Box::new(|_| Ok(Picture::flat(SIZE, 255.0))),
            [PITCH_PX; 2],
        ),
        (
            "grey with noise",
            Box::new(|_| Ok(Picture::flat(SIZE, MEAN_LEVEL))),
            [PITCH_PX; 2],
        ),
        (
            "grey with noise, corners 10 % darker",
            Box::new(|_| {
                let mut picture = Picture::flat(SIZE, MEAN_LEVEL);
                picture.change_all(|x, y, level| {
                    let r2 = (x as f32 - 320.0).powi(2) + (y as f32 - 240.0).powi(2);
                    level * (1.0 - 0.1 * r2 / 160_000.0)
                });
                Ok(picture)
            }),
            [PITCH_PX; 2],
        ),
        (
            "out of focus",
            Box::new(move |n| blurred.picture(SEED_SCENE, n)),
            [PITCH_PX; 2],
        ),
        (
            "panel, pitch set to 11",
            Box::new(move |n| panel.picture(SEED_SCENE, n)),
            [11.0; 2],
        ),
    ];
    for (name, make, pitch) in &scenes {
        let mut cells = vec![name.to_string()];
        for (settings, pitch, learns) in [
            (DEFAULTS, [-1.0; 2], false),
            (DEFAULTS, *pitch, false),
            (DEFAULTS.off(), *pitch, false),
            (DEFAULTS, *pitch, true),
        ] {
            let bench = Bench::launch(&settings.elements(pitch), SIZE)?;
            if learns {
                for n in 0..4 {
                    bench.judge(&panel.picture(SEED_LEARN, n)?.frame(NOISE, n), 12.0)?;
                }
            }
            let mut verdicts = [0; 3];
            for n in 0..effort.scenes {
                let result = bench.judge(&make(n)?.frame(NOISE, n), 12.0)?.result;
                count(&mut verdicts, result.verdict);
            }
            cells.push(in_words(verdicts));
        }
        table.rows.push(cells);
    }
    Ok(table)
}
