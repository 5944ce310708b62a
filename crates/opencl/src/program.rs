//! Programs: sources in `kernels/`, built once per context and options.

use std::{
    cell::{Cell, RefCell},
    ffi::CString,
    rc::Rc,
    sync::LazyLock,
};

use opencl3::{
    kernel::create_kernel,
    program::{
        CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_info,
    },
    types::cl_context,
};

use super::{
    device::DeviceInfo,
    handle::{BuiltProgram, Kernel, call_error},
};
use clinspect_core::ClError;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clprogram",
        gst::DebugColorFlags::empty(),
        Some("OpenCL programs"),
    )
});

/// A program: files of `kernels/`, concatenated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramSource {
    /// Sums of frames for the flat field's references, and the replacement of bad samples.
    FlatField,
    /// The flat field for a CPU.
    FlatFieldRows,
    /// The flat field on any device.
    FlatFieldItems,
    /// The Gaussian on any device.
    Gaussian,
    /// The Gaussian of adjacent 8-bit samples with binomial weights for a CPU.
    GaussianBinomial,
    /// The Gaussian of adjacent 8-bit samples for a CPU.
    GaussianBytes,
    /// The Gaussian for a CPU.
    GaussianRows,
    /// The Gaussian for a GPU.
    GaussianTile,
    /// Histograms on any device.
    Histogram,
    /// Histograms of 16-bit grey for a CPU.
    HistogramDirect,
    /// Histograms for a GPU.
    HistogramBanked,
    /// Histograms for a CPU.
    HistogramPairs,
    /// The pitch comparison on any device.
    PitchThreshold,
    /// The pitch comparison for a CPU.
    PitchThresholdWords,
    /// The pitch comparison for a GPU.
    PitchThresholdWide,
    /// The pitch comparison for a GPU with the instructions of `nvidia.cl`.
    PitchThresholdWideDot,
    /// The pitch comparison for a GPU, with the comparisons as constants. `NVIDIA=0`: without the
    /// instructions of `nvidia.cl`.
    PitchThresholdFixed,
    /// Processing of packed masks, and the differences of their pixels.
    PitchThresholdMask,
    /// The search for tiles without the pattern.
    Presence,
    /// The comparison at coarser levels for a CPU.
    ScalesRows,
    /// The comparison at coarser levels for a GPU.
    ScalesItems,
    /// The comparison at coarser levels for a GPU, with the comparisons as constants.
    ScalesTiles,
    /// Differences before the threshold.
    PitchThresholdDifference,
    /// The comparison with a trained picture.
    Reference,
    /// Planes to images.
    PlaneImage,
    /// Copies a few rows or columns of a frame.
    ProbeLines,
    /// Copies rows on a CPU.
    CopyRows,
}

/// A file's name and text.
type Part = (&'static str, &'static str);

macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../kernels/", $name)))
    };
}

/// Declares the built-in functions for PoCL.
const BUILTINS: Part = part!("builtins.cl");
/// Makes clang skip `opencl-c.h`, whose declarations [`BUILTINS`] replaces.
const WITHOUT_HEADER: &str = "-D_OPENCL_H_";

impl ProgramSource {
    /// Every program that any device can build.
    pub const ALL: [Self; 24] = [
        Self::FlatField,
        Self::FlatFieldRows,
        Self::FlatFieldItems,
        Self::Gaussian,
        Self::GaussianBinomial,
        Self::GaussianBytes,
        Self::GaussianRows,
        Self::GaussianTile,
        Self::Histogram,
        Self::HistogramDirect,
        Self::HistogramBanked,
        Self::HistogramPairs,
        Self::PitchThreshold,
        Self::PitchThresholdWords,
        Self::PitchThresholdWide,
        Self::PitchThresholdMask,
        Self::Presence,
        Self::ScalesRows,
        Self::ScalesItems,
        Self::PitchThresholdDifference,
        Self::Reference,
        Self::PlaneImage,
        Self::ProbeLines,
        Self::CopyRows,
    ];

    /// Whether each list of comparisons has a program of its own.
    pub(super) fn has_constants(self) -> bool {
        matches!(self, Self::PitchThresholdFixed | Self::ScalesTiles)
    }

    /// The name of the last file, which holds the kernels.
    pub fn file(self) -> &'static str {
        self.parts().last().map_or("", |(name, _)| name)
    }

    /// Whether [`BUILTINS`] declares every built-in function that the program uses, unless it reads
    /// images.
    fn is_for_cpus(self) -> bool {
        match self {
            Self::FlatField
            | Self::FlatFieldRows
            | Self::Gaussian
            | Self::GaussianBinomial
            | Self::GaussianBytes
            | Self::GaussianRows
            | Self::Histogram
            | Self::HistogramDirect
            | Self::HistogramPairs
            | Self::PitchThreshold
            | Self::PitchThresholdWords
            | Self::PitchThresholdMask
            | Self::Presence
            | Self::ScalesRows
            | Self::PitchThresholdDifference
            | Self::Reference
            | Self::ProbeLines
            | Self::CopyRows => true,
            Self::FlatFieldItems
            | Self::GaussianTile
            | Self::HistogramBanked
            | Self::PitchThresholdWide
            | Self::PitchThresholdWideDot
            | Self::PitchThresholdFixed
            | Self::ScalesItems
            | Self::ScalesTiles
            | Self::PlaneImage => false,
        }
    }

    /// The files; `common.cl`, the loads that all kernels share, comes first.
    fn parts(self) -> &'static [Part] {
        const COMMON: Part = part!("common.cl");
        const GAUSSIAN: Part = part!("gaussian.cl");
        const HISTOGRAM: Part = part!("histogram.cl");
        const PITCH_THRESHOLD: Part = part!("pitch_threshold.cl");
        const PRESENCE_TILES: Part = part!("presence_tiles.cl");
        const MASK_BITS: Part = part!("mask_bits.cl");
        const MASK_EXPAND: Part = part!("mask_expand.cl");
        const PITCH_THRESHOLD_MEASURE: Part = part!("pitch_threshold_measure.cl");
        const SCALES: Part = part!("scales.cl");
        const SCALES_JOIN: Part = part!("scales_join.cl");
        match self {
            Self::FlatField => &[COMMON, part!("flat_field.cl")],
            Self::FlatFieldRows => &[COMMON, part!("flat_field_rows.cl")],
            Self::FlatFieldItems => &[COMMON, part!("flat_field_items.cl")],
            Self::Gaussian => &[COMMON, GAUSSIAN],
            Self::GaussianBytes => &[COMMON, GAUSSIAN, part!("gaussian_bytes.cl")],
            Self::GaussianBinomial => &[COMMON, GAUSSIAN, part!("gaussian_binomial.cl")],
            Self::GaussianRows => &[COMMON, GAUSSIAN, part!("gaussian_rows.cl")],
            Self::GaussianTile => &[COMMON, GAUSSIAN, part!("gaussian_tile.cl")],
            Self::Histogram => &[COMMON, HISTOGRAM],
            Self::HistogramDirect => &[COMMON, HISTOGRAM, part!("histogram_direct.cl")],
            Self::HistogramBanked => &[
                COMMON,
                HISTOGRAM,
                part!("histogram_banked.cl"),
                part!("histogram_run.cl"),
            ],
            Self::HistogramPairs => &[COMMON, HISTOGRAM, part!("histogram_pairs.cl")],
            Self::PitchThreshold => &[COMMON, PITCH_THRESHOLD],
            Self::PitchThresholdWords => &[
                COMMON,
                PITCH_THRESHOLD,
                MASK_BITS,
                part!("pitch_threshold_words.cl"),
            ],
            Self::PitchThresholdWide => &[
                COMMON,
                PITCH_THRESHOLD,
                PRESENCE_TILES,
                part!("pitch_threshold_items.cl"),
                part!("pitch_threshold_runs.cl"),
                part!("pitch_threshold_compare_int.cl"),
                part!("pitch_threshold_rows.cl"),
                part!("pitch_threshold_wide.cl"),
            ],
            Self::PitchThresholdWideDot => &[
                COMMON,
                PITCH_THRESHOLD,
                part!("nvidia.cl"),
                PRESENCE_TILES,
                part!("pitch_threshold_items.cl"),
                part!("pitch_threshold_runs.cl"),
                part!("pitch_threshold_compare_dot.cl"),
                part!("pitch_threshold_rows.cl"),
                part!("pitch_threshold_wide.cl"),
            ],
            Self::PitchThresholdFixed => &[
                COMMON,
                PITCH_THRESHOLD,
                part!("nvidia.cl"),
                PRESENCE_TILES,
                part!("pitch_threshold_items.cl"),
                part!("pitch_threshold_fixed.cl"),
                part!("pitch_threshold_wide.cl"),
            ],
            Self::PitchThresholdMask => &[
                COMMON,
                PITCH_THRESHOLD,
                PRESENCE_TILES,
                SCALES,
                PITCH_THRESHOLD_MEASURE,
                // Small: pixels are ignored from the next frame on, without a wait for a compiler.
                part!("mask_ignore.cl"),
                MASK_EXPAND,
                part!("pitch_threshold_mask.cl"),
            ],
            Self::Presence => &[
                COMMON,
                PITCH_THRESHOLD,
                PRESENCE_TILES,
                part!("presence.cl"),
            ],
            Self::ScalesRows => &[
                COMMON,
                PITCH_THRESHOLD,
                SCALES,
                PITCH_THRESHOLD_MEASURE,
                SCALES_JOIN,
                part!("scales_lanes.cl"),
                part!("scales_rows.cl"),
            ],
            Self::ScalesItems => &[
                COMMON,
                PITCH_THRESHOLD,
                SCALES,
                PITCH_THRESHOLD_MEASURE,
                SCALES_JOIN,
                part!("scales_items.cl"),
            ],
            Self::ScalesTiles => &[COMMON, PITCH_THRESHOLD, SCALES, part!("scales_tiles.cl")],
            Self::Reference => &[COMMON, MASK_BITS, MASK_EXPAND, part!("reference.cl")],
            Self::PitchThresholdDifference => &[
                COMMON,
                PITCH_THRESHOLD,
                part!("pitch_threshold_difference.cl"),
            ],
            Self::PlaneImage => &[COMMON, part!("plane_image.cl")],
            Self::ProbeLines => &[COMMON, part!("probe_lines.cl")],
            Self::CopyRows => &[COMMON, part!("copy_rows.cl")],
        }
    }
}

thread_local! {
    /// Whether this thread must not wait for the compiler.
    static ONLY_BUILT: Cell<bool> = const { Cell::new(false) };
    /// Whether a program that is not built was requested meanwhile.
    static MISSING: Cell<bool> = const { Cell::new(false) };
    /// Whether other threads submit frames while this thread compiles.
    static BESIDE_FRAMES: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without a compiler: `None` if `work` requests a program that is not built.
pub fn without_compiler<T>(
    work: impl FnOnce() -> Result<T, ClError>,
) -> Option<Result<T, ClError>> {
    ONLY_BUILT.set(true);
    MISSING.set(false);
    let result = work();
    ONLY_BUILT.set(false);
    (!MISSING.get()).then_some(result)
}

/// Runs `work`, which may compile, on a thread beside the streaming threads: their frames continue.
pub fn beside_frames<T>(work: impl FnOnce() -> T) -> T {
    BESIDE_FRAMES.set(true);
    let result = work();
    BESIDE_FRAMES.set(false);
    result
}

/// Whether the calling thread is inside [`beside_frames`].
pub(super) fn is_beside_frames() -> bool {
    BESIDE_FRAMES.get()
}

/// Refuses to compile inside [`without_compiler`].
///
/// # Errors
/// [`ClError::Refused`], which [`without_compiler`] turns into `None`.
pub(super) fn check_compiler_allowed(source: ProgramSource) -> Result<(), ClError> {
    if !ONLY_BUILT.get() {
        return Ok(());
    }
    MISSING.set(true);
    Err(ClError::Refused(format!(
        "{} is not built yet",
        source.file()
    )))
}

/// What a driver may compile now; its cache may hold the result already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiling {
    /// A program, by its file; this process has not built the program before.
    Program(&'static str),
    /// A kernel that is launched; PoCL generates machine code at the first launch.
    Kernel(&'static str),
}

type Observer = Rc<dyn Fn(Compiling)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// Runs `work`, and calls `observer` before each program that is built and each kernel that is
/// launched on this thread meanwhile.
pub fn observe_compiler<T>(observer: impl Fn(Compiling) + 'static, work: impl FnOnce() -> T) -> T {
    OBSERVER.set(Some(Rc::new(observer)));
    let result = work();
    OBSERVER.set(None);
    result
}

/// Calls the observer of this thread.
pub(super) fn notify_compiler(what: Compiling) {
    // The observer must not run while the cell is borrowed.
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer {
        observer(what);
    }
}

/// A built program.
#[derive(Debug)]
pub struct Program {
    handle: BuiltProgram,
    source: ProgramSource,
}

impl Program {
    /// A kernel object of the program. It belongs to one owner, because it holds its arguments.
    ///
    /// # Errors
    /// The program has no kernel of that name, or the device is out of resources.
    pub fn kernel(&self, name: &str) -> Result<Kernel, ClError> {
        let error = |code| {
            call_error(
                "clCreateKernel",
                code,
                format!("{name} of {}", self.source.file()),
            )
        };
        let c_name =
            CString::new(name).map_err(|_| error(opencl3::error_codes::CL_INVALID_KERNEL_NAME))?;
        create_kernel(self.handle.raw(), &c_name)
            .map(Kernel::new)
            .map_err(error)
    }

    /// Compiles `source` for a device; `options` are `-D` definitions. The caller holds
    /// [`super::device::lock_driver`].
    ///
    /// # Errors
    /// [`ClError::Build`] with the compiler's log; the failing call.
    pub(super) fn build(
        context: cl_context,
        device: &DeviceInfo,
        source: ProgramSource,
        options: &str,
    ) -> Result<Self, ClError> {
        if device.is_pocl && source.is_for_cpus() && !options.contains("-DUSE_IMAGE=1") {
            let parts = [&[BUILTINS], source.parts()].concat();
            let options = format!("{options} {WITHOUT_HEADER}");
            match Self::build_parts(context, device, source, &parts, &options) {
                // Another version of PoCL may need another declaration.
                Err(ClError::Build { .. }) => {}
                built => return built,
            }
        }
        Self::build_parts(context, device, source, source.parts(), options)
    }

    fn build_parts(
        context: cl_context,
        device: &DeviceInfo,
        source: ProgramSource,
        parts: &[Part],
        options: &str,
    ) -> Result<Self, ClError> {
        let file = source.file();
        // #line makes compiler messages name the files as they are in kernels/.
        let text: String = parts
            .iter()
            .map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n"))
            .collect();
        let handle = create_program_with_source(context, &[&text])
            .map(BuiltProgram::new)
            .map_err(|code| call_error("clCreateProgramWithSource", code, file))?;
        let c_options = CString::new(format!("-cl-std=CL1.2 {options}"))
            .map_err(|_| ClError::Refused("a compiler option contains a NUL byte".into()))?;
        let built = build_program(
            handle.raw(),
            &[device.id],
            &c_options,
            None,
            std::ptr::null_mut(),
        );
        let log = get_program_build_info(handle.raw(), device.id, CL_PROGRAM_BUILD_LOG)
            .map(|log| String::from_utf8_lossy(&log.to_vec_uchar()).into_owned())
            .unwrap_or_default();
        let log = log.trim_matches(['\0', '\n', ' ']);
        gst::debug!(CAT, "{file} built with \"{options}\": {built:?} {log}");
        if let Err(code) = built {
            return Err(if log.is_empty() {
                call_error("clBuildProgram", code, file)
            } else {
                ClError::Build {
                    program: file,
                    options: options.to_owned(),
                    log: log.to_owned(),
                }
            });
        }
        Ok(Self { handle, source })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            context::ClContext,
            device::{enumerate, lock_driver},
        },
        *,
    };

    /// A missing declaration would not show otherwise: the program is built with the header then.
    #[test]
    fn programs_for_cpus_declare_the_built_in_functions_that_they_use() {
        let _driver = lock_driver();
        let devices = enumerate().unwrap_or_default();
        for device in devices.iter().filter(|device| device.is_pocl) {
            let context = ClContext::new(device).expect("a context");
            for source in ProgramSource::ALL.into_iter().filter(|s| s.is_for_cpus()) {
                let parts = [&[BUILTINS], source.parts()].concat();
                for samples in [
                    "-DSAMPLE_BYTES=1",
                    "-DSAMPLE_BYTES=2",
                    "-DSAMPLE_BYTES=2 -DBIG_ENDIAN_SAMPLES=1",
                    "-DSAMPLE_BYTES=1 -DFLOAT_ARITHMETIC=1",
                    "-DSAMPLE_BYTES=2 -DFLOAT_ARITHMETIC=1",
                ] {
                    let options = format!("{samples} {WITHOUT_HEADER}");
                    let built = Program::build_parts(
                        context.raw_context(),
                        device,
                        source,
                        &parts,
                        &options,
                    );
                    assert!(built.is_ok(), "{source:?} {samples}: {built:?}");
                }
            }
        }
    }
}
