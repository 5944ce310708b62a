//! A set of columns that finds the nearest member fast.

/// Columns per word.
const BITS: u32 = u64::BITS;

/// A set of columns: one bit per column, and a summary bit per word that is not 0, so that a search
/// skips 4096 empty columns per step.
#[derive(Debug, Default)]
pub(super) struct Columns {
    words: Vec<u64>,
    /// Bit `i & 63` of word `i / 64` is set if `words[i]` is not 0.
    summary: Vec<u64>,
}

impl Columns {
    /// Empties the set, with room for the columns below `width`.
    pub(super) fn reset(&mut self, width: usize) {
        let words = width.div_ceil(64);
        self.words.clear();
        self.words.resize(words, 0);
        self.summary.clear();
        self.summary.resize(words.div_ceil(64), 0);
    }

    /// Adds column `x`.
    pub(super) fn insert(&mut self, x: u32) {
        set(&mut self.words, x);
        set(&mut self.summary, x / BITS);
    }

    /// Removes column `x`.
    pub(super) fn remove(&mut self, x: u32) {
        if clear(&mut self.words, x) == 0 {
            clear(&mut self.summary, x / BITS);
        }
    }

    /// The nearest column of the set at `x` or before.
    pub(super) fn at_or_before(&self, x: u32) -> Option<u32> {
        last(&self.words, x, x / BITS).or_else(|| {
            let word = (x / BITS).checked_sub(1)?;
            let word = last(&self.summary, word, 0)?;
            last(&self.words, BITS * word + BITS - 1, word)
        })
    }

    /// The nearest column of the set after `x`.
    pub(super) fn after(&self, x: u32) -> Option<u32> {
        let x = x + 1;
        first(&self.words, x, x / BITS + 1).or_else(|| {
            let word = first(&self.summary, x / BITS + 1, u32::MAX)?;
            first(&self.words, BITS * word, word + 1)
        })
    }
}

fn set(words: &mut [u64], bit: u32) {
    words[(bit / BITS) as usize] |= 1 << (bit % BITS);
}

/// Clears a bit and returns the word.
fn clear(words: &mut [u64], bit: u32) -> u64 {
    let word = &mut words[(bit / BITS) as usize];
    *word &= !(1 << (bit % BITS));
    *word
}

/// The last bit that is set at `bit` or before, down to word `until`.
fn last(words: &[u64], bit: u32, until: u32) -> Option<u32> {
    let mut at = bit / BITS;
    let mut word = words[at as usize] & (u64::MAX >> (BITS - 1 - bit % BITS));
    while word == 0 {
        if at == until {
            return None;
        }
        at -= 1;
        word = words[at as usize];
    }
    Some(BITS * at + BITS - 1 - word.leading_zeros())
}

/// The first bit that is set at `bit` or after, before word `until`.
fn first(words: &[u64], bit: u32, until: u32) -> Option<u32> {
    let mut at = bit / BITS;
    let mut word = words.get(at as usize)? & (u64::MAX << (bit % BITS));
    while word == 0 {
        at += 1;
        if at >= until {
            return None;
        }
        word = *words.get(at as usize)?;
    }
    Some(BITS * at + word.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn columns_far_apart_find_their_neighbours() {
        // Three summary words, with empty words and summary words between.
        let width = 3 * 64 * 64;
        let candidates = [
            0, 1, 62, 63, 64, 65, 127, 128, 4094, 4095, 4096, 8191, 8192, 12287,
        ];
        let mut columns = Columns::default();
        let mut expected = BTreeSet::new();
        columns.reset(width);
        // Every third step removes a column.
        for (step, &x) in candidates.iter().cycle().take(97).enumerate() {
            if step % 3 == 2 {
                columns.remove(x);
                expected.remove(&x);
            } else {
                columns.insert(x);
                expected.insert(x);
            }
            for &x in &candidates {
                assert_eq!(
                    columns.at_or_before(x),
                    expected.range(..=x).next_back().copied(),
                    "at or before {x} of {expected:?}"
                );
                assert_eq!(
                    columns.after(x),
                    expected.range(x + 1..).next().copied(),
                    "after {x} of {expected:?}"
                );
            }
        }
        columns.reset(width);
        assert_eq!(columns.at_or_before(12287), None);
        assert_eq!(columns.after(0), None);
    }
}
