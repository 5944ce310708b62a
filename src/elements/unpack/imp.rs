//! Implementation of `clunpack`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{self, subclass::ObjectImplRef},
    subclass::prelude::*,
};
use gst_base::{
    prelude::*,
    subclass::{BaseTransformMode, prelude::*},
};

use super::caps;
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterImpl, Frame, FrameStream, Live, Negotiated, before_caps, put_back,
    },
    debug_category, element_class, lock, pad_templates,
    property_table::{PropertyTable, properties, property_methods},
};
use clinspect_core::{
    ClError,
    unpack::{Demosaic, Output, Packing},
};
use clinspect_opencl::{
    ImportPath,
    frame::{Carrier, Importer},
};
use clinspect_operators::Unpack;

/// What the bytes of frames with the caps GRAY16_LE are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClUnpackPacking")]
enum PackingChoice {
    #[default]
    #[enum_value(
        name = "None: raw video passes unchanged, Bayer pictures are unpacked as their caps say",
        nick = "none"
    )]
    None,
    #[enum_value(
        name = "Mono10p: 4 samples in 5 bytes, a stream of bits",
        nick = "mono10p"
    )]
    Mono10p,
    #[enum_value(
        name = "Mono12p: 2 samples in 3 bytes, a stream of bits",
        nick = "mono12p"
    )]
    Mono12p,
    #[enum_value(
        name = "Mono10Packed: 2 samples in 3 bytes, their low bits in the middle one",
        nick = "mono10packed"
    )]
    Mono10Packed,
    #[enum_value(
        name = "Mono12Packed: 2 samples in 3 bytes, their low bits in the middle one",
        nick = "mono12packed"
    )]
    Mono12Packed,
}

impl PackingChoice {
    fn packing(self) -> Option<Packing> {
        match self {
            Self::None => None,
            Self::Mono10p => Some(Packing::Mono10p),
            Self::Mono12p => Some(Packing::Mono12p),
            Self::Mono10Packed => Some(Packing::Mono10Packed),
            Self::Mono12Packed => Some(Packing::Mono12Packed),
        }
    }
}

/// How the colours that Bayer samples lack are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClUnpackDemosaic")]
enum DemosaicChoice {
    #[default]
    #[enum_value(
        name = "Bilinear: the mean of the two or four nearest samples of the colour",
        nick = "bilinear"
    )]
    Bilinear,
    #[enum_value(
        name = "Gradient: the mean, corrected by the gradient of the sample's own colour (Malvar, He, Cutler)",
        nick = "gradient"
    )]
    Gradient,
}

impl DemosaicChoice {
    fn demosaic(self) -> Demosaic {
        match self {
            Self::Bilinear => Demosaic::Bilinear,
            Self::Gradient => Demosaic::Gradient,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    packing: PackingChoice,
    demosaic: DemosaicChoice,
}

static PROPERTIES: LazyLock<PropertyTable<ClUnpack>> = LazyLock::new(|| {
    let rows = properties!(Settings {
        choice_at_start(
            "packing", "Packing",
            "What the bytes of frames with the caps GRAY16_LE are: packed samples of this PixelFormat of the camera"
        ) = packing;
        choice(
            "demosaic", "Demosaic",
            "How the two colours that each sample of a Bayer picture lacks are computed"
        ) = demosaic;
    });
    PropertyTable::new(&CAT).with(|this| &this.settings, rows)
});

/// Instance of `clunpack`.
#[derive(Default)]
pub struct ClUnpack {
    settings: Mutex<Settings>,
    /// The property `packing` as it was at the start; `None` while the element is stopped.
    latched: Mutex<Option<PackingChoice>>,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clunpack", "OpenCL unpacker"));

fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
    TEMPLATES.as_ref()
}

element_class!(
    ClUnpack: ClBaseFilter,
    "GstClUnpack",
    templates(),
    "OpenCL unpacker",
    "Filter/Converter/Video",
    "Unpacks 10- and 12-bit samples and Bayer pictures of cameras on an OpenCL device",
);

impl ObjectImpl for ClUnpack {
    property_methods!(PROPERTIES);
}

impl BaseTransformImpl for ClUnpack {
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn fixate_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        othercaps: gst::Caps,
    ) -> gst::Caps {
        // `othercaps` has downstream's order of formats, which begins with GRAY8.
        let preferred = match direction {
            gst::PadDirection::Sink => caps::preferred(caps, &othercaps, self.packing()),
            _ => None,
        };
        self.parent_fixate_caps(direction, caps, preferred.unwrap_or(othercaps))
    }
}

impl ClUnpack {
    fn packing(&self) -> Option<Packing> {
        let latched = *lock(&self.latched);
        let choice = latched.unwrap_or_else(|| lock(&self.settings).packing);
        choice.packing()
    }
}

impl ClBaseFilterImpl for ClUnpack {
    const TASK: &'static str = "unpacking a frame";

    fn check(&self, images: bool) -> Result<(), ClError> {
        check_memory(images)
    }

    fn open(&self) -> Box<dyn FrameStream> {
        let packing = lock(&self.settings).packing;
        *lock(&self.latched) = Some(packing);
        Box::new(UnpackStream {
            live: Live::new(&*self.obj()),
            output: None,
            element: self.ref_counted(),
        })
    }

    fn close(&self) {
        *lock(&self.latched) = None;
    }

    fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> Option<gst::Caps> {
        Some(caps::transform(direction, caps, self.packing()))
    }

    fn carrier(&self, caps: &gst::Caps) -> Result<Option<Carrier>, ClError> {
        caps::carrier(caps, self.packing())
    }
}

/// Refuses `memory-object=image`.
fn check_memory(images: bool) -> Result<(), ClError> {
    if images {
        return Err(ClError::Refused(
            "clunpack reads bytes, which images do not hold; set memory-object=auto".into(),
        ));
    }
    Ok(())
}

/// The work of a running element.
struct UnpackStream {
    element: ObjectImplRef<ClUnpack>,
    live: Live<DemosaicChoice, Unpack>,
    /// Finds output frames in their buffers; `None` while raw video passes.
    output: Option<Importer>,
}

impl FrameStream for UnpackStream {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        let carrier = caps.importer.carrier();
        self.element.obj().set_passthrough(carrier.is_none());
        let Some(carrier) = carrier else {
            self.output = None;
            return Ok(());
        };
        check_memory(caps.target.images)?;
        let unknown = || ClError::Refused(format!("cannot unpack frames to {}", caps.outcaps));
        let info = gst_video::VideoInfo::from_caps(caps.outcaps).map_err(|_| unknown())?;
        let output = Output::ALL
            .into_iter()
            .find(|output| output.name() == info.format().to_str())
            .ok_or_else(unknown)?;
        let target = caps.target.clone();
        self.output = Some(Importer::new(
            &target.context,
            caps.importer.meter(),
            &info,
        )?);
        let (encoding, size) = (
            carrier.encoding(),
            carrier.samples().map(|length| length as usize),
        );
        let demosaic = lock(&self.element.settings).demosaic;
        self.live.start(demosaic, move |demosaic| {
            Unpack::new(
                &target.context,
                encoding,
                demosaic.demosaic(),
                output,
                size,
                &target.trial,
            )
        })
    }

    fn follow(&mut self, revision: u64) -> Result<(), ClError> {
        let now = &self.element.settings;
        let wanted = || lock(now).demosaic;
        self.live.follow(revision, wanted, |refused, in_force| {
            put_back(&mut lock(now).demosaic, refused, in_force);
        })
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        let outputs = self.output.as_ref().ok_or_else(before_caps)?;
        let output = outputs.output(frame.target()?)?;
        let operator = &mut self.live.in_force()?.operator;
        let done = operator.run(&frame.input, &output, frame.meter())?;
        // The source may reuse its memory as soon as the frame is pushed. OpenCL memory needs no
        // wait, because its next user is ordered after the kernel.
        if frame.input.taken() == ImportPath::Wrapped {
            done.wait("unpacking")?;
        }
        Ok(None)
    }
}
