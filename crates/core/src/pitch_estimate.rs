//! The real-valued pitch of a repeating pattern, estimated from lines of a frame.
//!
//! 1. *Search.* The autocorrelations of some lines are summed and high-passed for one octave of
//!    pitches after another. Their peaks are the candidates.
//! 2. *Mask.* Positions without the candidate's pattern (a dark border) get the weight 0. The moving
//!    mean of the other positions is subtracted.
//! 3. *Refinement.* `ρ(τ) = 1 − d(τ) / (2·variance)`, where `d(τ)` is the mean square difference over
//!    the lag `τ`. The pitch `p` maximises the mean of `ρ(m·p)`, weighted by overlap, first at near
//!    and then at ever farther multiples `m`: an error of the lag `m·p` counts `1/m` in the pitch.
//! 4. *Octave.* If every k-th multiple correlates better than the others, the period is k pitches. If
//!    the multiples of a k-th of the pitch correlate as well, the period is that k-th.
//! 5. *Evening out.* With few periods, uneven illumination, a defect or a border weighs more. The
//!    moving mean over exactly one pitch, the gain, defects and lines without the pattern are removed,
//!    and step 3 is repeated.
//! 6. *Decision.* The mean of `ρ` at the four nearest multiples is the confidence. Real cloth keeps its
//!    phase for three to five pitches, and a comparison looks at the next neighbours. Few periods need a
//!    higher confidence, because structures of a photograph resemble each other by chance. A texture
//!    that loses a third of the correlation over two pitches is refused, unless it still
//!    correlates well at two. If the local mean changes more from pitch to pitch than the pattern
//!    varies, it is a staircase and is refused.
//!
//! # Source
//! Autocorrelation by FFT: Wiener–Khinchin theorem. The pitch that maximises the correlations at
//! all multiples, each weighted by its overlap, is the least-squares fit of a periodic line
//! (J. D. Wise, J. R. Caprio, T. W. Parks, Maximum likelihood pitch estimation, IEEE Trans. ASSP
//! 24, 1976). Mean square differences instead of products, so that an incomplete period at an end
//! does not shift the peak: A. de Cheveigné, H. Kawahara, YIN, JASA 111, 2002. Weights by FFT:
//! D. Padfield, Masked Object Registration in the Fourier Domain, IEEE Trans. Image Processing 21,
//! 2012.

mod correlation;
mod filters;
mod prepare;
mod refine;
mod search;
mod tracker;

pub(crate) use tracker::{AGREEING_OF_CHANGE, AGREEING_OF_PITCH, LOST_AFTER, MOVE_AFTER, MOVE_PX};
pub use tracker::{LARGEST_TOLERANCE, PitchChange, PitchTracker};

pub(crate) use correlation::transform_length;
use correlation::{Correlator, Overlaps};
use prepare::Prepared;
use refine::Comb;
use search::Search;

/// Shortest pitch, px: optics blur away patterns closer to 2 px.
pub const MIN_PITCH_PX: f64 = 2.5;
/// Fewest periods in the patterned part of a line: two periods could be two unrelated things that
/// look alike.
pub const MIN_PERIODS: f64 = 3.0;
/// Share of `MIN_PERIODS` that suffices, because the search is coarse.
const PERIODS_TOLERANCE: f64 = 0.98;
/// Share of a line's positions that must carry the pattern.
const MIN_COVERAGE: f64 = 0.3;
/// Shortest lines that can be judged, samples.
const MIN_LENGTH: usize = 16;

/// Most candidates tried; bounds the time that a photograph costs.
const MAX_TRIES: usize = 6;
/// Most rounds from a candidate to its period; a wrong octave takes one more round.
const MAX_ROUNDS: usize = 3;
/// Pitches that the moving mean spans at first. Periods up to this multiple of a candidate stay
/// visible, so a candidate of one third of the period is noticed.
const OCTAVE_SPAN_PITCHES: f64 = 3.0;
/// Patterns of fewer periods are evened out.
const EVENED_PERIODS: f64 = 16.0;

/// The needed confidence is `MANY + FEW / periods`. Measured: panels at noise σ = 8 reach 0.82 or
/// more; cloth 0.34 to 0.9 at 12 periods or more; pictures without a repetition 0.64 at 3 periods, 0.39
/// at 6, 0 from 10 on.
const MANY_PERIODS_CONFIDENCE: f64 = 0.25;
const FEW_PERIODS_CONFIDENCE: f64 = 2.4;
/// Confidence that suffices for any number of periods.
const SUFFICIENT_CONFIDENCE: f64 = 0.85;
/// Share of the correlation that the farther of the nearest repeats must keep. Noise lowers all alike and
/// is no reason to refuse; a texture that forgets its phase correlates less from repeat to repeat.
const MIN_KEPT: f64 = 0.65;
/// Correlation at two pitches that suffices, whatever the farther repeats keep. Measured: cloth whose yarns
/// wander has 0.70 here and 0.22 at four pitches.
const SUFFICIENT_SECOND: f64 = 0.64;
/// Largest change of the local mean from one period to the next, in standard deviations of the
/// pattern. A staircase (a grey wedge, a gradient in grey levels) repeats once its trend is
/// removed, but changes by √12 = 3.5 standard deviations; an unevenly lit pattern by a fraction of
/// one.
const MAX_DRIFT: f64 = 1.7;

/// Most lines that [`probe_lines`] chooses. The error falls with the square root of their number;
/// with 192 the worst case (5.4 periods of 200 px over 1080 px, noise σ = 8) has a standard error
/// of 0.003 px.
pub const MAX_PROBE_LINES: usize = 192;
/// Adjacent lines taken together: one transfer per bundle.
pub const PROBE_BUNDLE: usize = 8;

/// Lines of equal length, one after the other (row-major), in any grey scale.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The samples; an incomplete last line is not read.
    pub samples: &'a [f32],
    /// Samples per line.
    pub length: usize,
}

/// A pitch and its confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PitchEstimate {
    /// The pitch, px.
    pub pitch_px: f64,
    /// Correlation at the estimated pitch, 0..1.
    pub confidence: f64,
}

/// The best candidate for a pitch, accepted or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Pitch and confidence.
    pub estimate: PitchEstimate,
    /// Confidence needed for its number of periods.
    pub needed: f64,
    /// Mean change of the local mean over one pitch, in standard deviations of the pattern.
    pub drift: f64,
    /// How the correlation falls with the distance.
    pub fading: Fading,
}

/// How the correlation falls from the nearest repeats to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Correlation at two pitches.
    pub second: f64,
    /// Correlation at the farther half of the nearest repeats, as a share of that at the nearer half.
    pub kept: f64,
}

impl Candidate {
    /// Whether this is the pitch of a repeating pattern.
    pub fn is_accepted(&self) -> bool {
        let Fading { second, kept } = self.fading;
        self.estimate.confidence >= self.needed
            && self.drift <= MAX_DRIFT
            && (second >= SUFFICIENT_SECOND || kept >= MIN_KEPT)
    }
}

/// Estimates pitches; keeps FFT plans and buffers for the next frame.
#[derive(Default)]
pub struct PitchEstimator {
    correlator: Correlator,
    prepared: Prepared,
    overlaps: Overlaps,
    search: Search,
    rho: Vec<f32>,
}

impl PitchEstimator {
    /// The pitch along the lines, or `None` if they do not repeat.
    pub fn estimate(&mut self, lines: &Lines) -> Option<PitchEstimate> {
        self.examine(lines)
            .filter(Candidate::is_accepted)
            .map(|candidate| candidate.estimate)
    }

    /// The best candidate, accepted or not; for logs.
    pub fn examine(&mut self, lines: &Lines) -> Option<Candidate> {
        if lines.length < MIN_LENGTH {
            return None;
        }
        self.prepared.load(lines)?;
        let longest = lines.length as f64 / MIN_PERIODS;
        let found = self
            .search
            .run(&self.prepared, &mut self.correlator, longest);
        let mut tried: Vec<f64> = Vec::new();
        let mut best: Option<Candidate> = None;
        for start in found {
            if tried.len() == MAX_TRIES {
                break;
            }
            // Trying a candidate also decides its octave: multiples need no try of their own. A part
            // does, since a long candidate of a wandering texture may be a multiple of the pitch.
            if tried.iter().any(|&other| is_multiple(start, other)) {
                continue;
            }
            tried.push(start);
            let Some(candidate) = self.examine_from(start) else {
                continue;
            };
            if candidate.is_accepted() {
                return Some(candidate);
            }
            if best.is_none_or(|b| b.estimate.confidence < candidate.estimate.confidence) {
                best = Some(candidate);
            }
        }
        best
    }

    fn examine_from(&mut self, start: f64) -> Option<Candidate> {
        let mut pitch = start;
        for round in 1..=MAX_ROUNDS {
            let covered = self.prepared.mask(pitch) as f64;
            if covered < MIN_PERIODS * PERIODS_TOLERANCE * pitch
                || covered < MIN_COVERAGE * self.prepared.length() as f64
            {
                return None;
            }
            self.correlator.start(self.prepared.length());
            self.prepared
                .high_passed(pitch, OCTAVE_SPAN_PITCHES, &mut self.correlator);
            let comb = self.comb();
            pitch = comb.refine(pitch)?;
            let period = comb.fundamental(pitch, covered / MIN_PERIODS)?;
            if round < MAX_ROUNDS && (period - pitch).abs() > 0.25 * pitch {
                pitch = period;
                continue;
            }
            let confidence = comb.confidence(pitch).clamp(0.0, 1.0);
            let fading = comb.fading(pitch);
            // The standard deviation includes noise; the confidence takes it out.
            let drift = self.prepared.drift() / confidence.max(1e-3).sqrt();
            let periods = covered / pitch;
            if periods < EVENED_PERIODS {
                self.correlator.start(self.prepared.length());
                self.prepared.evened(pitch, &mut self.correlator);
                pitch = self.comb().refine(pitch)?;
            }
            return (pitch >= MIN_PITCH_PX).then_some(Candidate {
                estimate: PitchEstimate {
                    pitch_px: pitch,
                    confidence,
                },
                needed: (MANY_PERIODS_CONFIDENCE + FEW_PERIODS_CONFIDENCE / periods)
                    .min(SUFFICIENT_CONFIDENCE),
                drift,
                fading,
            });
        }
        None
    }

    /// The normalised correlation of the lines given to the correlator.
    fn comb(&mut self) -> Comb<'_> {
        let (weight, energy) = self.prepared.weight_and_energy();
        self.correlator
            .with_weight(weight, energy, &mut self.overlaps);
        let Overlaps {
            product,
            pairs,
            left,
            right,
        } = &self.overlaps;
        let variance = product[0] / pairs[0];
        let sums = product.iter().zip(pairs).zip(left.iter().zip(right));
        self.rho.clear();
        self.rho
            .extend(sums.map(|((product, pairs), (left, right))| {
                // Without pairs the transforms leave only rounding errors.
                if *pairs < 0.5 {
                    return 0.0;
                }
                1.0 - (left + right - 2.0 * product) / (2.0 * pairs * variance)
            }));
        correlation::remove_noise_at_zero(&mut self.rho);
        Comb::new(&self.rho, pairs)
    }
}

/// Whether a pitch is about a whole multiple of another.
fn is_multiple(pitch: f64, other: f64) -> bool {
    let ratio = pitch / other;
    ratio > 0.5 && (ratio - ratio.round()).abs() < 0.03 * ratio.round()
}

/// Which of `line_count` lines to read, in ascending order: all up to [`MAX_PROBE_LINES`], else
/// that many in bundles of [`PROBE_BUNDLE`] adjacent lines. The bundles are spread at uneven
/// distances, so they meet every phase of a cell at any pitch.
pub fn probe_lines(line_count: usize) -> Vec<usize> {
    const BUNDLES: usize = MAX_PROBE_LINES / PROBE_BUNDLE;
    /// The multiples of the golden ratio modulo 1 are spread evenly and have no period.
    const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;
    if line_count <= MAX_PROBE_LINES {
        return (0..line_count).collect();
    }
    (0..BUNDLES)
        .flat_map(|bundle| {
            let part =
                |bundle: usize| (bundle as u128 * line_count as u128 / BUNDLES as u128) as usize;
            let (start, end) = (part(bundle), part(bundle + 1));
            let places = end - start - PROBE_BUNDLE + 1;
            let fraction = ((bundle + 1) as f64 * GOLDEN_RATIO).fract();
            let first = start + ((fraction * places as f64) as usize).min(places - 1);
            first..first + PROBE_BUNDLE
        })
        .collect()
}
