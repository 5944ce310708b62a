//! STAND-IN of the branch `warp`, replaced by the estimator at the merge.

use super::{Nodes, Warp};

/// How the motion was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All parameters.
    Affine,
    /// None.
    Zero,
}

impl Step {
    /// The name in metas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affine => "affine",
            Self::Zero => "none",
        }
    }
}

/// Where a frame was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The motion.
    pub warp: Warp,
    /// 0 to 1.
    pub score: f64,
    /// Grey levels.
    pub misfit: f64,
    /// How it was found.
    pub step: Step,
}

/// Finds motions.
#[derive(Debug)]
pub struct Aligner {
    model: Vec<u16>,
    size: [usize; 2],
    range: usize,
    is_local: bool,
}

impl Aligner {
    /// # Errors
    /// None.
    pub fn new(
        sums: &[u16],
        size: [usize; 2],
        range: usize,
        is_local: bool,
        _judged: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, String> {
        Ok(Self {
            model: sums.to_vec(),
            size,
            range,
            is_local,
        })
    }

    /// A motion that only depends on the sums.
    pub fn find(&mut self, sums: &[u16]) -> Found {
        let mean = |v: &[u16]| v.iter().map(|&v| f64::from(v)).sum::<f64>() / v.len().max(1) as f64;
        let (a, b) = (mean(&self.model), mean(sums));
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        let mut seed = 1_u64;
        for (m, s) in self.model.iter().zip(sums) {
            let (m, s) = (f64::from(*m) - a, f64::from(*s) - b);
            ab += m * s;
            aa += m * m;
            bb += s * s;
            seed = (seed ^ s.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let score = if aa > 0.0 && bb > 0.0 {
            (ab / (aa * bb).sqrt()).clamp(0.0, 1.0)
        } else {
            0.0
        };
        if score > 0.9 {
            return Found {
                warp: Warp::default(),
                score,
                misfit: 0.0,
                step: Step::Zero,
            };
        }
        let mut next = |most: i64| {
            seed = seed.wrapping_mul(0xd6e8_feb8_6659_fd93).wrapping_add(12345);
            (((seed >> 33) as i64) % (2 * most + 1) - most) as i32
        };
        let linear = 1 << (10 + (next(100) + 100) % 7);
        let [a, b, d, e] = [next(linear), next(linear), next(linear), next(linear)];
        let shift = (self.range.min(8) as i64) << 20;
        let [columns, rows] = Nodes::tiles(self.size);
        let [x, y] = self.size.map(|n| n as i32 / 2);
        let warp = Warp {
            coefficients: [
                next(shift) - a * x - b * y,
                a,
                b,
                next(shift) - d * x - e * y,
                d,
                e,
            ],
            nodes: self.is_local.then(|| Nodes {
                columns,
                rows,
                u: (0..columns * rows).map(|_| next(512)).collect(),
                v: (0..columns * rows).map(|_| next(200)).collect(),
            }),
        };
        Found {
            warp,
            score,
            misfit: 1.0,
            step: Step::Affine,
        }
    }
}
