//! What an element has for the negotiated caps.

use gst::{prelude::*, subclass::prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};

use super::{
    imp::{CAT, ClBaseFilter},
    template::{AnyState, Negotiated, Work},
    web::{Beginning, Reason, Web},
};
use crate::elements::lock;
use clinspect_core::ClError;
use clinspect_opencl::frame::Importer;

/// State for the negotiated caps.
pub(super) struct Stream {
    pub importer: Importer,
    pub work: Work,
    /// The web, if frames are strips.
    pub web: Option<Web>,
    /// Input and output caps.
    pub caps: [gst::Caps; 2],
}

/// What new caps take over from the caps before; caps that are refused in between do not lose it.
#[derive(Default)]
pub(super) struct Kept {
    pub state: Option<AnyState>,
    pub web: Beginning,
}

impl ClBaseFilter {
    pub(super) fn set_up(
        &self,
        info: &gst_video::VideoInfo,
        incaps: &gst::Caps,
        outcaps: &gst::Caps,
    ) -> Result<(), ClError> {
        let methods = self.methods()?;
        let device = self.device()?;
        let is_same = lock(&self.stream)
            .as_ref()
            .is_some_and(|stream| stream.caps[0] == *incaps && stream.caps[1] == *outcaps);
        if device.line_scan {
            if is_same {
                // A branch that is linked downstream asks for caps again; the web goes on.
                return Ok(());
            }
            // What is held leaves with the caps before.
            if self.end_web(Reason::Caps).is_err() {
                gst::debug!(
                    CAT,
                    imp = self,
                    "the last strips before new caps were not sent"
                );
            }
        }
        let mut stream = lock(&self.stream);
        let mut kept = lock(&self.kept);
        if let Some(Stream { work, web, .. }) = stream.take() {
            *kept = Kept {
                state: Some(work.into_state()),
                web: web.map_or_else(Beginning::default, |web| web.next()),
            };
        }
        let importer = Importer::new(&device.context, &device.meter, info)?;
        let caps = Negotiated {
            incaps,
            outcaps,
            importer: &importer,
            allocator: &device.allocator,
        };
        if device.line_scan && device.images {
            return Err(ClError::Refused(
                "line-scan=true needs buffers; set memory-object=auto".into(),
            ));
        }
        let modes = [device.images, device.line_scan];
        let web = device.line_scan.then(|| Web::new(&importer, kept.web));
        let web = web.transpose()?;
        let work = (methods.set_up)(&self.obj(), &mut kept.state, &caps, modes)?;
        *stream = Some(Stream {
            importer,
            work,
            web,
            caps: [incaps.clone(), outcaps.clone()],
        });
        drop((stream, kept));
        self.tell_delay();
        Ok(())
    }

    /// Sets the accepted caps again after others were refused: the parent class does not set caps that equal
    /// those of the pads.
    pub(super) fn set_up_again(&self) -> Result<(), gst::FlowError> {
        if lock(&self.stream).is_some() {
            return Ok(());
        }
        let element = self.obj();
        let pads = [element.sink_pad(), element.src_pad()];
        match pads.map(|pad| pad.current_caps()) {
            [Some(incaps), Some(outcaps)] => self
                .set_caps(&incaps, &outcaps)
                .map_err(|_| gst::FlowError::NotNegotiated),
            _ => Ok(()),
        }
    }
}
