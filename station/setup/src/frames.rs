//! Frames that a draft keeps, for teaching and trying.

use std::{fs, path::PathBuf, sync::Arc};

use clinspect_results::report::ReportedDefect;
use run::{
    frame::Frame,
    picture_files::PictureFiles,
    recorded::{self, Label, LabelledFrame},
    trial::Trial,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Draft, SettingMistake, Setup};

/// Most frames of a draft.
pub const MOST: usize = 1000;
/// Most bytes of their pixels.
pub const MOST_BYTES: usize = 512 << 20;

/// A frame that is kept.
#[derive(Clone, Serialize)]
pub struct KeptFrame {
    /// Number of the frame in its draft.
    pub id: u64,
    /// Where it is from.
    pub name: String,
    /// What people said: `good` or `failed`.
    pub label: Label,
    /// Whether it teaches and is tried.
    pub used: bool,
    /// Places of defects that must be found, `[x, y, width, height]`, px.
    pub missed: Vec<[u32; 4]>,
    /// The verdict of the last trial.
    pub verdict: Option<&'static str>,
    /// The verdict of the trial before.
    pub before: Option<&'static str>,
    /// Number of places without a defect in the last trial.
    pub is_missed: u32,
    /// The largest defects that the last trial found.
    pub defects: Vec<ReportedDefect>,
    /// Their number by class.
    pub counts: Map<String, Value>,
    /// The pixels.
    #[serde(skip)]
    pub frame: Arc<Frame>,
}

/// The frames of a draft, bounded in number and bytes.
#[derive(Default)]
pub struct Frames {
    list: Vec<KeptFrame>,
    last_id: u64,
}

impl Frames {
    /// The frames, the oldest first.
    pub fn list(&self) -> &[KeptFrame] {
        &self.list
    }

    /// Keeps a frame; returns its number.
    ///
    /// # Errors
    /// A sentence, if there is no room.
    pub fn keep(&mut self, kept: LabelledFrame) -> Result<u64, String> {
        let bytes: usize = self.list.iter().map(|of| of.frame.bytes()).sum();
        if self.list.len() >= MOST || bytes + kept.frame.bytes() > MOST_BYTES {
            return Err(format!(
                "{} frames are kept, and there is no room for more; remove some",
                self.list.len()
            ));
        }
        self.last_id += 1;
        self.list.push(KeptFrame {
            id: self.last_id,
            name: kept.name,
            label: kept.label,
            used: true,
            missed: kept.missed,
            verdict: None,
            before: None,
            is_missed: 0,
            defects: Vec::new(),
            counts: Map::new(),
            frame: kept.frame,
        });
        Ok(self.last_id)
    }

    /// A frame by its number.
    pub fn by_id(&mut self, id: u64) -> Option<&mut KeptFrame> {
        self.list.iter_mut().find(|of| of.id == id)
    }

    /// Forgets a frame; whether there was one.
    pub fn forget(&mut self, id: u64) -> bool {
        let before = self.list.len();
        self.list.retain(|of| of.id != id);
        self.list.len() < before
    }

    /// The frames that are tried.
    pub fn tried(&self) -> (Vec<u64>, Vec<LabelledFrame>) {
        let used = self.list.iter().filter(|of| of.used);
        let kept = used.map(|of| {
            let kept = LabelledFrame {
                name: of.name.clone(),
                frame: of.frame.clone(),
                label: of.label,
                missed: of.missed.clone(),
            };
            (of.id, kept)
        });
        kept.unzip()
    }

    /// Whether a good frame with these pixels is kept.
    pub fn has_good(&self, frame: &Frame) -> bool {
        let mut good = self.list.iter().filter(|of| of.label == Label::Good);
        good.any(|of| of.frame.has_pixels_of(frame))
    }

    /// The good frames that teach.
    pub fn good(&self) -> (Vec<u64>, Vec<Arc<Frame>>) {
        let good = self
            .list
            .iter()
            .filter(|of| of.used && of.label == Label::Good);
        good.map(|of| (of.id, of.frame.clone())).unzip()
    }
}

impl Draft {
    /// Keeps the newest live frame; returns its number.
    ///
    /// # Errors
    /// A sentence.
    pub fn keep_live(&self, label: Label) -> Result<u64, String> {
        let frame = self
            .shared
            .live
            .borrow()
            .back()
            .and_then(|live| live.frame.clone());
        let frame = frame.ok_or("no frame has come yet")?;
        let mut state = self.shared.state();
        let word = match label {
            Label::Good => "good",
            Label::Failed => "failed",
        };
        let name = format!("{word} frame {}", state.frames.last_id + 1);
        state.frames.keep(LabelledFrame {
            name,
            frame,
            label,
            missed: Vec::new(),
        })
    }

    /// Loads frames: the camera's recordings with what people said about them, or the pictures of a folder that the station
    /// offers, with this label.
    ///
    /// # Errors
    /// A sentence.
    pub fn collect(&self, from: &str, label: Label, setup: &Setup) -> Result<LoadCount, String> {
        let mut collected = LoadCount::default();
        if from == "recordings" {
            let (folder, camera) = self
                .recordings()
                .ok_or("the camera does not record; set recording in the station's file")?;
            let list = recorded::list(&folder, &camera);
            let list = list.map_err(|why| format!("the recordings cannot be read: {why}"))?;
            for recording in list {
                self.add(recording.load(), &mut collected)?;
            }
            return Ok(collected);
        }
        let choice = setup
            .choices
            .by_id(from)
            .filter(|choice| choice.kind == "folder");
        let choice = choice.ok_or("the folder is no longer there")?;
        let root = setup
            .choices
            .frames()
            .ok_or("the station's file names no folder of frames")?;
        let files = PictureFiles::list(&root.join(&choice.label));
        let files = files.map_err(|why| format!("the folder cannot be read: {why}"))?;
        for file in files.pictures {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let read = fs::read(&file).map_err(|why| why.to_string());
            let kept = read
                .and_then(|bytes| Frame::read(&bytes))
                .map(|frame| LabelledFrame {
                    name: format!("{}, {name}", choice.label),
                    frame: Arc::new(frame),
                    label,
                    missed: Vec::new(),
                });
            self.add(kept, &mut collected)?;
        }
        Ok(collected)
    }

    fn add(
        &self,
        kept: Result<LabelledFrame, String>,
        collected: &mut LoadCount,
    ) -> Result<(), String> {
        match kept {
            Ok(kept) => {
                self.shared.state().frames.keep(kept)?;
                collected.added += 1;
            }
            Err(_) => collected.unreadable += 1,
        }
        Ok(())
    }

    fn recordings(&self) -> Option<(PathBuf, String)> {
        let state = self.shared.state();
        let settings = state.config.as_ref()?.recording.as_ref()?;
        Some((settings.folder.clone(), state.name.clone()))
    }

    /// A frame that is kept.
    pub fn frame(&self, id: u64) -> Option<Arc<Frame>> {
        self.shared
            .state()
            .frames
            .by_id(id)
            .map(|of| of.frame.clone())
    }

    /// Changes what is known about a kept frame; `None` if there is no such frame.
    pub fn change_frame(
        &self,
        id: u64,
        label: Option<Label>,
        used: Option<bool>,
        missed: Option<Vec<[u32; 4]>>,
    ) -> Option<KeptFrame> {
        let mut state = self.shared.state();
        let of = state.frames.by_id(id)?;
        of.label = label.unwrap_or(of.label);
        of.used = used.unwrap_or(of.used);
        if let Some(missed) = missed {
            // Somebody who shows a defect says that the frame must fail.
            if !missed.is_empty() {
                of.label = Label::Failed;
            }
            of.missed = missed;
        }
        Some(of.clone())
    }

    /// Forgets a kept frame; whether there was one.
    pub fn forget_frame(&self, id: u64) -> bool {
        self.shared.state().frames.forget(id)
    }

    /// The marked pixels of a frame under the settings in force, as PNG.
    ///
    /// # Errors
    /// A sentence.
    pub fn mask_of(&self, frame: &Frame) -> Result<Vec<u8>, String> {
        let config = self.shared.state().config.clone();
        let config = config.ok_or("correct the settings first")?;
        let mut trial = Trial::start(&config, frame.info())?;
        trial.judge(frame)?.mask.png()
    }

    /// Sets the picture of the pixels that are not judged, or removes it. With a mistake the one before stays.
    ///
    /// # Errors
    /// The mistakes.
    pub fn set_mask(&self, picture: Option<&[u8]>) -> Result<(), Vec<SettingMistake>> {
        let mistake = |text: String| {
            let key = "mask".to_owned();
            vec![SettingMistake { key, text }]
        };
        let _alone = self.shared.alone();
        let (own, before) = {
            let state = self.shared.state();
            (format!("{}-ignore.png", state.name), state.mask.clone())
        };
        let path = |file: &String| self.shared.folder.join(file);
        let kept = before
            .as_ref()
            .and_then(|file| Some((file, fs::read(path(file)).ok()?)));
        if let Some(picture) = picture {
            Frame::read(picture).map_err(mistake)?;
        }
        let removed = before
            .as_ref()
            .map_or(Ok(()), |file| fs::remove_file(path(file)));
        let written = removed.and_then(|()| match picture {
            Some(picture) => fs::write(path(&own), picture),
            None => Ok(()),
        });
        written.map_err(|why| mistake(format!("the folder of recipes refuses the file: {why}")))?;
        self.shared.name_mask(picture.map(|_| own.clone()));
        let checked = self.shared.check();
        if checked.is_err() {
            // As it was; a file that cannot be written again is told by the element.
            let _ = fs::remove_file(path(&own));
            if let Some((file, content)) = kept {
                let _ = fs::write(path(file), content);
            }
            self.shared.name_mask(before);
        }
        self.shared.renew_files();
        checked
    }
}

/// How many frames were loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LoadCount {
    /// Frames that are kept now.
    pub added: usize,
    /// Files that are no pictures.
    pub unreadable: usize,
}
