//! What a subclass of the parent class implements.

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::prelude::*;

use super::{ClBaseFilter, imp::ClassData, stream::FrameStream};
use clinspect_core::ClError;
use clinspect_opencl::frame::Carrier;

/// A subclass of [`ClBaseFilter`].
///
/// The parent class opens the device at the start, imports each frame, applies new caps and new settings,
/// and posts errors. A frame whose [`FrameStream::process`] fails is not pushed.
pub trait ClBaseFilterImpl: BaseTransformImpl + ObjectSubclass<Type: IsA<ClBaseFilter>> {
    /// The element's work on a frame, for error messages: "filtering a frame".
    const TASK: &'static str;
    /// Names of the element's own counts in `stats`.
    const COUNTS: &'static [&'static str] = &[];
    /// The element may change frames: [`FrameStream::treatment`] says for each frame whether it is passed, read or
    /// rewritten. A frame is rewritten in place if nobody else uses its memory.
    const REWRITES: bool = false;

    /// Checks the properties, as far as neither frames nor a device decide. `images`: `memory-object=image`.
    ///
    /// # Errors
    /// The refusal of every frame.
    fn check(&self, _images: bool) -> Result<(), ClError> {
        Ok(())
    }

    /// The element starts. Properties that take effect at the start (`mutable_ready`) are read here, once.
    fn open(&self) -> Box<dyn FrameStream>;

    /// The stream was dropped; the device is released next.
    fn close(&self) {}

    /// Caps for the other pad, given `caps` on the pad of `direction`, the preferred ones first;
    /// `None` if input and output caps are the same.
    fn other_caps(&self, _direction: gst::PadDirection, _caps: &gst::Caps) -> Option<gst::Caps> {
        None
    }

    /// How frames with `caps` of the sink pad lie in their buffers, if they are not the raw video that the caps name.
    ///
    /// # Errors
    /// [`ClError::Refused`] for caps that the element cannot read.
    fn carrier(&self, _caps: &gst::Caps) -> Result<Option<Carrier>, ClError> {
        Ok(None)
    }
}

/// The implementation behind an element of the class.
fn imp<T: ClBaseFilterImpl>(element: &ClBaseFilter) -> Option<&T> {
    let element = element.downcast_ref::<T::Type>();
    element.map(ObjectSubclassIsExt::imp)
}

/// The data of each subclass.
trait HasData: ClBaseFilterImpl {
    const DATA: &'static ClassData = &ClassData {
        task: Self::TASK,
        counts: Self::COUNTS,
        rewrites: Self::REWRITES,
        check: |element, images| imp::<Self>(element).map_or(Ok(()), |this| this.check(images)),
        open: |element| imp::<Self>(element).map(Self::open),
        close: |element| {
            if let Some(this) = imp::<Self>(element) {
                this.close();
            }
        },
        other_caps: |element, direction, caps| imp::<Self>(element)?.other_caps(direction, caps),
        carrier: |element, caps| imp::<Self>(element).map_or(Ok(None), |this| this.carrier(caps)),
    };
}

impl<T: ClBaseFilterImpl> HasData for T {}

// SAFETY: the parent's class_init runs; the data belong to the type whose class is initialised.
unsafe impl<T: ClBaseFilterImpl> IsSubclassable<T> for ClBaseFilter {
    fn class_init(class: &mut glib::Class<Self>) {
        Self::parent_class_init::<T>(class);
        class.as_mut().data = Some(T::DATA);
    }
}
