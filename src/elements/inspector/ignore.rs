//! The property `ignore`: pixels that are not judged.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gst::{glib, prelude::*};

use crate::elements::{
    checked::{CheckedValue, real},
    property_table::{Field, Row, properties},
    structure::{Structure, structure},
    text,
};
use clinspect_core::{
    ClError,
    ignored::{Bitmap, Ignored, Polygon},
};

/// The property.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ignore {
    pixels: CheckedValue<Pixels>,
}

/// Pixels that are not judged.
#[derive(Debug, Clone, Default, PartialEq)]
struct Pixels {
    mask: MaskFile,
    regions: Regions,
}

structure!(Pixels, "ignore" {
    file(
        "mask", "Mask",
        "File with a PNG, PBM or PGM picture of the frame's size: pixels other than 0 are not judged; \
         read when the property is set and when caps change; empty = none"
    ) = mask;
    polygons(
        "regions", "Regions",
        "Polygons whose pixels are not judged, <<x0, y0, x1, y1, x2, y2, ...>, ...> in pixels; \
         empty = none"
    ) = regions;
});

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
        self.pixels.check(Pixels::NAME, |pixels| {
            let (picture, polygons) = (pixels.picture()?, pixels.polygons()?);
            let ignored = Ignored::new(width, height, picture, polygons).map_err(of_mask)?;
            Ok((!ignored.is_empty()).then(|| Arc::new(ignored)))
        })
    }

    /// Checks what no frame decides.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a picture that cannot be read, or a polygon that cannot be drawn.
    pub(super) fn check(&self) -> Result<(), ClError> {
        self.pixels.check(Pixels::NAME, |pixels| {
            pixels.picture()?;
            pixels.polygons()?;
            Ok(())
        })
    }

    /// Reads the picture again: the file may have changed since the property was set.
    pub(super) fn read_again(&mut self) {
        self.pixels.usable_mut().mask.read();
    }
}

impl Pixels {
    fn picture(&self) -> Result<Option<Arc<Bitmap>>, String> {
        self.mask.picture.clone().transpose().map_err(of_mask)
    }

    fn polygons(&self) -> Result<Vec<Polygon>, String> {
        let numbered = self.regions.0.iter().enumerate();
        numbered
            .map(|(n, numbers)| {
                Polygon::new(numbers).map_err(|why| format!("regions: polygon {}: {why}", n + 1))
            })
            .collect()
    }
}

fn of_mask(why: String) -> String {
    format!("mask: {why}")
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
        self.picture =
            (!self.path.as_os_str().is_empty()).then(|| read_picture(&self.path).map(Arc::new));
    }
}

impl Field for MaskFile {
    fn to_property(&self) -> glib::SendValue {
        self.path.to_send_value()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        self.path = text::path(value).unwrap_or_default();
        // A file that cannot be read is refused with the frames, which may find it again.
        self.read();
        Ok(())
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

impl Field for Regions {
    fn to_property(&self) -> glib::SendValue {
        gst::Array::new(self.0.iter().map(gst::Array::new)).to_send_value()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        let expected = |_| "an array such as \"<<0, 0, 64, 0, 64, 48>>\" is expected".to_owned();
        let array = value.get::<gst::Array>().map_err(expected)?;
        let polygon = |polygon: &glib::SendValue| {
            let numbers = polygon.get::<gst::Array>().map_err(expected)?;
            numbers.iter().map(|number| real(number)).collect()
        };
        let polygons: Result<_, String> = array.iter().map(polygon).collect();
        self.0 = Arc::new(polygons?);
        Ok(())
    }
}

pub(super) fn rows() -> Vec<Row<Ignore>> {
    properties!(Ignore {
        structure(
            "Ignore",
            "Pixels that are not judged, such as \"ignore, regions=<<0, 0, 40, 0, 40, 480, 0, 480>>\""
        ) = pixels;
    })
}

/// The pixels of a PNG, PBM or PGM picture that are not 0; transparency does not count.
///
/// # Errors
/// A sentence that names the file.
fn read_picture(path: &Path) -> Result<Bitmap, String> {
    decode(path).map_err(|why| {
        format!(
            "{} cannot be read: {why}; name a PNG, PBM or PGM picture",
            path.display()
        )
    })
}

fn decode(path: &Path) -> Result<Bitmap, String> {
    let picture = clinspect_pictures::read(path)?;
    // JPEG changes the levels of a mask's edges.
    if picture.is_lossy {
        return Err("it is a JPEG picture".into());
    }
    let color = picture.pixels.color();
    let channels = usize::from(color.channel_count());
    let pixel = usize::from(color.bytes_per_pixel());
    let colors = pixel / channels * (channels - usize::from(color.has_alpha()));
    let [width, height] = [picture.pixels.width(), picture.pixels.height()];
    let mut pixels = picture.pixels.as_bytes().chunks_exact(pixel);
    // `from_pixels` asks for the pixels in the order of the samples. In PBM 1 is black, which became sample 0.
    Ok(Bitmap::from_pixels(
        width as usize,
        height as usize,
        |_, _| {
            let samples = pixels.next().and_then(|pixel| pixel.get(..colors));
            samples.is_some_and(|samples| samples.iter().any(|&s| s != 0)) != picture.is_bitmap
        },
    ))
}
