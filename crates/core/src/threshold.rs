//! The pixels of a frame by the highest threshold that marks them.

/// Thresholds per grey level.
const STEPS: usize = 4;

/// Pixels of frames, by the highest threshold that marks them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// By quarters of a grey level; the last one also has the pixels above.
    counts: Vec<u64>,
    /// Judged pixels of all frames.
    judged: u64,
}

impl Reached {
    /// The index of the last count for samples of `depth` bits.
    pub fn last(depth: u32) -> usize {
        STEPS * ((1 << depth) - 1)
    }

    /// Adds the counts of a frame, and behind them the number of its judged pixels. Frames of another depth begin anew.
    pub fn add(&mut self, frame: &[u32]) {
        let Some((&judged, counts)) = frame.split_last() else {
            return;
        };
        if counts.len() != self.counts.len() {
            *self = Self {
                counts: vec![0; counts.len()],
                judged: 0,
            };
        }
        for (sum, &count) in self.counts.iter_mut().zip(counts) {
            *sum += u64::from(count);
        }
        self.judged += u64::from(judged);
    }

    /// The lowest multiple of a quarter grey level that no pixel reaches, at most the highest grey level; 0 without
    /// pixels.
    pub fn peak(&self) -> f64 {
        let last = self.counts.iter().rposition(|&count| count > 0);
        let lowest = last.map_or(0, |last| last + 1);
        lowest.min(self.counts.len().saturating_sub(1)) as f64 / STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Reached;

    /// 8-bit counts with some pixels at some thresholds.
    fn reached(pixels: &[(usize, u32)], judged: u32) -> Reached {
        let mut frame = vec![0; Reached::last(8) + 2];
        for &(at, count) in pixels {
            frame[at] = count;
        }
        frame[Reached::last(8) + 1] = judged;
        let mut reached = Reached::default();
        reached.add(&frame);
        reached
    }

    #[test]
    fn peak_is_the_lowest_threshold_that_no_pixel_reaches() {
        assert_eq!(reached(&[(0, 990), (40, 7), (44, 3)], 1000).peak(), 11.25);
        assert_eq!(reached(&[(0, 5)], 5).peak(), 0.25);
        assert_eq!(reached(&[], 0).peak(), 0.0);
        assert_eq!(Reached::default().peak(), 0.0);
        assert_eq!(reached(&[(Reached::last(8), 9)], 9).peak(), 255.0);
    }

    #[test]
    fn peak_of_several_frames_is_the_largest() {
        let mut both = reached(&[(80, 1)], 100);
        both.add(&{
            let mut clean = vec![0; Reached::last(8) + 2];
            clean[Reached::last(8) + 1] = 100;
            clean
        });
        assert_eq!(both.peak(), 20.25);
    }
}
