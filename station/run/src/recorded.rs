//! Frames that were recorded, and what people said about them.
//!
//! Beside the recording `CAMERA_TIME_FRAME_ROLE.png` the file `CAMERA_TIME_FRAME_ROLE.verdict.json` holds the verdict of
//! people. It goes with its recording.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    frame::Frame,
    recording::{RecordingName, Role, name_of_png, png_file, replace, verdict_file},
};

/// Most places that one verdict names.
pub const MOST_BOXES: usize = 100;
/// Largest file of a verdict, bytes.
const MOST_VERDICT: u64 = 64 << 10;
/// Largest file of pixels, bytes: a frame of 256 MiB that does not compress.
const MOST_PICTURE: u64 = 300 << 20;

/// What the verdict of a frame must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// It must pass.
    Good,
    /// It must fail.
    Failed,
}

/// A frame that was kept, and what people say about it.
#[derive(Debug, Clone)]
pub struct LabelledFrame {
    /// What people see of it.
    pub name: String,
    /// The pixels.
    pub frame: Arc<Frame>,
    /// What its verdict must be.
    pub label: Label,
    /// Places with a defect that an inspection missed: x, y, width, height, px.
    pub missed: Vec<[u32; 4]>,
}

/// What people say about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It failed, and should have passed.
    FalseAlarm,
    /// It has defects that were missed.
    Missed,
}

/// A verdict of people, as in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonVerdict {
    /// What they say.
    pub verdict: Verdict,
    /// With [`Verdict::Missed`]: where the defects are; x, y, width, height, px.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<[u32; 4]>,
    /// Who said it: the address that the request came from.
    #[serde(default)]
    pub who: String,
    /// When, in ISO 8601.
    #[serde(default)]
    pub time: String,
}

impl PersonVerdict {
    /// Whether the verdict fits a frame of this width and height, px.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, size: [u32; 2]) -> Result<(), String> {
        match (self.verdict, self.boxes.len()) {
            (Verdict::FalseAlarm, 1..) => {
                return Err("a false alarm has no places; leave boxes out".to_owned());
            }
            (Verdict::Missed, 0) => {
                return Err("draw a rectangle around the defect that was missed".to_owned());
            }
            (_, count) if count > MOST_BOXES => {
                return Err(format!(
                    "there are {count} places; draw {MOST_BOXES} or fewer"
                ));
            }
            _ => {}
        }
        for &[x, y, width, height] in &self.boxes {
            let is_in = |from: u32, len: u32, size: u32| {
                len > 0 && from.checked_add(len).is_some_and(|end| end <= size)
            };
            if !is_in(x, width, size[0]) || !is_in(y, height, size[1]) {
                let [columns, rows] = size;
                return Err(format!(
                    "the place {x}, {y}, {width} x {height} is not in the frame of {columns} x {rows} px"
                ));
            }
        }
        Ok(())
    }
}

/// A recorded frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// Name of its files, without their ends.
    pub name: String,
    /// The capture time in ISO 8601.
    pub time: String,
    /// The frame number.
    pub frame: u64,
    /// Why it was recorded.
    pub role: Role,
    /// What people said about it.
    pub said: Option<PersonVerdict>,
    #[serde(skip)]
    folder: PathBuf,
}

impl Recording {
    /// What its verdict must be: a failed frame must fail, one before or after it must pass, unless people say
    /// otherwise.
    pub fn label(&self) -> Label {
        match (&self.said, self.role) {
            (Some(said), _) if said.verdict == Verdict::FalseAlarm => Label::Good,
            (Some(_), _) | (None, Role::Failed) => Label::Failed,
            (None, Role::Context) => Label::Good,
        }
    }

    /// The bytes of the picture.
    ///
    /// # Errors
    /// The file is gone or cannot be read.
    pub fn picture(&self) -> io::Result<Vec<u8>> {
        read_bytes(&png_file(&self.folder, &self.name))
    }

    /// Width and height, px.
    ///
    /// # Errors
    /// A sentence if the file is gone or no PNG picture.
    pub fn size(&self) -> Result<[u32; 2], String> {
        let file = fs::File::open(png_file(&self.folder, &self.name));
        let file = file.map_err(|why| self.unreadable(&why.to_string()))?;
        let reader = png::Decoder::new(io::BufReader::new(file)).read_info();
        let reader = reader.map_err(|why| self.unreadable(&why.to_string()))?;
        let info = reader.info();
        Ok([info.width, info.height])
    }

    /// The frame, to be judged again.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn load(&self) -> Result<LabelledFrame, String> {
        let picture = self.picture();
        let picture = picture.map_err(|why| self.unreadable(&why.to_string()))?;
        let frame = Frame::read(&picture).map_err(|why| self.unreadable(&why))?;
        Ok(LabelledFrame {
            name: self.name.clone(),
            frame: Arc::new(frame),
            label: self.label(),
            missed: self
                .said
                .as_ref()
                .map_or(Vec::new(), |said| said.boxes.clone()),
        })
    }

    fn unreadable(&self, why: &str) -> String {
        format!("the recording {} cannot be read: {why}", self.name)
    }

    /// Keeps what people say, or takes it back. The last one who speaks is right.
    ///
    /// # Errors
    /// A sentence: the verdict does not fit the frame, the recording is gone, or the disk refuses the file.
    pub fn say(&self, said: Option<&PersonVerdict>) -> Result<(), String> {
        let file = verdict_file(&self.folder, &self.name);
        let failed = |why: io::Error| format!("the verdict cannot be kept: {why}");
        let Some(said) = said else {
            return match fs::remove_file(file) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => Err(failed(why)),
                _ => Ok(()),
            };
        };
        said.check(self.size()?)?;
        let json = serde_json::to_vec(said).map_err(|why| why.to_string())?;
        replace(&file, &[&json[..], b"\n"].concat()).map_err(failed)?;
        // The limits may have removed the recording meanwhile.
        if !is_file(&png_file(&self.folder, &self.name)) {
            let _ = fs::remove_file(file);
            return Err("this frame is no longer kept".to_owned());
        }
        Ok(())
    }
}

/// A camera's recordings, the oldest first. A verdict that cannot be read counts as none.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path, camera: &str) -> io::Result<Vec<Recording>> {
    let names = names(folder, camera)?;
    let all = names
        .iter()
        .filter_map(|name| recorded(folder, camera, name));
    Ok(all.collect())
}

/// The last `most` recordings that are older than `before`, the newest first.
///
/// # Errors
/// The folder cannot be read.
pub fn page(
    folder: &Path,
    camera: &str,
    before: Option<&str>,
    most: usize,
) -> io::Result<Vec<Recording>> {
    let mut names = names(folder, camera)?;
    names.retain(|name| before.is_none_or(|before| name.as_str() < before));
    let newest = names.iter().rev().take(most);
    let found = newest.filter_map(|name| recorded(folder, camera, name));
    Ok(found.collect())
}

/// The recording of this name. A name from a request is only used if it has the form of a recording's name, which can
/// hold no path.
pub fn find(folder: &Path, camera: &str, name: &str) -> Option<Recording> {
    let found = recorded(folder, camera, name)?;
    is_file(&png_file(folder, name)).then_some(found)
}

/// The names in their order: by time, then by frame number.
fn names(folder: &Path, camera: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let name = file.file_name();
        let name = name.to_str().and_then(|name| name_of_png(camera, name));
        if let Some(name) = name.filter(|_| file.file_type().is_ok_and(|of| of.is_file())) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn recorded(folder: &Path, camera: &str, name: &str) -> Option<Recording> {
    let named = RecordingName::parse(camera, name)?;
    let said = read(&verdict_file(folder, name), MOST_VERDICT);
    Some(Recording {
        name: name.to_owned(),
        time: named.time(),
        frame: named.frame,
        role: named.role,
        said: said
            .ok()
            .and_then(|json| serde_json::from_slice(&json).ok()),
        folder: folder.to_owned(),
    })
}

/// A file, not a link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

/// The bytes of a picture file.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    read(path, MOST_PICTURE)
}

/// A file of at most so many bytes.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(most + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(bytes)
}
