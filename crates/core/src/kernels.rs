//! The constants that kernels share with the host. A program is built with those of its files, as macros of the same
//! names.

/// A constant of a file of `kernels/`; a list becomes numbers between commas.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// The file that uses it.
    pub file: &'static str,
    /// The macro's name.
    pub name: &'static str,
    /// The number or numbers.
    pub values: &'static [i64],
}

/// Makes the table, and a module of each file for the constants that are defined here; `&` takes one from elsewhere.
macro_rules! constants {
    ($($file:ident {
        $($(#[$about:meta])* $name:ident: $type:ty = $value:expr;)*
        $(&$used:ident = [$($number:expr),+];)*
    })*) => {
        $(
            #[doc = concat!("Constants of `kernels/", stringify!($file), ".cl`.")]
            pub mod $file {
                $($(#[$about])* pub const $name: $type = $value;)*
            }
        )*
        /// All of them.
        pub const CONSTANTS: &[Constant] = &[$(
            $(Constant {
                file: concat!(stringify!($file), ".cl"),
                name: stringify!($name),
                values: &[$file::$name as i64],
            },)*
            $(Constant {
                file: concat!(stringify!($file), ".cl"),
                name: stringify!($used),
                values: &[$($number as i64),+],
            },)*
        )*];
    };
}

constants! {
    colour {
        /// Pixels that are processed together.
        BLOCK: usize = 16;
    }
    demosaic_items {
        /// Pixels of a row per work-item; of 16 a GPU needs too many registers.
        ITEM_PIXELS: usize = 8;
        /// Rows per work-item; even, so that the rows' colours are constants.
        ITEM_ROWS: usize = 2;
    }
    flat_field_items {
        /// Bytes of a row per work-item.
        ITEM_BYTES: usize = 16;
    }
    histogram_direct {
        /// Tables per work-item, into which adjacent samples count in turn.
        SAMPLE_TABLES: usize = 4;
    }
    histogram_pairs {
        /// Distance from one pair table to the next, in counters. A multiple of the cache's ways would let all tables
        /// compete for the same lines.
        PAIR_TABLE_LEN: usize = 65_536 + 1_040;
    }
    histogram_run {
        /// Counters of a bin, one per bank of local memory.
        BANKS: usize = 32;
    }
    mask_expand {
        /// Number of the bit in `run_difference_t`'s signs that says that the pixels' own comparison marks one; the
        /// bits of the coarser levels, or of the channels, follow.
        FIRST_LEVEL: u32 = 8;
        /// In the memory that the host reads of each frame: number of the first of the two counters of runs, behind those of
        /// marked pixels.
        RUN_COUNTER: usize = 6;
        /// Number of the first run, as if there were runs from the start of the memory on.
        RUNS_AT: usize = 2;
    }
    mask_ignore {
        /// Bytes of a mask that are read together.
        IGNORE_BLOCK: usize = 32;
    }
    pitch_threshold {
        /// Flag: the nearer neighbour counts.
        MINIMUM: i32 = 1;
        /// Flag: the centre is blurred as its neighbours are.
        MATCHED: i32 = 2;
        /// Flag: brighter pixels are marked.
        BRIGHT: i32 = 4;
        /// Flag: darker pixels are marked.
        DARK: i32 = 8;
        /// Flag: a neighbour outside the frame is replaced by the one two distances inward.
        INWARD: i32 = 16;
    }
    pitch_threshold_items {
        /// Bytes of a row per work-item.
        WIDE_BYTES: usize = 16;
    }
    pitch_threshold_lattice {
        &MINIMUM = [pitch_threshold::MINIMUM];
        &MATCHED = [pitch_threshold::MATCHED];
        &BRIGHT = [pitch_threshold::BRIGHT];
        &DARK = [pitch_threshold::DARK];
        &INWARD = [pitch_threshold::INWARD];
    }
    pitch_threshold_lattice_items {
        /// Pixels of a row per work-item: a byte of a mask.
        LATTICE_PIXELS: usize = 8;
    }
    pitch_threshold_wide {
        /// Most work-items per work-group.
        WIDE_GROUP: usize = 128;
    }
    presence_tiles {
        &TILE_PRESENT = [crate::presence::PRESENT];
    }
    reference {
        &UNIT_SCALE = [crate::reference::UNIT_SCALE];
    }
    reference_warp {
        /// Pixels of a block.
        BLOCK: usize = 16;
        &UNIT = [crate::reference::UNITS];
        &NODE_TILE = [crate::reference::NODE_TILE];
    }
    scales_items {
        /// Blocks of the next level that a work-item makes.
        ITEM_BLOCKS: usize = 4;
        /// Rows of the frame per work-item of `scales_first`.
        FIRST_ROWS: usize = 4;
        /// Rows of the next level's pictures that a work-item makes.
        MADE_ROWS: usize = 4;
        &MOST_SET_ROWS = [crate::scales::MOST_SET_ROWS];
    }
    surface {
        /// Elements on both sides of a row of a padded plane that repeat those at the edges.
        PAD: usize = 16;
        /// Blocks of a padded row are at most so long.
        PAD_BLOCK: usize = 64;
        /// A plane of features takes a multiple of this, and FEATURE_PAD more: 4096 and 64 bytes.
        FEATURE_BLOCK: usize = 2048;
        /// See FEATURE_BLOCK.
        FEATURE_PAD: usize = 32;
        /// Pixels of a row that a work-item of `surface_smooth` makes on a GPU.
        SMOOTH_PIXELS: usize = 4;
        /// Rows of cells that a work-item of `surface_logs` makes on a GPU.
        BAND: usize = 8;
        /// Rows of cells that a work-item of `surface_novelty` makes on a GPU; a tile has a multiple.
        NOVELTY_BAND: usize = 4;
        /// Prototypes that a CPU compares together.
        TOGETHER: usize = 16;
        &CELL = [crate::surface::CELL];
        &DIMENSIONS = [crate::surface::DIMENSIONS];
        &PROTOTYPES = [crate::surface::PROTOTYPES];
        &FARTHEST = [crate::surface::FARTHEST];
    }
    surface_marks {
        &NOVELTY_UNIT = [crate::surface::NOVELTY_UNIT];
        &CHANNELS = [crate::surface::CHANNELS];
        &CHANNEL_BITS = [crate::surface::CHANNEL_BITS];
        &FIRST_DARK = [crate::surface::FIRST_DARK];
        &FIRST_BRIGHT = [crate::surface::FIRST_BRIGHT];
        &STEPS = [
            crate::surface::STEPS[0][0], crate::surface::STEPS[0][1],
            crate::surface::STEPS[1][0], crate::surface::STEPS[1][1],
            crate::surface::STEPS[2][0], crate::surface::STEPS[2][1],
            crate::surface::STEPS[3][0], crate::surface::STEPS[3][1],
            crate::surface::STEPS[4][0], crate::surface::STEPS[4][1],
            crate::surface::STEPS[5][0], crate::surface::STEPS[5][1],
            crate::surface::STEPS[6][0], crate::surface::STEPS[6][1],
            crate::surface::STEPS[7][0], crate::surface::STEPS[7][1]
        ];
        &BORDER_CELLS = [crate::surface::BORDER_CELLS];
    }
    texture {
        /// Samples before the first and behind the last pixel of a row that the mirrored row continues in.
        PAD: usize = 32;
        &CHANNELS = [crate::texture::CHANNELS];
        &FIRST_OF_MEAN = [crate::texture::FIRST_OF_MEAN];
        &CHANNEL_BITS = [crate::texture::CHANNEL_BITS];
        &WINDOWS = [
            crate::texture::WINDOW_PIXELS[0],
            crate::texture::WINDOW_PIXELS[1],
            crate::texture::WINDOW_PIXELS[2],
            crate::texture::WINDOW_PIXELS[3],
            crate::texture::WINDOW_PIXELS[4],
            crate::texture::WINDOW_PIXELS[5]
        ];
    }
    texture_items {
        /// Rows that a work-item of `texture_lattice` takes.
        LATTICE_ROWS: usize = 8;
        /// Work-items per work-group of `texture_lattice`.
        LATTICE_GROUP: usize = 64;
        /// Pixels of a row that a work-group of `texture_tiles` takes.
        WIDE_PIXELS: usize = 448;
        /// Pixels of a row that a work-group of `texture_mark` takes.
        BLOCK_PIXELS: usize = 64;
        /// Rows that a work-group of `texture_mark` takes.
        BLOCK_ROWS: usize = 16;
        &GROUP = [crate::variant::TEXTURE_GROUP];
        &LINE_PIXELS = [crate::variant::TEXTURE_LINE];
    }
    texture_rows {
        /// Rows of working memory per work-item.
        SCRATCH_ROWS: usize = 6;
    }
    tiles {
        &TILE = [crate::texture::TILE];
    }
    unpack {
        /// Samples that are unpacked together.
        BLOCK: usize = 16;
    }
}
