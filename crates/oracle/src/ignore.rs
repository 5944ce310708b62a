//! Reference of the regions of `ignore`: which pixels lie in a polygon.
//!
//! Source: docs/semantics.md, "Pixels that are not judged".

/// Whether the centre of pixel (x, y) is inside the polygon `<x0, y0, x1, y1, ...>`, px, by the
/// even-odd rule.
///
/// An edge counts for rows whose centres are at `min(y)` or below it and above `max(y)`; a crossing at
/// the centre or left of it counts.
pub fn is_inside(polygon: &[f64], x: i64, y: i64) -> bool {
    let vertices: Vec<(i128, i128)> = polygon
        .chunks(2)
        .map(|point| {
            (
                (256.0 * point[0]).round() as i128,
                (256.0 * point[1]).round() as i128,
            )
        })
        .collect();
    let (centre_x, centre_y) = (256 * i128::from(x) + 128, 256 * i128::from(y) + 128);
    let mut inside = false;
    for (n, &(ax, ay)) in vertices.iter().enumerate() {
        let (bx, by) = vertices[(n + 1) % vertices.len()];
        if centre_y < ay.min(by) || centre_y >= ay.max(by) {
            continue;
        }
        // ax + (centre_y - ay) * (bx - ax) / (by - ay) <= centre_x
        let left = (centre_y - ay) * (bx - ax);
        let right = (centre_x - ax) * (by - ay);
        let counts = if by > ay {
            left <= right
        } else {
            left >= right
        };
        inside ^= counts;
    }
    inside
}

/// The ignored pixels of rows `first`, `first + 1`, ... of `width` pixels, row-major.
pub fn ignored(polygons: &[Vec<f64>], width: usize, first: i64, rows: usize) -> Vec<bool> {
    let mut pixels = Vec::with_capacity(width * rows);
    for y in 0..rows as i64 {
        for x in 0..width as i64 {
            pixels.push(polygons.iter().any(|p| is_inside(p, x, first + y)));
        }
    }
    pixels
}
