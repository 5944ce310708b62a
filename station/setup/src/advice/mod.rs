//! What an object is, and which element and settings suit it: docs/which-element.md as a program.
//!
//! 1. *Repeats.* The pitches along rows and columns, and the vectors of a pattern at an angle, are estimated as the elements
//!    estimate them. The likeness is the correlation of places 6 to 12 repeats apart, without the noise. Repeats that a mask
//!    or a machine placed are alike; woven cloth loses its step within them.
//! 2. *Sameness.* Each picture is aligned with the first, as `clreference` aligns frames, and the score says how well they
//!    then agree.
//! 3. *Decision.* A pattern, if all repeats are alike. Else the same object, if the pictures agree. Else a texture, if there
//!    is a pitch. Else a surface, if it has structure beside the noise. Else nothing is advised.

mod noise;
mod picture;
mod repeats;
mod same;
mod settings;
mod turned;

use std::sync::Arc;

use clinspect_core::{lattice_estimate::Vector, pitch_estimate::PitchEstimator};
use run::frame::Frame;
use serde::Serialize;

pub use picture::Picture;
use repeats::Repeat;
use same::Similarity;
use turned::Turned;

/// Most pictures that are measured.
const MOST_PICTURES: usize = 16;
/// Likeness from which on each repeat equals the others. Drawn panels reach 0.98, real cloth 0.76.
const ALIKE: f64 = 0.88;
/// Score from which on pictures show the same. Drawn labels and real boards reach 0.96, panels and cloth at other places 0.67.
const SAME: f64 = 0.82;
/// A surface has a contrast of at least so many standard deviations of the noise: less is an empty picture.
const STRUCTURE: f64 = 1.0;
/// A shift, turn or stretch below this is no motion, px.
const STILL: f64 = 0.3;
/// Share of the contrast below which nothing varies along an axis: stripes.
const STRIPES: f64 = 0.25;
/// Largest middle of a picture that is searched for noise and repeats, px.
const MIDDLE: [usize; 2] = [2048, 1024];
/// Most pixels of a picture that is aligned.
const MOST_PIXELS: usize = 1_500_000;
/// Shortest side of a picture, px.
const LEAST_SIDE: usize = 64;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Object {
    /// Each repeat equals the others.
    Pattern,
    /// It repeats, and no two repeats are alike.
    Texture,
    /// It is the same in every picture.
    Same,
    /// Nothing repeats, and no two pictures agree.
    Surface,
}

/// What was measured, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// What the object is.
    pub object: Object,
    /// Pitch along rows, px; 0 if nothing repeats along them.
    pub pitch_x: f64,
    /// Pitch along columns, px; 0 if nothing repeats along them.
    pub pitch_y: f64,
    /// Vectors of a pattern at an angle, as the property `lattice` takes them, px; empty if there are none.
    pub lattice: Vec<f64>,
    /// Standard deviation of the object's structure, grey levels of 8 bits.
    pub contrast: f64,
    /// Standard deviation of the noise, grey levels of 8 bits.
    pub noise: f64,
    /// Why, in sentences for people.
    pub reasons: Vec<String>,
    /// Tables of the camera: `gaussian` (or null), `analyzer`, `analysis`.
    pub settings: serde_json::Value,
}

/// What the measurements of some pictures are.
#[derive(Debug, Clone, PartialEq)]
struct Measurements {
    count: usize,
    size: [usize; 2],
    /// Bits of a sample.
    bits: u32,
    noise: f64,
    contrast: f64,
    /// Along rows and along columns.
    repeats: [Repeat; 2],
    /// At an angle; then the repeats along rows and columns do not count.
    turned: Option<Turned>,
    same: Similarity,
    /// Only two grey levels occur.
    is_binary: bool,
}

impl Measurements {
    fn is_still(&self) -> bool {
        self.same.shift.max(self.same.bent) < STILL
    }

    /// The vectors after which the pictures repeat, px.
    fn vectors(&self) -> Vec<Vector> {
        match &self.turned {
            Some(turned) => turned.vectors.clone(),
            None => {
                let [x, y] = self.repeats;
                let vectors = [[x.pitch, 0.0], [0.0, y.pitch]].into_iter();
                vectors.filter(|vector| *vector != [0.0; 2]).collect()
            }
        }
    }

    /// How alike the repeats are along the vector along which they are least alike; 1 without repeats.
    fn likeness(&self) -> f64 {
        match &self.turned {
            Some(turned) => turned.likeness,
            None => {
                let found = self.repeats.iter().filter(|of| of.pitch > 0.0);
                found.map(|of| of.likeness).fold(1.0, f64::min)
            }
        }
    }

    fn object(&self) -> Option<Object> {
        let [x, y] = self.repeats;
        let is_stripes = |along: Repeat, across: Repeat| {
            along.pitch > 0.0 && across.pitch == 0.0 && across.deviation < STRIPES * along.deviation
        };
        let found = self.vectors().len();
        let is_alike = self.likeness() >= ALIKE;
        let is_whole = self.turned.is_some() || found == 2 || is_stripes(x, y) || is_stripes(y, x);
        let is_same = self.same.score >= SAME;
        if is_whole && is_alike {
            Some(Object::Pattern)
        } else if is_same && !(found > 0 && self.is_still()) {
            Some(Object::Same)
        } else if found > 0 {
            Some(Object::Texture)
        } else if !self.is_binary && self.contrast >= STRUCTURE * self.noise {
            Some(Object::Surface)
        } else {
            None
        }
    }
}

/// Of a picture, what is measured: large pictures are neither kept nor searched whole.
struct Views {
    size: [usize; 2],
    /// Its middle.
    middle: Picture,
    /// All of it, smaller by `by`.
    whole: Picture,
    by: usize,
}

impl Views {
    fn of(picture: &Picture) -> Self {
        let [width, height] = [picture.width, picture.height];
        let by = (1..).find(|by| width / by * (height / by) <= MOST_PIXELS);
        let by = by.unwrap_or(1);
        Self {
            size: [width, height],
            middle: picture.middle(MIDDLE),
            whole: picture.reduced(by),
            by,
        }
    }
}

/// Measures frames of good pieces, 2 to 16 of them, and advises an element with its settings.
///
/// # Errors
/// The frames are too few, too small or of several sizes, or nothing can be advised: a sentence that says what to do.
pub fn advise(frames: &[Arc<Frame>]) -> Result<Advice, String> {
    let frames = frames.get(..MOST_PICTURES).unwrap_or(frames);
    let bits = (frames.iter()).map(|frame| Picture::bits_of(frame.buffer(), frame.info()));
    let bits = bits
        .collect::<Result<Vec<u32>, String>>()?
        .into_iter()
        .max();
    let bits = bits.unwrap_or(8);
    let views = frames.iter().map(|frame| {
        let picture = Picture::of(frame.buffer(), frame.info(), bits)?;
        Ok(Views::of(&picture))
    });
    advise_views(&views.collect::<Result<Vec<Views>, String>>()?, bits)
}

/// The same for pictures of one sample a pixel, from a camera with samples of `bits`.
///
/// # Errors
/// As for [`advise`].
pub fn advise_pictures(pictures: &[Picture], bits: u32) -> Result<Advice, String> {
    let views: Vec<Views> = pictures.iter().map(Views::of).collect();
    advise_views(&views, bits)
}

fn advise_views(views: &[Views], bits: u32) -> Result<Advice, String> {
    let measured = measure(views, bits)?;
    let object = measured.object().ok_or_else(|| {
        "nothing repeats within the pictures, no two of them agree, and there is little beside the noise; set light and \
         focus, let the object lie in the same place in each picture, and measure again"
            .to_owned()
    })?;
    Ok(settings::advice(object, &measured))
}

fn measure(views: &[Views], bits: u32) -> Result<Measurements, String> {
    let [Views { size, .. }, _, ..] = *views else {
        let text = "one picture does not show what changes from piece to piece; take 4 or more";
        return Err(text.to_owned());
    };
    if size[0].min(size[1]) < LEAST_SIDE {
        let [width, height] = size;
        return Err(format!(
            "the pictures have {width}x{height} pixels; a side needs {LEAST_SIDE} or more"
        ));
    }
    if views.iter().any(|view| view.size != size) {
        let text = "the pictures have several sizes; take all with the same settings of the camera";
        return Err(text.to_owned());
    }
    let middles: Vec<&Picture> = views.iter().map(|view| &view.middle).collect();
    let noise = noise::noise(&middles);
    let mut estimator = PitchEstimator::default();
    let repeats = [Picture::rows, Picture::columns]
        .map(|lines| repeats::along(&middles, lines, noise, &mut estimator));
    let pitches = repeats.map(|repeat| repeat.pitch);
    let turned = turned::turned(&middles, pitches, noise);
    let longest = match &turned {
        Some(turned) => turned::longest(&turned.vectors),
        None => pitches[0].max(pitches[1]),
    };
    let contrast = noise::contrast(&middles, longest, noise);
    Ok(Measurements {
        count: views.len(),
        size,
        bits,
        noise,
        contrast,
        repeats,
        turned,
        same: same::same(views).unwrap_or_default(),
        is_binary: noise::is_binary(&middles),
    })
}
