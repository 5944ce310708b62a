//! A source of prepared frames, as fast as the next element takes them.
//!
//! Like a camera's source that takes the pool offered to it, it writes each frame into a buffer of the next element's
//! pool. A test source that draws frames would be slower than the inspection.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use gst::{glib, subclass::prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};
use gst_video::prelude::*;

glib::wrapper! {
    /// The source.
    pub struct Source(ObjectSubclass<imp::Source>)
        @extends gst_base::BaseSrc, gst::Element, gst::Object;
}

/// What the source sends.
#[derive(Debug)]
pub struct Frames {
    /// Format and size, GRAY8.
    pub info: gst_video::VideoInfo,
    /// The samples, without gaps between rows.
    pub samples: Vec<u8>,
    /// Number of frames.
    pub count: u64,
}

impl Source {
    /// A source of these frames.
    pub fn new(frames: Frames) -> Self {
        let source: Self = glib::Object::new();
        source.set_format(gst::Format::Time);
        source.set_blocksize(u32::try_from(frames.samples.len()).unwrap_or(u32::MAX));
        // The object is new, so its frames are not set yet.
        let _ = source.imp().frames.set(frames);
        source
    }
}

mod imp {
    use super::*;

    /// Time from one frame to the next, ns.
    const PERIOD: u64 = 33_333_333;

    #[derive(Default)]
    pub struct Source {
        pub(super) frames: OnceLock<Frames>,
        sent: AtomicU64,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Source {
        const NAME: &'static str = "ClDoctorSource";
        type Type = super::Source;
        type ParentType = gst_base::BaseSrc;
    }

    impl ObjectImpl for Source {}
    impl GstObjectImpl for Source {}

    impl ElementImpl for Source {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: OnceLock<gst::subclass::ElementMetadata> = OnceLock::new();
            Some(METADATA.get_or_init(|| {
                gst::subclass::ElementMetadata::new(
                    "Prepared frames",
                    "Source/Video",
                    "Sends one frame again and again",
                    "gst-plugin-clinspect developers",
                )
            }))
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: OnceLock<Vec<gst::PadTemplate>> = OnceLock::new();
            TEMPLATES.get_or_init(|| {
                let caps = gst_video::VideoCapsBuilder::new()
                    .format(gst_video::VideoFormat::Gray8)
                    .build();
                let template = gst::PadTemplate::new(
                    "src",
                    gst::PadDirection::Src,
                    gst::PadPresence::Always,
                    &caps,
                );
                template.into_iter().collect()
            })
        }
    }

    impl BaseSrcImpl for Source {
        fn caps(&self, filter: Option<&gst::Caps>) -> Option<gst::Caps> {
            let caps = self.frames.get()?.info.to_caps().ok()?;
            Some(filter.map_or_else(|| caps.clone(), |filter| filter.intersect(&caps)))
        }

        fn is_seekable(&self) -> bool {
            false
        }

        fn fill(
            &self,
            _offset: u64,
            _length: u32,
            buffer: &mut gst::BufferRef,
        ) -> Result<gst::FlowSuccess, gst::FlowError> {
            let frames = self.frames.get().ok_or(gst::FlowError::NotNegotiated)?;
            let number = self.sent.fetch_add(1, Relaxed);
            if number >= frames.count {
                return Err(gst::FlowError::Eos);
            }
            let period = gst::ClockTime::from_nseconds(PERIOD);
            buffer.set_pts(period * number);
            buffer.set_duration(period);
            buffer.set_offset(number);
            let mut frame =
                gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, &frames.info)
                    .map_err(|_| gst::FlowError::Error)?;
            let stride = frame.plane_stride()[0] as usize;
            let width = frames.info.width() as usize;
            let rows = frame.plane_data_mut(0).map_err(|_| gst::FlowError::Error)?;
            for (to, from) in rows.chunks_mut(stride).zip(frames.samples.chunks(width)) {
                to[..width].copy_from_slice(from);
            }
            Ok(gst::FlowSuccess::Ok)
        }
    }
}
