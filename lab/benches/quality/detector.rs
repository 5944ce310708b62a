//! A detector: elements in a pipeline, fed one frame at a time.

use anyhow::{Context, Result, anyhow, bail};
use gst::prelude::*;
use gstclinspect::results::{Defect, DefectResult};

/// Longest wait for a mask; the first one includes the kernels' build.
const MASK_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(120);
/// A threshold that no pixel reaches.
const MAX_LEVEL: f64 = 255.0;
/// Limit of the defect list; a frame of the benchmark with more defects counts as noise.
const MAX_DEFECTS: u32 = 5000;

/// Settings of the elements, except pitch and threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detector {
    /// Name in the tables.
    pub name: &'static str,
    /// Whether `clgaussian kernel-size=5 sigma=0.8` comes before the comparison.
    pub gaussian: bool,
    /// `compare=minimum` instead of `average`.
    pub minimum: bool,
    /// `match-center=true`.
    pub matched: bool,
    /// The defaults (both axes, `multiples=<1,4>`, presence), instead of pitch-x at multiple 1 alone.
    /// The defaults include `minimum` and `matched`.
    pub every_way: bool,
    /// `borders=skip`; without [`Self::every_way`] always.
    pub skip: bool,
    /// `scales`.
    pub scales: u32,
    /// Whether `clflatfield` comes first.
    pub even: bool,
}

impl Detector {
    /// The published formula.
    pub const CLASSIC: Self = Self {
        name: "average, plain centre (classic)",
        gaussian: false,
        minimum: false,
        matched: false,
        every_way: false,
        skip: false,
        scales: 0,
        even: false,
    };
    /// No ghosts.
    pub const MINIMUM: Self = Self {
        name: "minimum, plain centre",
        minimum: true,
        ..Self::CLASSIC
    };
    /// Quiet edges.
    pub const MATCHED: Self = Self {
        name: "minimum, matched centre",
        matched: true,
        ..Self::MINIMUM
    };
    /// Less noise; one direction and multiple 1.
    pub const ONE_WAY: Self = Self {
        name: "Gaussian, minimum, matched centre",
        gaussian: true,
        ..Self::MATCHED
    };
    /// The defaults behind `clgaussian`, as README recommends, but pixels alone are compared.
    pub const RECOMMENDED: Self = Self {
        name: "recommended",
        every_way: true,
        ..Self::ONE_WAY
    };
    /// The same, but pixels that lack a neighbour along an axis are not compared along it.
    pub const SKIP: Self = Self {
        name: "recommended, borders=skip",
        skip: true,
        ..Self::RECOMMENDED
    };
    /// The defaults.
    pub const SCALES: Self = Self {
        name: "recommended, scales=3",
        scales: 3,
        ..Self::RECOMMENDED
    };
    /// Pixels alone are compared, and the light is evened out before.
    pub const EVEN: Self = Self {
        name: "recommended behind clflatfield",
        even: true,
        ..Self::RECOMMENDED
    };
    /// Frames of a white reference.
    pub const WHITE_FRAMES: u32 = 64;
    /// Every configuration, the recommended one last.
    pub const ALL: [Self; 7] = [
        Self::CLASSIC,
        Self::MINIMUM,
        Self::MATCHED,
        Self::ONE_WAY,
        Self::SKIP,
        Self::SCALES,
        Self::RECOMMENDED,
    ];

    /// Distances of the comparison in pitches.
    pub fn multiples(&self) -> &'static [u32] {
        if self.every_way { &[1, 4] } else { &[1] }
    }

    /// The elements as `gst-launch-1.0` takes them.
    pub fn elements(&self, pitch_x: f64, pitch_y: f64) -> String {
        let even = if self.even {
            format!(
                "clflatfield name=flat average-frames={} ! ",
                Self::WHITE_FRAMES
            )
        } else {
            String::new()
        };
        let gaussian = if self.gaussian {
            even + "clgaussian kernel-size=5 sigma=0.8 ! "
        } else {
            even
        };
        if self.every_way {
            let borders = if self.skip { " borders=skip" } else { "" };
            return format!(
                "{gaussian}clpitchthreshold name=judge pitch-x={pitch_x} pitch-y={pitch_y}{borders} \
                 scales={}",
                self.scales
            );
        }
        let compare = if self.minimum { "minimum" } else { "average" };
        format!(
            "{gaussian}clpitchthreshold name=judge pitch-x={pitch_x} pitch-y=0 multiples=\"<1>\" \
             compare={compare} match-center={} borders=skip min-contrast=0 scales={}",
            self.matched, self.scales
        )
    }
}

/// Results of a frame.
pub struct Judgement {
    /// Packed mask, most significant bit first.
    mask: Vec<u8>,
    stride: usize,
    /// The meta.
    pub result: DefectResult,
}

impl Judgement {
    /// Whether the pixel is marked.
    pub fn is_marked(&self, x: usize, y: usize) -> bool {
        self.mask
            .get(y * self.stride + (x >> 3))
            .is_some_and(|byte| byte & (0x80 >> (x & 7)) != 0)
    }

    /// The marked pixels in a defect's box.
    pub fn marked_in<'a>(&'a self, defect: &Defect) -> impl Iterator<Item = (usize, usize)> + 'a {
        let [left, top] = [defect.x, defect.y].map(|at| at as usize);
        let [width, height] = [defect.width, defect.height].map(|len| len as usize);
        (top..top + height)
            .flat_map(move |y| (left..left + width).map(move |x| (x, y)))
            .filter(|&(x, y)| self.is_marked(x, y))
    }
}

/// `appsrc ! elements ! appsink`, playing.
pub struct Bench {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    sink: gst_app::AppSink,
    judge: gst::Element,
}

impl Bench {
    /// Starts a detector on 8-bit frames of `width`, a multiple of 4, and `height` at the pitches
    /// in pixels; a pitch of -1 is estimated.
    ///
    /// # Errors
    /// The elements or a device are missing, or the settings are refused.
    pub fn new(detector: &Detector, size: [usize; 2], pitch: [f64; 2]) -> Result<Self> {
        Self::launch(&detector.elements(pitch[0], pitch[1]), size)
    }

    /// Starts `elements`, one of them a `clpitchthreshold` with the name `judge`, on 8-bit frames.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn launch(elements: &str, [width, height]: [usize; 2]) -> Result<Self> {
        if !width.is_multiple_of(4) {
            bail!("frames of {width} columns have padded rows; use a multiple of 4");
        }
        let description = format!(
            "appsrc name=source format=time caps=video/x-raw,format=GRAY8,width={width},\
             height={height},framerate=0/1 ! {elements} limits=limits,max-defects={MAX_DEFECTS} \
             reports=reports,messages=false ! video/x-bitmask ! appsink name=sink sync=false"
        );
        let pipeline = gst::parse::launch(&description)
            .with_context(|| description.clone())?
            .downcast::<gst::Pipeline>()
            .map_err(|_| anyhow!("no pipeline: {description}"))?;
        let element = |name| {
            pipeline
                .by_name(name)
                .ok_or_else(|| anyhow!("no element {name} in: {description}"))
        };
        let bench = Self {
            source: element("source")?
                .downcast()
                .map_err(|_| anyhow!("source is not an appsrc"))?,
            sink: element("sink")?
                .downcast()
                .map_err(|_| anyhow!("sink is not an appsink"))?,
            judge: element("judge")?,
            pipeline,
        };
        if bench.pipeline.set_state(gst::State::Playing).is_err() {
            return Err(bench.failure("starting"));
        }
        Ok(bench)
    }

    /// Judges a frame with a threshold in grey levels.
    ///
    /// # Errors
    /// An element's error, or a mask without its meta.
    pub fn judge(&self, samples: &[u8], threshold: f64) -> Result<Judgement> {
        self.judge.set_property("threshold", threshold);
        let buffer = gst::Buffer::from_slice(samples.to_vec());
        if self.source.push_buffer(buffer).is_err() {
            return Err(self.failure("pushing a frame"));
        }
        let Some(sample) = self.sink.try_pull_sample(MASK_TIMEOUT) else {
            return Err(self.failure("waiting for a mask"));
        };
        let buffer = sample.buffer().context("a sample without a buffer")?;
        let stride: i32 = sample
            .caps()
            .and_then(|caps| caps.structure(0))
            .context("a mask without caps")?
            .get("stride")?;
        let result = DefectResult::read(buffer)
            .pop()
            .context("a mask without GstClDefectMeta")?;
        let mask = buffer.map_readable()?.to_vec();
        Ok(Judgement {
            mask,
            stride: usize::try_from(stride)?,
            result,
        })
    }

    /// Takes a white reference from frames of an even surface.
    ///
    /// # Errors
    /// There is no `clflatfield` in the pipeline, or it refuses the reference.
    pub fn take_white(&self, frames: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
        let flat = self.pipeline.by_name("flat").context("no clflatfield")?;
        flat.emit_by_name::<()>("take-white", &[]);
        for frame in frames {
            self.judge(&frame, MAX_LEVEL)?;
        }
        let bus = self.pipeline.bus().context("no bus")?;
        while let Some(message) = bus.pop() {
            if message
                .structure()
                .is_some_and(|s| s.name() == "clflatfield-reference")
            {
                return Ok(());
            }
        }
        bail!("the white reference was not taken")
    }

    /// The property `scale-factors`.
    pub fn factors(&self) -> Vec<f64> {
        let factors: gst::Array = self.judge.property("scale-factors");
        factors.iter().filter_map(|f| f.get().ok()).collect()
    }

    /// Sets the property `scale-factors`.
    pub fn set_factors(&self, factors: &[f64]) {
        let factors = factors.iter().map(ToSendValue::to_send_value);
        self.judge
            .set_property("scale-factors", gst::Array::from_iter(factors));
    }

    /// The estimated pitches along x and y, px; 0 while unknown.
    pub fn estimated_pitch(&self) -> [f64; 2] {
        ["pitch-x", "pitch-y"].map(|name| self.estimate(name))
    }

    /// The learned standard deviation of the pattern, grey levels; 0 while unknown.
    pub fn expected_contrast(&self) -> f64 {
        self.estimate("contrast")
    }

    fn estimate(&self, name: &str) -> f64 {
        let estimates: gst::Structure = self.judge.property("estimates");
        estimates.get(name).unwrap_or(0.0)
    }

    /// The element's error message, if there is one on the bus.
    fn failure(&self, doing: &str) -> anyhow::Error {
        let message = self.pipeline.bus().and_then(|bus| {
            bus.timed_pop_filtered(gst::ClockTime::from_seconds(1), &[gst::MessageType::Error])
        });
        match message.as_ref().map(|m| m.view()) {
            Some(gst::MessageView::Error(error)) => anyhow!(
                "{doing}: {} ({})",
                error.error(),
                error.debug().unwrap_or_default()
            ),
            _ => anyhow!("{doing}: no answer from the pipeline"),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failure cannot be reported here.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
