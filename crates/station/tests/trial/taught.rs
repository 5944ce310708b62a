//! What is learned is what the analyzer itself learns.

use std::{fs, sync::Arc, time::Instant};

use clinspect_station::{frame::Frame, trial::teach};
use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;

use super::scenes::{camera, labels, panels, start};

#[test]
fn smoke() {
    start();
    let sandbox = Sandbox::new("trial-taught");
    let arcs = |frames: Vec<Frame>| frames.into_iter().map(Arc::new).collect::<Vec<_>>();
    for (lines, frames) in [
        (
            "gaussian = { kernel-size = 5, sigma = 0.8 }\npitch = { }",
            arcs(panels(VideoFormat::Gray8, 12, &[])),
        ),
        (
            "pitch = { scales = 2 }",
            arcs(panels(VideoFormat::Rgb, 12, &[])),
        ),
        (
            "texture = { learn = { location = \"/tmp/none.npz\" } }",
            arcs(panels(VideoFormat::Gray8, 12, &[])),
        ),
        (
            "reference = { align = \"translation\", location = \"/tmp/none2.npz\" }",
            arcs(labels(12, &[])),
        ),
    ] {
        let config = camera(sandbox.path(), lines);
        let folder = sandbox.folder("files");
        let _ = fs::create_dir(&folder);
        let then = Instant::now();
        let taught = teach(&config, &frames, &folder, &mut |_| true);
        eprintln!("{:?} {:?}", then.elapsed(), taught.unwrap().limits);
    }
}
