//! The parent class of the elements that work on a device.

mod imp;
mod live;
mod message_gate;
mod properties;

use std::sync::Arc;

use atomic_refcell::AtomicRefMut;
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::prelude::*;

use crate::error::error_message;
use clinspect_core::ClError;
use clinspect_opencl::frame::Importer;
use clinspect_opencl::{ClAllocator, ClContext, Meter};

pub use live::Live;
pub use message_gate::MessageGate;

glib::wrapper! {
    /// Opens a device, brings frames to it, offers its memory upstream, and counts.
    pub struct ClBaseFilter(ObjectSubclass<imp::ClBaseFilter>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// A subclass of [`ClBaseFilter`]; its `start` calls [`ClBaseFilterExt::start_device`].
pub trait ClBaseFilterImpl: BaseTransformImpl + ObjectSubclass<Type: IsA<ClBaseFilter>> {}

// SAFETY: ClBaseFilter adds no class struct to GstBaseTransform, whose class_init runs.
unsafe impl<T: ClBaseFilterImpl> IsSubclassable<T> for ClBaseFilter {}

/// The device of a started element.
#[derive(Debug, Clone)]
pub struct Device {
    /// Its context.
    pub context: Arc<ClContext>,
    /// Counters of the element.
    pub meter: Arc<Meter>,
    /// Allocates in the context, and counts in the meter.
    pub allocator: ClAllocator,
}

/// What a subclass asks of its parent.
pub trait ClBaseFilterExt: IsA<ClBaseFilter> + IsA<gst::Element> {
    /// Opens the device that the properties name: a subclass's `start`.
    ///
    /// It is no `start` of this class, because a failure would then be posted twice: as what it
    /// is, and by the subclass as a failure of its parent.
    ///
    /// # Errors
    /// Says what to install or to choose.
    fn start_device(&self) -> Result<(), gst::ErrorMessage> {
        self.upcast_ref::<ClBaseFilter>().imp().start_device()
    }

    /// The device, while the element is started.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] before the element was started.
    fn device(&self) -> Result<Device, ClError> {
        self.upcast_ref::<ClBaseFilter>().imp().device()
    }

    /// Whether kernels read images: what the `memory-object` property says.
    fn wants_images(&self) -> bool {
        self.upcast_ref::<ClBaseFilter>().imp().wants_images()
    }

    /// The importer for frames of the negotiated caps.
    ///
    /// # Errors
    /// [`ClError::Input`] before caps were set.
    fn importer(&self) -> Result<AtomicRefMut<'_, Importer>, ClError> {
        self.upcast_ref::<ClBaseFilter>().imp().importer()
    }

    /// The number of a frame: its offset where it has one, else a count since the start.
    fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        self.upcast_ref::<ClBaseFilter>().imp().frame_number(buffer)
    }

    /// Sets what the element counts beside frames to zero; `stats` then holds these names.
    fn reset_counts(&self, names: &[&'static str]) {
        let base = self.upcast_ref::<ClBaseFilter>().imp();
        *base.counts() = names.iter().map(|&name| (name, 0)).collect();
    }

    /// Counts one more of `name`.
    fn count(&self, name: &'static str) {
        let base = self.upcast_ref::<ClBaseFilter>().imp();
        if let Some((_, count)) = base.counts().iter_mut().find(|(n, _)| *n == name) {
            *count += 1;
        }
    }

    /// Posts an error message for `error`.
    fn post_error(&self, error: &ClError, context: &str) {
        let element = self.upcast_ref::<gst::Element>();
        self.upcast_ref::<ClBaseFilter>().imp().note_told(error);
        element.post_error_message(error_message(error, context));
    }

    /// The end of setting caps: a failure is posted, once however often upstream tries again.
    ///
    /// # Errors
    /// The failure, as BaseTransform logs it.
    fn set_up_result(
        &self,
        cat: &gst::DebugCategory,
        context: &str,
        result: Result<(), ClError>,
    ) -> Result<(), gst::LoggableError> {
        let failure = result.err();
        if self.upcast_ref::<ClBaseFilter>().imp().is_news(&failure)
            && let Some(error) = &failure
        {
            self.post_error(error, context);
        }
        match failure {
            None => Ok(()),
            Some(error) => Err(gst::loggable_error!(cat, "{error}")),
        }
    }

    /// Posts a warning: settings that are refused while playing leave the ones before in force.
    fn post_refusal(&self, error: &ClError) {
        gst::element_warning!(
            self.upcast_ref::<gst::Element>(),
            gst::LibraryError::Settings,
            ("{}", error),
            ["the settings before stay in force"]
        );
    }
}

impl<T: IsA<ClBaseFilter> + IsA<gst::Element>> ClBaseFilterExt for T {}
