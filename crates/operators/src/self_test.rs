//! The self-test: an operator runs on small frames with known answers before its results are trusted.
//!
//! Drivers compute silently wrong results, and some say that host and device share memory but keep a copy. So each
//! frame comes through the memory that real frames come through, and the host writes each memory twice.

mod colour;
mod flat_field;
mod gaussian;
mod histogram;
mod parts;
mod picture;
mod pitch_threshold;
mod reference;
mod surface;
mod texture;
mod unpack;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use clinspect_core::{ClError, layout::FrameLayout};
use clinspect_opencl::{
    ClAllocator, ClContext, Meter, ProgramSource, buffer_of, fail_start,
    frame::{ClFrame, Importer},
};
use gst::{glib, prelude::*};

use crate::MaskTarget;
use picture::Picture;

/// When an element tests its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClSelfTest")]
pub enum SelfTest {
    /// Once for each driver version.
    #[default]
    #[enum_value(
        name = "Auto: once for each device, driver version, kernel and format; passes are kept in the cache",
        nick = "auto"
    )]
    Auto,
    /// At every start.
    #[enum_value(name = "Always: at every start", nick = "always")]
    Always,
    /// Never.
    #[enum_value(name = "Never: the driver is trusted", nick = "never")]
    Never,
}

/// Widths keep their remainder by this number when they are reduced: kernels read rows in words, and the last word of
/// a row is special.
const COLUMNS: usize = 64;
/// The same for heights: GPUs process a few rows together.
const ROWS: usize = 8;

/// Tests of the passed kind need no second run in this process.
static PASSED: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// The self-test of operators for frames of one format on one device.
#[derive(Debug, Clone)]
pub struct Trial {
    context: Arc<ClContext>,
    info: gst_video::VideoInfo,
    mode: SelfTest,
}

/// A sample that is not as the definition says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wrong {
    /// Where it is.
    place: String,
    got: u64,
    wanted: u64,
}

/// A test of one operator.
trait KnownAnswer {
    /// Results on the host.
    type Answer: PartialEq;

    /// Draws the frame of a round into a picture.
    fn draw(&self, picture: &mut Picture, round: u64);

    /// The answer by the definition.
    fn answer(&self, picture: &Picture) -> Self::Answer;

    /// Runs the operator; returns the first sample that differs from the answer.
    ///
    /// # Errors
    /// The failing call.
    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        answer: &Self::Answer,
    ) -> Result<Option<Wrong>, ClError>;
}

/// How the host writes a frame.
#[derive(Debug, Clone, Copy)]
enum Path {
    /// Memory of another element: wrapped where host and device share memory, uploaded elsewhere.
    Host,
    /// OpenCL memory, mapped.
    OpenCl,
}

impl Path {
    fn name(self) -> &'static str {
        match self {
            Self::Host => "host memory",
            Self::OpenCl => "mapped OpenCL memory",
        }
    }

    /// A buffer of `size` bytes in this memory.
    fn buffer(
        self,
        context: &Arc<ClContext>,
        meter: &Arc<Meter>,
        size: usize,
    ) -> Result<gst::Buffer, ClError> {
        let allocated = match self {
            Self::Host => gst::Buffer::with_size(size),
            Self::OpenCl => {
                let allocator = ClAllocator::new(context, meter);
                allocator.alloc(size, None).map(|memory| {
                    let mut buffer = gst::Buffer::new();
                    if let Some(buffer) = buffer.get_mut() {
                        buffer.append_memory(memory);
                    }
                    buffer
                })
            }
        };
        allocated.map_err(|error| ClError::Unavailable(format!("a test frame: {error}")))
    }
}

impl Trial {
    /// The self-test of operators for frames of `info`.
    pub fn new(context: &Arc<ClContext>, info: &gst_video::VideoInfo, mode: SelfTest) -> Self {
        Self {
            context: context.clone(),
            info: info.clone(),
            mode,
        }
    }

    /// The self-test of operators for grey frames of the same size.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a size that no frame can have.
    pub fn grey(&self) -> Result<Self, ClError> {
        let (width, height) = (self.info.width(), self.info.height());
        let grey = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, width, height);
        let info = grey.build();
        Ok(Self {
            info: info.map_err(|error| ClError::Refused(format!("a grey frame: {error}")))?,
            ..self.clone()
        })
    }

    /// Runs the test of an operator on frames of this size, unless it has passed already. `subject` says what runs, for
    /// the error and as the key of a pass: the operator, its variant and what selects its kernels.
    fn run<K: KnownAnswer>(
        &self,
        size: [usize; 2],
        known: impl FnOnce(&Arc<ClContext>, &FrameLayout) -> Result<K, ClError>,
        subject: &str,
    ) -> Result<(), ClError> {
        if self.mode == SelfTest::Never {
            return Ok(());
        }
        let device = self.context.device_identity();
        let programs = ProgramSource::fingerprint();
        let format = self.info.format();
        let key = format!("self-test; {device}; {programs:016x}; {subject}; {format}");
        if self.mode == SelfTest::Auto && self.has_passed(&key) {
            return Ok(());
        }
        let info = gst_video::VideoInfo::builder(format, size[0] as u32, size[1] as u32).build();
        let info = info.map_err(|error| ClError::Refused(format!("a test frame: {error}")))?;
        let meter = Meter::new(false);
        let mut importer = Importer::new(&self.context, &meter, &info)?;
        let mut known = known(&self.context, &importer.layout().clone())?;
        let rounds: Vec<(Picture, K::Answer)> = (0..2)
            .map(|round| {
                let mut picture = Picture::new(&info, importer.layout());
                known.draw(&mut picture, round);
                let answer = known.answer(&picture);
                (picture, answer)
            })
            .collect();
        for path in [Path::Host, Path::OpenCl] {
            let mut buffer = path.buffer(&self.context, &meter, info.size())?;
            let mut before: Option<&(Picture, K::Answer)> = None;
            for round @ (picture, answer) in &rounds {
                write(&mut buffer, &picture.bytes)?;
                let mut frame = importer.import(&buffer)?;
                let wrong = known.compare(&frame, picture, answer)?;
                if let Some(wrong) = wrong {
                    let is_old = match before {
                        Some((picture, answer)) => {
                            known.compare(&frame, picture, answer)?.is_none()
                        }
                        None => false,
                    };
                    return Err(self.failure(subject, path, &wrong, is_old));
                }
                frame.wait_for_upload()?;
                before = Some(round);
            }
        }
        self.remember(key);
        Ok(())
    }

    fn has_passed(&self, key: &str) -> bool {
        let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = passed.get_or_insert_default();
        if passed.contains(key) {
            return true;
        }
        let is_kept = (self.context.cache()).is_some_and(|cache| cache.read(key).is_some());
        if is_kept {
            passed.insert(key.to_owned());
        }
        is_kept
    }

    fn remember(&self, key: String) {
        if let Some(cache) = self.context.cache() {
            cache.write(&key, b"passed");
        }
        let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        passed.get_or_insert_default().insert(key);
    }

    fn failure(&self, subject: &str, path: Path, wrong: &Wrong, is_old: bool) -> ClError {
        fail_start();
        let Wrong { place, got, wanted } = wrong;
        let device = self.context.device_label();
        let what = if is_old {
            format!(
                "reads old contents of {}: it saw the test frame before",
                path.name()
            )
        } else {
            format!(
                "computes wrong: {subject} gave {got} instead of {wanted} at {place} of a test frame in {}",
                path.name()
            )
        };
        ClError::Unavailable(format!(
            "{device} {what}, format {}. Its results cannot be trusted: update the driver, or set device to another \
             device (self-test=never starts in spite of this)",
            self.info.format()
        ))
    }
}

/// The size of a test frame: at least `needed` if the whole frame is as large, and with the whole frame's remainders.
fn reduced(whole: &FrameLayout, needed: [usize; 2]) -> [usize; 2] {
    let length = |whole: usize, needed: usize, unit: usize| {
        whole.min(needed.next_multiple_of(unit) + whole % unit)
    };
    [
        length(whole.width, needed[0], COLUMNS),
        length(whole.height, needed[1], ROWS),
    ]
}

fn write(buffer: &mut gst::Buffer, bytes: &[u8]) -> Result<(), ClError> {
    let unwritable = || ClError::Unavailable("a test frame cannot be written".into());
    let buffer = buffer.get_mut().ok_or_else(unwritable)?;
    let mut map = buffer.map_writable().map_err(|_| unwritable())?;
    map.copy_from_slice(bytes);
    Ok(())
}

/// A frame that an operator writes, and its bytes afterwards.
#[derive(Debug)]
struct Output {
    buffer: gst::Buffer,
    frame: ClFrame,
}

impl Output {
    fn new(context: &Arc<ClContext>, info: &gst_video::VideoInfo) -> Result<Self, ClError> {
        let meter = Meter::new(false);
        let mut buffer = Path::OpenCl.buffer(context, &meter, info.size())?;
        // No old result may stand for a missing one.
        write(&mut buffer, &vec![0x5a; info.size()])?;
        let frame = Importer::new(context, &meter, info)?.output(&buffer)?;
        Ok(Self { buffer, frame })
    }

    /// The first sample that differs by more than `most` from the answer, which has the samples of each component.
    fn first_wrong(
        &self,
        picture: &Picture,
        answer: &[Vec<f64>],
        most: f64,
    ) -> Result<Option<Wrong>, ClError> {
        let bytes = read(&self.buffer)?;
        let mut components = picture.components.iter().zip(answer).enumerate();
        Ok(components.find_map(|(index, (geometry, wanted))| {
            let got = geometry.samples(&bytes).values();
            first_wrong(index, geometry.width, &got, wanted, most)
        }))
    }
}

/// The first sample of a component that differs by more than `most`.
fn first_wrong(
    component: usize,
    width: usize,
    got: &[u32],
    wanted: &[f64],
    most: f64,
) -> Option<Wrong> {
    let mut pairs = got.iter().zip(wanted).enumerate();
    // A result that is no number is wrong, too.
    let (at, (&got, wanted)) = pairs.find(|(_, (got, wanted))| {
        let difference = (f64::from(**got) - **wanted).abs();
        difference.is_nan() || difference > most
    })?;
    Some(Wrong {
        place: format!("x={} y={} of component {component}", at % width, at / width),
        got: got.into(),
        wanted: wanted.round() as u64,
    })
}

/// The first pixel of a packed mask that differs.
fn first_wrong_pixel(width: usize, got: &[u8], wanted: &[u8]) -> Option<Wrong> {
    let stride = width.div_ceil(8);
    let at = got
        .iter()
        .zip(wanted)
        .position(|(got, wanted)| got != wanted)?;
    let bit = (got[at] ^ wanted[at]).leading_zeros() as usize;
    let of = |bytes: &[u8]| u64::from(bytes[at] >> (7 - bit) & 1);
    Some(Wrong {
        place: format!("x={} y={} of the mask", at % stride * 8 + bit, at / stride),
        got: of(got),
        wanted: of(wanted),
    })
}

/// What differs of the number of marked pixels.
fn wrong_count(got: u64, wanted: u64) -> Option<Wrong> {
    (got != wanted).then(|| Wrong {
        place: "the number of marked pixels".into(),
        got,
        wanted,
    })
}

/// A packed mask that an operator writes.
#[derive(Debug)]
struct Mask(gst::Buffer);

impl Mask {
    fn new(context: &Arc<ClContext>, meter: &Arc<Meter>, bytes: usize) -> Result<Self, ClError> {
        let mut buffer = Path::OpenCl.buffer(context, meter, bytes)?;
        // No old result may stand for a missing one.
        write(&mut buffer, &vec![0x5a; bytes])?;
        Ok(Self(buffer))
    }

    fn target(&self) -> Result<MaskTarget<'_>, ClError> {
        let memory = self.0.peek_memory(0);
        let buffer = buffer_of(memory);
        let buffer =
            buffer.ok_or_else(|| ClError::Input("the mask is not in OpenCL memory".into()))?;
        Ok(MaskTarget::Packed {
            buffer,
            offset: memory.offset(),
        })
    }

    /// What differs from a packed mask, or from the number of its marked pixels; a pixel that was moved may mark two.
    fn compare(
        &self,
        width: usize,
        marked: u64,
        (packed, count): (&[u8], u64),
    ) -> Result<Option<Wrong>, ClError> {
        let wrong = first_wrong_pixel(width, &read(&self.0)?, packed);
        Ok(wrong.or_else(|| wrong_count(marked, count)))
    }

    /// What differs from a mask of pixels, or from the number of those that are marked.
    fn compare_pixels(
        &self,
        width: usize,
        marked: u64,
        wanted: &[bool],
    ) -> Result<Option<Wrong>, ClError> {
        let byte = |eight: &[bool]| {
            let bits = eight.iter().enumerate();
            bits.fold(0_u8, |byte, (i, &is_marked)| {
                byte | u8::from(is_marked) << (7 - i)
            })
        };
        let rows = wanted.chunks(width);
        let packed: Vec<u8> = rows.flat_map(|row| row.chunks(8).map(byte)).collect();
        let count = wanted.iter().filter(|&&is_marked| is_marked).count() as u64;
        self.compare(width, marked, (&packed, count))
    }
}

fn read(buffer: &gst::Buffer) -> Result<Vec<u8>, ClError> {
    let map = buffer.map_readable();
    let map = map.map_err(|_| ClError::Unavailable("a test result cannot be read".into()))?;
    Ok(map.to_vec())
}
