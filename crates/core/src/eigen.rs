//! Eigenvectors of small symmetric matrices.

/// Rotations until a symmetric matrix is diagonal to the last bit: 6x6 need about 6, 27x27 about 10.
const SWEEPS: usize = 16;

/// Eigenvalues and eigenvectors of a symmetric matrix (Jacobi's method), in no order.
pub fn eigenvectors<const N: usize>(matrix: &[[f64; N]; N]) -> [(f64, [f64; N]); N] {
    let mut a = *matrix;
    let mut v = [[0.0; N]; N];
    for (i, row) in v.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    for _ in 0..SWEEPS {
        for p in 0..N {
            for q in p + 1..N {
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (before, from) = a.split_at_mut(q);
                for (x, y) in before[p].iter_mut().zip(&mut from[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
                for row in &mut v {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
            }
        }
    }
    std::array::from_fn(|i| (a[i][i], v.map(|row| row[i])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<const N: usize>() {
        let factor: [[f64; N]; N] = std::array::from_fn(|i| {
            std::array::from_fn(|j| ((7 * i + 3 * j * j) % 11) as f64 - 4.5)
        });
        let matrix: [[f64; N]; N] = std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..N).map(|k| factor[i][k] * factor[j][k]).sum())
        });
        for (value, vector) in eigenvectors(&matrix) {
            let length: f64 = vector.iter().map(|v| v * v).sum();
            assert!((length - 1.0).abs() < 1e-12);
            for (row, v) in matrix.iter().zip(vector) {
                let product: f64 = row.iter().zip(vector).map(|(a, b)| a * b).sum();
                assert!((product - value * v).abs() < 1e-8, "{product} {value} {v}");
            }
        }
    }

    #[test]
    fn eigenvectors_multiply_by_their_value_and_have_length_1() {
        check::<6>();
        check::<27>();
    }
}
