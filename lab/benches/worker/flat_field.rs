//! The flat field with references that a formula gives; `benches/peers.py` has the same formula.

use std::sync::Arc;

use clinspect_core::{
    flat_field::{Correction, Reference, Shape},
    layout::FrameLayout,
    variant::FlatFieldVariant,
};
use clinspect_opencl::ClContext;
use clinspect_operators::{FlatField, FlatFieldMode, FlatFieldSettings};

use crate::{Error, protocol::Settings};

/// The operator, with its gains.
pub fn prepare(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    settings: &Settings,
) -> Result<FlatField, Error> {
    let shape = Shape::of(layout, settings.line);
    let row = shape.width * shape.components;
    // White from 150 to 213 grey levels of 8 bits, dark from 0 to 7.
    let level = 256 << (layout.sample.bits() - 8);
    let reference = |value: &dyn Fn(usize, usize) -> usize| Reference {
        shape,
        values: (0..shape.len())
            .map(|at| value(at % row, at / row) as u32 * level)
            .collect(),
    };
    let white = reference(&|i, y| 150 + (7 * i + 3 * y) % 64);
    let dark = settings.dark.then(|| reference(&|i, y| (i + y) % 8));
    let correction = Correction::new(dark.as_ref(), &white, 0, 8 * level)?;
    let variant = match settings.variant.as_str() {
        "" => None,
        "rows" => Some(FlatFieldVariant::Rows),
        other => {
            let rows = other.strip_prefix("items ");
            let rows = rows.ok_or_else(|| format!("no variant is called {other}"))?;
            Some(FlatFieldVariant::Items {
                rows: rows.parse()?,
            })
        }
    };
    let settings = FlatFieldSettings {
        mode: if settings.line {
            FlatFieldMode::Line
        } else {
            FlatFieldMode::Area
        },
        bit_depth: 0,
        correction: Some(Arc::new(correction)),
        image: settings.image,
        variant,
    };
    Ok(FlatField::new(context, layout, &settings)?)
}
