//! Where frames come from: a gst-launch description, or picture files that this program feeds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gst::prelude::*;
use image::{DynamicImage, ImageDecoder, ImageReader};

const CAMERA: &str = "aravissrc";
/// Time from one file to the next.
const FILE_DURATION: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// A source of frames.
pub struct Source {
    /// Elements as in gst-launch, without a sink.
    pub description: String,
    /// Files that this program sends through the appsrc of the description.
    files: Vec<PathBuf>,
}

impl Source {
    /// The source that the command line names.
    pub fn new(words: &[String]) -> Self {
        let is_files = words.iter().all(|word| Path::new(word).is_file());
        let description = match words.join(" ") {
            _ if is_files => "appsrc name=files format=time".to_owned(),
            word if word == "camera" => CAMERA.to_owned(),
            description => description,
        };
        let files = words.iter().filter(|_| is_files).map(PathBuf::from);
        let files = files.collect();
        Self { description, files }
    }

    /// Whether the source is a camera, which never ends by itself.
    pub fn is_camera(&self) -> bool {
        self.description.starts_with(CAMERA)
    }

    /// Makes the appsrc of the pipeline send a frame per file, if the source is files.
    pub fn feed(&self, pipeline: &gst::Pipeline) {
        let mut files = (0..).zip(self.files.clone());
        let callbacks = gst_app::AppSrcCallbacks::builder().need_data(move |appsrc, _| {
            let Some((number, file)) = files.next() else {
                let _ = appsrc.end_of_stream();
                return;
            };
            match frame(&file, number) {
                // Refused only while the pipeline stops; the frame is not needed then.
                Ok(sample) => drop(appsrc.push_sample(&sample)),
                Err(why) => gst::element_error!(appsrc, gst::ResourceError::Read, ("{why:#}")),
            }
        });
        if let Some(appsrc) = pipeline.by_name("files").and_downcast::<gst_app::AppSrc>() {
            appsrc.set_callbacks(callbacks.build());
        }
    }
}

/// A picture as viewers show it: a photograph says in its Exif how the camera was held.
fn upright(file: &Path) -> Result<DynamicImage> {
    let mut decoder = ImageReader::open(file)?.into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

/// A file as a grey frame.
fn frame(file: &Path, number: u64) -> Result<gst::Sample> {
    let picture = upright(file).with_context(|| file.display().to_string())?;
    let (width, height) = (picture.width(), picture.height());
    let (format, samples) = match picture {
        DynamicImage::ImageLuma16(grey) => {
            let bytes = grey.iter().flat_map(|level| level.to_le_bytes());
            (gst_video::VideoFormat::Gray16Le, bytes.collect())
        }
        other => (gst_video::VideoFormat::Gray8, other.into_luma8().into_raw()),
    };
    let info = gst_video::VideoInfo::builder(format, width, height).build()?;
    // GStreamer pads rows to four bytes.
    let stride = usize::try_from(info.stride()[0])?;
    let mut frame = vec![0; info.size()];
    let row_len = samples.len() / height as usize;
    for (row, padded) in samples.chunks(row_len).zip(frame.chunks_mut(stride)) {
        padded[..row_len].copy_from_slice(row);
    }
    let mut buffer = gst::Buffer::from_mut_slice(frame);
    let fields = buffer.make_mut();
    fields.set_pts(FILE_DURATION * number);
    fields.set_duration(FILE_DURATION);
    fields.set_offset(number);
    let caps = info.to_caps()?;
    Ok(gst::Sample::builder().buffer(&buffer).caps(&caps).build())
}
