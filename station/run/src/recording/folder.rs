//! The folder of a camera's recordings: names, files that are whole or absent, and limits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, hash_map::RandomState},
    fs,
    hash::{BuildHasher, Hasher},
    io,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use machine::locks::Mutex;

/// Digits of a frame number, so that names sort by it.
const FRAME_DIGITS: usize = 10;
/// Length of the longest frame number.
const MOST_FRAME_DIGITS: usize = 20;
/// A capture time in a report, and in a name; `0` is any digit.
const REPORT_TIME: &str = "0000-00-00T00:00:00.000000Z";
const NAME_TIME: &str = "00000000T000000.000000Z";
/// Ends of the file names.
const PNG: &str = ".png";
const JSON: &str = ".json";
/// What people said about the frame. It is small, and not counted among the bytes.
const VERDICT: &str = ".verdict.json";

/// Why a frame is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It failed.
    Failed,
    /// It came shortly before or after a failed one.
    Context,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Context => "context",
        }
    }
}

/// Whether a name may be part of a file name.
pub(crate) fn is_camera_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=100).contains(&name.len()) && name.chars().all(is_plain)
}

/// Whether a text has the digits and the other characters of a pattern.
fn has_pattern(text: &str, pattern: &str) -> bool {
    let same = |(is, wanted): (u8, u8)| match wanted {
        b'0' => is.is_ascii_digit(),
        wanted => is == wanted,
    };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(same)
}

/// Name of a recording, without the end: camera, capture time, frame number, role. A time of unknown
/// form becomes zeros, so that nothing else can enter the name.
pub fn base_name(camera: &str, time: &str, frame: u64, role: Role) -> String {
    let time = if has_pattern(time, REPORT_TIME) {
        time.replace(['-', ':'], "")
    } else {
        NAME_TIME.into()
    };
    format!("{camera}_{time}_{frame:0FRAME_DIGITS$}_{}", role.name())
}

/// What a recording's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordingName<'n> {
    /// As in the name.
    time: &'n str,
    pub frame: u64,
    pub role: Role,
}

impl<'n> RecordingName<'n> {
    /// Reads a name, without the end; `None` if [`base_name`] gives no such name for the camera.
    pub fn parse(camera: &str, name: &'n str) -> Option<Self> {
        let mut parts = name.strip_prefix(camera)?.strip_prefix('_')?.split('_');
        let (time, frame, role) = (parts.next()?, parts.next()?, parts.next()?);
        let is_frame = (FRAME_DIGITS..=MOST_FRAME_DIGITS).contains(&frame.len())
            && frame.bytes().all(|digit| digit.is_ascii_digit());
        let role = [Role::Failed, Role::Context]
            .into_iter()
            .find(|known| known.name() == role);
        if parts.next().is_some() || !has_pattern(time, NAME_TIME) || !is_frame {
            return None;
        }
        Some(Self {
            time,
            frame: frame.parse().ok()?,
            role: role?,
        })
    }

    /// The capture time in ISO 8601.
    pub fn time(&self) -> String {
        let mut digits = self.time.chars();
        let each = REPORT_TIME.chars().map(|wanted| match wanted {
            '-' | ':' => wanted,
            _ => digits.next().unwrap_or(wanted),
        });
        each.collect()
    }
}

/// The file of a recording's pixels.
pub(crate) fn png_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{PNG}"))
}

/// The file with what people said about a recording.
pub(crate) fn verdict_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{VERDICT}"))
}

/// The name of the recording whose pixels this file of a camera holds.
pub(crate) fn name_of_png<'n>(camera: &str, file: &'n str) -> Option<&'n str> {
    match known(camera, file)? {
        OwnFile::Png(name) => Some(name),
        _ => None,
    }
}

/// Replaces a file: a reader sees it whole, as it is or as it was. A crash leaves a file that the next
/// [`Folder::open`] removes.
pub(crate) fn replace(file: &Path, data: &[u8]) -> io::Result<()> {
    let token = Token::new();
    let name = file.file_name().and_then(|name| name.to_str());
    let part = file.with_file_name(token.name(name.ok_or(io::ErrorKind::InvalidFilename)?));
    let written = write(&part, data).and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// A file of ours.
enum OwnFile<'n> {
    Png(&'n str),
    Json(&'n str),
    Verdict(&'n str),
    /// A writer of this process writes it.
    Part,
    /// A crash left it half written.
    Half,
}

/// What a file of this name is; `None` if it is not one of the camera's recordings.
fn known<'n>(camera: &str, file: &'n str) -> Option<OwnFile<'n>> {
    let part = parse_part(file);
    let name = part.map_or(file, |(name, _)| name);
    type Kind<'n> = fn(&'n str) -> OwnFile<'n>;
    let kinds: [(&str, Kind<'n>); 3] = [
        (PNG, OwnFile::Png),
        (VERDICT, OwnFile::Verdict),
        (JSON, OwnFile::Json),
    ];
    let (base, kind) =
        (kinds.into_iter()).find_map(|(end, kind)| Some((name.strip_suffix(end)?, kind)))?;
    RecordingName::parse(camera, base)?;
    Some(match part {
        Some((_, true)) => OwnFile::Part,
        Some((_, false)) => OwnFile::Half,
        None => kind(base),
    })
}

/// What is kept; 0 is no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub count: u64,
    pub age: Duration,
    pub bytes: u64,
}

/// Why a recording was not stored.
#[derive(Debug)]
pub(super) enum Refusal {
    /// This frame cannot be recorded.
    Frame(String),
    /// No frame can be recorded now.
    Disk(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A PNG with its JSON file.
struct Recording {
    name: String,
    bytes: u64,
    /// When it was written. Its age counts from here: a camera's clock may be wrong.
    written: SystemTime,
}

/// The recordings of one camera.
pub(super) struct Folder {
    path: PathBuf,
    camera: String,
    limits: Limits,
    /// The oldest first.
    recordings: VecDeque<Recording>,
    bytes: u64,
    token: Token,
}

impl Folder {
    /// Reads the folder and makes it if only its last part is missing. Removes files that a crash
    /// left half written, and recordings beyond the limits, except for their age. Files of other names stay, and so do
    /// those that another writer of this process still writes.
    pub fn open(path: &Path, camera: &str, limits: Limits) -> io::Result<Self> {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut folder = Self {
            path: path.into(),
            camera: camera.into(),
            limits,
            recordings: VecDeque::new(),
            bytes: 0,
            token: Token::new(),
        };
        folder.tidy()?;
        Ok(folder)
    }

    /// Takes recordings that somebody removed off the list, and adds those that somebody put into the folder. Only files
    /// that are not on the list are examined.
    fn read(&mut self) -> io::Result<()> {
        let listed = std::mem::take(&mut self.recordings);
        let names: BTreeSet<&str> = listed.iter().map(|old| &*old.name).collect();
        let mut there = BTreeSet::new();
        let mut found = BTreeMap::<String, Recording>::new();
        let mut results = Vec::new();
        let mut verdicts = Vec::new();
        for file in fs::read_dir(&self.path)? {
            let file = file?;
            let name = file.file_name();
            let Some(known) = name.to_str().and_then(|name| known(&self.camera, name)) else {
                continue;
            };
            match known {
                OwnFile::Png(base) if names.contains(base) => {
                    there.insert(base.to_owned());
                    continue;
                }
                OwnFile::Json(base) if names.contains(base) => {
                    results.push((base.to_owned(), 0));
                    continue;
                }
                _ => {}
            }
            // Of the link itself, if it is one.
            let about = match file.metadata() {
                Ok(about) if about.is_file() => about,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match known {
                OwnFile::Part => {}
                OwnFile::Half => remove(&file.path())?,
                OwnFile::Json(base) => results.push((base.to_owned(), about.len())),
                OwnFile::Verdict(base) => verdicts.push(base.to_owned()),
                OwnFile::Png(base) => {
                    let recording = Recording {
                        name: base.into(),
                        bytes: about.len(),
                        written: about.modified()?,
                    };
                    found.insert(base.into(), recording);
                }
            }
        }
        for (base, bytes) in results {
            match found.get_mut(&base) {
                Some(recording) => recording.bytes += bytes,
                None if there.contains(&base) || self.gets_png(&base) => {}
                // A crash came before the PNG got its name, or somebody or a crash removed the PNG only.
                None => remove(&self.file(&base, JSON))?,
            }
        }
        for base in verdicts {
            if !found.contains_key(&base) && !there.contains(&base) && !self.gets_png(&base) {
                remove(&self.file(&base, VERDICT))?;
            }
        }
        // The list is in the order of writing, which is not that of the times after the clock was set back.
        let mut recordings: Vec<_> = (listed.into_iter())
            .filter(|old| there.contains(&old.name))
            .collect();
        if !found.is_empty() {
            recordings.extend(found.into_values());
            recordings.sort_by_key(|recording| recording.written);
        }
        self.bytes = recordings.iter().map(|recording| recording.bytes).sum();
        self.recordings = recordings.into();
        Ok(())
    }

    /// Whether a PNG is there or is being written. Its final name is checked last, because it gets that
    /// name last.
    fn gets_png(&self, base: &str) -> bool {
        let is_there = |name: &str| self.path.join(name).symlink_metadata().is_ok();
        let png = format!("{base}{PNG}");
        names_in_use(&png).iter().any(|part| is_there(part)) || is_there(&png)
    }

    fn file(&self, name: &str, end: &str) -> PathBuf {
        self.path.join(format!("{name}{end}"))
    }

    /// Writes a recording at the time `now`. A reader sees both files whole, the JSON file first, or none.
    pub fn store(
        &mut self,
        name: &str,
        png: &[u8],
        json: &[u8],
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let bytes = (png.len() + json.len()) as u64;
        if self.limits.bytes != 0 && bytes > self.limits.bytes {
            let most = self.limits.bytes;
            return Err(Refusal::Frame(format!(
                "it takes {bytes} bytes and max-bytes = {most}; set a larger max-bytes"
            )));
        }
        // A camera whose clock and frame numbers start anew may repeat a name.
        if self.file(name, PNG).symlink_metadata().is_ok()
            && let Some(at) = self.recordings.iter().rposition(|old| old.name == name)
        {
            self.drop_recording(at)?;
        }
        self.make_room(1, bytes)?;
        let parts = [(JSON, json), (PNG, png)].map(|(end, data)| {
            let part = self.token.name(&format!("{name}{end}"));
            (self.path.join(part), self.file(name, end), data)
        });
        let written = (parts
            .iter()
            .try_for_each(|(part, _, data)| write(part, data)))
        .and_then(|()| {
            parts
                .iter()
                .try_for_each(|(part, whole, _)| fs::rename(part, whole))
        });
        if let Err(error) = written {
            for (part, whole, _) in &parts {
                let _ = fs::remove_file(part);
                let _ = fs::remove_file(whole);
            }
            return Err(error.into());
        }
        self.bytes += bytes;
        self.recordings.push_back(Recording {
            name: name.into(),
            bytes,
            written: now,
        });
        Ok(())
    }

    /// When the newest recording was written.
    pub fn newest(&self) -> Option<SystemTime> {
        self.recordings
            .iter()
            .map(|recording| recording.written)
            .max()
    }

    /// Removes recordings that are too old at the time `now`. Recordings need not be in the order of their times: the
    /// clock may have been set back.
    pub fn expire(&mut self, now: SystemTime) -> io::Result<()> {
        let Some(end) = now.checked_sub(self.limits.age) else {
            return Ok(());
        };
        if self.limits.age.is_zero() {
            return Ok(());
        }
        let mut at = 0;
        while let Some(recording) = self.recordings.get(at) {
            if recording.written < end {
                self.drop_recording(at)?;
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Counts what is there, and removes recordings beyond the limits, except for their age.
    pub fn tidy(&mut self) -> io::Result<()> {
        self.read()?;
        self.make_room(0, 0)
    }

    /// Removes the oldest recordings until others fit. Before, it counts what is there: people remove recordings and add
    /// some.
    fn make_room(&mut self, count: u64, bytes: u64) -> io::Result<()> {
        if self.lacks_room(count, bytes) {
            self.read()?;
        }
        while !self.recordings.is_empty() && self.lacks_room(count, bytes) {
            self.drop_recording(0)?;
        }
        Ok(())
    }

    /// Whether others do not fit.
    fn lacks_room(&self, count: u64, bytes: u64) -> bool {
        let limits = &self.limits;
        (limits.count != 0 && self.recordings.len() as u64 + count > limits.count)
            || (limits.bytes != 0 && self.bytes + bytes > limits.bytes)
    }

    /// Removes the files of a recording, unless they are gone already.
    fn drop_recording(&mut self, at: usize) -> io::Result<()> {
        let Some(recording) = self.recordings.get(at) else {
            return Ok(());
        };
        remove(&self.file(&recording.name, PNG))?;
        remove(&self.file(&recording.name, JSON))?;
        // Last, so that one that is written meanwhile finds no PNG and goes too.
        remove(&self.file(&recording.name, VERDICT))?;
        self.bytes -= recording.bytes;
        self.recordings.remove(at);
        Ok(())
    }
}

/// Removes a file, if it is there.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a new file, down to the disk: after a power failure a name must not stand for half a file.
fn write(file: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)?;
    file.write_all(data)?;
    file.sync_data()
}

/// Files that are being written have the name `.FILE.TOKEN.part`: `ls *.png` and a web server skip them.
const START: &str = ".";
const END: &str = ".part";
/// Hexadecimal digits of a token.
const DIGITS: usize = 16;

/// The tokens of the writers of this process. Tokens are random, so none is that of a process before.
static IN_USE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The token of a writer, which makes its names its own.
struct Token(u64);

impl Token {
    fn new() -> Self {
        // A new `RandomState` has new keys.
        let token = RandomState::new().build_hasher().finish();
        IN_USE.lock().insert(token);
        Self(token)
    }

    /// Name of a file while it is written.
    fn name(&self, file: &str) -> String {
        part_name(file, self.0)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        IN_USE.lock().remove(&self.0);
    }
}

fn part_name(file: &str, token: u64) -> String {
    format!("{START}{file}.{token:0DIGITS$x}{END}")
}

/// The names of a file while writers of this process write it.
fn names_in_use(file: &str) -> Vec<String> {
    let tokens = IN_USE.lock();
    tokens.iter().map(|token| part_name(file, *token)).collect()
}

/// The file that is being written under this name, and whether a writer of this process does;
/// `None` if the name has another form.
fn parse_part(part: &str) -> Option<(&str, bool)> {
    let rest = part.strip_prefix(START)?.strip_suffix(END)?;
    let (file, token) = rest.rsplit_once('.')?;
    let is_token = token.len() == DIGITS && token.bytes().all(|b| b.is_ascii_hexdigit());
    let token = u64::from_str_radix(token, 16).ok().filter(|_| is_token)?;
    Some((file, IN_USE.lock().contains(&token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_recording_behind_one_of_a_wrong_clock_is_removed() {
        let hour = Duration::from_secs(3600);
        let path = std::env::temp_dir().join(format!("clinspect-expire-{}", std::process::id()));
        let limits = Limits {
            count: 0,
            age: hour,
            bytes: 0,
        };
        let mut folder = Folder::open(&path, "left", limits).expect("a folder");
        let names: Vec<_> = (0..4)
            .map(|frame| base_name("left", "", frame, Role::Failed))
            .collect();
        let now = SystemTime::now();
        for name in &names {
            folder.store(name, b"png", b"json", now).expect("stored");
        }
        // The clock was a day ahead at first, and was then set back.
        let written = [now + 24 * hour, now - 2 * hour, now, now - 3 * hour];
        for (recording, written) in folder.recordings.iter_mut().zip(written) {
            recording.written = written;
        }
        folder.expire(now).expect("expired");
        let left: Vec<_> = folder.recordings.iter().map(|left| &left.name).collect();
        assert_eq!(left, [&names[0], &names[2]]);
        assert_eq!(folder.bytes, 14);
        assert_eq!(fs::read_dir(&path).expect("the folder").count(), 4);
        fs::remove_dir_all(&path).expect("removed");
    }
}
