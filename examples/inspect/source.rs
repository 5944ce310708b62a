//! Sources of frames: each is a bin with one source pad.

use std::path::{Path, PathBuf};

use gst::{glib, prelude::*};

use crate::{
    failure::Failure,
    feed,
    files::FileFeed,
    options::Args,
    settings::{Labels, Panels, Strips},
    simulated::{SimulatedFeed, Truth},
    web::WebFeed,
};

/// Name of the last element after a description.
const LAST: &str = "clinspect-formats";

/// A source of frames.
#[derive(Debug, Clone)]
pub enum Source {
    /// The panel generator.
    Panel(Panels),
    /// The label generator.
    Label(Labels),
    /// A line camera over a web of cloth.
    Web(Strips),
    /// A GigE Vision or USB3 Vision camera.
    Camera(Option<String>),
    /// Pictures or videos, in this order.
    Files(Vec<PathBuf>),
    /// A gst-launch description.
    Launch(String),
}

/// Settings of a source.
#[derive(Debug, Clone)]
pub struct Feeding {
    /// Frames to make; 0 = no end.
    pub frames: u64,
    /// Frames per second; 0 = as fast as possible.
    pub fps: f64,
    /// Formats to convert frames to, the preferred first.
    pub formats: &'static [&'static str],
    /// Record of the planted defects.
    pub truth: Truth,
}

impl Source {
    /// The source that the arguments name.
    ///
    /// # Errors
    /// A sentence for a pattern that no file matches, or a panel that cannot be drawn.
    pub fn parse(args: &Args) -> Result<Self, Failure> {
        let words = &args.source;
        match words.as_slice() {
            [word] if word == "panel" => return Ok(Self::Panel(args.panels()?)),
            [word] if word == "label" => return Ok(Self::Label(args.labels()?)),
            [word] if word == "web" => return Ok(Self::Web(args.strips()?)),
            [word] if word == "camera" => return Ok(Self::Camera(args.camera_name.clone())),
            _ => {}
        }
        // The shell may have expanded the pattern already.
        if words.iter().all(|word| Path::new(word).is_file()) {
            return Ok(Self::Files(words.iter().map(PathBuf::from).collect()));
        }
        let text = words.join(" ");
        let first = text.split([' ', '!']).next().unwrap_or_default();
        if text.contains('!') || gst::ElementFactory::find(first).is_some() {
            return Ok(Self::Launch(text));
        }
        let files = matching_files(Path::new(&text));
        if files.is_empty() {
            return Err(Failure::Usage(format!(
                "unknown source \"{text}\": it is neither panel, label, web nor camera, no file matches it, and \
                 it does not start with a GStreamer element"
            )));
        }
        Ok(Self::Files(files))
    }

    /// The source, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Panel(panels) => format!(
                "simulated panels, {}x{} px, pitch {} x {} px, {} defects planted in one frame of {}",
                panels.spec.width,
                panels.spec.height,
                panels.spec.pitch_x,
                panels.spec.pitch_y,
                panels.sequence.defects,
                panels.sequence.bad_every
            ),
            Self::Label(labels) => format!(
                "simulated printed labels, {}x{} px, shifted by up to {} px, {} misprints planted in one frame of {}",
                labels.spec.width,
                labels.spec.height,
                labels.spec.shift_px,
                labels.sequence.defects,
                labels.sequence.bad_every
            ),
            Self::Web(strips) => format!(
                "a simulated line camera over woven cloth, {} px per line, pitch {} px, strips of {} rows{}",
                strips.spec.width,
                strips.spec.pitch_px,
                strips.rows,
                if strips.spec.defects {
                    ", with defects"
                } else {
                    ""
                }
            ),
            Self::Camera(Some(name)) => format!("camera {name}"),
            Self::Camera(None) => "the first camera found".into(),
            Self::Files(files) => match files.as_slice() {
                [file] => file.display().to_string(),
                files => format!("{} files", files.len()),
            },
            Self::Launch(description) => description.clone(),
        }
    }

    /// Number of frames of the source, if known.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Files(files) => Some(files.len() as u64),
            _ => None,
        }
    }

    /// Builds the source.
    ///
    /// # Errors
    /// A description that does not parse, an element that is not installed.
    pub fn build(&self, feeding: &Feeding) -> Result<gst::Bin, Failure> {
        let caps = gst::Caps::builder("video/x-raw")
            .field("format", gst::List::new(feeding.formats))
            .build();
        match self {
            Self::Panel(panels) => feed::bin(
                "panel",
                SimulatedFeed::panels(panels, feeding)?,
                feeding.fps,
            ),
            Self::Label(labels) => feed::bin(
                "label",
                SimulatedFeed::labels(labels, feeding)?,
                feeding.fps,
            ),
            Self::Web(strips) => feed::bin("web", WebFeed::new(strips, feeding)?, feeding.fps),
            Self::Files(files) => feed::bin("files", FileFeed::new(files, &caps), feeding.fps),
            Self::Camera(name) => camera(name.as_deref(), &caps),
            Self::Launch(description) => launch(description, &caps),
        }
    }
}

fn camera(name: Option<&str>, caps: &gst::Caps) -> Result<gst::Bin, Failure> {
    let missing = "the element aravissrc, which reads GigE Vision and USB3 Vision cameras, is not \
                   installed: install the package gstreamer1.0-plugins-bad";
    let camera = gst::ElementFactory::make("aravissrc")
        .name("camera")
        .build()
        .map_err(|_| Failure::Usage(missing.into()))?;
    if let Some(name) = name {
        camera.set_property("camera-name", name);
    }
    let convert = gst::ElementFactory::make("videoconvert").build()?;
    let formats = gst::ElementFactory::make("capsfilter")
        .property("caps", caps)
        .build()?;
    let bin = gst::Bin::new();
    let chain = [&camera, &convert, &formats];
    bin.add_many(chain)?;
    gst::Element::link_many(chain)?;
    add_pad(&bin, &formats)?;
    Ok(bin)
}

/// A description, followed by a converter to one of the formats.
fn launch(description: &str, caps: &gst::Caps) -> Result<gst::Bin, Failure> {
    let whole = format!("{description} ! videoconvert ! capsfilter name={LAST}");
    let bin = gst::parse::bin_from_description_with_name_full(
        &whole,
        false,
        "source",
        None,
        gst::ParseFlags::FATAL_ERRORS,
    )
    .map_err(|error| refused(description, &error))?;
    let built = bin.downcast::<gst::Bin>().ok();
    let (bin, last) = built
        .and_then(|bin| Some((bin.clone(), bin.by_name(LAST)?)))
        .ok_or_else(|| Failure::Usage(format!("the source \"{description}\" has no output")))?;
    last.set_property("caps", caps);
    add_pad(&bin, &last)?;
    Ok(bin)
}

fn refused(description: &str, error: &glib::Error) -> Failure {
    Failure::Usage(format!(
        "the source \"{description}\" is not a gst-launch description: {}",
        error.message()
    ))
}

/// Makes the element's source pad the bin's.
///
/// # Errors
/// The element has no source pad.
pub fn add_pad(bin: &gst::Bin, last: &gst::Element) -> Result<(), Failure> {
    let missing = || Failure::Runtime(format!("{} has no source pad", last.name()));
    let pad = last.static_pad("src").ok_or_else(missing)?;
    bin.add_pad(&gst::GhostPad::with_target(&pad)?)?;
    Ok(())
}

/// Files that match a path whose parts may hold `*` and `?`, sorted.
fn matching_files(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        if !name.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        found = found
            .iter()
            .flat_map(|folder| entries(folder))
            .filter(|(_, file)| !file.starts_with('.') && matches(&name, file))
            .map(|(path, _)| path)
            .collect();
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

/// Whether a name matches a pattern in which `*` stands for anything and `?` for a character.
fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            starts
                .into_iter()
                .any(|at| matches(rest.as_str(), &name[at..]))
        }
        Some(wanted) => {
            let mut letters = name.chars();
            letters
                .next()
                .is_some_and(|letter| wanted == '?' || wanted == letter)
                && matches(rest.as_str(), letters.as_str())
        }
    }
}

/// The entries of a folder, with their names; empty if the folder cannot be read.
fn entries(folder: &Path) -> Vec<(PathBuf, String)> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let Ok(entries) = std::fs::read_dir(here) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name();
            (folder.join(&name), name.to_string_lossy().into_owned())
        })
        .collect()
}
