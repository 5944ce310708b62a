//! Vectors in the plane, and the shortest ones of a lattice.

/// x to the right and y down, px.
pub type Vector = [f64; 2];

/// Rounds of the reduction; a few suffice.
const ROUNDS: usize = 20;

pub fn length(v: Vector) -> f64 {
    v[0].hypot(v[1])
}

pub fn cross(a: Vector, b: Vector) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

pub fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

/// `i·a + j·b`.
pub fn combination(i: f64, a: Vector, j: f64, b: Vector) -> Vector {
    [i * a[0] + j * b[0], i * a[1] + j * b[1]]
}

/// The two shortest vectors of a lattice, the shortest first (Lagrange, Gauss).
pub fn reduce(mut a: Vector, mut b: Vector) -> [Vector; 2] {
    for _ in 0..ROUNDS {
        if dot(a, a) > dot(b, b) {
            (a, b) = (b, a);
        }
        let k = (dot(a, b) / dot(a, a)).round();
        if k == 0.0 || !k.is_finite() {
            break;
        }
        b = combination(1.0, b, -k, a);
    }
    [a, b]
}
