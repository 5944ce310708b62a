//! Places of defects on a web, without pictures: chance, clusters, and the marks of a damaged roller.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Normal};

/// The place of a defect, mm: along the web and across it.
pub type Place = [f64; 2];

/// How chance puts defects on a web.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chance {
    /// Anywhere.
    Single,
    /// Groups of up to so many, within about so many mm in both directions: a hole with debris.
    Cluster(u32, f64),
    /// Lines along the web of up to so many mm, in pieces: a scratch.
    Scratch(f64),
    /// Lines across the whole web, in so many pieces: a seam.
    Seam(u32),
}

/// A web without end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkedWeb {
    /// Width, mm.
    pub width: f64,
    /// Seed of the generator.
    pub seed: u64,
}

/// Marks of a roller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roller {
    /// Circumference, mm.
    pub period: f64,
    /// Place across, mm.
    pub across: f64,
    /// Share by which the web is longer than the roller's circumference says.
    pub stretch: f64,
    /// Share by which the stretch varies, over some twenty turns.
    pub varies: f64,
    /// Standard deviation of a mark's place, mm.
    pub jitter: f64,
    /// Shift across in each turn, mm.
    pub drift: f64,
    /// Share of turns without a mark.
    pub missing: f64,
}

/// Turns in which the stretch varies.
const STRETCH_TURNS: f64 = 20.0;

impl MarkedWeb {
    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    /// The places of a metre range, in their order along the web, where chance acts `per_m` times a metre. The ranges of a
    /// seed are independent of each other.
    pub fn chance(&self, chance: Chance, per_m: f64, metres: Range<u64>) -> Vec<Place> {
        let mut places = Vec::new();
        if per_m <= 0.0 {
            return places;
        }
        let mut rng = self.rng(metres.start);
        let gap = Exp::new(per_m / 1000.0).unwrap();
        let (mut at, end) = (metres.start as f64 * 1000.0, metres.end as f64 * 1000.0);
        loop {
            at += gap.sample(&mut rng);
            if at >= end {
                break;
            }
            self.put(chance, at, &mut rng, &mut places);
        }
        places.retain(|[along, across]| *along >= 0.0 && (0.0..=self.width).contains(across));
        places.sort_by(|a, b| a[0].total_cmp(&b[0]));
        places
    }

    fn put(&self, chance: Chance, at: f64, rng: &mut ChaCha8Rng, places: &mut Vec<Place>) {
        let across = rng.random_range(0.0..self.width);
        match chance {
            Chance::Single => places.push([at, across]),
            Chance::Cluster(most, size) => {
                let spread = Normal::new(0.0, size / 2.0).unwrap();
                for _ in 0..rng.random_range(2..=most) {
                    places.push([at + spread.sample(rng), across + spread.sample(rng)]);
                }
            }
            Chance::Scratch(most) => {
                let end = at + rng.random_range(most / 6.0..most);
                let gap = Exp::new(1.0 / rng.random_range(20.0..200.0)).unwrap();
                let slope = rng.random_range(-0.005..0.005);
                let mut along = at;
                while along < end {
                    places.push([along, across + slope * (along - at)]);
                    along += gap.sample(rng);
                }
            }
            Chance::Seam(pieces) => {
                let spread = Normal::new(0.0, 1.0).unwrap();
                for piece in 0..pieces {
                    let across = (f64::from(piece) + 0.5) * self.width / f64::from(pieces);
                    places.push([at + spread.sample(rng), across]);
                }
            }
        }
    }

    /// The marks of a roller from a place on, mm, for so many turns; `None` for a turn without a mark.
    pub fn roller(&self, roller: &Roller, from: f64, turns: u32) -> Vec<Option<Place>> {
        let mut rng = self.rng(u64::MAX);
        let jitter = Normal::new(0.0, roller.jitter).unwrap();
        let mut at = from;
        let marks = (0..turns).map(|turn| {
            let phase = std::f64::consts::TAU * f64::from(turn) / STRETCH_TURNS;
            let across = roller.across + roller.drift * f64::from(turn) + jitter.sample(&mut rng);
            let place = [at + jitter.sample(&mut rng), across];
            at += roller.period * (1.0 + roller.stretch + roller.varies * phase.sin());
            (!rng.random_bool(roller.missing)).then_some(place)
        });
        marks.collect()
    }
}
