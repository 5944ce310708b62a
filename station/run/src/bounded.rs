//! Lists of the newest items, bounded by count and by bytes.

use std::collections::VecDeque;

/// What a list may hold.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Items.
    pub count: usize,
    /// Their bytes; the newest item stays even if it has more.
    pub bytes: usize,
}

impl Bounds {
    /// Whether another item of `more` bytes fits to `count` items of `bytes`. An empty list takes any item.
    pub fn has_room(self, count: usize, bytes: usize, more: usize) -> bool {
        count == 0 || (count < self.count && bytes + more <= self.bytes)
    }
}

/// Forgets the oldest items beyond the bounds.
pub fn keep_newest<T>(items: &mut VecDeque<T>, most: Bounds, bytes_of: impl Fn(&T) -> usize) {
    let mut bytes: usize = items.iter().map(&bytes_of).sum();
    while items.len() > most.count || (bytes > most.bytes && items.len() > 1) {
        let Some(oldest) = items.pop_front() else {
            return;
        };
        bytes -= bytes_of(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_items_within_count_and_bytes_are_kept() {
        let kept = |items: &[usize], count, bytes| {
            let mut items = VecDeque::from_iter(items.iter().copied());
            keep_newest(&mut items, Bounds { count, bytes }, |item| *item);
            Vec::from(items)
        };
        assert_eq!(kept(&[1, 2, 3, 4], 3, 100), [2, 3, 4]);
        assert_eq!(kept(&[50, 2, 3, 4], 9, 9), [2, 3, 4]);
        assert_eq!(kept(&[5, 4, 4], 9, 8), [4, 4]);
        assert_eq!(kept(&[5, 4, 400], 9, 8), [400]);
        assert_eq!(kept(&[], 0, 0), [0; 0]);
    }
}
