//! Requests and answers: one JSON object per line on stdin and stdout.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request of the driver.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// Describes the machine.
    Hello,
    /// Draws a picture into a file, rows without padding.
    Picture {
        path: String,
        kind: String,
        width: usize,
        height: usize,
        channels: usize,
        /// Folder of photographs.
        #[serde(default)]
        photographs: String,
    },
    /// Prepares a contestant in a slot.
    Prepare {
        slot: u32,
        who: String,
        task: String,
        frame: Frame,
        #[serde(default)]
        settings: Box<Settings>,
    },
    /// Runs a slot `times` times.
    Run { slot: u32, times: u32 },
    /// Writes the last run's result to a file.
    Result { slot: u32, path: String },
    /// Empties a slot.
    Drop { slot: u32 },
}

/// A picture's file and its memory layout.
#[derive(Debug, Clone, Deserialize)]
pub struct Frame {
    /// Rows of `width · channels` bytes, without padding.
    pub path: String,
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples per pixel: 1 or 3.
    pub channels: usize,
    /// Bytes between rows in memory.
    pub stride: usize,
    /// Bytes by which the first row misses the allocation's alignment.
    pub base: usize,
}

impl Frame {
    /// Bytes of a row.
    pub fn row(&self) -> usize {
        self.width * self.channels
    }

    /// The picture's rows, without padding.
    pub fn read(&self) -> Result<Vec<u8>, crate::Error> {
        let bytes = std::fs::read(&self.path)?;
        if bytes.len() != self.row() * self.height {
            return Err(format!("{} has {} bytes", self.path, bytes.len()).into());
        }
        Ok(bytes)
    }

    /// The picture in its memory layout, from the first row.
    pub fn spread(&self) -> Result<Vec<u8>, crate::Error> {
        let packed = self.read()?;
        if self.stride == self.row() {
            return Ok(packed);
        }
        // Padding; a kernel must not count it.
        let mut bytes = vec![0xa5; self.stride * self.height];
        for (to, from) in bytes
            .chunks_exact_mut(self.stride)
            .zip(packed.chunks_exact(self.row()))
        {
            to[..from.len()].copy_from_slice(from);
        }
        Ok(bytes)
    }
}

/// Settings; each task reads the part it needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Settings {
    /// OpenCL device, as the elements' `device` property.
    pub device: String,
    /// x, y, width, height; zeros for the whole frame.
    pub region: [usize; 4],
    /// A variant to force.
    pub variant: String,
    /// Work-items of a group; 0 for the task's own.
    pub group: usize,
    /// Images instead of buffers.
    pub image: bool,
    /// Rows of the Gaussian's output start at multiples of four bytes.
    pub output_at_words: bool,
    pub kernel_size: usize,
    pub sigma: f64,
    pub float: bool,
    pub pitch_x: f64,
    pub pitch_y: f64,
    /// Compares along vectors: the pitches, turned by this angle, degrees; 0: along rows and columns.
    pub turned: f64,
    pub multiples: Vec<u32>,
    pub threshold: f64,
    pub minimum: bool,
    pub match_center: bool,
    /// `borders=inward`.
    pub inward: bool,
    /// Minimum contrast, grey levels of 8 bits; 0 = off.
    pub min_contrast: f64,
    /// Coarser levels, with the element's default factors.
    pub scales: usize,
    /// The flat field has a dark reference.
    pub dark: bool,
    /// All rows share a reference of the flat field.
    pub line: bool,
    /// Samples are GRAY16_LE; the frame's width is in bytes.
    pub words: bool,
    /// Bytes that a copy moves, in parts of the frame's.
    pub copied: f64,
    /// How a camera's frame is stored: a Bayer pattern, as in caps, or a packing, as in `clunpack`'s property.
    pub packing: String,
    /// `gradient`; empty for bilinear.
    pub demosaic: String,
    /// Whether frames start, and results end, in host memory.
    pub transfers: bool,
    /// Elements between source and sink.
    pub pipeline: String,
    /// GStreamer's name of the frames' format, or `bayer` and that of the pattern; empty for GRAY8 or RGB by the
    /// channels.
    pub format: String,
    /// Memory of the frames: `system`, `wrapped`, `pool` (a pool of ours), `proposed` (the pool that the first element
    /// proposes) or `resident`.
    pub source: String,
    /// One frame at a time.
    pub latency: bool,
    /// Frames are strips of a web, and the pipeline holds some of them: it gets them before the first run.
    pub web: bool,
    /// Measures from PLAYING to the first result, with a new pipeline each time.
    pub start: bool,
    /// Number of pipelines in this process.
    pub pipelines: usize,
    /// Frames that each camera sends per second; 0: as fast as the pipeline takes them.
    pub rate: u64,
    /// All cameras send at the same moment.
    pub together: bool,
    /// How long cameras are measured.
    pub seconds: f64,
    /// Number of GPUs over which the pipelines are spread; 0: all run on the worker's device.
    pub gpus: usize,
    /// Number of threads, for tasks that have a choice.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: "auto".into(),
            region: [0; 4],
            variant: String::new(),
            group: 0,
            image: false,
            output_at_words: false,
            kernel_size: 3,
            sigma: 0.0,
            float: false,
            pitch_x: 0.0,
            pitch_y: 0.0,
            turned: 0.0,
            multiples: vec![1],
            threshold: 10.0,
            minimum: false,
            match_center: false,
            inward: false,
            min_contrast: 0.0,
            scales: 0,
            dark: false,
            line: false,
            words: false,
            copied: 1.0,
            packing: String::new(),
            demosaic: String::new(),
            transfers: false,
            pipeline: String::new(),
            format: String::new(),
            source: "system".into(),
            latency: false,
            web: false,
            start: false,
            pipelines: 1,
            rate: 0,
            together: false,
            seconds: 1.0,
            gpus: 0,
            threads: 1,
        }
    }
}

impl Settings {
    /// The region inside the frame.
    pub fn region_of(&self, frame: &Frame) -> [usize; 4] {
        if self.region == [0; 4] {
            [0, 0, frame.width, frame.height]
        } else {
            self.region
        }
    }
}

/// Times of one run.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// From the call to its completion, ns.
    pub wall_ns: u64,
    /// Device time within that, ns; 0 if not measured.
    pub device_ns: u64,
}

/// An answer.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    /// Why a request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why a contestant cannot take part here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Times of the runs, ns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wall: Vec<u64>,
    /// Device times of the runs, ns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<u64>,
    /// Facts about the contestant or the machine.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub about: Value,
}
