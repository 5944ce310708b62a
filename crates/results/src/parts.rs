//! The parts of a frame that were compared by themselves.

use super::{Defect, DefectResult, Verdict, VerdictLimits};

/// The parts of a frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parts {
    /// Fewest parts that a frame may have.
    pub least: u32,
    /// Most parts that a frame may have.
    pub most: u32,
    /// From top to bottom, then from left to right; they are numbered from 1 in this order.
    pub parts: Vec<Part>,
    /// The highest place score of something that was taken for no part, if it is like one.
    pub other: Option<f64>,
}

/// A part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Part {
    /// Where its centre lies along x, px from the left edge of the frame.
    pub x: f64,
    /// The same along y from the upper edge, px.
    pub y: f64,
    /// How far it is turned, clockwise on the screen, degrees from −180 to 180.
    pub angle: f64,
    /// How much larger it is than the trained one.
    pub scale: f64,
    /// How surely it is there, 0 to 1.
    pub score: f64,
    /// The share of it that lies in the frame, 0 to 1.
    pub inside: f64,
    /// Number of poses that are about as sure; the one with the fewest marked pixels counts.
    pub poses: u32,
    /// The frame's edge cuts it, so it was not compared.
    pub is_cut: bool,
    /// Its pixels that were judged.
    pub judged_pixels: u64,
    /// Those of them that are marked.
    pub defect_pixels: u64,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// Why no part of a frame can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPart {
    /// Nothing is like the part.
    Missing,
    /// What is there is like the part, but not surely the part.
    Other,
    /// The frame's edge cuts it.
    Cut,
}

impl Parts {
    /// Whether parts were found, but another number of them than is wanted.
    pub fn is_miscounted(&self) -> bool {
        let count = self.parts.len() as u32;
        count > 0 && !(self.least..=self.most).contains(&count)
    }

    /// Whether every number can be one of parts.
    pub(super) fn is_plausible(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        self.least <= self.most
            && self.other.is_none_or(is_share)
            && self.parts.iter().all(|part| {
                [part.x, part.y, part.angle].into_iter().all(f64::is_finite)
                    && part.scale.is_finite()
                    && part.scale > 0.0
                    && is_share(part.score)
                    && is_share(part.inside)
                    && part.defect_pixels <= part.judged_pixels
            })
    }

    /// Why the frame cannot pass although nothing fails.
    pub fn why_none(&self) -> Option<NoPart> {
        match (&self.parts[..], self.other) {
            ([], Some(_)) => Some(NoPart::Other),
            ([], None) => Some(NoPart::Missing),
            (parts, _) => parts.iter().any(|part| part.is_cut).then_some(NoPart::Cut),
        }
    }

    pub(super) fn write(&self, fields: &mut gst::StructureRef, mm_per_pixel: [f64; 2]) {
        fields.set("parts-least", self.least);
        fields.set("parts-most", self.most);
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(at, part)| part.structure(at as u32 + 1, mm_per_pixel));
        fields.set("parts", gst::Array::new(parts));
        if let Some(other) = self.other {
            fields.set("other-score", other);
        }
    }

    /// The parts in these fields, if there are some; `None` if a field is missing or has another type.
    pub(super) fn read(fields: &gst::StructureRef) -> Option<Option<Self>> {
        if !fields.has_field("parts") {
            return Some(None);
        }
        let array: gst::Array = fields.get("parts").ok()?;
        let parts = array.iter().map(|value| {
            let part: gst::Structure = value.get().ok()?;
            Part::read(&part)
        });
        Some(Some(Self {
            least: fields.get("parts-least").ok()?,
            most: fields.get("parts-most").ok()?,
            parts: parts.collect::<Option<_>>()?,
            other: match fields.has_field("other-score") {
                true => Some(fields.get("other-score").ok()?),
                false => None,
            },
        }))
    }
}

impl Part {
    /// Where its centre lies, mm from the upper left corner, if the size of a pixel is known.
    pub fn mm(&self, mm_per_pixel: [f64; 2]) -> Option<[f64; 2]> {
        let [x, y] = mm_per_pixel;
        (x > 0.0 && y > 0.0).then_some([self.x * x, self.y * y])
    }

    fn structure(&self, number: u32, mm_per_pixel: [f64; 2]) -> gst::Structure {
        let mm = self.mm(mm_per_pixel);
        gst::Structure::builder("part")
            .field("number", number)
            .field("x", self.x)
            .field("y", self.y)
            .field_if_some("x-mm", mm.map(|[x, _]| x))
            .field_if_some("y-mm", mm.map(|[_, y]| y))
            .field("angle", self.angle)
            .field("scale", self.scale)
            .field("score", self.score)
            .field("inside", self.inside)
            .field("poses", self.poses)
            .field("cut", self.is_cut)
            .field("judged-pixels", self.judged_pixels)
            .field("defect-pixels", self.defect_pixels)
            .field("verdict", self.verdict.name())
            .build()
    }

    fn read(fields: &gst::StructureRef) -> Option<Self> {
        Some(Self {
            x: fields.get("x").ok()?,
            y: fields.get("y").ok()?,
            angle: fields.get("angle").ok()?,
            scale: fields.get("scale").ok()?,
            score: fields.get("score").ok()?,
            inside: fields.get("inside").ok()?,
            poses: fields.get("poses").ok()?,
            is_cut: fields.get("cut").ok()?,
            judged_pixels: fields.get("judged-pixels").ok()?,
            defect_pixels: fields.get("defect-pixels").ok()?,
            verdict: Verdict::from_name(fields.get("verdict").ok()?)?,
        })
    }
}

impl DefectResult {
    /// The parts with the verdict on each.
    pub fn judge_parts(&mut self, limits: &VerdictLimits) {
        let Some(mut parts) = self.parts.take() else {
            return;
        };
        for (at, part) in parts.parts.iter_mut().enumerate() {
            let number = at as u8 + 1;
            let own = self.defects.iter().filter(|defect| defect.part() == number);
            let own = Self {
                defects: own.copied().collect::<Vec<Defect>>(),
                defect_pixels: part.defect_pixels,
                judged_pixels: part.judged_pixels,
                // Which part has defects that are not listed is not known.
                overflow: self.overflow && part.defect_pixels > 0,
                ..Self::default()
            };
            part.verdict = if limits.turned(part.angle) && !part.is_cut {
                Verdict::Fail
            } else {
                Verdict::new(&own, limits)
            };
        }
        self.parts = Some(parts);
    }
}
