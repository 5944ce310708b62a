//! Sources by name.

/// A pattern of pitch 16 px with a ball that moves over it, at 30 frames per second.
const TEST: &str = "videotestsrc is-live=true pattern=checkers-8 ! \
    video/x-raw,format=I420,width=640,height=480,framerate=30/1 ! mix. \
    videotestsrc is-live=true pattern=ball ! \
    video/x-raw,format=I420,width=640,height=480,framerate=30/1 ! mix. \
    compositor name=mix sink_1::alpha=0.5";

/// Properties of `clpitchthreshold` for that pattern; the default of the examples.
pub const INSPECTION: &str = "pitch-x=16 compare=minimum threshold=30";

/// The gst-launch description of a source whose frames `clpitchthreshold` accepts. `source` is
/// `test`, `aravis` (GigE Vision and USB3 Vision cameras), `v4l2`, or a description without a sink.
pub fn frames_of(source: &str) -> String {
    let source = match source {
        "test" => TEST,
        "aravis" => "aravissrc",
        "v4l2" => "v4l2src",
        description => description,
    };
    format!("{source} ! videoconvert ! video/x-raw,format={{GRAY8,GRAY16_LE}}")
}
