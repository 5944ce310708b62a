//! Implementation of `clgaussian`.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use atomic_refcell::AtomicRefCell;
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use crate::elements::base_filter::{ClBaseFilterExt, ClBaseFilterImpl, Live};
use clinspect_core::ClError;
use clinspect_core::weights::KERNEL_SIZE_RANGE;
use clinspect_opencl::frame::FORMATS;
use clinspect_opencl::{Taken, new_video_pool};
use clinspect_operators::{Arithmetic, Gaussian, GaussianSettings};

const DEFAULT_KERNEL_SIZE: u32 = 3;
const DEFAULT_SIGMA: f64 = 0.0;
const MAX_SIGMA: f64 = 1000.0;

/// How sums are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClGaussianArithmetic")]
pub enum GaussianArithmetic {
    /// Integer.
    #[default]
    #[enum_value(name = "Auto: integer", nick = "auto")]
    Auto,
    /// Exact integers.
    #[enum_value(
        name = "Integer: exact, one rounding, the same bits on every device",
        nick = "integer"
    )]
    Integer,
    /// 32-bit floats.
    #[enum_value(
        name = "Float: 32-bit floats, within 1 of the exact value",
        nick = "float"
    )]
    Float,
}

#[derive(Debug, Clone, PartialEq)]
struct Settings {
    kernel_size: u32,
    sigma: f64,
    arithmetic: GaussianArithmetic,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kernel_size: DEFAULT_KERNEL_SIZE,
            sigma: DEFAULT_SIGMA,
            arithmetic: GaussianArithmetic::default(),
        }
    }
}

struct State {
    live: Live<Settings, Gaussian>,
}

/// Instance of `clgaussian`.
#[derive(Default)]
pub struct ClGaussian {
    settings: Mutex<Settings>,
    state: AtomicRefCell<Option<State>>,
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clgaussian",
        gst::DebugColorFlags::empty(),
        Some("OpenCL Gaussian filter"),
    )
});

impl ClGaussian {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, settings: &Settings) -> Result<Gaussian, ClError> {
        let element = self.obj();
        let importer = element.importer()?;
        Gaussian::new(
            importer.context(),
            importer.layout(),
            &GaussianSettings {
                kernel_size: settings.kernel_size as usize,
                sigma_px: settings.sigma,
                arithmetic: match settings.arithmetic {
                    GaussianArithmetic::Auto | GaussianArithmetic::Integer => Arithmetic::Integer,
                    GaussianArithmetic::Float => Arithmetic::Float,
                },
                image: element.wants_images(),
                variant: None,
            },
        )
    }

    fn filter(&self, input: &gst::BufferRef, output: &gst::BufferRef) -> Result<(), ClError> {
        let mut state = self.state.borrow_mut();
        let state = state
            .as_mut()
            .ok_or_else(|| ClError::Input("a frame came before its caps".into()))?;
        let refusal = state.live.follow(&self.settings, |s| self.build(s))?;
        if let Some(refusal) = refusal {
            self.obj().post_refusal(&refusal);
        }
        let element = self.obj();
        let mut importer = element.importer()?;
        let from = importer.import(input)?;
        let to = importer.output(output)?;
        let done = state.live.operator.run(&from, &to, importer.meter())?;
        // A source may use its memory again once the frame is sent on; device memory is in
        // order with whatever uses it next.
        if from.taken() == Taken::Wrapped {
            done.wait("the Gaussian")?;
            from.end_use();
        }
        Ok(())
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClGaussian {
    const NAME: &'static str = "GstClGaussian";
    type Type = super::ClGaussian;
    type ParentType = crate::elements::base_filter::ClBaseFilter;
}

impl ObjectImpl for ClGaussian {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            vec![
                glib::ParamSpecUInt::builder("kernel-size")
                    .nick("Kernel size")
                    .blurb("Taps along each axis; odd")
                    .minimum(*KERNEL_SIZE_RANGE.start() as u32)
                    .maximum(*KERNEL_SIZE_RANGE.end() as u32)
                    .default_value(DEFAULT_KERNEL_SIZE)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecDouble::builder("sigma")
                    .nick("Sigma")
                    .blurb(
                        "Standard deviation in pixels; 0 = derived from kernel-size as \
                         0.3*((kernel-size-1)/2 - 1) + 0.8",
                    )
                    .minimum(0.0)
                    .maximum(MAX_SIGMA)
                    .default_value(DEFAULT_SIGMA)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecEnum::builder_with_default(
                    "arithmetic",
                    GaussianArithmetic::default(),
                )
                .nick("Arithmetic")
                .blurb("How sums are held")
                .mutable_playing()
                .build(),
            ]
        });
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        gst::info!(CAT, imp = self, "{} = {value:?}", pspec.name());
        let mut settings = self.settings();
        match pspec.name() {
            "kernel-size" => settings.kernel_size = value.get().unwrap_or(DEFAULT_KERNEL_SIZE),
            // GObject refuses numbers outside the range, NaN too.
            "sigma" => settings.sigma = value.get().unwrap_or(DEFAULT_SIGMA),
            "arithmetic" => settings.arithmetic = value.get().unwrap_or_default(),
            _ => {}
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let settings = self.settings();
        match pspec.name() {
            "kernel-size" => settings.kernel_size.to_value(),
            "sigma" => settings.sigma.to_value(),
            "arithmetic" => settings.arithmetic.to_value(),
            _ => pspec.default_value().clone(),
        }
    }
}

impl GstObjectImpl for ClGaussian {}

impl ElementImpl for ClGaussian {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL Gaussian filter",
                "Filter/Effect/Video",
                "Smooths every component of a frame with a Gaussian on an OpenCL device",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| crate::elements::same_caps_templates(&FORMATS));
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for ClGaussian {
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.obj().start_device()
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.state.borrow_mut() = None;
        self.parent_stop()
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        self.parent_set_caps(incaps, outcaps)?;
        let settings = self.settings().clone();
        let live = Live::new(settings, |s| self.build(s));
        let result = live.map(|live| *self.state.borrow_mut() = Some(State { live }));
        self.obj()
            .set_up_result(&CAT, "setting up the Gaussian", result)
    }

    fn transform_size(
        &self,
        _direction: gst::PadDirection,
        _caps: &gst::Caps,
        _size: usize,
        othercaps: &gst::Caps,
    ) -> Option<usize> {
        // A frame's size may be anything above what its rows need.
        Some(gst_video::VideoInfo::from_caps(othercaps).ok()?.size())
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let (caps, _) = query.get_owned();
        let pool = caps
            .ok_or_else(|| ClError::Refused("an allocation without caps".into()))
            .and_then(|caps| {
                let info = gst_video::VideoInfo::from_caps(&caps)
                    .map_err(|_| ClError::Refused(format!("no video format in {caps}")))?;
                let size = u32::try_from(info.size())
                    .map_err(|_| ClError::Refused("frames over 4 GiB".into()))?;
                let asked = query.allocation_pools().next().map_or(0, |pool| pool.2);
                let video_meta = query
                    .find_allocation_meta::<gst_video::VideoMeta>()
                    .is_some();
                let device = self.obj().device()?;
                new_video_pool(&device.allocator, &caps, size, asked, video_meta)
                    .map(|pool| (pool, size, asked))
            });
        let (pool, size, min) = pool.map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        crate::elements::use_pool(query, &pool, size, min);
        Ok(())
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.filter(inbuf, outbuf).map_err(|error| {
            self.obj().post_error(&error, "filtering a frame");
            gst::FlowError::Error
        })?;
        Ok(gst::FlowSuccess::Ok)
    }
}

impl ClBaseFilterImpl for ClGaussian {}
