//! Sums, means and interpolation over one line.

/// Sums two functions of value and position, in eight lanes that do not depend on each other.
pub fn lane_sums(values: &[f32], function: impl Fn(f32, usize) -> [f64; 2]) -> [f64; 2] {
    let mut lanes = [[0.0; 2]; 8];
    let (blocks, rest) = values.as_chunks::<8>();
    let mut add = |lane: usize, v: f32, x: usize| {
        let [a, b] = function(v, x);
        lanes[lane][0] += a;
        lanes[lane][1] += b;
    };
    for (block, values) in blocks.iter().enumerate() {
        for (lane, &v) in values.iter().enumerate() {
            add(lane, v, 8 * block + lane);
        }
    }
    for (lane, &v) in rest.iter().enumerate() {
        add(lane, v, 8 * blocks.len() + lane);
    }
    lanes
        .iter()
        .fold([0.0; 2], |sum, lane| [sum[0] + lane[0], sum[1] + lane[1]])
}

/// `sums[i]` becomes the sum of the first `i` values.
pub fn running_sums(values: &[f32], sums: &mut Vec<f32>) {
    sums.clear();
    sums.resize(values.len() + 1, 0.0);
    let mut sum = 0f32;
    // In blocks of four: only one addition of a block depends on the block before.
    let (blocks, rest) = values.as_chunks::<4>();
    let (out, out_rest) = sums[1..].as_chunks_mut::<4>();
    for (slot, &[a, b, c, d]) in out.iter_mut().zip(blocks) {
        let ab = a + b;
        *slot = [sum + a, sum + ab, sum + (ab + c), sum + (ab + (c + d))];
        sum = slot[3];
    }
    for (slot, v) in out_rest.iter_mut().zip(rest) {
        sum += v;
        *slot = sum;
    }
}

/// The mean over `span` px around each sample, from the running sums. Where the span would leave
/// the line, the means continue along the straight line through the last two means that are one
/// `pitch` apart. The span is a real number, because the pattern averages out only over whole
/// periods.
pub fn moving_mean(sums: &[f32], span: f64, pitch: usize, means: &mut Vec<f32>) {
    let length = sums.len() - 1;
    means.clear();
    if length as f64 <= span + 1.0 {
        let mean = (sums[length] - sums[0]) / length.max(1) as f32;
        means.resize(length, mean);
        return;
    }
    means.resize(length, 0.0);
    // Sample i covers i to i + 1. The first span around a sample's centre starts in [0, 1).
    let before = (0.5 * (span - 1.0)).ceil();
    let begin = before + 0.5 - 0.5 * span;
    let end = begin + span;
    let (whole, fraction) = (end.floor() as usize, (end - end.floor()) as f32);
    let (before, begin) = (before as usize, begin as f32);
    let scale = (1.0 / span) as f32;
    let starts = sums.iter().zip(&sums[1..]);
    let ends = sums[whole..].iter().zip(&sums[whole + 1..]);
    let mut last = before;
    for (x, ((a, b), (c, d))) in (before..).zip(starts.zip(ends)) {
        means[x] = (c + fraction * (d - c) - a - begin * (b - a)) * scale;
        last = x;
    }
    let step = if last >= before + pitch { pitch } else { 0 };
    let slope = |a: f32, b: f32| {
        if step > 0 { (a - b) / step as f32 } else { 0.0 }
    };
    let (left, right) = (means[before], means[last]);
    let rise = slope(left, means[before + step]);
    for (distance, mean) in means[..before].iter_mut().rev().enumerate() {
        *mean = left + rise * (distance + 1) as f32;
    }
    let rise = slope(right, means[last - step]);
    for (distance, mean) in means[last + 1..].iter_mut().enumerate() {
        *mean = right + rise * (distance + 1) as f32;
    }
}

/// The line filtered by `[1 2 1] / 4`; the ends stay.
pub fn smooth(line: &[f32], out: &mut Vec<f32>) {
    out.clear();
    out.extend_from_slice(line);
    for (slot, v) in out.iter_mut().skip(1).zip(line.windows(3)) {
        *slot = 0.25 * (v[0] + v[2]) + 0.5 * v[1];
    }
}

/// The change from each sample to the one a pitch to its right (in the last pitch, to its left).
/// Empty for a run of less than two pitches.
pub fn changes_over(run: &[f32], pitch: f64, changes: &mut Vec<f32>) {
    changes.clear();
    let step = pitch.floor() as usize;
    let fraction = (pitch - pitch.floor()) as f32;
    if run.len() < 2 * (step + 1) {
        return;
    }
    let mut add = |samples: &[f32], near: &[f32], far: &[f32]| {
        changes.extend(
            samples
                .iter()
                .zip(near.iter().zip(far))
                .map(|(v, (near, far))| near + fraction * (far - near) - v),
        );
    };
    add(run, &run[step..], &run[step + 1..]);
    let first = run.len() - step - 1;
    add(
        &run[first..],
        &run[first - step..],
        &run[first - step - 1..],
    );
}

/// The change from a sample to the mean of its two nearest neighbours whole pitches away: left and
/// right, or at an end both on one side. With a `limit`, `None` unless both differ from the sample
/// in the same direction by more than the limit. Without a limit, `None` only if there are no two
/// neighbours.
pub fn to_neighbours(run: &[f32], x: usize, pitch: f64, limit: Option<f32>) -> Option<f32> {
    let v = run[x];
    let mut changes = [-1.0, 1.0, -2.0, 2.0]
        .into_iter()
        .filter_map(|pitches| Some(cubic(run, x as f64 + pitches * pitch)? - v));
    let (a, b) = (changes.next()?, changes.next()?);
    limit
        .is_none_or(|limit| a * b > 0.0 && a.abs().min(b.abs()) > limit)
        .then_some(0.5 * (a + b))
}

/// Mean of the magnitudes; 0 for an empty slice.
pub fn mean_magnitude(values: &[f32]) -> f32 {
    values.iter().map(|v| v.abs()).sum::<f32>() / values.len().max(1) as f32
}

/// The value at a position between samples; `None` within a sample of an end.
///
/// # Source
/// E. Catmull, R. Rom, A Class of Local Interpolating Splines, 1974: the cubic through two samples,
/// with slopes from their neighbours.
fn cubic(run: &[f32], position: f64) -> Option<f32> {
    let whole = position.floor();
    if whole < 1.0 {
        return None;
    }
    let first = whole as usize - 1;
    let &[a, b, c, d] = run.get(first..first + 4)? else {
        return None;
    };
    let t = (position - whole) as f32;
    let cubed = 3.0 * (b - c) + d - a;
    let squared = 2.0 * a - 5.0 * b + 4.0 * c - d;
    Some(b + 0.5 * t * (c - a + t * (squared + t * cubed)))
}
