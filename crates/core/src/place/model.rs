//! What a search knows of the part.

use super::{
    climb::Climber,
    field::Field,
    level::{FINEST, levels},
    points::{Points, TurnedPoint},
    pose::{Pose, angle_between},
    region::Region,
    turn::{ONE, TURN},
};

/// Scales of parts that are up to a tenth smaller or larger, 1/256.
pub const SCALES: [i32; 5] = [230, 243, 256, 269, 282];

const COARSEST: usize = 64;
/// Least diameter of the part on its coarsest level, px of the level.
const LEAST_DIAMETER: i64 = 24;
/// Most points on the coarsest level, and on others.
const MOST_POINTS: [usize; 2] = [192, 384];
/// Points that reach less far are tried at half the angles.
const FAR: i32 = 20;
/// Angles of the coarsest level.
const ANGLES: [i32; 2] = [64, 128];
/// Score of the model against itself at another angle, from which on its parts look alike when they are turned: 6/10.
const ALIKE: [i64; 2] = [6, 10];
/// Most samples of the region that tell how much of a part lies in a frame, and a few more.
const SAMPLES: usize = 2000;

/// The angles of the coarsest level.
#[derive(Debug, Clone)]
pub(super) struct Coarse {
    /// Between angles, 1/16384 turn.
    pub step: i32,
    /// The points at each angle and scale.
    pub turned: Vec<Vec<TurnedPoint>>,
    /// Most points that one pixel holds.
    pub most_on_a_pixel: i64,
}

/// The trained part.
#[derive(Debug, Clone)]
pub struct Model {
    /// From the coarsest to the finest.
    pub(super) levels: Vec<Points>,
    pub(super) scales: Vec<i32>,
    pub(super) coarse: Coarse,
    /// Whether parts look alike when they are turned.
    pub(super) is_alike: bool,
    /// Samples of the region from its centre, half px.
    pub(super) samples: Vec<[i32; 2]>,
    centre2: [i32; 2],
}

impl Model {
    /// The part of a picture of a size that its region holds. `sums`: sums of 4x4 samples in grey levels of 8 bits. `scales`:
    /// that of equal size alone, or [`SCALES`].
    ///
    /// # Errors
    /// A sentence, if the part has too few edges.
    pub fn new(
        sums: &[u16],
        size: [usize; 2],
        region: &Region,
        scales: &[i32],
    ) -> Result<Self, String> {
        let [x0, y0, x1, y1] = region.bounds().map(|v| v as i64);
        let square = (x1 - x0).pow(2) + (y1 - y0).pow(2);
        let mut coarsest = COARSEST;
        while coarsest > FINEST && square < (LEAST_DIAMETER * coarsest as i64).pow(2) {
            coarsest /= 2;
        }
        let centre2 = region.centre2();
        let pictures = levels(sums, size.map(|n| n / FINEST), coarsest);
        let mut points = Vec::new();
        for (n, picture) in pictures.iter().enumerate().rev() {
            let level = FINEST << n;
            let most = MOST_POINTS[usize::from(level < coarsest)];
            points.push(Points::new(picture, level, region, centre2, most)?);
        }
        let step = TURN / ANGLES[usize::from(points[0].reach >= FAR)];
        let turned = (0..TURN / step).flat_map(|n| scales.iter().map(move |&scale| (n, scale)));
        let turned: Vec<Vec<TurnedPoint>> = turned
            .map(|(n, scale)| points[0].turned(n * step, scale).collect())
            .collect();
        let most_on_a_pixel = turned.iter().map(|points| most_equal(points)).max();
        let field = Field::new(&pictures[pictures.len() - 1], points[0].reach);
        let [x, y] = centre2.map(|v| v / (2 * coarsest as i32));
        let own = Pose {
            level: coarsest,
            x,
            y,
            angle: 0,
            scale: ONE,
            score: 0,
        };
        let turns = Climber::new(&points[0], &field).around(own, step);
        let is_like = |pose: &Pose| {
            ALIKE[1] * i64::from(pose.score) >= ALIKE[0] * points[0].norm()
                && angle_between(pose.angle, 0) > 2 * step
        };
        let is_alike = turns.iter().any(is_like);
        let inner = region.inner();
        let every = (inner.len() / SAMPLES).max(1);
        let middle = |at: usize, centre2: i32| 2 * (FINEST * at + FINEST / 2) as i32 - centre2;
        Ok(Self {
            samples: (inner.iter().step_by(every))
                .map(|&[x, y]| [middle(x, centre2[0]), middle(y, centre2[1])])
                .collect(),
            levels: points,
            scales: scales.to_vec(),
            coarse: Coarse {
                step,
                turned,
                most_on_a_pixel: most_on_a_pixel.unwrap_or(0),
            },
            is_alike,
            centre2,
        })
    }

    /// The points of the finest level.
    pub(super) fn finest(&self) -> &Points {
        &self.levels[self.levels.len() - 1]
    }

    /// The part's centre in the trained picture, half px.
    pub fn centre2(&self) -> [i32; 2] {
        self.centre2
    }

    /// Whether the part looks like itself at another angle.
    pub fn is_alike(&self) -> bool {
        self.is_alike
    }
}

/// Most points at one offset.
fn most_equal(points: &[TurnedPoint]) -> i64 {
    let mut offsets: Vec<[i32; 2]> = points.iter().map(|point| point.offset).collect();
    offsets.sort_unstable();
    let equal = offsets.chunk_by(|a, b| a == b).map(<[_]>::len).max();
    equal.unwrap_or(0) as i64
}
