//! Implementation of `clfoldersrc`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{prelude::*, subclass::base_src::CreateSuccess, subclass::prelude::*};
use gst_video::{VideoFormat, VideoInfo};
use machine::locks::Mutex;

use crate::{frame::Frame, picture_files::PictureFiles};

const DEFAULT_RATE: f64 = 10.0;

struct Settings {
    location: String,
    /// Frames a second.
    rate: f64,
}

struct Playback {
    files: Vec<PathBuf>,
    /// Index of the next file.
    next: usize,
    /// Frames sent.
    sent: u64,
    info: Option<VideoInfo>,
    /// The files that were told: not again in each round.
    told: BTreeSet<usize>,
    has_told_sizes: bool,
}

/// Instance of `clfoldersrc`.
pub struct FolderSrc {
    settings: Mutex<Settings>,
    running: Mutex<Option<Playback>>,
}

impl Default for FolderSrc {
    fn default() -> Self {
        Self {
            settings: Mutex::new(Settings {
                location: String::new(),
                rate: DEFAULT_RATE,
            }),
            running: Mutex::default(),
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for FolderSrc {
    const NAME: &'static str = "ClFolderSrc";
    type Type = super::FolderSrc;
    type ParentType = gst_base::PushSrc;
}

impl ObjectImpl for FolderSrc {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            vec![
                glib::ParamSpecString::builder("location")
                    .nick("Folder")
                    .blurb("The folder with the pictures")
                    .mutable_ready()
                    .build(),
                glib::ParamSpecDouble::builder("rate")
                    .nick("Rate")
                    .blurb("Frames a second")
                    .minimum(0.1)
                    .maximum(1000.0)
                    .default_value(DEFAULT_RATE)
                    .mutable_ready()
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let mut settings = self.settings.lock();
        match spec.name() {
            "location" => {
                settings.location = value
                    .get::<Option<String>>()
                    .ok()
                    .flatten()
                    .unwrap_or_default()
            }
            "rate" => settings.rate = value.get().unwrap_or(DEFAULT_RATE),
            _ => {}
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let settings = self.settings.lock();
        match spec.name() {
            "location" => settings.location.to_value(),
            _ => settings.rate.to_value(),
        }
    }

    fn constructed(&self) {
        self.parent_constructed();
        // The base class waits for the clock before it sends a frame of a live source.
        self.obj().set_live(true);
        self.obj().set_format(gst::Format::Time);
    }
}

impl GstObjectImpl for FolderSrc {}

impl ElementImpl for FolderSrc {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Pictures of a folder",
                "Source/Video",
                "Sends the pictures of a folder again and again",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let formats = [VideoFormat::Gray8, VideoFormat::Gray16Le, VideoFormat::Rgb];
            let caps = gst_video::VideoCapsBuilder::new()
                .format_list(formats)
                .build();
            let (direction, presence) = (gst::PadDirection::Src, gst::PadPresence::Always);
            let template = gst::PadTemplate::new("src", direction, presence, &caps);
            template.into_iter().collect()
        });
        &TEMPLATES
    }
}

impl BaseSrcImpl for FolderSrc {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let location = self.settings.lock().location.clone();
        let none = |why: &str| {
            let text = format!("the folder {location:?} {why}");
            gst::error_msg!(gst::ResourceError::NotFound, ("{text}"))
        };
        let files = PictureFiles::list(Path::new(&location));
        let files = files.map_err(|error| none(&format!("cannot be read: {error}")))?;
        let files = files.pictures;
        if files.is_empty() {
            return Err(none("holds no picture; put PNG, PNM or JPEG files there"));
        }
        *self.running.lock() = Some(Playback {
            files,
            next: 0,
            sent: 0,
            info: None,
            told: BTreeSet::new(),
            has_told_sizes: false,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.running.lock() = None;
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        false
    }

    /// The first picture decides the caps.
    fn negotiate(&self) -> Result<(), gst::LoggableError> {
        Ok(())
    }

    fn times(&self, buffer: &gst::BufferRef) -> (Option<gst::ClockTime>, Option<gst::ClockTime>) {
        let start = buffer.pts();
        let end = start
            .zip(buffer.duration())
            .map(|(pts, duration)| pts + duration);
        (start, end)
    }
}

impl PushSrcImpl for FolderSrc {
    fn create(
        &self,
        _buffer: Option<&mut gst::BufferRef>,
    ) -> Result<CreateSuccess, gst::FlowError> {
        let rate = self.settings.lock().rate;
        let mut running = self.running.lock();
        let running = running.as_mut().ok_or(gst::FlowError::Flushing)?;
        let mut why = String::new();
        for _ in 0..running.files.len() {
            let index = running.next % running.files.len();
            running.next = index + 1;
            match read(&running.files[index], rate) {
                Ok((mut buffer, info)) => {
                    if running.info.as_ref() != Some(&info) {
                        if let Some(before) = &running.info
                            && !std::mem::replace(&mut running.has_told_sizes, true)
                        {
                            let [is, was] = [&info, before].map(in_words);
                            gst::element_imp_warning!(
                                self,
                                gst::StreamError::Format,
                                (
                                    "{} is {is}, and the picture before is {was}; elements that learn begin again at each \
                                     change: put pictures of one size and format into a folder",
                                    running.files[index].display()
                                )
                            );
                        }
                        let caps = info.to_caps().map_err(|_| gst::FlowError::NotNegotiated)?;
                        let is_set = self.obj().set_caps(&caps);
                        is_set.map_err(|_| gst::FlowError::NotNegotiated)?;
                        running.info = Some(info);
                    }
                    let at = |number: u64| {
                        gst::ClockTime::from_nseconds((number as f64 * 1e9 / rate) as u64)
                    };
                    let buffer_ref = buffer.make_mut();
                    buffer_ref.set_pts(at(running.sent));
                    buffer_ref.set_duration(at(running.sent + 1) - at(running.sent));
                    buffer_ref.set_offset(running.sent);
                    running.sent += 1;
                    return Ok(CreateSuccess::NewBuffer(buffer));
                }
                Err(error) => {
                    why = format!("{}: {error}", running.files[index].display());
                    if running.told.insert(index) {
                        gst::element_imp_warning!(
                            self,
                            gst::ResourceError::Read,
                            ("{why}; it is left out")
                        );
                    }
                }
            }
        }
        gst::element_imp_error!(
            self,
            gst::ResourceError::Read,
            ("no picture can be read; the last is {why}")
        );
        Err(gst::FlowError::Error)
    }
}

fn in_words(info: &VideoInfo) -> String {
    format!("{}x{} {}", info.width(), info.height(), info.format())
}

/// A picture as a frame.
fn read(path: &Path, rate: f64) -> Result<(gst::Buffer, VideoInfo), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let frame = Frame::read(&bytes)?;
    let info = frame.info();
    let fps = gst::Fraction::approximate_f64(rate).unwrap_or_else(|| gst::Fraction::new(0, 1));
    let info = VideoInfo::builder(info.format(), info.width(), info.height())
        .par(info.par())
        .fps(fps);
    let info = info.build().map_err(|error| error.to_string())?;
    Ok((frame.buffer().clone(), info))
}
