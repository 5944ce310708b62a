//! Unpacking of what cameras send. The frame of a request holds bytes: its width is that of a row.

use std::sync::Arc;

use clinspect_core::unpack::{Demosaic, Encoding, Output, Packing, Pattern};
use clinspect_core::variant::UnpackVariant;
use clinspect_opencl::ClContext;
use clinspect_operators::Unpack;

use crate::{
    Error,
    operators::refused,
    protocol::{Frame, Settings},
};

/// The operator, and the frame of its result: RGB of Bayer, and two bytes for each packed sample.
pub fn prepare(
    context: &Arc<ClContext>,
    frame: &Frame,
    settings: &Settings,
) -> Result<(Unpack, Frame), Error> {
    let pattern = Pattern::ALL.iter().find(|p| p.name() == settings.packing);
    let packing = Packing::ALL
        .iter()
        .find(|p| p.name().eq_ignore_ascii_case(&settings.packing));
    let (encoding, output) = match (pattern, packing) {
        (Some(&pattern), _) => {
            let encoding = Encoding::Bayer {
                pattern,
                bits: 8,
                big_endian: false,
            };
            (encoding, Output::Rgb)
        }
        (None, Some(&packing)) => (Encoding::Packed(packing), Output::Gray16Le),
        (None, None) => return Err(format!("no packing is called {}", settings.packing).into()),
    };
    let width = match packing {
        Some(packing) => frame.width / packing.group_bytes() * packing.group_samples(),
        None => frame.width,
    };
    let demosaic = match settings.demosaic.as_str() {
        "" => Demosaic::Bilinear,
        "gradient" => Demosaic::Gradient,
        other => return Err(format!("no demosaicing is called {other}").into()),
    };
    let variant = match settings.variant.as_str() {
        "" => None,
        "rows" => Some(UnpackVariant::Rows),
        "items" => Some(UnpackVariant::Items),
        other => return Err(format!("no variant is called {other}").into()),
    };
    let size = [width, frame.height];
    let made = Unpack::untested(context, encoding, demosaic, output, size, variant);
    let operator = refused(settings, made)?;
    let (pixels, channels) = match output {
        Output::Rgb => (width, 3),
        _ => (2 * width, 1),
    };
    let result = Frame {
        width: pixels,
        channels,
        stride: pixels * channels,
        base: 0,
        ..frame.clone()
    };
    Ok((operator, result))
}
