//! Copies of large blocks into memory that the processor does not read again, on x86-64.

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

/// Bytes of a page. The processor's prefetcher follows a page's reads only inside the page.
const PAGE: usize = 4096;
/// Pages that are copied at a time.
const STREAMS: usize = 4;
/// Bytes that are copied at a time, in loads and stores of 16 bytes.
const LINE: usize = 64;

/// Copies `len` bytes from `from` to `to`, which do not overlap.
///
/// Stores go past the caches, so the processor does not read the target before it writes there. Four pages are
/// copied side by side, so that more reads are under way (docs/adr/0009).
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes.
pub(super) unsafe fn copy(mut from: *const u8, mut to: *mut u8, mut len: usize) {
    // Such stores need aligned memory.
    let head = to.align_offset(LINE).min(len);
    // SAFETY: `head`, and below each block and the rest, lie inside the `len` bytes. SSE2 is part of x86-64.
    unsafe {
        from.copy_to_nonoverlapping(to, head);
        (from, to, len) = (from.add(head), to.add(head), len - head);
        while len >= STREAMS * PAGE {
            for line in (0..PAGE).step_by(LINE) {
                for page in 0..STREAMS {
                    let at = page * PAGE + line;
                    let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                    for word in 0..LINE / size_of::<__m128i>() {
                        _mm_stream_si128(to.add(word), _mm_loadu_si128(from.add(word)));
                    }
                }
            }
            (from, to, len) = (
                from.add(STREAMS * PAGE),
                to.add(STREAMS * PAGE),
                len - STREAMS * PAGE,
            );
        }
        from.copy_to_nonoverlapping(to, len);
        // Other threads and the device may see such stores late without this.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, STREAMS, copy};

    #[test]
    fn blocks_of_any_length_and_place_are_copied_and_nothing_beside_them() {
        let block = STREAMS * PAGE;
        let from: Vec<u8> = (0..3 * block).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [0, 1, 63, 64, block - 1, block, block + 65, 2 * block + 77] {
            for (skip, start) in [(0, 0), (1, 0), (0, 1), (3, 63), (64, 64)] {
                let mut to = vec![0xa5; 3 * block];
                let expected = [&to[..start], &from[skip..skip + len], &to[start + len..]].concat();
                // SAFETY: both vectors are longer than what is copied.
                unsafe { copy(from.as_ptr().add(skip), to.as_mut_ptr().add(start), len) };
                assert!(to == expected, "{len} bytes, from {skip} to {start}");
            }
        }
    }
}
