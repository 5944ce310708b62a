//! The real-valued pitch of a repeating pattern, estimated from lines of a frame.
//!
//! 1. *Search.* The summed autocorrelation of some lines, high-passed for one octave of pitches
//!    after the other, gives candidates.
//! 2. *Mask.* Positions without the candidate's activity (a dark border) get the weight 0, the
//!    rest loses its moving mean.
//! 3. *Refinement.* `ρ(τ)` is one less the mean square difference over the lag `τ`, in units of
//!    twice the variance. The pitch maximises the mean of `ρ(m·p)`, weighted by overlaps, first at
//!    near and then at ever farther multiples `m`, which divide an error of the lag by `m`.
//! 4. *Octave.* Where every k-th multiple stands out, only these are periods; where the k-th
//!    parts of a pitch correlate as well as the pitch, they are.
//! 5. *Evening out.* Few periods leave an error in the illumination, a defect or a border more
//!    weight: the moving mean over exactly one pitch, the gain, defects and lines that do not
//!    follow are taken out and step 3 is done again.
//! 6. *Decision.* The mean of `ρ` at the nearest multiples is the confidence; fewer periods need
//!    more of it, since structures of a photograph resemble each other by chance. A pattern whose
//!    mean rises by more from pitch to pitch than it varies is a staircase.
//!
//! # Source
//! Autocorrelation by FFT: Wiener–Khinchin theorem. The pitch that maximises the correlations at
//! all multiples, each weighted by its overlap, is the least-squares fit of a periodic line
//! (J. D. Wise, J. R. Caprio, T. W. Parks, Maximum likelihood pitch estimation, IEEE Trans. ASSP
//! 24, 1976). Mean square differences in place of products, so that a part of a period at the
//! ends does not shift the peak: A. de Cheveigné, H. Kawahara, YIN, JASA 111, 2002. Weights by
//! FFT: D. Padfield, Masked Object Registration in the Fourier Domain, IEEE Trans. Image
//! Processing 21, 2012.

mod correlation;
mod filters;
mod prepare;
mod refine;
mod search;
mod tracker;

pub use tracker::{Change, PitchTracker};

use correlation::{Correlator, Overlaps};
use prepare::Prepared;
use refine::Comb;
use search::Search;

/// Shortest pitch, px: nearer to 2 px no optics leave a pattern.
pub const MIN_PITCH_PX: f64 = 2.5;
/// Periods that must fit into the patterned part of a line: two could be any two things alike.
pub const MIN_PERIODS: f64 = 3.0;
/// What the patterned part may fall short of that by the search's coarseness.
const PERIODS_TOLERANCE: f64 = 0.98;
/// Share of a line's positions that must carry the pattern.
const MIN_COVERAGE: f64 = 0.3;
/// Shortest lines that can be judged, samples.
const MIN_LENGTH: usize = 16;

/// Candidates that may be tried: bounds the time that a photograph costs.
const MAX_TRIES: usize = 3;
/// Rounds from a candidate to its period; an octave takes one more, two octaves two.
const MAX_ROUNDS: usize = 3;
/// Pitches that the moving mean spans at first: periods up to this multiple of a candidate stay
/// visible, so that a candidate of one third of the period is found out.
const OCTAVE_SPAN_PITCHES: f64 = 3.0;
/// Patterns of fewer periods are evened out.
const EVENED_PERIODS: f64 = 16.0;

/// Confidence that many periods need, and what few need more, times periods. Measured: panels at
/// noise σ = 8 reach 0.82 or more; photographs 0.55 at 3.5 periods, 0.3 at 6, 0.12 from 10 on.
const MANY_PERIODS_CONFIDENCE: f64 = 0.25;
const FEW_PERIODS_CONFIDENCE: f64 = 2.4;
/// What suffices whatever the number of periods.
const SUFFICIENT_CONFIDENCE: f64 = 0.85;
/// Most standard deviations of the pattern that the local mean may change by from one period to
/// the next. A staircase (a grey wedge, a slow gradient cut into grey levels) repeats once its
/// trend is taken away, but changes by √12 = 3.5 of them; a lit pattern by a fraction of one.
const MAX_DRIFT: f64 = 1.7;

/// Most lines that [`probe_lines`] asks for. The error falls with the root of the number; with
/// 192 the worst corner (5.4 periods of 200 px over 1080 px, noise σ = 8) has a standard error of
/// 0.003 px.
pub const MAX_PROBE_LINES: usize = 192;
/// Neighbouring lines taken together: one transfer each.
pub const PROBE_BUNDLE: usize = 8;

/// Lines of equal length, one after the other (row-major), any grey scale.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The samples; a last line that is cut off is not read.
    pub samples: &'a [f32],
    /// Samples of one line.
    pub length: usize,
}

/// A pitch and how far it is to be trusted.
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
    /// Confidence that its number of periods needs.
    pub needed: f64,
    /// Mean change of the local mean over one pitch, in standard deviations of the pattern.
    pub drift: f64,
}

impl Candidate {
    /// Whether this is the pitch of a repeating pattern.
    pub fn is_accepted(&self) -> bool {
        self.estimate.confidence >= self.needed && self.drift <= MAX_DRIFT
    }
}

/// Estimates pitches; keeps plans and buffers for the next frame.
#[derive(Default)]
pub struct PitchEstimator {
    correlator: Correlator,
    prepared: Prepared,
    overlaps: Overlaps,
    search: Search,
    rho: Vec<f32>,
}

impl PitchEstimator {
    /// The pitch along the lines, or `None` when they do not repeat.
    pub fn estimate(&mut self, lines: &Lines) -> Option<PitchEstimate> {
        self.examine(lines)
            .filter(Candidate::is_accepted)
            .map(|candidate| candidate.estimate)
    }

    /// The best candidate even if it is not good enough to be a pitch, for logs.
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
            // The octave of a candidate is settled when it is tried.
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
            // The deviation holds noise too, of which the confidence is free.
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
            });
        }
        None
    }

    /// The normalised correlation of what the correlator was given.
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
                // Transforms leave rounding where there are no pairs.
                if *pairs < 0.5 {
                    return 0.0;
                }
                1.0 - (left + right - 2.0 * product) / (2.0 * pairs * variance)
            }));
        correlation::remove_noise_at_zero(&mut self.rho);
        Comb::new(&self.rho, pairs)
    }
}

/// Whether one is about a whole multiple of the other.
fn is_multiple(a: f64, b: f64) -> bool {
    let ratio = if a > b { a / b } else { b / a };
    (ratio - ratio.round()).abs() < 0.03 * ratio.round()
}

/// Which lines of `line_count` to take, in ascending order: all up to [`MAX_PROBE_LINES`], else
/// that many in bundles of [`PROBE_BUNDLE`] neighbours, spread over the frame at uneven distances
/// so that they meet every phase of a cell whatever its pitch.
pub fn probe_lines(line_count: usize) -> Vec<usize> {
    const BUNDLES: usize = MAX_PROBE_LINES / PROBE_BUNDLE;
    /// Its multiples modulo 1 are spread evenly and have no period.
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
