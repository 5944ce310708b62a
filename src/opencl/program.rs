//! Programs: sources in `kernels/`, built once per context and options.

use std::{
    collections::HashMap,
    ffi::CString,
    sync::{Arc, LazyLock},
};

use opencl3::{
    kernel::create_kernel,
    program::{
        CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_info,
    },
};

use super::{
    context::ClContext,
    handle::{BuiltProgram, Kernel, call_error},
    registry,
};
use crate::error::ClError;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clprogram",
        gst::DebugColorFlags::empty(),
        Some("OpenCL programs"),
    )
});

/// A kernel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramSource {
    /// `kernels/gaussian.cl`
    Gaussian,
    /// `kernels/histogram.cl`
    Histogram,
    /// `kernels/pitch_threshold.cl`
    PitchThreshold,
    /// `kernels/plane_image.cl`
    PlaneImage,
    /// `kernels/probe_lines.cl`
    ProbeLines,
}

impl ProgramSource {
    /// Every kernel file.
    pub const ALL: [Self; 5] = [
        Self::Gaussian,
        Self::Histogram,
        Self::PitchThreshold,
        Self::PlaneImage,
        Self::ProbeLines,
    ];

    /// The file's name.
    pub fn file(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian.cl",
            Self::Histogram => "histogram.cl",
            Self::PitchThreshold => "pitch_threshold.cl",
            Self::PlaneImage => "plane_image.cl",
            Self::ProbeLines => "probe_lines.cl",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Gaussian => include_str!("../../kernels/gaussian.cl"),
            Self::Histogram => include_str!("../../kernels/histogram.cl"),
            Self::PitchThreshold => include_str!("../../kernels/pitch_threshold.cl"),
            Self::PlaneImage => include_str!("../../kernels/plane_image.cl"),
            Self::ProbeLines => include_str!("../../kernels/probe_lines.cl"),
        }
    }
}

/// What every program begins with: loads that are shared by all kernels.
const COMMON: &str = include_str!("../../kernels/common.cl");

/// A built program.
#[derive(Debug)]
pub struct Program {
    handle: BuiltProgram,
    source: ProgramSource,
}

impl Program {
    /// A kernel of the program, for one owner: arguments are part of it.
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
}

#[derive(Debug, Default)]
pub(super) struct ProgramCache {
    built: HashMap<(ProgramSource, String), Arc<Program>>,
}

impl ClContext {
    /// A program built for this device; `options` are `-D` definitions.
    ///
    /// # Errors
    /// [`ClError::Build`] with the compiler's log.
    pub fn program(&self, source: ProgramSource, options: &str) -> Result<Arc<Program>, ClError> {
        // PoCL builds one program at a time, and not beside its initialisation.
        let _guard = registry::lock();
        let mut cache = self.programs();
        let key = (source, options.to_owned());
        if let Some(program) = cache.built.get(&key) {
            return Ok(program.clone());
        }
        let program = Arc::new(self.build(source, options)?);
        cache.built.insert(key, program.clone());
        Ok(program)
    }

    fn build(&self, source: ProgramSource, options: &str) -> Result<Program, ClError> {
        let file = source.file();
        // #line gives the compiler's messages the places of the files as they lie in kernels/.
        let text = format!(
            "#line 1 \"common.cl\"\n{COMMON}\n#line 1 \"{file}\"\n{}",
            source.text()
        );
        let handle = create_program_with_source(self.raw_context(), &[&text])
            .map(BuiltProgram::new)
            .map_err(|code| call_error("clCreateProgramWithSource", code, file))?;
        let c_options = CString::new(format!("-cl-std=CL1.2 {options}"))
            .map_err(|_| ClError::Refused("a compiler option holds a zero byte".into()))?;
        let built = build_program(
            handle.raw(),
            &[self.raw_device()],
            &c_options,
            None,
            std::ptr::null_mut(),
        );
        let log = get_program_build_info(handle.raw(), self.raw_device(), CL_PROGRAM_BUILD_LOG)
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
        Ok(Program { handle, source })
    }
}
