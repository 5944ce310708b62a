//! One camera.

use std::time::Duration;

use clinspect_results::report::RecipeId;

use super::{
    InputSettings, MachineSettings, OutputSettings, Properties, RecordingSettings, RepeatSettings,
    SOFTWARE, Source, Trigger,
};

/// Characters of a camera's name.
pub const LONGEST_NAME: usize = 64;

/// One camera.
#[derive(Debug, Clone, PartialEq)]
pub struct CameraConfig {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// The recipe that these settings belong to.
    pub recipe: Option<RecipeId>,
    /// Where frames come from.
    pub source: Source,
    /// Property `device` of the OpenCL elements.
    pub device: Option<String>,
    /// The camera is lost if no frame comes for this long.
    pub silence: Duration,
    /// The same, for the first frame after a start.
    pub start_timeout: Duration,
    /// Frames come at a trigger, so gaps between their timestamps are no loss.
    pub triggered: bool,
    /// How the camera answers the machine.
    pub machine: MachineSettings,
    /// The line that tells the machine which piece is good, if there is one.
    pub output: Option<OutputSettings>,
    /// The input whose edges are triggers.
    pub input: Option<InputSettings>,
    /// The line of a camera of aravis that triggers it, if the machine waits for its frames.
    pub trigger_source: Option<String>,
    /// Most live pictures per second.
    pub live_rate: f64,
    /// Pictures are made no wider, px.
    pub picture_width: u32,
    /// Properties of `clunpack`, which is there if the camera sends packed samples or Bayer pictures.
    pub unpack: Properties,
    /// Properties of `clflatfield`, if there is one.
    pub flat_field: Option<Properties>,
    /// Properties of `clgaussian`, if there is one.
    pub gaussian: Option<Properties>,
    /// Properties of `clhistogram`, if there is one.
    pub histogram: Option<Properties>,
    /// What judges the frames.
    pub analyzer: Analyzer,
    /// Properties of the analyzer.
    pub analysis: Properties,
    /// Properties of `inspectoverlay`.
    pub overlay: Properties,
    /// Properties of each `inspectpublish`.
    pub publish: Vec<Properties>,
    /// Recording of failed frames, if there is one.
    pub recording: Option<RecordingSettings>,
    /// Which defects of a web repeat; `None`: none are looked for.
    pub repeats: Option<RepeatSettings>,
}

/// An element that judges frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analyzer {
    /// `clpitchthreshold`.
    Pitch,
    /// `clreference`.
    Reference,
    /// `cltexture`.
    Texture,
    /// `clsurface`.
    Surface,
}

impl Analyzer {
    /// The element's factory.
    pub fn factory(self) -> &'static str {
        match self {
            Self::Pitch => "clpitchthreshold",
            Self::Reference => "clreference",
            Self::Texture => "cltexture",
            Self::Surface => "clsurface",
        }
    }
}

impl CameraConfig {
    /// A camera with the defaults.
    pub fn new(name: String, source: Source) -> Self {
        Self {
            name,
            recipe: None,
            source,
            device: None,
            silence: Duration::from_secs(5),
            start_timeout: Duration::from_secs(30),
            triggered: false,
            machine: MachineSettings::default(),
            output: None,
            input: None,
            trigger_source: None,
            live_rate: 10.0,
            picture_width: 1280,
            unpack: Properties::default(),
            flat_field: None,
            gaussian: None,
            histogram: None,
            analyzer: Analyzer::Pitch,
            analysis: Properties::default(),
            overlay: Properties::default(),
            publish: Vec::new(),
            recording: None,
            repeats: Some(RepeatSettings::default()),
        }
    }

    /// Whether the machine says when a frame is due.
    pub fn waits_for_machine(&self) -> bool {
        self.machine.trigger != Trigger::Every
    }

    /// Whether the station triggers the camera.
    pub fn is_triggered_here(&self) -> bool {
        self.machine.trigger == Trigger::Software
    }

    /// The `TriggerSource` of a camera of aravis; `None`: it runs freely.
    pub fn released_by(&self) -> Option<&str> {
        match self.is_triggered_here() {
            true => Some(SOFTWARE),
            false => self.trigger_source.as_deref(),
        }
    }

    /// A camera with the defaults, whose frames come from elsewhere.
    pub fn without_source(name: String) -> Self {
        Self::new(name, Source::Description("videotestsrc".to_owned()))
    }

    /// The elements that take frames of 16 bits, of which a camera may fill fewer.
    fn with_depth(&mut self) -> impl Iterator<Item = &mut Properties> {
        let elements = [self.flat_field.as_mut(), self.histogram.as_mut()];
        let elements = elements.into_iter().flatten();
        elements.chain(std::iter::once(&mut self.analysis))
    }

    /// The caps of grey frames do not say how many of their 16 bits the camera fills.
    pub fn set_depth_of_source(&mut self) {
        if let Some(depth) = self.source.bit_depth() {
            for properties in self.with_depth() {
                properties.set_if_missing(BIT_DEPTH, depth.to_string());
            }
        }
    }

    /// Undoes [`Self::set_depth_of_source`]: another source may follow.
    pub fn without_depth_of_source(&self) -> Self {
        let mut camera = self.clone();
        if let Some(depth) = self.source.bit_depth().map(|depth| depth.to_string()) {
            for properties in camera.with_depth() {
                if properties.get(BIT_DEPTH) == Some(&depth) {
                    properties.remove(BIT_DEPTH);
                }
            }
        }
        camera
    }
}

const BIT_DEPTH: &str = "bit-depth";

/// Whether a text can be the name of a camera or of a recipe, and so part of addresses and file names.
pub fn is_name(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(is_good)
}

/// The name that a file of a camera has in a recipe; `what` is `flat-field`, `reference` or `limits`.
pub fn model_file(camera: &str, what: &str) -> String {
    format!("{camera}-{what}.npz")
}
