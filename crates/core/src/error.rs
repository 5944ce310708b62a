//! The error type.

use std::fmt;

/// An error of the OpenCL runtime, of a setting, or of an input frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClError {
    /// No usable OpenCL runtime or device; the text says what to install or choose.
    Unavailable(String),
    /// Settings, caps and device do not fit together; the text says what to change.
    Refused(String),
    /// An input frame does not match its caps or cannot be read.
    Input(String),
    /// An OpenCL program that did not build.
    Build {
        /// File name of the program's source.
        program: &'static str,
        /// Compiler options it was built with.
        options: String,
        /// The compiler's log.
        log: String,
    },
    /// An OpenCL call that failed.
    Call {
        /// Name of the call, such as `clEnqueueNDRangeKernel`.
        call: &'static str,
        /// OpenCL's status code.
        code: i32,
        /// The code's name in the OpenCL headers.
        code_name: &'static str,
        /// The kernel, buffer or device that the call worked on.
        subject: String,
    },
}

/// The value from `CL/cl.h`; this crate does not depend on an OpenCL crate.
const CL_INVALID_WORK_GROUP_SIZE: i32 = -54;

impl ClError {
    /// Whether a kernel was refused because of its work-group size. The context stays usable after
    /// such an error.
    pub fn is_group_too_large(&self) -> bool {
        matches!(self, Self::Call { code, .. } if *code == CL_INVALID_WORK_GROUP_SIZE)
    }
}

impl fmt::Display for ClError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(text) | Self::Refused(text) | Self::Input(text) => f.write_str(text),
            Self::Build {
                program,
                options,
                log,
            } => write!(
                f,
                "the OpenCL program {program} did not build with \"{options}\":\n{log}"
            ),
            Self::Call {
                call,
                code,
                code_name,
                subject,
            } => write!(f, "{call} failed with {code_name} ({code}) on {subject}"),
        }
    }
}

impl std::error::Error for ClError {}
