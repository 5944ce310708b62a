//! The advice in words and in settings: docs/which-element.md and docs/first-camera.md.

use serde_json::{Map, Value, json};

use super::{Advice, Measurements, Object, STILL};

/// Shortest pitch that is compared well, from docs/first-camera.md.
const GOOD_PITCH: f64 = 6.0;
/// Repeats that the default multiples need. The element asks for 16 of those that are judged, and regions that are drawn
/// later take some away.
const GOOD_REPEATS: f64 = 20.0;
/// The lowest threshold that lets good panels pass, behind the filter, is 8.5 at a noise of 4 grey levels; a quarter more
/// allows for noise that grows (docs/quality.md, docs/first-camera.md).
const PATTERN_THRESHOLD: f64 = 8.5 / 4.0 * 1.25;
/// The threshold of labels at a noise of 4 grey levels (docs/which-element.md).
const SAME_THRESHOLD: f64 = 17.0 / 4.0;
/// Thresholds in grey levels of 8 bits are no lower: light is never the same to a level or two.
const LEAST_THRESHOLD: f64 = 4.0;
/// The threshold of pictures in black and white.
const BINARY_THRESHOLD: f64 = 12.0;
/// Turn and stretch below this move no edge visibly, px.
const BENT: f64 = 0.5;
/// Default of `search-range`, px, and the room that a measured shift leaves.
const SEARCH_RANGE: f64 = 16.0;
const MOST_SEARCH_RANGE: f64 = 256.0;
/// Contrast of the pattern in standard deviations of the noise that suffices.
const GOOD_CONTRAST: f64 = 3.0;

/// The advice for an object.
pub(super) fn advice(object: Object, measured: &Measurements) -> Advice {
    let (mut reasons, settings) = match object {
        Object::Pattern => pattern(measured),
        Object::Texture => texture(measured),
        Object::Same => same(measured),
        Object::Surface => surface(measured),
    };
    let Measurements {
        noise, contrast, ..
    } = *measured;
    if object != Object::Same && contrast < GOOD_CONTRAST * noise {
        reasons.push(format!(
            "The contrast of {contrast:.1} grey levels is less than {GOOD_CONTRAST:.0} times the noise of {noise:.1}: more light \
             and a better focus let smaller defects be found."
        ));
    }
    if measured.is_still() {
        reasons.push(
            "The object did not move between the pictures, so how much good pieces differ is not known. Show other pieces, \
             and measure again."
                .to_owned(),
        );
    }
    let (pitches, lattice) = match &measured.turned {
        Some(turned) => ([0.0; 2], turned.vectors.concat()),
        None => (measured.repeats.map(|repeat| repeat.pitch), Vec::new()),
    };
    Advice {
        object,
        pitch_x: pitches[0],
        pitch_y: pitches[1],
        lattice,
        contrast,
        noise,
        reasons,
        settings,
    }
}

fn smoothing() -> Value {
    json!({ "kernel-size": 5, "sigma": 0.8 })
}

/// A threshold in half grey levels of 8 bits, as grey levels of the camera's samples.
fn threshold(of_8_bits: f64, bits: u32) -> f64 {
    let scale = f64::from(1_u32 << bits.clamp(8, 16).saturating_sub(8));
    (2.0 * of_8_bits.max(LEAST_THRESHOLD)).ceil() / 2.0 * scale
}

/// Digits of a pitch that an estimate can tell.
fn rounded(pitch: f64) -> f64 {
    (pitch * 1000.0).round() / 1000.0
}

/// How the pictures repeat, as a sentence.
fn repeats(measured: &Measurements) -> String {
    if let Some(turned) = &measured.turned {
        let vectors = turned.vectors.iter();
        let vectors: Vec<String> = vectors.map(|[x, y]| format!("({x:.2}, {y:.2})")).collect();
        let (vectors, degrees) = (vectors.join(" and "), turned.degrees);
        let (pictures, differs) = match turned.is_fixed {
            true => ("The pictures repeat", ""),
            false => (
                "One picture repeats",
                "; others repeat at other angles or distances",
            ),
        };
        return format!(
            "{pictures} after {vectors} px, right and down, at {degrees:.1}° to the rows{differs}."
        );
    }
    let axes = measured.repeats.iter().zip(["rows", "columns"]);
    let found = axes.filter(|(repeat, _)| repeat.pitch > 0.0);
    let found: Vec<String> = found
        .map(|(repeat, axis)| format!("every {:.2} px along {axis}", repeat.pitch))
        .collect();
    format!("The picture repeats {}.", found.join(" and "))
}

/// How alike repeats are, percent.
fn likeness(measured: &Measurements) -> f64 {
    100.0 * measured.likeness().clamp(0.0, 1.0)
}

/// How many repeats the pictures hold along the vector along which they hold fewest, and the length of the shortest vector, px.
fn fewest_and_shortest(measured: &Measurements) -> [f64; 2] {
    let vectors = measured.vectors();
    let [width, height] = measured.size.map(|side| side as f64);
    let counts = vectors
        .iter()
        .map(|[x, y]| (width / x.abs()).min(height / y.abs()));
    let lengths = vectors.iter().map(|[x, y]| x.hypot(*y));
    [
        counts.fold(f64::MAX, f64::min),
        lengths.fold(f64::MAX, f64::min),
    ]
}

fn pattern(measured: &Measurements) -> (Vec<String>, Value) {
    let threshold = threshold(PATTERN_THRESHOLD * measured.noise, measured.bits);
    let mut reasons = vec![
        repeats(measured),
        format!(
            "Places several repeats apart agree to {:.0} %: each repeat equals the others, so the pattern is compared with itself.",
            likeness(measured)
        ),
        format!(
            "The threshold of {threshold} follows from the noise of {:.1} grey levels; try it on good pieces.",
            measured.noise
        ),
    ];
    let [fewest, shortest] = fewest_and_shortest(measured);
    if fewest < GOOD_REPEATS {
        reasons.push(format!(
            "The picture holds only {fewest:.0} repeats: a place is compared with its nearest neighbours alone. Show more repeats \
             if you can."
        ));
    }
    if shortest < GOOD_PITCH {
        reasons.push(format!(
            "A repeat of {shortest:.1} px is short: {GOOD_PITCH:.0} px or more let smaller defects be found. Move the camera closer."
        ));
    }
    let multiples = if fewest < GOOD_REPEATS {
        json!([1])
    } else {
        json!([1, 4])
    };
    let mut analysis = match &measured.turned {
        // Each frame is compared along its own vectors.
        Some(turned) if !turned.is_fixed => json!({ "pitch-x": -1, "pitch-y": -1 }),
        Some(turned) => {
            json!({ "lattice": turned.vectors.concat().into_iter().map(rounded).collect::<Vec<f64>>() })
        }
        None => {
            let [x, y] = measured.repeats.map(|repeat| rounded(repeat.pitch));
            json!({ "pitch-x": x, "pitch-y": y })
        }
    };
    analysis["multiples"] = multiples;
    analysis["threshold"] = json!(threshold);
    let settings = json!({ "gaussian": smoothing(), "analyzer": "pitch", "analysis": analysis });
    (reasons, settings)
}

fn texture(measured: &Measurements) -> (Vec<String>, Value) {
    let mut reasons = vec![
        repeats(measured),
        format!(
            "Places several repeats apart agree to {:.0} % only: no two repeats are alike, as in cloth.",
            likeness(measured)
        ),
        "A texture learns its limits from good pieces, so it needs no threshold.".to_owned(),
    ];
    // Cloth is stretched as it runs, so the element follows the pitch, unless it cannot be found.
    let mut analysis = Map::new();
    for (key, repeat, axis) in [
        ("pitch-x", measured.repeats[0], "rows"),
        ("pitch-y", measured.repeats[1], "columns"),
    ] {
        if repeat.pitch > 0.0 || measured.turned.is_some() {
            analysis.insert(key.to_owned(), json!(-1));
        } else {
            reasons.push(format!(
                "No pitch was found along {axis}. Measure it with the ruler over some repeats; nothing is judged without it."
            ));
        }
    }
    let settings = json!({ "gaussian": null, "analyzer": "texture", "analysis": analysis });
    (reasons, settings)
}

fn surface(measured: &Measurements) -> (Vec<String>, Value) {
    let reasons = vec![
        "Nothing repeats within the pictures.".to_owned(),
        format!(
            "The {} pictures agree to {:.0} % at most: they do not show one object at one place. If they should, let it lie in \
             the same place in each picture, and measure again.",
            measured.count,
            100.0 * measured.same.score.clamp(0.0, 1.0)
        ),
        "So each place is compared with what good pieces have shown. A surface learns its limits from 16 to 32 good pieces, \
         and needs no threshold."
            .to_owned(),
        "Thin cracks in rough metal are found by the channels dark-lines or bright-lines, which are off.".to_owned(),
    ];
    let settings = json!({ "gaussian": null, "analyzer": "surface", "analysis": {} });
    (reasons, settings)
}

fn same(measured: &Measurements) -> (Vec<String>, Value) {
    let found = &measured.same;
    let is_bent = found.bent > BENT || measured.is_binary;
    let mut reasons = vec![format!(
        "The {} pictures agree to {:.0} %: they show the same object.",
        measured.count,
        100.0 * found.score
    )];
    if !measured.is_still() {
        reasons.push(if is_bent {
            format!(
                "It is shifted by up to {:.1} px, and turn and stretch move its border by up to {:.1} px: frames are shifted, turned \
                 and stretched before they are compared.",
                found.shift, found.bent
            )
        } else {
            format!(
                "It is shifted by up to {:.1} px and neither turned nor stretched: frames are shifted before they are compared.",
                found.shift
            )
        });
    }
    if found.least_score < super::SAME {
        reasons.push(format!(
            "One picture agrees to {:.0} % only: it shows another object, or a bad one.",
            100.0 * found.least_score
        ));
    }
    let (mut analysis, gaussian) = if measured.is_binary {
        reasons.push("It is black and white: thin marks along its edges are left out.".to_owned());
        let analysis = json!({
            "normalize": "none", "threshold": threshold(BINARY_THRESHOLD, measured.bits), "opening": 3, "min-area": 9,
        });
        (analysis, Value::Null)
    } else {
        let threshold = threshold(SAME_THRESHOLD * measured.noise, measured.bits);
        reasons.push(format!(
            "The threshold of {threshold} follows from the noise of {:.1} grey levels; try it on good pieces.",
            measured.noise
        ));
        (
            json!({ "normalize": "gain", "threshold": threshold }),
            smoothing(),
        )
    };
    analysis["align"] = json!(if is_bent { "affine" } else { "translation" });
    analysis["edge-tolerance"] = json!(1);
    analysis["train-frames"] = json!(32);
    // A piece may be shifted farther than those that were seen.
    let range = 2.0 * found.shift;
    if range > SEARCH_RANGE && found.shift > STILL {
        analysis["search-range"] = json!(range.min(MOST_SEARCH_RANGE).ceil() as u32);
    }
    let settings = json!({ "gaussian": gaussian, "analyzer": "reference", "analysis": analysis });
    (reasons, settings)
}
