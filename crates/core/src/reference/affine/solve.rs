//! Small symmetric matrices.

/// A symmetric matrix of the parameters.
pub type Matrix = [[f64; 6]; 6];
/// Values of the parameters.
pub type Vector = [f64; 6];

/// The vector `x` of `directions` that solves `V(VᵀHV + damping·I)x = Vᵀb`, back in the parameters. `None` if the matrix
/// is not positive definite.
pub fn solve_along(
    directions: &[Vector],
    matrix: &Matrix,
    b: &Vector,
    damping: f64,
) -> Option<Vector> {
    let n = directions.len();
    let dot = |a: &Vector, b: &Vector| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let products: Vec<Vector> = directions
        .iter()
        .map(|v| matrix.map(|row| dot(&row, v)))
        .collect();
    // Cholesky's decomposition: L Lᵀ.
    let mut lower = [[0.0; 6]; 6];
    let mut y = [0.0; 6];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = dot(&directions[i], &products[j]);
            if i == j {
                sum += damping;
            }
            let pairs = lower[i].iter().zip(&lower[j]).take(j);
            sum -= pairs.map(|(a, b)| a * b).sum::<f64>();
            if i == j {
                if sum <= 0.0 || !sum.is_finite() {
                    return None;
                }
                lower[i][i] = sum.sqrt();
            } else {
                lower[i][j] = sum / lower[j][j];
            }
        }
        let before: f64 = (0..i).map(|k| lower[i][k] * y[k]).sum();
        y[i] = (dot(&directions[i], b) - before) / lower[i][i];
    }
    let mut along = [0.0; 6];
    for i in (0..n).rev() {
        let behind: f64 = (i + 1..n).map(|k| lower[k][i] * along[k]).sum();
        along[i] = (y[i] - behind) / lower[i][i];
    }
    let mut x = [0.0; 6];
    for (direction, along) in directions.iter().zip(along) {
        for (x, d) in x.iter_mut().zip(direction) {
            *x += along * d;
        }
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eigen::eigenvectors;

    /// A positive definite matrix and its factor.
    fn matrix() -> Matrix {
        let factor: Matrix =
            std::array::from_fn(|i| std::array::from_fn(|j| ((7 * i + 3 * j) % 5) as f64 - 1.5));
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                let own = if i == j { 1.0 } else { 0.0 };
                own + (0..6).map(|k| factor[i][k] * factor[j][k]).sum::<f64>()
            })
        })
    }

    #[test]
    fn solution_along_all_directions_solves_the_matrix() {
        let matrix = matrix();
        let directions = eigenvectors(&matrix).map(|(_, v)| v);
        let expected = [1.0, -2.0, 0.5, 3.0, 0.0, -1.0];
        let b = matrix.map(|row| row.iter().zip(expected).map(|(a, x)| a * x).sum());
        let x = solve_along(&directions, &matrix, &b, 0.0).expect("definite");
        for (x, expected) in x.iter().zip(expected) {
            assert!((x - expected).abs() < 1e-9, "{x} {expected}");
        }
        // Along fewer directions the solution stays in their span.
        let x = solve_along(&directions[..2], &matrix, &b, 0.0).expect("definite");
        let outside: f64 = x.iter().zip(directions[4]).map(|(a, b)| a * b).sum();
        assert!(outside.abs() < 1e-9);
    }

    #[test]
    fn indefinite_matrix_has_no_solution() {
        let mut matrix = [[0.0; 6]; 6];
        matrix[0][0] = -1.0;
        let direction = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(solve_along(&[direction], &matrix, &[1.0; 6], 0.0), None);
    }
}
