//! OpenCL errors as GStreamer's element messages.

use clinspect_core::ClError;

/// The error as an element message; `context` says what the element was doing.
pub(crate) fn error_message(error: &ClError, context: &str) -> gst::ErrorMessage {
    let debug = format!("{context}: {error}");
    match error {
        ClError::Unavailable(text) => {
            gst::error_msg!(gst::ResourceError::NotFound, ("{}", text), ["{}", debug])
        }
        ClError::Refused(text) => {
            gst::error_msg!(gst::LibraryError::Settings, ("{}", text), ["{}", debug])
        }
        ClError::Input(text) => {
            gst::error_msg!(gst::StreamError::Failed, ("{}", text), ["{}", debug])
        }
        ClError::Build { program, .. } => gst::error_msg!(
            gst::LibraryError::Init,
            (
                "the OpenCL program {} did not build on this device",
                program
            ),
            ["{}", debug]
        ),
        ClError::Call { code, .. } => gst::error_msg!(
            gst::LibraryError::Failed,
            ("{}: {}", error, advice(*code)),
            ["{}", debug]
        ),
    }
}

/// CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY.
const OUT_OF_MEMORY: std::ops::RangeInclusive<i32> = -6..=-4;

/// What to do after an OpenCL call failed with `code`.
fn advice(code: i32) -> &'static str {
    if OUT_OF_MEMORY.contains(&code) {
        "the device or the host may be out of memory; free memory (fewer pipelines, smaller \
     frames), then stop and start the pipeline"
    } else {
        "stop and start the pipeline; if that does not help, restart the program, then check \
     the device and its driver"
    }
}
