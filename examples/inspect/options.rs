//! The command line, parsed and checked.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::Parser;

use crate::{
    common::{cloth::ClothSpec, label::LabelSpec, panel::PanelSpec},
    failure::Failure,
    settings::{Comparison, Inspection, Labels, Model, Panels, Sequence, Strips},
};

const PANEL_FRAMES: u64 = 100;
const PANEL_FPS: f64 = 30.0;
/// Default threshold in grey levels of 8 bits, for camera noise of about four grey levels.
const THRESHOLD: f64 = 12.0;
/// Other properties of `clpitchthreshold`. The outermost pixels of a smoothed frame hold mirrored
/// samples, which do not repeat, so borders are not compared.
const PROPERTIES: &str = "merge-distance=3";
/// The same for `--source web`. The classes show what rules can tell apart.
const WEB_PROPERTIES: &str = "merge-distance=3 min-area=12 classes=\"missing-weft: width > 200 and \
                              elongation > 8; warp-streak: height > 200 and elongation > 8; hole: \
                              mean < -40 and area > 150; slub: elongation > 2 and mean > 0; stain: \
                              area > 400; knot: area < 400 and mean > 0\"";
/// The same for a comparison with a reference, and its threshold (docs/quality.md, "Labels").
const REFERENCE_PROPERTIES: &str =
    "align=translation normalize=gain edge-tolerance=1 merge-distance=3";
const REFERENCE_THRESHOLD: f64 = 14.0;
/// Good labels from which the reference is learned.
const LABELS_TO_TRAIN: u32 = 32;
/// Size of a pixel of the simulated web, mm.
const WEB_MM: f64 = 0.1;
/// The pitch is estimated from the frames.
const ESTIMATE: f64 = -1.0;

const EXAMPLES: &str = "\
Examples:
  inspect                                         simulated display panels
  inspect --output out --list                     the same, with pictures and lists of defects
  inspect --source camera                         a GigE Vision or USB3 Vision camera
  inspect --source camera --pitch-x 61.13 --pitch-y 0
  inspect --source label --output out/label       printed labels, compared with a trained reference
  inspect --source camera --train 50              a camera: the first 50 frames must be good
  inspect --source web                            a simulated line camera over an endless woven web
  inspect --source web --strip-rows 7 --frames 1000 --output out/web
  inspect --source camera --line-scan --mm-per-pixel-x 0.05 --mm-per-pixel-y 0.05
                                                  a line camera: its frames are strips of a web
  inspect --source 'v4l2src ! image/jpeg ! jpegdec' --json
  inspect --source 'photos/*.png' --pitch-x 0 --pitch-y 0
                                                  photographs: smoothed and counted only

Exit code: 0 after the last frame or Ctrl-C, 1 when inspecting failed, 2 for bad arguments.";

/// Inspects live frames with OpenCL: source → clgaussian → clpitchthreshold (or clreference) and
/// clhistogram.
///
/// Prints a line per frame with verdict, defects, median grey level and latency, and a summary.
/// The verdict is none while no repeating pattern is found, and while a reference is trained.
#[derive(Debug, Parser)]
#[command(name = "inspect", after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// panel, label or web (simulated), camera (aravissrc), files ("photos/*.png"), or a gst-launch description
    #[arg(long, num_args = 1.., value_name = "SOURCE", default_value = "panel")]
    pub source: Vec<String>,
    /// auto, gpu, cpu, gpu:1, or part of a device's name [default: $CLINSPECT_DEVICE, else auto]
    #[arg(long)]
    device: Option<String>,
    /// Frames to inspect, 0 = until stopped [default: 100 panels, labels or strips, every file, else 0]
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    /// Folder for pictures: the frame before smoothing, the smoothed frame with marked pixels in red
    /// (PNG), the mask (PBM), the histogram (SVG); of a web also its map (roll-map.png)
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Pictures of the first N frames, and of up to N failed ones after them
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub pictures: usize,
    /// Write a JSON object per frame and one at the end to stdout, and text to stderr
    #[arg(long)]
    pub json: bool,

    /// Width of the repeating cell, px; -1 = estimate from the frames, 0 = no comparison along rows
    #[arg(long, value_name = "PX", default_value_t = ESTIMATE, value_parser = pitch, help_heading = "Inspection")]
    pitch_x: f64,
    /// Height of the repeating cell, px; -1 = estimate, 0 = no comparison along columns
    #[arg(long, value_name = "PX", default_value_t = ESTIMATE, value_parser = pitch, help_heading = "Inspection")]
    pitch_y: f64,
    /// Compare with a reference that is learned from the first N frames, which must be good, instead of
    /// with a repeating pattern; 0 = compare with the pattern. --output keeps it as reference.npz
    /// [default: 32 for label, else 0]
    #[arg(long, value_name = "N", conflicts_with = "line_scan", value_parser = clap::value_parser!(u32).range(0..=65_536), help_heading = "Inspection")]
    train: Option<u32>,
    /// Difference that marks a pixel, grey levels of a sample [default at 8 bits: 12, with --train 14]
    #[arg(long, value_name = "LEVELS", value_parser = |s: &str| number(s, 0.0..=65_535.0), help_heading = "Inspection")]
    threshold: Option<f64>,
    /// Other properties of clpitchthreshold or clreference, as in gst-launch: "multiples=<1> min-area=4"
    /// [default: merge-distance=3, for web also min-area and classes, with --train those of docs/quality.md]
    #[arg(long, value_name = "PROPERTIES", help_heading = "Inspection")]
    inspection: Option<String>,
    /// Frames are strips of a web, as line cameras send them: sets line-scan=true, and prints a map of
    /// the roll instead of a line per frame; always so for --source web
    #[arg(long, help_heading = "Inspection")]
    line_scan: bool,
    /// Width of a pixel, mm, for positions across; 0 = unknown [default: 0.1 for web, else 0]
    #[arg(long, value_name = "MM", value_parser = |s: &str| number(s, 0.0..=1000.0), help_heading = "Inspection")]
    mm_per_pixel_x: Option<f64>,
    /// Height of a pixel, mm, for positions along; 0 = unknown [default: 0.1 for web, else 0]
    #[arg(long, value_name = "MM", value_parser = |s: &str| number(s, 0.0..=1000.0), help_heading = "Inspection")]
    mm_per_pixel_y: Option<f64>,
    /// List each frame's defects, and for simulated frames which planted defect each one is
    #[arg(long, help_heading = "Inspection")]
    pub list: bool,
    /// Bits that samples fill, for 10- to 16-bit cameras and panels; 0 = from the format
    #[arg(long, value_name = "BITS", default_value_t = 0, value_parser = bit_depth, help_heading = "Inspection")]
    bit_depth: u32,
    /// Taps of the Gaussian along each axis, odd
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = kernel_size, help_heading = "Inspection")]
    kernel_size: u32,
    /// Standard deviation of the Gaussian, px; 0 = from the kernel size
    #[arg(long, value_name = "PX", default_value_t = 0.8, value_parser = |s: &str| number(s, 0.0..=1000.0), help_heading = "Inspection")]
    sigma: f64,

    /// Width of a simulated frame or of a web's lines, px
    #[arg(
        long,
        value_name = "PX",
        default_value_t = 640,
        help_heading = "Panels and labels"
    )]
    width: usize,
    /// Height of a simulated frame, px
    #[arg(
        long,
        value_name = "PX",
        default_value_t = 480,
        help_heading = "Panels and labels"
    )]
    height: usize,
    /// Defects planted in a bad frame
    #[arg(
        long,
        value_name = "N",
        default_value_t = 8,
        help_heading = "Panels and labels"
    )]
    defects: usize,
    /// Every N-th frame is bad; 1 = each. Labels of the training are good
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Panels and labels")]
    bad_every: u64,
    /// Standard deviation of the simulated camera's noise, grey levels of 8 bits
    #[arg(
        long,
        value_name = "LEVELS",
        default_value_t = 4.0,
        help_heading = "Panels and labels"
    )]
    noise: f64,
    /// Seed of the frames or of the web
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Panels and labels"
    )]
    seed: u64,
    /// Different frames, made before the start and shown in a cycle; 0 = make each when shown
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        help_heading = "Panels and labels"
    )]
    distinct: u64,
    /// Simulated frames or files per second, 0 = as fast as they are inspected [default: panels, labels 30]
    #[arg(long, value_name = "RATE", value_parser = |s: &str| number(s, 0.0..=100_000.0), help_heading = "Panels and labels")]
    fps: Option<f64>,

    /// Rows of a strip: the web is the same, wherever it is cut
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Webs")]
    strip_rows: u32,
    /// Lines per second, 0 = as fast as they are inspected
    #[arg(long, value_name = "RATE", default_value_t = 0.0, value_parser = |s: &str| number(s, 0.0..=1e7), help_heading = "Webs")]
    line_rate: f64,
    /// Plant no defects in the web
    #[arg(long, help_heading = "Webs")]
    good: bool,

    /// Name of the camera, as listed by arv-tool-0.8 [default: the first camera found]
    #[arg(long, value_name = "NAME", help_heading = "Cameras")]
    pub camera_name: Option<String>,
    /// Seconds without a frame after which a live source is restarted; 0 = never
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = |s: &str| number(s, 0.0..=1e6), help_heading = "Cameras")]
    pub silence: f64,
    /// Seconds to wait for a missing camera; 0 = do not wait [default: for ever]
    #[arg(long, value_name = "SECONDS", value_parser = |s: &str| number(s, 0.0..=1e9), help_heading = "Cameras")]
    pub max_wait: Option<f64>,
}

impl Args {
    /// The device that the options or the environment name.
    fn device(&self) -> String {
        self.device
            .clone()
            .or_else(|| std::env::var("CLINSPECT_DEVICE").ok())
            .unwrap_or_else(|| "auto".into())
    }

    /// Settings of the elements.
    pub fn inspection(&self) -> Inspection {
        let compared = self.pitch_x != 0.0 || self.pitch_y != 0.0 || self.train() > 0;
        let comparison = compared.then(|| self.comparison());
        let unknown = if self.is_web() { WEB_MM } else { 0.0 };
        Inspection {
            device: self.device(),
            kernel_size: self.kernel_size,
            sigma: self.sigma,
            // The elements take 8 bits from the format.
            bit_depth: if self.bit_depth > 8 {
                self.bit_depth
            } else {
                0
            },
            line_scan: self.line_scan || self.is_web(),
            mm_per_pixel: [self.mm_per_pixel_x, self.mm_per_pixel_y]
                .map(|mm| mm.unwrap_or(unknown)),
            comparison,
        }
    }

    /// The comparison: with a reference, or with the pattern itself.
    fn comparison(&self) -> Comparison {
        let train = self.train();
        let threshold = |of_8_bits: f64| {
            self.threshold.unwrap_or_else(|| {
                // Without a bit depth, 8 bits are assumed.
                of_8_bits * f64::from(self.bit_depth.saturating_sub(8)).exp2()
            })
        };
        let (element, settings, usual) = if train > 0 {
            let threshold = threshold(REFERENCE_THRESHOLD);
            let settings = format!("train-frames={train} threshold={threshold}");
            ("clreference", settings, REFERENCE_PROPERTIES)
        } else {
            let (x, y, threshold) = (self.pitch_x, self.pitch_y, threshold(THRESHOLD));
            let settings = format!("pitch-x={x} pitch-y={y} threshold={threshold}");
            let usual = if self.is_web() {
                WEB_PROPERTIES
            } else {
                PROPERTIES
            };
            ("clpitchthreshold", settings, usual)
        };
        Comparison {
            element,
            settings,
            properties: self.inspection.clone().unwrap_or_else(|| usual.to_owned()),
            model: (train > 0).then(|| Model::new(self.output.as_deref())),
        }
    }

    /// Good frames from which the reference is learned; 0 = there is no reference.
    fn train(&self) -> u32 {
        let usual = if self.is("label") { LABELS_TO_TRAIN } else { 0 };
        self.train.unwrap_or(usual)
    }

    fn is(&self, source: &str) -> bool {
        matches!(self.source.as_slice(), [word] if word == source)
    }

    /// Whether the source is the simulated web.
    pub fn is_web(&self) -> bool {
        self.is("web")
    }

    /// The simulated web.
    ///
    /// # Errors
    /// A sentence for a web that cannot be drawn.
    pub fn strips(&self) -> Result<Strips, Failure> {
        let defaults = ClothSpec::default();
        let spec = ClothSpec {
            width: self.width,
            pitch_px: if self.pitch_x > 0.0 {
                self.pitch_x
            } else {
                defaults.pitch_px
            },
            noise_sigma: self.noise as f32,
            defects: !self.good,
            ..defaults
        };
        spec.validate()
            .map_err(|why| Failure::Usage(format!("this web cannot be drawn: {why}")))?;
        if self.bit_depth > 8 {
            return Err(Failure::Usage(
                "the simulated web has 8 bits: leave --bit-depth out".into(),
            ));
        }
        if self.train() > 0 {
            return Err(Failure::Usage(
                "a web is not compared with a reference: leave --train out".into(),
            ));
        }
        Ok(Strips {
            spec,
            seed: self.seed,
            rows: self.strip_rows,
        })
    }

    /// Settings of the panel frames.
    ///
    /// # Errors
    /// A sentence for a panel that cannot be drawn.
    pub fn panels(&self) -> Result<Panels, Failure> {
        let defaults = PanelSpec::default();
        // Panels have a pattern also along an axis whose pitch is estimated or not compared.
        let drawn = |pitch: f64, default| if pitch > 0.0 { pitch } else { default };
        let spec = PanelSpec {
            width: self.width,
            height: self.height,
            pitch_x: drawn(self.pitch_x, defaults.pitch_x),
            pitch_y: drawn(self.pitch_y, defaults.pitch_y),
            noise_sigma: self.noise,
            bit_depth: self.bit_depth.max(8),
            ..defaults
        };
        spec.validate()
            .map_err(|why| Failure::Usage(format!("this panel cannot be drawn: {why}")))?;
        Ok(Panels {
            spec,
            seed: self.seed,
            sequence: self.sequence(),
        })
    }

    /// Settings of the labels.
    ///
    /// # Errors
    /// A sentence for a label that cannot be drawn.
    pub fn labels(&self) -> Result<Labels, Failure> {
        let spec = LabelSpec {
            width: self.width,
            height: self.height,
            noise_sigma: self.noise,
            ..LabelSpec::default()
        };
        spec.validate()
            .map_err(|why| Failure::Usage(format!("this label cannot be drawn: {why}")))?;
        if self.bit_depth > 8 {
            return Err(Failure::Usage(
                "the simulated labels have 8 bits: leave --bit-depth out".into(),
            ));
        }
        Ok(Labels {
            spec,
            seed: self.seed,
            sequence: self.sequence(),
        })
    }

    fn sequence(&self) -> Sequence {
        Sequence {
            good: u64::from(self.train()),
            defects: self.defects,
            bad_every: self.bad_every,
            distinct: self.distinct,
        }
    }

    /// Frames to inspect, 0 = until the source ends.
    pub fn frames(&self, simulated: bool) -> u64 {
        let made = simulated || self.is_web();
        self.frames.unwrap_or(if made { PANEL_FRAMES } else { 0 })
    }

    /// Frames per second of a source that this program feeds; 0 = as fast as they are inspected.
    pub fn fps(&self, simulated: bool) -> f64 {
        if self.is_web() {
            return self.line_rate / f64::from(self.strip_rows);
        }
        self.fps.unwrap_or(if simulated { PANEL_FPS } else { 0.0 })
    }
}

fn pitch(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ESTIMATE) => Ok(ESTIMATE),
        _ => number(text, 0.0..=65_536.0).map_err(|why| format!("-1 or {why}")),
    }
}

/// Parses a number in a range; NaN is in no range.
fn number(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "a number from {} to {} is expected",
            range.start(),
            range.end()
        )),
    }
}

fn bit_depth(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bits) if bits == 0 || (8..=16).contains(&bits) => Ok(bits),
        _ => Err("0 or a number from 8 to 16 is expected".into()),
    }
}

fn kernel_size(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(taps) if (3..=31).contains(&taps) && !taps.is_multiple_of(2) => Ok(taps),
        _ => Err("an odd number from 3 to 31 is expected".into()),
    }
}
