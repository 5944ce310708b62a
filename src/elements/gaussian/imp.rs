//! Implementation of `clgaussian`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{self, subclass::ObjectImplRef},
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterImpl, Frame, FrameStream, Live, Negotiated, put_back,
    },
    debug_category, element_class, lock,
    property_table::{PropertyTable, properties, property_methods},
};
use clinspect_core::ClError;
use clinspect_core::{weights::KERNEL_SIZE_RANGE, window::Reach};
use clinspect_opencl::ImportPath;
use clinspect_operators::{Arithmetic, Gaussian, GaussianSettings};

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    kernel_size: u32,
    sigma: f64,
    arithmetic: Arithmetic,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kernel_size: 3,
            sigma: 0.0,
            arithmetic: Arithmetic::default(),
        }
    }
}

impl Settings {
    fn operator(&self, image: bool) -> GaussianSettings {
        GaussianSettings {
            kernel_size: self.kernel_size as usize,
            sigma_px: self.sigma,
            arithmetic: self.arithmetic,
            image,
            variant: None,
        }
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClGaussian>> = LazyLock::new(|| {
    let sizes = *KERNEL_SIZE_RANGE.start() as u32..=*KERNEL_SIZE_RANGE.end() as u32;
    let rows = properties!(Settings {
        uint("kernel-size", "Kernel size", "Width and height of the kernel, in pixels; odd", sizes) = kernel_size;
        double(
            "sigma", "Sigma",
            "Standard deviation in pixels; 0 = derived from kernel-size as \
             0.3*((kernel-size-1)/2 - 1) + 0.8",
            0.0..=1000.0
        ) = sigma;
        choice("arithmetic", "Arithmetic", "Number format of the sums") = arithmetic;
    });
    base_filter::with_line_scan(PropertyTable::new(&CAT).with(|this| &this.settings, rows))
});

/// Instance of `clgaussian`.
#[derive(Default)]
pub struct ClGaussian {
    settings: Mutex<Settings>,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clgaussian", "OpenCL Gaussian filter"));

element_class!(
    ClGaussian: ClBaseFilter,
    "GstClGaussian",
    base_filter::templates(),
    "OpenCL Gaussian filter",
    "Filter/Effect/Video",
    "Smooths every component of a frame with a Gaussian on an OpenCL device",
);

impl ObjectImpl for ClGaussian {
    property_methods!(PROPERTIES);
}

impl BaseTransformImpl for ClGaussian {
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClGaussian {
    const TASK: &'static str = "filtering a frame";

    fn check(&self, images: bool) -> Result<(), ClError> {
        lock(&self.settings).operator(images).check()
    }

    fn open(&self) -> Box<dyn FrameStream> {
        Box::new(GaussianStream {
            live: Live::new(&*self.obj()),
            element: self.ref_counted(),
        })
    }
}

/// The work of a running element.
struct GaussianStream {
    element: ObjectImplRef<ClGaussian>,
    live: Live<Settings, Gaussian>,
}

impl FrameStream for GaussianStream {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        let settings = lock(&self.element.settings).clone();
        let target = caps.target.clone();
        self.live.start(settings, move |settings| {
            let settings = settings.operator(target.images);
            let operator = Gaussian::new(&target.context, &target.layout, &settings)?;
            target.check_reach(&operator.reach())?;
            target
                .trial
                .gaussian(&target.layout, &settings, &operator)?;
            Ok(operator)
        })
    }

    fn follow(&mut self, revision: u64) -> Result<(), ClError> {
        let now = &self.element.settings;
        let wanted = || lock(now).clone();
        self.live.follow(revision, wanted, |refused, in_force| {
            put_back(&mut *lock(now), refused, in_force);
        })
    }

    fn reach(&self) -> Reach {
        let in_force = self.live.get();
        in_force.map_or_else(Reach::default, |in_force| in_force.operator.reach())
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        let operator = &mut self.live.in_force()?.operator;
        let output = frame.target_frame()?;
        if frame.window.is_web {
            operator.take(&frame.window);
        }
        let done = operator.run(&frame.input, &output, frame.meter())?;
        // The source may reuse its memory as soon as the frame is pushed. OpenCL memory needs no
        // wait, because its next user is ordered after the kernel.
        if frame.input.taken() == ImportPath::Wrapped {
            done.wait("the Gaussian")?;
        }
        Ok(None)
    }
}
