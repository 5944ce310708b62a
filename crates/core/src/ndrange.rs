//! Global and local sizes of kernel launches.

/// The global and local size of a launch; with `local` `None` the runtime chooses the local size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NdRange {
    /// Work-items along each dimension.
    pub global: [usize; 2],
    /// Work-items of a work-group along each dimension.
    pub local: Option<[usize; 2]>,
}

impl NdRange {
    /// One dimension, local size chosen by the runtime.
    pub fn linear(items: usize) -> Self {
        Self {
            global: [items, 1],
            local: None,
        }
    }

    /// One dimension: `groups` work-groups of `local` work-items.
    pub fn groups(groups: usize, local: usize) -> Self {
        Self {
            global: [groups * local, 1],
            local: Some([local, 1]),
        }
    }

    /// `groups[0]` × `groups[1]` work-groups of `local` × 1 work-items.
    pub fn tiles(groups: [usize; 2], local: usize) -> Self {
        Self {
            global: [groups[0] * local, groups[1]],
            local: Some([local, 1]),
        }
    }

    /// Covers `extent` with whole work-groups of `local`; the kernel checks bounds.
    pub fn cover(extent: [usize; 2], local: [usize; 2]) -> Self {
        Self {
            global: [
                extent[0].next_multiple_of(local[0]),
                extent[1].next_multiple_of(local[1]),
            ],
            local: Some(local),
        }
    }
}

/// Shrinks a work-group until the device and the kernel allow it.
///
/// The height is halved first, so that rows stay as long as possible.
pub fn fit_work_group(wish: [usize; 2], max_items: usize, max_extent: [usize; 2]) -> [usize; 2] {
    let mut size = [
        wish[0].min(max_extent[0]).max(1),
        wish[1].min(max_extent[1]).max(1),
    ];
    while size[0] * size[1] > max_items.max(1) {
        if size[1] > 1 {
            size[1] = size[1].div_ceil(2);
        } else {
            size[0] = max_items.max(1);
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_work_group_small_device_shrinks_rows_first() {
        assert_eq!(fit_work_group([32, 8], 256, [1024, 1024]), [32, 8]);
        assert_eq!(fit_work_group([32, 8], 64, [1024, 1024]), [32, 2]);
        assert_eq!(fit_work_group([32, 8], 16, [1024, 1024]), [16, 1]);
        assert_eq!(fit_work_group([32, 8], 100, [1024, 1024]), [32, 2]);
        assert_eq!(fit_work_group([32, 8], 1, [1, 1]), [1, 1]);
        assert_eq!(fit_work_group([32, 8], 0, [1, 1]), [1, 1]);
    }
}
