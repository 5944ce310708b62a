//! Compares each part of a frame by itself, wherever it lies: docs/semantics.md, "Parts in a frame".

use std::{cmp::Reverse, sync::Arc};

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    ignored::Ignored,
    layout::FrameLayout,
    learning::Demand,
    mask::packed_stride,
    place::{Cut, Motion, Region},
    sight::Sight,
};
use clinspect_opencl::{ClBuffer, ClContext, Memory, Meter, Rows, frame::ClFrame};

use super::{
    Align, Models, NormalizeBy, PartPixels, PartsSettings, Reference, ReferenceSettings,
    part_finder::FoundPart,
    part_marks::PartMarks,
    part_search::{Located, PartSearch, Sighting},
};
use crate::{
    MaskTarget,
    colour::{Components, JudgedComponents},
    inspection::{
        Alignment, Basis, Component, FrameParts, Inspection, JudgedPart, JudgedPixels, Limit,
        Marked, Picture, Subject,
    },
    marker::packed_mask,
};

/// What a pixel of a picture has where nothing is compared.
const NO_DIFFERENCE: u8 = 128;

/// Compares the parts of frames of one layout.
#[derive(Debug)]
pub struct Parts {
    search: PartSearch,
    settings: PartsSettings,
    /// Compares a part as it is read from the frame.
    comparison: Components<Reference>,
    /// Memory for the marks of a part, packed.
    mask: Arc<ClBuffer>,
    marks: PartMarks,
    /// Memory for a packed mask of a frame that is then expanded; allocated at first use.
    packed: Option<Arc<ClBuffer>>,
    /// The trained picture, darker where there is no part, in grey levels of 8 bits.
    model: Vec<u8>,
    is_blind: bool,
    /// The parts of the last frame.
    sighting: Sighting,
    /// What became of them; none of those that are cut.
    judged: Vec<Option<Judged>>,
    /// The part that `comparison` has compared last.
    shown: Option<usize>,
    /// Limits are tried on the last frame.
    is_trial: bool,
}

/// A part that was compared.
#[derive(Debug, Clone, Copy)]
struct Judged {
    /// Which of its poses.
    pose: usize,
    pixels: u64,
    judged: u64,
}

impl Parts {
    /// Prepares the search and the comparison of parts in frames of `layout`. `of_component` has the settings of whole frames;
    /// `models` are whole pictures. `pixels`: the part in them.
    ///
    /// # Errors
    /// [`ClError::Refused`] if settings, frames, or the trained picture do not suit each other; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        (judged, models): (JudgedComponents, &Models),
        (settings, pixels): (&PartsSettings, PartPixels),
        mut of_component: impl FnMut(Option<Component>) -> Result<ReferenceSettings, ClError>,
    ) -> Result<Self, ClError> {
        let whole = of_component(None)?.of_parts();
        let search = PartSearch::new(context, layout, whole, models, pixels, settings)?;
        let cut = *search.finder().cut();
        let of_cut = |settings: ReferenceSettings, component| {
            let model = models.of(component);
            let model = model.map(|model| cut.of_model(model).map(Arc::new));
            Ok::<_, ClError>(ReferenceSettings {
                model: model.transpose().map_err(ClError::Refused)?,
                ..search.settings_of_cut(settings, pixels)?
            })
        };
        let comparison = Components::new(context, search.layout(), judged, |layout, component| {
            let settings = of_cut(of_component(component)?, component)?;
            Reference::new(context, layout, &settings)
        })?;
        let luma = models.luma().map_err(ClError::Refused)?;
        let depth = search.whole().depth;
        let [width, _] = search.whole().size;
        let means = luma.iter().flat_map(|luma| luma.mean()).enumerate();
        let model = means.map(|(at, mean)| {
            let level = (((mean + 128) >> 8) >> depth.saturating_sub(8)).min(255) as u8;
            let is_part = search.finder().region().holds(at % width, at / width);
            if is_part { level } else { level / 2 }
        });
        let mask_bytes = packed_stride(cut.size[0]) * cut.size[1];
        let meter = Arc::new(Meter::new(false));
        Ok(Self {
            model: model.collect(),
            mask: Arc::new(ClBuffer::new(context, mask_bytes, &meter)?),
            marks: PartMarks::new(search.whole())?,
            packed: None,
            comparison,
            settings: settings.clone(),
            search,
            is_blind: false,
            sighting: Sighting::default(),
            judged: Vec::new(),
            shown: None,
            is_trial: false,
        })
    }

    /// The comparison of a part as it is read.
    pub fn comparison(&self) -> &Components<Reference> {
        &self.comparison
    }

    /// The part in the trained picture, and the rectangle in which parts are compared.
    pub fn region(&self) -> (Region, Cut) {
        (self.search.finder().region().clone(), *self.cut())
    }

    /// By part of the last frame the poses that are about as sure.
    pub fn poses(&self) -> impl Iterator<Item = Vec<Motion>> {
        let parts = self.sighting.parts.iter();
        parts.map(|located| located.poses.iter().map(|found| found.motion).collect())
    }

    /// The device, and the layout of whole frames.
    pub(super) fn frames(&self) -> (&Arc<ClContext>, &FrameLayout) {
        let whole = self.search.whole();
        (&whole.context, &whole.layout)
    }

    /// Switches comparisons off: masks are then clear, and nothing is judged.
    pub fn set_blind(&mut self, is_blind: bool) {
        self.is_blind = is_blind;
    }

    /// Whether frames are compared: no training is going on.
    pub fn is_comparing(&self) -> bool {
        !self.is_blind
    }

    fn cut(&self) -> &Cut {
        self.search.finder().cut()
    }

    /// The pose of a part that counts.
    fn pose(&self, part: usize) -> Option<(&FoundPart, Judged)> {
        let judged = self.judged.get(part).copied().flatten()?;
        let located: &Located = self.sighting.parts.get(part)?;
        Some((located.poses.get(judged.pose)?, judged))
    }

    /// Compares a part at one of its poses. Its marks are in the part's mask then.
    fn compare(&mut self, subject: Subject, part: usize, pose: usize) -> Result<Judged, ClError> {
        let located = self.sighting.parts.get(part);
        let found = located.and_then(|located| located.poses.get(pose));
        let Some((motion, light)) = found.map(|found| (found.motion, found.light)) else {
            return Err(ClError::Input("the part is not one of this frame".into()));
        };
        self.shown = None;
        let Self {
            search,
            comparison,
            mask,
            ..
        } = self;
        search.read(subject.frame, (&motion, &light), subject.meter)?;
        let inside = motion.inside_frame(search.finder().cut(), search.whole().size);
        comparison.split_in_trials();
        for component in comparison.all_mut() {
            component.judge_inside(inside.clone());
        }
        let (own, target) = own_subject(search, mask, subject.meter);
        let marked = comparison.mark(own, target)?;
        self.shown = Some(part);
        Ok(Judged {
            pose,
            pixels: marked.pixels,
            judged: self.comparison.basis().judged.any,
        })
    }

    /// Compares a part at all of its poses; the one with the fewest marked pixels counts, and is compared last.
    fn judge(&mut self, subject: Subject, part: usize) -> Result<Judged, ClError> {
        let located = self.sighting.parts.get(part);
        let mut poses: Vec<(usize, Reverse<u64>, i32, bool)> =
            located.map_or_else(Vec::new, |located| {
                let order = |(at, found): (usize, &FoundPart)| {
                    let angle = found.pose.from_zero();
                    // Scores are not negative, so their bits have their order.
                    (
                        at,
                        Reverse(found.place_score.to_bits()),
                        angle.abs(),
                        angle < 0,
                    )
                };
                located.poses.iter().enumerate().map(order).collect()
            });
        poses.sort_by_key(|&(_, score, angle, is_left)| (score, angle, is_left));
        let mut best: Option<Judged> = None;
        let mut last = None;
        for (pose, ..) in poses {
            let judged = self.compare(subject, part, pose)?;
            last = Some(pose);
            if best.is_none_or(|best| judged.pixels < best.pixels) {
                best = Some(judged);
            }
            if judged.pixels == 0 {
                break;
            }
        }
        let best = best.ok_or_else(|| ClError::Input("the part has no pose".into()))?;
        if last != Some(best.pose) {
            return self.compare(subject, part, best.pose);
        }
        Ok(best)
    }

    /// Compares a part again, unless it was the last one, and returns whether it can be.
    fn show(&mut self, subject: Subject, part: usize) -> Result<bool, ClError> {
        let Some((_, judged)) = self.pose(part) else {
            return Ok(false);
        };
        if self.shown != Some(part) {
            self.compare(subject, part, judged.pose)?;
        }
        Ok(true)
    }

    fn write_mask(&mut self, subject: Subject, target: MaskTarget) -> Result<Marked, ClError> {
        let bytes = self.search.whole().mask_bytes();
        if matches!(target, MaskTarget::Grey(_)) && self.packed.is_none() {
            let packed = ClBuffer::new(&self.search.whole().context, bytes, subject.meter)?;
            self.packed = Some(Arc::new(packed));
        }
        if !self.is_trial {
            self.sighting = Sighting::default();
            if !self.is_blind {
                self.sighting = self.search.find(subject.frame, subject.meter)?;
            }
        }
        self.judged = vec![None; self.sighting.parts.len()];
        self.shown = None;
        let context = self.search.whole().context.clone();
        let mut pixels = 0;
        for part in 0..self.judged.len() {
            if self.sighting.parts[part].is_cut {
                continue;
            }
            let judged = self.judge(subject, part)?;
            self.judged[part] = Some(judged);
            pixels += judged.pixels;
            if judged.pixels > 0 {
                let size = self.cut().size;
                let motion = self.sighting.parts[part].poses[judged.pose].motion;
                let mut submission = context.submit(subject.meter, bytes);
                (self.marks).place(&self.mask, size, &motion, &mut submission)?;
                // The part's mask may be overwritten behind this.
                submission.enqueued()?;
            }
        }
        let packed = self.packed.clone();
        let mask = packed_mask(target, &packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let mut submission = context.submit(subject.meter, bytes);
        self.marks.send(target, mask, &mut submission)?;
        submission.send()?.wait("the mask")?;
        Ok(Marked { pixels, missing: 0 })
    }

    /// Whether all parts that are wanted, and no others, were compared.
    fn is_complete(&self) -> bool {
        let [least, most] = self.settings.wanted.map(|n| n as usize);
        let count = self.judged.len();
        count > 0 && (least..=most).contains(&count) && self.judged.iter().all(Option::is_some)
    }

    /// The rows of a picture in the memory of a frame, from a pixel on.
    fn rows_at(out: &ClFrame, [x, y]: [usize; 2]) -> Result<Rows<'_>, ClError> {
        let plane = out.plane(0)?;
        Ok(Rows {
            memory: plane.memory(),
            offset: plane.offset + y * plane.stride + x,
            stride: plane.stride,
        })
    }
}

/// A part that was read, and the memory of its marks.
fn own_subject<'a>(
    search: &'a PartSearch,
    mask: &'a ClBuffer,
    meter: &'a Arc<Meter>,
) -> (Subject<'a>, MaskTarget<'a>) {
    let subject = Subject::whole(search.part(), search.layout().height, meter);
    let target = MaskTarget::Packed {
        buffer: mask,
        offset: 0,
    };
    (subject, target)
}

impl PartSearch {
    /// Settings of whole frames as those of a part that is read.
    ///
    /// # Errors
    /// None in practice: a bitmap has the size of its picture.
    pub(super) fn settings_of_cut(
        &self,
        settings: ReferenceSettings,
        pixels: PartPixels,
    ) -> Result<ReferenceSettings, ClError> {
        let [width, height] = self.finder().cut().size;
        let ignored = Arc::new(self.ignored(pixels));
        let ignored = Ignored::new(width, Some(height), Some(ignored), Vec::new());
        let ignored = ignored.map_err(ClError::Refused)?;
        Ok(ReferenceSettings {
            model: None,
            align: Align::None,
            // The light was followed when the part was read.
            normalize: match settings.normalize {
                NormalizeBy::Gain => NormalizeBy::None,
                other => other,
            },
            rois: Vec::new(),
            ignored: Some(Arc::new(ignored)),
            ..settings
        })
    }
}

impl Inspection for Parts {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        let result = self.write_mask(subject, mask);
        if result.is_err() {
            self.judged.clear();
            self.shown = None;
            // A failure here is that of the next frame, too.
            let _ = self.marks.clear();
        }
        result
    }

    fn list(
        &mut self,
        subject: Subject,
        _mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let mut all = Listed::default();
        for part in 0..self.judged.len() {
            let Some((&FoundPart { motion, .. }, judged)) = self.pose(part) else {
                continue;
            };
            if judged.pixels == 0 {
                continue;
            }
            self.show(subject, part)?;
            finder.reset();
            let (own, target) = own_subject(&self.search, &self.mask, subject.meter);
            let listed = self.comparison.list(own, target, finder, limits)?;
            all.overflow |= listed.overflow;
            for mut defect in listed.defects {
                motion.place(&mut defect, self.search.whole().size);
                defect.part = part as u32 + 1;
                all.defects.push(defect);
            }
        }
        // Of equals those of the first part come first.
        all.defects.sort_by_key(|defect| Reverse(defect.area));
        all.overflow |= all.defects.len() > limits.max_defects;
        all.defects.truncate(limits.max_defects);
        Ok(all)
    }

    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError> {
        let whole = self.search.whole();
        let ([width, height], context) = (whole.size, whole.context.clone());
        let background = match picture {
            Picture::Model => self.model.clone(),
            Picture::Difference(_) => vec![NO_DIFFERENCE; width * height],
        };
        let copied = ClBuffer::new(&context, width * height, subject.meter)?;
        copied.write(0, &background, "a picture")?;
        let copy = |from: Rows, to: Rows, [width, height]: [usize; 2]| {
            let mut submission = context.submit(subject.meter, width * height);
            submission.copy(from, to, width, height)?;
            submission.send()?.wait("the picture")
        };
        let rows = Rows {
            memory: Memory::Buffer(&copied),
            offset: 0,
            stride: width,
        };
        copy(rows, Self::rows_at(out, [0, 0])?, [width, height])?;
        // That of the part with the most marks, where the part lies in the trained picture.
        let pixels = |part: &usize| self.pose(*part).map(|(_, judged)| judged.pixels);
        let worst = (0..self.judged.len()).rev().max_by_key(pixels);
        let Some(part) = worst.filter(|_| picture != Picture::Model) else {
            return Ok(());
        };
        if !self.show(subject, part)? {
            return Ok(());
        }
        let Cut { first, size } = *self.cut();
        let drawn = ClFrame::grey(&context, size, subject.meter)?;
        let (own, _) = own_subject(&self.search, &self.mask, subject.meter);
        self.comparison.draw(own, picture, &drawn)?;
        copy(
            Self::rows_at(&drawn, [0, 0])?,
            Self::rows_at(out, first)?,
            size,
        )
    }

    fn limits(&self) -> Vec<Limit> {
        self.comparison.limits()
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        if !self.is_complete() {
            return Ok(None);
        }
        let mut all: Option<Vec<Demand>> = None;
        for part in 0..self.judged.len() {
            self.show(subject, part)?;
            let (own, _) = own_subject(&self.search, &self.mask, subject.meter);
            let Some(demands) = self.comparison.demands(own)? else {
                return Ok(None);
            };
            all = Some(match all {
                None => demands,
                Some(all) => {
                    let both = all.iter().zip(&demands);
                    both.map(|(a, b)| if b.peak > a.peak { *b } else { *a })
                        .collect()
                }
            });
        }
        Ok(all)
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.is_trial = values.is_some();
        self.comparison.try_limits(values)
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        self.comparison.sights(values)
    }

    fn sees_all_alike(&self) -> bool {
        self.comparison.sees_all_alike()
    }

    fn basis(&self) -> Basis {
        let parts = self.sighting.parts.iter().enumerate().map(|(at, located)| {
            let counted = self.pose(at);
            let found = counted.map(|(found, _)| found).or(located.poses.first());
            let found = found?;
            let motion = &found.motion;
            let (pixels, judged) = counted.map_or((0, 0), |(_, of)| (of.pixels, of.judged));
            Some(JudgedPart {
                centre: (motion.centre(self.search.finder().model(), self.cut())).map(|v| v + 0.5),
                angle: motion.degrees(),
                scale: motion.scale(),
                score: found.place_score,
                inside: found.inside,
                poses: located.poses.len() as u32,
                is_cut: located.is_cut,
                judged,
                marked: pixels,
            })
        });
        let parts: Vec<JudgedPart> = parts.flatten().collect();
        let judged = parts.iter().map(|part| part.judged).sum();
        Basis {
            judged: JudgedPixels {
                any: judged,
                ..JudgedPixels::default()
            },
            alignment: (!self.is_blind).then(|| self.alignment()),
            parts: (!self.is_blind).then_some(FrameParts {
                wanted: self.settings.wanted,
                other: self.sighting.other,
                parts,
            }),
            ..Basis::default()
        }
    }
}

impl Parts {
    /// Where the only part of the frame lies; of none or several parts no match.
    fn alignment(&self) -> Alignment {
        let none = || Alignment {
            shift: [0.0; 2],
            transform: [0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            largest_local_shift: 0.0,
            misfit: 0.0,
            step: clinspect_core::reference::Step::None,
            score: self.sighting.other.unwrap_or(0.0),
            is_matched: false,
        };
        let [_] = &self.judged[..] else {
            return none();
        };
        let Some((found, _)) = self.pose(0) else {
            return none();
        };
        let transform = found.motion.transform(self.cut());
        let [width, height] = self.search.whole().size.map(|n| (n as f64 - 1.0) / 2.0);
        let [c, a, b, f, d, e] = transform;
        Alignment {
            shift: [
                c + a * width + b * height - width,
                f + d * width + e * height - height,
            ],
            transform,
            misfit: found.misfit,
            step: found.step,
            score: found.place_score,
            is_matched: true,
            ..none()
        }
    }
}
