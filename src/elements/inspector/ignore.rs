//! The properties `ignore-mask` and `ignore-regions`.

use std::{path::PathBuf, sync::Arc};

use gst::{glib, prelude::*};

use super::ignore_file;
use crate::elements::{
    arrays::{Array, Numbers},
    property_table::{Field, Row, properties},
    text,
};
use clinspect_core::{
    ClError,
    ignored::{Bitmap, Ignored, Polygon},
};

/// Pixels that are not judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ignore {
    mask: MaskFile,
    regions: Array<Regions>,
}

impl Ignore {
    /// The ignored pixels of frames of this size; `None` if there are none. `height` is `None` in a web.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a picture that cannot be read or has another size, or a polygon that
    /// cannot be drawn.
    pub fn pixels(
        &self,
        width: usize,
        height: Option<usize>,
    ) -> Result<Option<Arc<Ignored>>, ClError> {
        let (picture, polygons) = (self.picture()?, self.polygons()?);
        let ignored = Ignored::new(width, height, picture, polygons).map_err(refused_mask)?;
        Ok((!ignored.is_empty()).then(|| Arc::new(ignored)))
    }

    /// Checks what no frame decides.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a picture that cannot be read, or a polygon that cannot be drawn.
    pub(super) fn check(&self) -> Result<(), ClError> {
        self.picture()?;
        self.polygons()?;
        Ok(())
    }

    fn picture(&self) -> Result<Option<Arc<Bitmap>>, ClError> {
        (self.mask.picture.clone().transpose()).map_err(refused_mask)
    }

    fn polygons(&self) -> Result<Vec<Polygon>, ClError> {
        self.regions.check("ignore-regions", |regions| {
            let numbered = regions.0.iter().enumerate();
            numbered
                .map(|(n, numbers)| {
                    Polygon::new(numbers).map_err(|why| format!("polygon {}: {why}", n + 1))
                })
                .collect()
        })
    }

    /// Reads the picture again: the file may have changed since the property was set.
    pub(super) fn read_again(&mut self) {
        self.mask.read();
    }
}

fn refused_mask(why: String) -> ClError {
    ClError::Refused(format!("ignore-mask: {why}"))
}

/// A picture in a file.
#[derive(Debug, Clone, Default, PartialEq)]
struct MaskFile {
    path: PathBuf,
    /// The pixels that are not 0, or why the file cannot be read; `None` without a path.
    picture: Option<Result<Arc<Bitmap>, String>>,
}

impl MaskFile {
    fn read(&mut self) {
        self.picture = (!self.path.as_os_str().is_empty())
            .then(|| ignore_file::read(&self.path).map(Arc::new));
    }
}

impl Field for MaskFile {
    fn to_property(&self) -> glib::Value {
        self.path.to_value()
    }

    fn set_property(&mut self, value: &glib::Value) {
        self.path = text::path(value).unwrap_or_default();
        self.read();
    }
}

/// Polygons as `<<x0, y0, x1, y1, ...>, ...>`; shared, because the settings are copied for each frame.
#[derive(Debug, Clone, Default)]
struct Regions(Arc<Vec<Vec<f64>>>);

impl PartialEq for Regions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Numbers for Regions {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let expected = || "an array such as \"<<0, 0, 64, 0, 64, 48>>\" is expected".to_owned();
        let array = value.get::<gst::Array>().map_err(|_| expected())?;
        let polygon = |polygon: &glib::SendValue| {
            let numbers = polygon.get::<gst::Array>().map_err(|_| expected())?;
            let numbers = numbers.iter().map(|number| {
                let number = number.get::<f64>();
                number.map_err(|_| "the coordinates of a polygon are numbers of type double".into())
            });
            numbers.collect()
        };
        let polygons: Result<_, String> = array.iter().map(polygon).collect();
        Ok(Self(Arc::new(polygons?)))
    }

    fn write(&self) -> glib::Value {
        gst::Array::new(self.0.iter().map(gst::Array::new)).to_value()
    }
}

pub(super) fn rows() -> Vec<Row<Ignore>> {
    properties!(Ignore {
        file(
            "ignore-mask", "Ignore mask",
            "File with a PNG, PBM or PGM picture of the frame's size: pixels other than 0 are not judged; \
             read when it is set and when caps change; empty = none"
        ) = mask;
        polygons(
            "ignore-regions", "Ignore regions",
            "Polygons whose pixels are not judged, <<x0, y0, x1, y1, x2, y2, ...>, ...> in pixels; \
             empty = none"
        ) = regions;
    })
}
