//! Implementation of `inspectoverlay`: the object and its pads.

use std::sync::{
    LazyLock, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{AggregatorPad, subclass::prelude::*};

use super::{
    masks::{self, Masks},
    output::Output,
    properties::{self, Settings},
};

/// Latency that a mask pad adds to a live pipeline unless `latency` is set: the time for the
/// inspection.
const INSPECTION: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// State of the streaming thread.
#[derive(Default)]
pub(super) struct State {
    /// Caps of the frames.
    pub frames: Option<(gst::Caps, gst_video::VideoInfo)>,
    pub output: Option<Output>,
    pub masks: Masks,
}

/// Instance of `inspectoverlay`.
pub struct InspectOverlay {
    pub(super) settings: Mutex<Settings>,
    pub(super) state: Mutex<State>,
    /// The pad `sink`.
    pub(super) frames: AggregatorPad,
    /// Whether a warning was logged since the start; later ones are debug messages.
    pub(super) warned: AtomicBool,
}

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectoverlay",
        gst::DebugColorFlags::empty(),
        Some("Inspection overlay"),
    )
});

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InspectOverlay {
    pub(super) fn mask_pad(&self) -> Option<AggregatorPad> {
        self.obj().static_pad(masks::PAD)?.downcast().ok()
    }

    /// Logs why something is not drawn. The frames continue.
    pub(super) fn warn(&self, why: &str) {
        if self.warned.swap(true, Ordering::Relaxed) {
            gst::debug!(CAT, imp = self, "not drawn: {why}");
        } else {
            gst::warning!(CAT, imp = self, "not drawn: {why}");
        }
    }

    /// Warns if only masks are linked. gst-launch-1.0 may link packed masks to the mask pad by
    /// itself, and the pipeline then never starts.
    fn warn_of_masks_alone(&self) {
        let has_masks = self.mask_pad().is_some_and(|pad| pad.is_linked());
        if has_masks && !self.frames.is_linked() {
            gst::element_imp_warning!(
                self,
                gst::CoreError::Pad,
                (
                    "{0}.mask is linked but {0}.sink is not: link the frames to {0}.sink too, \
                     or set output=frame at clpitchthreshold instead",
                    self.obj().name()
                )
            );
        }
    }

    /// Sets an unlinked mask pad to EOS, because GstAggregator waits for every pad that is not at
    /// EOS.
    pub(super) fn end_unlinked(&self) {
        if let Some(pad) = self.mask_pad().filter(|pad| !pad.is_linked()) {
            self.parent_sink_event(&pad, gst::event::Eos::new());
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for InspectOverlay {
    const NAME: &'static str = "GstInspectOverlay";
    type Type = super::InspectOverlay;
    type ParentType = gst_base::Aggregator;

    fn with_class(class: &Self::Class) -> Self {
        Self {
            settings: Mutex::default(),
            state: Mutex::default(),
            frames: glib::Object::builder()
                .property("name", "sink")
                .property("direction", gst::PadDirection::Sink)
                .property("template", class.pad_template("sink"))
                .build(),
            warned: AtomicBool::default(),
        }
    }
}

impl ObjectImpl for InspectOverlay {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::param_specs);
        PROPERTIES.as_ref()
    }

    fn constructed(&self) {
        self.parent_constructed();
        // The output caps are the input caps.
        self.frames.set_pad_flags(gst::PadFlags::PROXY_CAPS);
        if let Err(error) = self.obj().add_pad(&self.frames) {
            gst::error!(CAT, imp = self, "{error}");
        }
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        gst::info!(CAT, imp = self, "{} = {value:?}", pspec.name());
        properties::set(&mut lock(&self.settings), pspec.name(), value);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        properties::get(&lock(&self.settings), pspec)
    }
}

impl GstObjectImpl for InspectOverlay {}

impl ElementImpl for InspectOverlay {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Inspection overlay",
                "Filter/Effect/Video",
                "Draws defects, histograms and verdict over the picture",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst_video::VideoCapsBuilder::new()
                .format_list(super::formats())
                .build();
            let always = |name, direction| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).ok()
            };
            let sink = always("sink", gst::PadDirection::Sink);
            let src = always("src", gst::PadDirection::Src);
            [sink, src, masks::template()]
                .into_iter()
                .flatten()
                .collect()
        });
        TEMPLATES.as_ref()
    }

    fn request_new_pad(
        &self,
        template: &gst::PadTemplate,
        name: Option<&str>,
        caps: Option<&gst::Caps>,
    ) -> Option<gst::Pad> {
        if self.mask_pad().is_some() {
            gst::warning!(CAT, imp = self, "the element already has a mask pad");
            return None;
        }
        let pad = self.parent_request_new_pad(template, name, caps)?;
        if self.obj().property::<u64>("latency") == 0 {
            self.obj().set_property("latency", INSPECTION);
        }
        if self.obj().current_state() >= gst::State::Paused {
            self.end_unlinked();
        }
        Some(pad)
    }

    fn release_pad(&self, pad: &gst::Pad) {
        self.parent_release_pad(pad);
        if self.obj().property::<u64>("latency") == INSPECTION.nseconds() {
            self.obj().set_property("latency", gst::ClockTime::ZERO);
        }
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        let is_start = transition == gst::StateChange::ReadyToPaused;
        if is_start {
            self.warn_of_masks_alone();
        }
        let changed = self.parent_change_state(transition)?;
        if is_start {
            self.end_unlinked();
        }
        Ok(changed)
    }
}
