//! The self-test of what reads and marks parts of a frame.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Bitmap,
    layout::FrameLayout,
    mask::packed_stride,
    place::{Cut, Light, Motion},
};
use clinspect_opencl::{ClBuffer, ClContext, Memory, Meter, frame::ClFrame};
use clinspect_oracle::{Geometry, part::Motion as Definition, place::Picture as Samples};

use super::{KnownAnswer, Mask, Picture, Trial, Wrong, first_wrong, picture::noise, reduced};
use crate::reference::{Base, PartMarks, PartReader};

/// The test frame is at least this long along each axis.
const LEAST: usize = 96;
/// Smaller frames are not searched.
const SMALL: usize = 24;
/// Turned by 33 degrees, and a little smaller, 2^-20 px; some of its pixels lie outside the frame.
const MOTION: [i64; 6] = [20_971_520, 852_000, -553_000, -3_300_123, 553_000, 851_111];

/// Brighter, and falling.
const LIGHT: Light = Light {
    gain: 70_000,
    slope: [-400_000, 190_001],
    offset: -123_457,
};

impl Trial {
    /// Tests how parts of frames of `layout` are read and marked.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn parts(&self, layout: &FrameLayout, bit_depth: u32) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        let [width, height] = size;
        if width.min(height) < SMALL {
            return Ok(());
        }
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            let base = Base::new(context, small, bit_depth)?;
            let cut = Cut::new([width / 3, height / 3, width / 2, height / 2], size);
            let meter = Arc::new(Meter::new(false));
            let bytes = packed_stride(cut.size[0]) * cut.size[1];
            let mask = ClBuffer::new(context, bytes, &meter)?;
            // Few marks, so that most bits tell which one is at a wrong place.
            let is_marked = |x: usize, y: usize| noise(3, 1, x, y).is_multiple_of(8);
            let packed = Bitmap::from_pixels(cut.size[0], cut.size[1], is_marked);
            let packed = packed.bytes().to_vec();
            mask.write(0, &packed, "marks of a part")?;
            let components = small.first_plane().components.len();
            Ok(Test {
                context: context.clone(),
                reader: PartReader::new(&base, &cut)?,
                marks: PartMarks::new(&base)?,
                base,
                cut,
                mask,
                packed,
                components,
            })
        };
        self.run(size, make, "reading and marking parts")
    }
}

/// A sample in this light, by the definition.
fn lit(sample: i64, [x, y]: [i64; 2], highest: i64) -> i64 {
    let Light {
        gain,
        slope: [by_x, by_y],
        offset,
    } = LIGHT;
    let gain = gain + (by_x * x + by_y * y).div_euclid(1024);
    (sample * gain + offset + 32_768)
        .div_euclid(65_536)
        .clamp(0, highest)
}

struct Test {
    context: Arc<ClContext>,
    base: Base,
    reader: PartReader,
    marks: PartMarks,
    cut: Cut,
    mask: ClBuffer,
    packed: Vec<u8>,
    /// Those of the plane that is read.
    components: usize,
}

impl Test {
    fn definition() -> Definition {
        let [c, a, b, f, d, e] = MOTION;
        Definition([[c, a, b], [f, d, e]])
    }
}

impl KnownAnswer for Test {
    /// The samples of the part by component, and the packed marks of the frame.
    type Answer = (Vec<Vec<f64>>, Vec<u8>);

    fn draw(&self, picture: &mut Picture, round: u64) {
        let most = u32::MAX >> (32 - self.base.sample_bits());
        picture.fill(|component, x, y| noise(round, component, x / 3, y / 2) & most);
    }

    fn answer(&self, picture: &Picture) -> Self::Answer {
        let size @ [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        let motion = Self::definition();
        let of_component = |component: usize| {
            let samples = picture.component(component).values();
            let whole = Samples {
                width,
                height,
                bits: 8,
                samples: samples.into_iter().map(i64::from).collect(),
            };
            let read = motion.read(&whole, self.cut.size).samples;
            let columns = self.cut.size[0];
            let lit = read.into_iter().enumerate().map(|(at, sample)| {
                let place = [at % columns, at / columns].map(|v| v as i64);
                lit(sample, place, self.base.highest().into()) as f64
            });
            lit.collect()
        };
        let stride = packed_stride(width);
        let mut marks = vec![0; stride * height];
        let of_cut = packed_stride(self.cut.size[0]);
        for (x, y) in (0..self.cut.size[1]).flat_map(|y| (0..self.cut.size[0]).map(move |x| (x, y)))
        {
            if self.packed[y * of_cut + x / 8] >> (7 - x % 8) & 1 == 1 {
                for [x, y] in motion.marks(x as i64, y as i64, size) {
                    marks[y as usize * stride + x as usize / 8] |= 0x80 >> (x % 8);
                }
            }
        }
        ((0..self.components).map(of_component).collect(), marks)
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        (samples, marks): &Self::Answer,
    ) -> Result<Option<Wrong>, ClError> {
        let motion = Motion {
            coefficients: MOTION,
        };
        let meter = Arc::new(Meter::new(false));
        (self.reader).read((&self.base, frame), &motion, &LIGHT, &meter)?;
        let read = self.reader.frame().plane(0)?;
        let Memory::Buffer(buffer) = read.memory() else {
            return Err(ClError::Input("a part has no buffer".into()));
        };
        let [columns, rows] = self.cut.size;
        for (component, wanted) in samples.iter().enumerate() {
            let whole = &picture.components[component];
            let geometry = Geometry {
                offset: whole.offset - picture.info.offset()[0],
                stride: read.stride,
                width: columns,
                height: rows,
                ..*whole
            };
            let got = buffer.read_with(|bytes| geometry.samples(bytes).values())?;
            if let Some(wrong) = first_wrong(component, columns, &got, wanted, 0.0) {
                return Ok(Some(wrong));
            }
        }
        let [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        let mask = Mask::new(&self.context, &meter, packed_stride(width) * height)?;
        let bytes = packed_stride(width) * height;
        let mut submission = self.context.submit(&meter, bytes);
        (self.marks).place(&self.mask, self.cut.size, &motion, &mut submission)?;
        let target = mask.target()?;
        let packed = crate::marker::packed_mask(target, &None)
            .ok_or_else(|| ClError::Input("a test mask is not packed".into()))?;
        self.marks.send(target, packed, &mut submission)?;
        submission.send()?.wait("the mask of a test")?;
        let pixels = marks.iter().map(|byte| u64::from(byte.count_ones())).sum();
        mask.compare(width, pixels, (marks, pixels))
    }
}
