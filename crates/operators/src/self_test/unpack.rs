//! The self-test of the unpacking.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
    unpack::{Demosaic, Encoding, Output},
};
use clinspect_opencl::{
    ClContext, Meter,
    frame::{ClFrame, layout_of},
};
use clinspect_oracle::{
    SampleKind, Samples,
    unpack::{Bayer, sample},
};

use super::{COLUMNS, KnownAnswer, Output as Written, Picture, ROWS, Trial, Wrong, picture::noise};
use crate::Unpack;

/// The test frame is at least this long along each axis: a row has a vector between its ends.
const LEAST: usize = 64;

impl Trial {
    /// Tests the unpacking of frames of `size`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub(crate) fn unpack(
        &self,
        encoding: Encoding,
        demosaic: Demosaic,
        output: Output,
        [width, height]: [usize; 2],
    ) -> Result<(), ClError> {
        let length = |whole: usize, unit| whole.min(LEAST.next_multiple_of(unit) + whole % unit);
        let size = [length(width, COLUMNS), length(height, ROWS)];
        let subject = match encoding {
            Encoding::Packed(packing) => {
                format!("unpacking {} to {}", packing.name(), output.name())
            }
            Encoding::Bayer { .. } => format!("{encoding:?} to {} ({demosaic:?})", output.name()),
        };
        let make = |context: &Arc<ClContext>, _: &FrameLayout| {
            Ok(Test {
                context: context.clone(),
                operator: Unpack::untested(context, encoding, demosaic, output, size, None)?,
                info: info_of(output.name(), size)?,
                encoding,
                demosaic,
                output,
            })
        };
        let bytes = [encoding.row_bytes(size[0])?, size[1]];
        let trial = Self {
            info: info_of(Output::Gray8.name(), bytes)?,
            ..self.clone()
        };
        trial.run(bytes, make, &subject)
    }
}

fn info_of(format: &str, [width, height]: [usize; 2]) -> Result<gst_video::VideoInfo, ClError> {
    let format = gst_video::VideoFormat::from_string(format);
    let info = gst_video::VideoInfo::builder(format, width as u32, height as u32).build();
    info.map_err(|error| ClError::Refused(format!("a test frame: {error}")))
}

struct Test {
    context: Arc<ClContext>,
    operator: Unpack,
    /// Of the result.
    info: gst_video::VideoInfo,
    encoding: Encoding,
    demosaic: Demosaic,
    output: Output,
}

impl Test {
    /// The components of a pixel; grey has one.
    fn pixel(&self, rows: Samples, x: usize, y: usize) -> Vec<u32> {
        let shift = match self.output {
            Output::Gray16Le => 0,
            _ => self.encoding.bits() - 8,
        };
        let values = match self.encoding {
            Encoding::Packed(packing) => {
                let first = rows.offset + y * rows.stride;
                vec![sample(&rows.data[first..], packing.name(), x)]
            }
            Encoding::Bayer { pattern, bits, .. } => {
                let (depth, bytes) = match self.encoding.sample() {
                    Some(SampleType::U16Le) => (SampleKind::U16Le, 2),
                    Some(SampleType::U16Be) => (SampleKind::U16Be, 2),
                    _ => (SampleKind::U8, 1),
                };
                let bayer = Bayer {
                    samples: Samples {
                        pixel_stride: bytes,
                        width: rows.width / bytes,
                        depth,
                        ..rows
                    },
                    bits,
                    pattern: pattern.name(),
                    gradient: self.demosaic == Demosaic::Gradient,
                };
                if self.output.is_colour() {
                    bayer.pixel(x, y).to_vec()
                } else {
                    vec![bayer.luma(x, y)]
                }
            }
        };
        values.into_iter().map(|value| value >> shift).collect()
    }
}

impl KnownAnswer for Test {
    /// Samples of each component.
    type Answer = Vec<Vec<f64>>;

    fn draw(&self, picture: &mut Picture, round: u64) {
        picture.fill(|component, x, y| noise(round, component, x, y) & 0xff);
    }

    fn answer(&self, picture: &Picture) -> Vec<Vec<f64>> {
        let mut components = Vec::new();
        for y in 0..self.info.height() as usize {
            for x in 0..self.info.width() as usize {
                let pixel = self.pixel(picture.component(0), x, y);
                components.resize(pixel.len(), Vec::new());
                for (component, value) in components.iter_mut().zip(pixel) {
                    component.push(f64::from(value));
                }
            }
        }
        components
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        _: &Picture,
        answer: &Vec<Vec<f64>>,
    ) -> Result<Option<Wrong>, ClError> {
        let output = Written::new(&self.context, &self.info)?;
        let meter = Meter::new(false);
        let done = self.operator.run(frame, &output.frame, &meter)?;
        done.wait("the test of the unpacking")?;
        let written = Picture::new(&self.info, &layout_of(&self.info)?);
        output.first_wrong(&written, answer, 0.0)
    }
}
