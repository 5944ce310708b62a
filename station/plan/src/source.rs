//! Where a camera's frames come from, and what the camera is set to.

use super::PixelFormat;

/// The entry of `TriggerSource` for the station's command.
pub const SOFTWARE: &str = "Software";

/// Where a camera's frames come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A description as for `gst-launch-1.0` with one free output.
    Description(String),
    /// A GigE Vision or USB3 Vision camera.
    Aravis {
        /// The camera's name or address.
        camera: String,
        /// The pixel format that the file asks for.
        pixel_format: Option<RequestedFormat>,
        /// Size and rate; without a pixel format also the format. In GStreamer's notation.
        caps: Option<String>,
        /// What the camera is set to.
        controls: Controls,
    },
}

impl Source {
    /// The same camera, set to nothing. `aravissrc` opens the camera when its exposure is set, and waits for seconds if
    /// another has it open.
    pub fn without_controls(&self) -> Self {
        let mut source = self.clone();
        if let Self::Aravis { controls, .. } = &mut source {
            *controls = Controls::default();
        }
        source
    }

    /// Bits of a sample that the camera fills, if the file's pixel format says so and the caps of its frames do not.
    pub fn bit_depth(&self) -> Option<u32> {
        match self {
            Self::Aravis { pixel_format, .. } => pixel_format.as_ref()?.format.bit_depth(),
            Self::Description(_) => None,
        }
    }

    /// Whether both are the same camera, which at most is set to something else.
    pub fn is_same_but_for_controls(&self, other: &Self) -> bool {
        self.without_controls() == other.without_controls()
    }
}

/// A pixel format that the file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedFormat {
    /// The format.
    pub format: &'static PixelFormat,
    /// Where the file says so.
    pub place: Place,
}

/// What a camera is set to. What is missing stays as the camera has it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Controls {
    /// Exposure time, µs.
    pub exposure: Option<f64>,
    /// Gain, dB or a unit of the camera's own.
    pub gain: Option<f64>,
    /// Black level, in a unit of the camera's own.
    pub black_level: Option<f64>,
}

impl Controls {
    /// These, and what they lack from others.
    pub fn or(self, others: Self) -> Self {
        Self {
            exposure: self.exposure.or(others.exposure),
            gain: self.gain.or(others.gain),
            black_level: self.black_level.or(others.black_level),
        }
    }
}

/// Where a setting of a camera is in the file. Places are always equal: a line that moved changes no camera.
#[derive(Debug, Clone, Copy, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
