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
        CL_PROGRAM_BINARIES, CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary,
        create_program_with_source, get_program_build_info, get_program_info,
    },
    types::cl_context,
};

use super::{
    cache::{Cache, hash},
    device::DeviceInfo,
    handle::{BuiltProgram, Kernel, call_error},
    start,
};
use clinspect_core::{ClError, kernels::CONSTANTS};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clprogram",
        gst::DebugColorFlags::empty(),
        Some("OpenCL programs"),
    )
});

/// A file's name and text.
type File = (&'static str, &'static str);

macro_rules! source_file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../kernels/", $name)))
    };
}

/// Declares the built-in functions for PoCL.
const BUILTINS: File = source_file!("builtins.cl");
/// Makes clang skip `opencl-c.h`, whose declarations [`BUILTINS`] replaces.
const WITHOUT_HEADER: &str = "-D_OPENCL_H_";

/// Which devices can build a program, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Any device. [`BUILTINS`] declares every built-in function that the program uses, unless it reads images.
    WithBuiltins,
    /// Any device. It uses functions that [`BUILTINS`] does not declare.
    AnyDevice,
    /// Once for each list of comparisons, which are constants in the program.
    WithConstants,
}

/// Makes [`ProgramSource`] from the table of the programs.
macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident: $kind:ident [$($file:literal)*])*) => {
        /// A program: files of `kernels/`, concatenated.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProgramSource {
            $($(#[$doc])* $name,)*
        }

        impl ProgramSource {
            const ALL: &[Self] = &[$(Self::$name),*];

            fn kind(self) -> Kind {
                match self {
                    $(Self::$name => Kind::$kind,)*
                }
            }

            /// The files, in order.
            fn files(self) -> &'static [File] {
                match self {
                    $(Self::$name => &[$(source_file!($file)),*],)*
                }
            }
        }
    };
}

// `common.cl`, the loads that all kernels share, comes first. The last file holds the kernels.
programs! {
    /// Sums of frames for the flat field's references, and the replacement of bad samples.
    FlatField: WithBuiltins ["common.cl" "flat_field.cl"]
    /// The flat field for a CPU.
    FlatFieldRows: WithBuiltins ["common.cl" "flat_field_value.cl" "flat_field_rows.cl"]
    /// The flat field on any device.
    FlatFieldItems: AnyDevice ["common.cl" "flat_field_value.cl" "flat_field_items.cl"]
    /// The Gaussian on any device.
    Gaussian: WithBuiltins ["common.cl" "gaussian.cl"]
    /// The Gaussian of adjacent 8-bit samples with binomial weights for a CPU.
    GaussianBinomial: WithBuiltins ["common.cl" "gaussian.cl" "gaussian_binomial.cl"]
    /// The Gaussian of adjacent 8-bit samples for a CPU.
    GaussianBytes: WithBuiltins ["common.cl" "gaussian.cl" "gaussian_bytes.cl"]
    /// The Gaussian for a CPU.
    GaussianRows: WithBuiltins ["common.cl" "gaussian.cl" "gaussian_rows.cl"]
    /// The Gaussian for a GPU.
    GaussianTile: AnyDevice ["common.cl" "gaussian.cl" "gaussian_tile.cl"]
    /// Histograms on any device.
    Histogram: WithBuiltins ["common.cl" "histogram.cl"]
    /// Histograms of 16-bit grey for a CPU.
    HistogramDirect: WithBuiltins ["common.cl" "histogram.cl" "histogram_direct.cl"]
    /// Histograms for a GPU.
    HistogramBanked: AnyDevice ["common.cl" "histogram.cl" "histogram_banked.cl" "histogram_run.cl"]
    /// Histograms for a CPU.
    HistogramPairs: WithBuiltins ["common.cl" "histogram.cl" "histogram_pairs.cl"]
    /// The pitch comparison on any device.
    PitchThreshold: WithBuiltins ["common.cl" "pitch_threshold.cl"]
    /// The pitch comparison for a CPU.
    PitchThresholdWords: WithBuiltins [
        "common.cl" "pitch_threshold.cl" "mask_bits.cl" "pitch_threshold_words.cl"
    ]
    /// The pitch comparison for a GPU.
    PitchThresholdWide: AnyDevice [
        "common.cl" "pitch_threshold.cl" "presence_tiles.cl" "pitch_threshold_items.cl"
        "pitch_threshold_runs.cl" "pitch_threshold_wide.cl"
    ]
    /// The pitch comparison for a GPU, with the comparisons as constants. `NVIDIA=0`: without the
    /// instructions of `nvidia.cl`.
    PitchThresholdFixed: WithConstants [
        "common.cl" "pitch_threshold.cl" "nvidia.cl" "presence_tiles.cl" "pitch_threshold_items.cl"
        "pitch_threshold_fixed.cl" "pitch_threshold_wide.cl"
    ]
    /// Processing of packed masks, and the differences of their pixels.
    // `mask_ignore.cl` is part of this program, which is built at the start: a new mask needs no compiler.
    PitchThresholdMask: WithBuiltins [
        "common.cl" "pitch_threshold.cl" "presence_tiles.cl" "scales.cl" "pitch_threshold_measure.cl"
        "mask_ignore.cl" "mask_expand.cl" "mask_tiles.cl" "pitch_threshold_mask.cl"
    ]
    /// The search for tiles without the pattern.
    Presence: WithBuiltins ["common.cl" "pitch_threshold.cl" "presence_tiles.cl" "presence.cl"]
    /// The comparison along vectors of any angle on any device. `NVIDIA=1`: with the instructions of `nvidia.cl`.
    LatticeItems: WithBuiltins [
        "common.cl" "pitch_threshold_lattice.cl" "nvidia.cl" "pitch_threshold_lattice_items.cl"
    ]
    /// The comparison along vectors of any angle for a CPU.
    LatticeRows: WithBuiltins [
        "common.cl" "pitch_threshold_lattice.cl" "mask_bits.cl" "pitch_threshold_lattice_rows.cl"
    ]
    /// Processing of packed masks, and the differences of their pixels along vectors.
    LatticeMask: WithBuiltins [
        "common.cl" "pitch_threshold_lattice.cl" "presence_tiles.cl" "mask_ignore.cl" "mask_expand.cl" "mask_tiles.cl"
        "pitch_threshold_lattice_runs.cl"
    ]
    /// The search for tiles without the pattern, where the comparison is along vectors.
    LatticePresence: WithBuiltins [
        "common.cl" "pitch_threshold_lattice.cl" "presence_tiles.cl" "presence.cl"
    ]
    /// Differences before the threshold, along vectors.
    LatticeDifference: WithBuiltins [
        "common.cl" "pitch_threshold_lattice.cl" "pitch_threshold_difference.cl"
    ]
    /// The comparison at coarser levels for a CPU.
    ScalesRows: WithBuiltins [
        "common.cl" "pitch_threshold.cl" "scales.cl" "pitch_threshold_measure.cl" "scales_join.cl"
        "scales_lanes.cl" "scales_rows.cl"
    ]
    /// The comparison at coarser levels for a GPU.
    ScalesItems: AnyDevice [
        "common.cl" "pitch_threshold.cl" "scales.cl" "pitch_threshold_measure.cl" "scales_join.cl"
        "scales_items.cl"
    ]
    /// The comparison at coarser levels for a GPU, with the comparisons as constants.
    ScalesTiles: WithConstants ["common.cl" "pitch_threshold.cl" "scales.cl" "scales_tiles.cl"]
    /// Differences before the threshold.
    PitchThresholdDifference: WithBuiltins ["common.cl" "pitch_threshold.cl" "pitch_threshold_difference.cl"]
    /// The comparison with a trained picture.
    Reference: WithBuiltins [
        "common.cl" "mask_bits.cl" "mask_expand.cl" "reference_warp.cl" "reference_part.cl" "reference_marks.cl"
        "reference.cl"
    ]
    /// The comparison of a surface with good frames on any device.
    Surface: WithBuiltins [
        "common.cl" "mask_ignore.cl" "mask_expand.cl" "tiles.cl" "strongest.cl" "surface.cl" "surface_marks.cl"
    ]
    /// The texture comparison for a CPU.
    TextureRows: WithBuiltins [
        "common.cl" "mask_bits.cl" "mask_ignore.cl" "mask_expand.cl" "tiles.cl" "strongest.cl" "texture.cl"
        "texture_measure.cl" "texture_rows.cl"
    ]
    /// The texture comparison for a GPU.
    TextureItems: AnyDevice [
        "common.cl" "mask_bits.cl" "mask_ignore.cl" "mask_expand.cl" "tiles.cl" "strongest.cl" "texture.cl"
        "texture_measure.cl" "texture_items.cl"
    ]
    /// The steps of the texture comparison along vectors of any angle.
    TextureVectors: WithBuiltins ["common.cl" "tiles.cl" "texture.cl" "texture_vectors.cl"]
    /// Red, green and blue of interleaved pixels, and their masks.
    Colour: WithBuiltins ["common.cl" "mask_expand.cl" "colour.cl"]
    /// Packed grey samples.
    Unpack: WithBuiltins ["common.cl" "unpack.cl"]
    /// Red, green and blue of Bayer samples for a CPU.
    DemosaicRows: WithBuiltins ["common.cl" "demosaic.cl" "demosaic_rows.cl"]
    /// Red, green and blue of Bayer samples for a GPU.
    DemosaicItems: WithBuiltins ["common.cl" "demosaic.cl" "demosaic_items.cl"]
    /// Planes to images.
    PlaneImage: AnyDevice ["common.cl" "plane_image.cl"]
    /// Copies a few rows or columns of a frame.
    ProbeLines: WithBuiltins ["common.cl" "probe_lines.cl"]
    /// Copies rows on a CPU.
    CopyRows: WithBuiltins ["common.cl" "copy_rows.cl"]
}

impl ProgramSource {
    /// Every program that any device can build.
    pub fn for_any_device() -> impl Iterator<Item = Self> {
        let kinds = [Kind::WithBuiltins, Kind::AnyDevice];
        let all = Self::ALL.iter().copied();
        all.filter(move |source| kinds.contains(&source.kind()))
    }

    /// The constants of its files, as definitions.
    fn constants(self) -> String {
        let files = self.files();
        let is_used = |file| files.iter().any(|&(name, _)| name == file);
        let constants = CONSTANTS.iter().filter(|constant| is_used(constant.file));
        constants
            .map(|constant| {
                let number = |&value: &i64| match value {
                    // The smallest int has no literal of its own.
                    ..0 => format!("({}-1)", value + 1),
                    _ => value.to_string(),
                };
                let numbers: Vec<String> = constant.values.iter().map(number).collect();
                format!(" -D{}={}", constant.name, numbers.join(","))
            })
            .collect()
    }

    /// Whether each list of comparisons has a program of its own.
    pub(super) fn has_constants(self) -> bool {
        self.kind() == Kind::WithConstants
    }

    /// A number that changes with the text and the constants of any program.
    pub fn fingerprint() -> u64 {
        static FINGERPRINT: LazyLock<u64> = LazyLock::new(|| {
            let texts = ProgramSource::ALL.iter().map(|source| {
                let texts: String = source.files().iter().map(|(_, text)| *text).collect();
                texts + &source.constants()
            });
            hash(texts.collect::<String>().as_bytes())
        });
        *FINGERPRINT
    }

    /// The name of the last file, which holds the kernels.
    pub fn file(self) -> &'static str {
        self.files().last().map_or("", |(name, _)| name)
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

/// Whether work must stay on the calling thread, because it is inside one of the functions above or [`observe_compiler`].
pub(super) fn has_own_rules() -> bool {
    ONLY_BUILT.get() || BESIDE_FRAMES.get() || OBSERVER.with_borrow(Option::is_some)
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

/// Runs `work`, and calls `observer` before each program that is built and each kernel that is first
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
            start::fail();
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

    /// Compiles `source` for a device; `options` are `-D` definitions. The compiled program is taken from `cache`, and
    /// kept there. The caller holds [`super::device::lock_driver`].
    ///
    /// # Errors
    /// [`ClError::Build`] with the compiler's log; [`ClError::Refused`] if the program uses images; [`ClError::Unavailable`]
    /// if the compiler did not return from the last attempts; the failing call.
    pub(super) fn build(
        context: cl_context,
        device: &DeviceInfo,
        source: ProgramSource,
        options: &str,
        cache: Option<&Cache>,
    ) -> Result<Self, ClError> {
        let build = Build {
            context,
            device,
            source,
        };
        if device.is_pocl
            && source.kind() == Kind::WithBuiltins
            && !options.contains("-DUSE_IMAGE=1")
        {
            let files = [&[BUILTINS], source.files()].concat();
            let options = format!("{options} {WITHOUT_HEADER}");
            match build.compile(&text_of(&files), &options) {
                // Another version of PoCL may need another declaration.
                Err(ClError::Build { .. }) => {}
                built => return built,
            }
        }
        let text = text_of(source.files());
        let built = match cache {
            Some(cache) => build.with_cache(&text, options, cache),
            None => build.compile(&text, options),
        };
        let has_images = source == ProgramSource::PlaneImage || options.contains("-DUSE_IMAGE=1");
        match built {
            Err(ClError::Build { program, log, .. }) if has_images => {
                gst::warning!(CAT, "{program} did not build with \"{options}\":\n{log}");
                Err(ClError::Refused(format!(
                    "the driver of {} offers images, but cannot compile {program}, which uses them; set \
                     memory-object=buffer",
                    device.label()
                )))
            }
            built => built,
        }
    }
}

/// `#line` makes compiler messages name the files as they are in `kernels/`.
fn text_of(files: &[File]) -> String {
    let files = files.iter();
    files
        .map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n"))
        .collect()
}

/// What is built, and where.
struct Build<'a> {
    context: cl_context,
    device: &'a DeviceInfo,
    source: ProgramSource,
}

impl Build<'_> {
    /// Takes the compiled program from the cache, or compiles and keeps it.
    fn with_cache(&self, text: &str, options: &str, cache: &Cache) -> Result<Program, ClError> {
        let constants = self.source.constants();
        let key = format!("{}\n{options}{constants}\n{text}", self.device.identity());
        if let Some(binary) = cache.read(&key) {
            match self.load(&binary, options) {
                Ok(program) => return Ok(program),
                Err(error) => {
                    gst::warning!(CAT, "a kept program is compiled again: {error}");
                    cache.remove(&key);
                }
            }
        }
        let file = self.source.file();
        let subject = format!("{file} with \"{options}\" for {}", self.device.name);
        let attempt = cache.attempt(&key, &subject)?;
        let program = self.compile(text, options)?;
        drop(attempt);
        match get_program_info(program.handle.raw(), CL_PROGRAM_BINARIES) {
            Ok(binaries) => {
                for binary in binaries.to_vec_vec_uchar().iter().filter(|b| !b.is_empty()) {
                    cache.write(&key, binary);
                }
            }
            Err(code) => gst::debug!(CAT, "{file} has no binary: {code}"),
        }
        Ok(program)
    }

    fn load(&self, binary: &[u8], options: &str) -> Result<Program, ClError> {
        let file = self.source.file();
        // SAFETY: the device lives as long as the process, and the binary is read during the call.
        let handle =
            unsafe { create_program_with_binary(self.context, &[self.device.id], &[binary]) }
                .map(BuiltProgram::new)
                .map_err(|code| call_error("clCreateProgramWithBinary", code, file))?;
        self.finish(handle, options)
    }

    fn compile(&self, text: &str, options: &str) -> Result<Program, ClError> {
        let handle = create_program_with_source(self.context, &[text])
            .map(BuiltProgram::new)
            .map_err(|code| call_error("clCreateProgramWithSource", code, self.source.file()))?;
        self.finish(handle, options)
    }

    fn finish(&self, handle: BuiltProgram, options: &str) -> Result<Program, ClError> {
        let file = self.source.file();
        let constants = self.source.constants();
        let c_options = CString::new(format!("-cl-std=CL1.2 {options}{constants}"))
            .map_err(|_| ClError::Refused("a compiler option contains a NUL byte".into()))?;
        let built = build_program(
            handle.raw(),
            &[self.device.id],
            &c_options,
            None,
            std::ptr::null_mut(),
        );
        let log = get_program_build_info(handle.raw(), self.device.id, CL_PROGRAM_BUILD_LOG)
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
        Ok(Program {
            handle,
            source: self.source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            context::DeviceContext,
            device::{enumerate, lock_driver},
        },
        *,
    };

    /// Without this test a missing declaration would stay unseen: the program is then built with the header.
    #[test]
    fn programs_for_cpus_declare_the_built_in_functions_that_they_use() {
        let _driver = lock_driver();
        let devices = enumerate().unwrap_or_default();
        for device in devices.iter().filter(|device| device.is_pocl) {
            let context = DeviceContext::new(device).expect("a context");
            let sources = ProgramSource::ALL.iter().copied();
            for source in sources.filter(|source| source.kind() == Kind::WithBuiltins) {
                let files = [&[BUILTINS], source.files()].concat();
                for samples in [
                    "-DSAMPLE_BYTES=1",
                    "-DSAMPLE_BYTES=2",
                    "-DSAMPLE_BYTES=2 -DBIG_ENDIAN_SAMPLES=1",
                    "-DSAMPLE_BYTES=1 -DFLOAT_ARITHMETIC=1",
                    "-DSAMPLE_BYTES=2 -DFLOAT_ARITHMETIC=1",
                ] {
                    let options = format!("{samples} {WITHOUT_HEADER}");
                    let build = Build {
                        context: context.raw_context(),
                        device,
                        source,
                    };
                    let built = build.compile(&text_of(&files), &options);
                    assert!(built.is_ok(), "{source:?} {samples}: {built:?}");
                }
            }
        }
    }
}
