//! The files that elements of a composition read.

use std::{fs, path::PathBuf};

/// A folder with the files of this process. It is kept after a failure, so that a printed pipeline can be run again.
pub struct Files {
    folder: PathBuf,
    keep: bool,
}

impl Files {
    pub fn new() -> Self {
        let folder = format!("clinspect-compositions-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            keep: false,
        }
    }

    /// The files remain.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Replaces `WHITE-WxH-BITS`, `MEAN-WxH-8`, `PART-WxH-8` and `SURFACE-WxH-BITS` by the paths of such files.
    pub fn put_into(&self, text: &str) -> String {
        let words = text.split(' ').map(|word| {
            if let Some(name) = word.strip_prefix("location=") {
                return format!("location={}", self.file(name).display());
            }
            let in_structure = word.split_once("(string)");
            match in_structure.and_then(|(head, name)| Some((head, name.strip_suffix('"')?))) {
                Some((head, name)) => format!("{head}(string){}\"", self.file(name).display()),
                None => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.folder.join(format!("{name}.npz"));
        if path.exists() {
            return path;
        }
        let mut parts = name.split('-');
        let kind = parts.next().unwrap();
        let (width, height) = parts.next().unwrap().split_once('x').unwrap();
        let [width, height]: [usize; 2] = [width, height].map(|size| size.parse().unwrap());
        let bits: u32 = parts.next().unwrap().parse().unwrap();
        let at = |level: fn(usize, usize) -> usize| -> Vec<u32> {
            // A level of 8 bits, in 1/256 level of `bits`.
            let levels = (0..width * height).map(|i| level(i % width, i / width) as u32);
            levels.map(|level| level << bits).collect()
        };
        let shape = [height, width];
        let none = vec![0; width * height];
        let array = |name, shape, samples| clinspect_models::ArrayRef {
            name,
            shape,
            samples,
        };
        match kind {
            // Darker on the right.
            "WHITE" => {
                let white = at(|x, _| 220_usize.saturating_sub(x / 4));
                clinspect_models::write(&path, &[array("white", &shape, &white)]).unwrap();
            }
            // Edges along both axes, so that a frame can be aligned.
            "MEAN" | "PART" => {
                // A part has edges that are far apart.
                let mean = at(match kind {
                    "PART" => |x, y| 40 + (x / 12 * 7919 + y / 10 * 104_729) % 11 * 16,
                    _ => |x, y| 16 * (x % 8) + 8 * (y % 8),
                });
                let arrays = [
                    array("mean", &shape, &mean),
                    array("deviation", &shape, &none),
                    array("frames", &[], &[1]),
                    array("bits", &[], &[8]),
                ];
                clinspect_models::write(&path, &arrays).unwrap();
            }
            // Prototypes on a diagonal, so that novelty marks a part of most frames.
            "SURFACE" => {
                let weights: Vec<u32> = (0..27 * 12).map(|i| 8 * u32::from(i % 13 == 0)).collect();
                let prototypes: Vec<u32> = (0..128 * 12).map(|i| i / 12 % 64).collect();
                let mut limits = [u32::MAX; 17];
                limits[0] = 256;
                let arrays = [
                    array("surface_mean", &[27], &[0; 27]),
                    array("surface_weights", &[27, 12], &weights),
                    array("surface_prototypes", &[128, 12], &prototypes),
                    array("surface_limits", &[17], &limits),
                ];
                clinspect_models::write(&path, &arrays).unwrap();
            }
            _ => panic!("no such file: {name}"),
        }
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
