//! Where a frame was found in the picture that it was compared with.

use super::defects::later;

const OLDEST: [&str; 4] = ["shift-x", "shift-y", "match-score", "matched"];

/// How a frame lies, compared with the picture of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Displacement along x of the point at the frame's centre, px.
    pub shift_x: f64,
    /// Displacement along y, px.
    pub shift_y: f64,
    /// The correlation there, 0 to 1.
    pub match_score: f64,
    /// Whether the score was high enough for a comparison.
    pub matched: bool,
    /// From a pixel x, y of the model to its place in the frame, px: `t[0] + t[1]·x + t[2]·y` and
    /// `t[3] + t[4]·x + t[5]·y`. Local shifts come in addition.
    pub transform: [f64; 6],
    /// Root mean square difference between the reduced frame and the reduced model after the alignment, grey levels of
    /// 8 bits.
    pub misfit: f64,
    /// What the alignment used.
    pub step: AlignStep,
    /// The longest local shift, px; 0 without local shifts.
    pub largest_local_shift: f64,
}

/// What an alignment used. A frame for which a step goes wrong falls back to the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlignStep {
    /// Shift, rotation, scale and shear.
    Affine,
    /// The shift alone.
    Shift,
    /// The shift with which the search started.
    Start,
    /// Nothing: the frame was compared where it is.
    #[default]
    Nothing,
}

impl AlignStep {
    const ALL: [Self; 4] = [Self::Affine, Self::Shift, Self::Start, Self::Nothing];

    /// The name in metas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affine => "affine",
            Self::Shift => "shift",
            Self::Start => "start",
            Self::Nothing => "none",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }
}

impl Default for Alignment {
    fn default() -> Self {
        Self {
            shift_x: 0.0,
            shift_y: 0.0,
            match_score: 0.0,
            matched: false,
            transform: Self::translation([0.0; 2]),
            misfit: 0.0,
            step: AlignStep::default(),
            largest_local_shift: 0.0,
        }
    }
}

impl Alignment {
    /// The transform of a shift along x and y.
    pub fn translation([x, y]: [f64; 2]) -> [f64; 6] {
        [x, 1.0, 0.0, y, 0.0, 1.0]
    }

    /// By how much the frame is turned, degrees; positive from +x towards +y, which is clockwise in a picture.
    pub fn rotation_degrees(&self) -> f64 {
        let [_, xx, xy, _, yx, yy] = self.transform;
        // The rotation nearest to the linear part: its polar decomposition.
        (yx - xy).atan2(xx + yy).to_degrees()
    }

    /// How much larger the frame shows the object than the model: the root of the ratio of areas.
    pub fn scale(&self) -> f64 {
        let [_, xx, xy, _, yx, yy] = self.transform;
        (xx * yy - xy * yx).abs().sqrt()
    }

    pub(super) fn write(&self, fields: &mut gst::StructureRef) {
        fields.set("shift-x", self.shift_x);
        fields.set("shift-y", self.shift_y);
        fields.set("match-score", self.match_score);
        fields.set("matched", self.matched);
        fields.set("transform", gst::Array::new(self.transform));
        fields.set("misfit", self.misfit);
        fields.set("align-step", self.step.name());
        fields.set("largest-local-shift", self.largest_local_shift);
    }

    /// The alignment in these fields, if there is one; `None` if a field is missing or has another type. Senders of
    /// earlier versions could shift only, and have the first four fields.
    pub(super) fn read(fields: &gst::StructureRef) -> Option<Option<Self>> {
        if !OLDEST.iter().any(|name| fields.has_field(*name)) {
            return Some(None);
        }
        let shift = [fields.get("shift-x").ok()?, fields.get("shift-y").ok()?];
        let transform = match fields.has_field("transform") {
            true => six(&fields.get("transform").ok()?)?,
            false => Self::translation(shift),
        };
        let step = match later::<Option<&str>>(fields, "align-step")? {
            Some(name) => AlignStep::from_name(name)?,
            None => AlignStep::Shift,
        };
        Some(Some(Self {
            shift_x: shift[0],
            shift_y: shift[1],
            match_score: fields.get("match-score").ok()?,
            matched: fields.get("matched").ok()?,
            transform,
            misfit: later(fields, "misfit")?,
            step,
            largest_local_shift: later(fields, "largest-local-shift")?,
        }))
    }

    /// Whether every number can be one of an alignment.
    pub(super) fn is_plausible(&self) -> bool {
        let any = self
            .transform
            .into_iter()
            .chain([self.shift_x, self.shift_y]);
        any.into_iter().all(f64::is_finite)
            && (0.0..=1.0).contains(&self.match_score)
            && [self.misfit, self.largest_local_shift]
                .iter()
                .all(|length| length.is_finite() && *length >= 0.0)
    }
}

fn six(array: &gst::Array) -> Option<[f64; 6]> {
    let values: Option<Vec<f64>> = array.iter().map(|value| value.get().ok()).collect();
    values?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_and_scale_are_those_of_the_linear_part() {
        for (degrees, scale) in [
            (0.0, 1.0),
            (0.1, 1.01),
            (-3.0, 0.97),
            (90.0, 2.0),
            (180.0, 1.0),
        ] {
            let (sin, cos) = f64::to_radians(degrees).sin_cos();
            let found = Alignment {
                transform: [
                    7.0,
                    scale * cos,
                    -scale * sin,
                    -9.0,
                    scale * sin,
                    scale * cos,
                ],
                ..Alignment::default()
            };
            assert!(
                (found.rotation_degrees() - degrees).abs() < 1e-12,
                "{found:?}"
            );
            assert!((found.scale() - scale).abs() < 1e-12, "{found:?}");
        }
        // Stretched along x by 4, along y not.
        let stretched = Alignment {
            transform: [0.0, 4.0, 0.0, 0.0, 0.0, 1.0],
            ..Alignment::default()
        };
        assert_eq!(
            (stretched.rotation_degrees(), stretched.scale()),
            (0.0, 2.0)
        );
    }

    #[test]
    fn fields_of_earlier_senders_are_a_shift() {
        gst::init().unwrap();
        let new = Alignment {
            shift_x: 1.25,
            shift_y: -3.5,
            match_score: 0.75,
            matched: true,
            transform: [1.0, 1.01, -0.02, -4.0, 0.02, 0.99],
            misfit: 2.5,
            step: AlignStep::Affine,
            largest_local_shift: 0.5,
        };
        let mut fields = gst::Structure::new_empty("fields");
        assert_eq!(Alignment::read(&fields), Some(None));
        new.write(&mut fields);
        assert_eq!(Alignment::read(&fields), Some(Some(new)));
        for step in AlignStep::ALL {
            fields.set("align-step", step.name());
            assert_eq!(Alignment::read(&fields).unwrap().unwrap().step, step);
        }
        let later = ["transform", "misfit", "align-step", "largest-local-shift"];
        for name in later {
            let mut wrong = fields.clone();
            wrong.set(name, 1_i32);
            assert_eq!(Alignment::read(&wrong), None, "{name}");
        }
        for array in [vec![1.0; 5], vec![1.0; 7], vec![]] {
            let mut wrong = fields.clone();
            wrong.set("transform", gst::Array::new(array));
            assert_eq!(Alignment::read(&wrong), None);
        }
        fields.remove_fields(later);
        let old = Alignment {
            transform: Alignment::translation([1.25, -3.5]),
            misfit: 0.0,
            step: AlignStep::Shift,
            largest_local_shift: 0.0,
            ..new
        };
        assert_eq!(Alignment::read(&fields), Some(Some(old)));
        fields.remove_field("matched");
        assert_eq!(Alignment::read(&fields), None);
    }
}
