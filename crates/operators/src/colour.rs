//! Frames of red, green and blue: each component is judged apart, or their luma; kernels in `kernels/colour.cl`.

mod join;
mod split;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{COMPONENTS, Finder, Limits, Listed},
    ignored::Ignored,
    lattice_estimate::Crop,
    layout::FrameLayout,
    learning::{Contrasts, Demand, Rule},
    pitch::Axis,
    pitch_estimate::Lines,
    sight::Sight,
    window::Reach,
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use gst::glib;

use crate::{
    Contrast, MaskTarget, MiddleProbe, Probe, WARM_UP_ROWS,
    inspection::{Basis, Component, Inspection, Limit, Marked, Picture, Repeating, Subject},
    submitted::Submitted,
};
pub(crate) use join::Join;
pub(crate) use split::Splitter;
pub use split::{grey_of, is_colour};

/// What is judged of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClComponents")]
pub enum JudgedComponents {
    /// The most that the format has.
    #[default]
    #[enum_value(
        name = "Auto: red, green and blue apart where frames have them, otherwise luma or grey",
        nick = "auto"
    )]
    Auto,
    /// Each component.
    #[enum_value(
        name = "Each: red, green and blue apart, each with limits of its own; a pixel is marked if any of them marks it",
        nick = "each"
    )]
    Each,
    /// The luma.
    #[enum_value(name = "Luma: the brightness alone", nick = "luma")]
    Luma,
}

impl JudgedComponents {
    /// Whether the components of frames of this layout are judged apart.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the frames have no components of colour.
    pub fn are_apart(self, layout: &FrameLayout) -> Result<bool, ClError> {
        match (self, is_colour(layout)) {
            (Self::Luma, _) | (Self::Auto, false) => Ok(false),
            (_, true) => Ok(true),
            (Self::Each, false) => Err(ClError::Refused(
                "components=each needs frames with red, green and blue, and these are of grey or YUV; set \
                 components=auto, or convert the frames to RGB"
                    .into(),
            )),
        }
    }
}

/// Three times as many limits can fail a good frame as those of grey. The margin of each is this many times as large: then
/// about as few clean frames fail (lab/notes/decisions.md).
const MARGIN: f64 = 2.0;

/// What frames of colour need.
#[derive(Debug)]
struct Colour {
    splitter: Splitter,
    /// The components of the last frame, or its luma.
    planes: Vec<ClFrame>,
    /// The luma of the last frame beside its components; made when it is needed first.
    luma: Option<ClFrame>,
    /// Where components are judged apart.
    join: Option<Join>,
}

/// The middle of a frame on the device.
pub struct Middle<'a> {
    probe: &'a mut MiddleProbe,
    frame: &'a ClFrame,
    meter: &'a Meter,
}

impl Middle<'_> {
    /// Fills `samples` with a crop, row by row, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(&mut self, crop: Crop, samples: &mut Vec<f32>) -> Result<(), ClError> {
        (self.probe).read(self.frame, crop, samples, self.meter)
    }
}

/// Operators of grey frames that judge frames of any format: one for grey and luma, three for red, green and blue.
#[derive(Debug)]
pub struct Components<O> {
    context: Arc<ClContext>,
    parts: Vec<O>,
    /// Looks at the luma for the others, where that is needed.
    leader: Option<O>,
    /// `None` for frames that the operator reads as they are.
    colour: Option<Colour>,
    layout: Arc<FrameLayout>,
    /// Copy the lines from which the pitches along x and along y are estimated.
    probes: [Option<Probe>; 2],
    /// Copies the middle, from which the lattice is estimated.
    middle: Option<MiddleProbe>,
    /// Limits are tried on the last frame, whose planes exist already.
    is_trial: bool,
}

impl<O: Submitted> Components<O> {
    /// Judges frames of `layout`. `build` makes the operator of a component, or the only one, for the layout that it gets.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the frames lack the components; a failing call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        judged: JudgedComponents,
        mut build: impl FnMut(&FrameLayout, Option<Component>) -> Result<O, ClError>,
    ) -> Result<Self, ClError> {
        let whole = Arc::new(layout.clone());
        let are_apart = judged.are_apart(layout)?;
        if !is_colour(layout) {
            return Ok(Self {
                context: context.clone(),
                parts: vec![build(layout, None)?],
                leader: None,
                colour: None,
                layout: whole,
                probes: [None, None],
                middle: None,
                is_trial: false,
            });
        }
        let grey = layout.grey();
        let mut parts = if are_apart {
            let all = Component::ALL.map(Some).into_iter();
            all.map(|component| build(&grey, component))
                .collect::<Result<Vec<_>, _>>()?
        } else {
            vec![build(&grey, None)?]
        };
        let words = parts.first_mut().map_or(0, |part| part.counters().1);
        let mut colour = Colour {
            splitter: Splitter::new(context, layout)?,
            planes: Vec::new(),
            luma: None,
            join: are_apart
                .then(|| Join::new(context, layout.width, words))
                .transpose()?,
        };
        colour.warm_up(context, layout)?;
        Ok(Self {
            context: context.clone(),
            parts,
            leader: None,
            colour: Some(colour),
            layout: whole,
            probes: [None, None],
            middle: None,
            is_trial: false,
        })
    }

    /// Copies the lines from which the pitches along x and along y are estimated, if they are.
    ///
    /// # Errors
    /// A failing call.
    pub fn with_probes(mut self, [along_x, along_y]: [bool; 2]) -> Result<Self, ClError> {
        let grey = is_colour(&self.layout).then(|| self.layout.grey());
        let layout = grey.as_ref().unwrap_or(&self.layout);
        let probe = |is_estimated: bool, axis| {
            is_estimated
                .then(|| Probe::new(&self.context, layout, axis))
                .transpose()
        };
        self.probes = [probe(along_x, Axis::X)?, probe(along_y, Axis::Y)?];
        Ok(self)
    }

    /// Copies the middle of frames, from which the lattice is estimated.
    ///
    /// # Errors
    /// A failing call.
    pub fn with_middle(mut self) -> Result<Self, ClError> {
        let grey = is_colour(&self.layout).then(|| self.layout.grey());
        let layout = grey.as_ref().unwrap_or(&self.layout);
        self.middle = Some(MiddleProbe::new(&self.context, layout)?);
        Ok(self)
    }

    /// The middle of a frame of `rows` rows, of colours that of the luma; `None` without a probe of it.
    ///
    /// # Errors
    /// The failing call.
    pub fn middle_of<'a>(
        &'a mut self,
        frame: &'a ClFrame,
        rows: usize,
        meter: &'a Arc<Meter>,
    ) -> Result<Option<Middle<'a>>, ClError> {
        let size = [self.layout.width, rows];
        let Some(probe) = &mut self.middle else {
            return Ok(None);
        };
        let frame = match &mut self.colour {
            Some(colour) => colour.luma(&self.context, frame, size, meter)?,
            None => frame,
        };
        Ok(Some(Middle {
            probe,
            frame,
            meter,
        }))
    }

    /// The lines of a frame of `rows` rows along the axes that are `due` and have a probe; of colours those of the luma.
    ///
    /// # Errors
    /// The failing call.
    pub fn probe(
        &mut self,
        due: [bool; 2],
        frame: &ClFrame,
        rows: usize,
        meter: &Arc<Meter>,
    ) -> Result<[Option<Lines<'_>>; 2], ClError> {
        let size = [self.layout.width, rows];
        let [x, y] = &mut self.probes;
        let [x, y] = [x.as_mut().filter(|_| due[0]), y.as_mut().filter(|_| due[1])];
        let frame = match &mut self.colour {
            Some(colour) if x.is_some() || y.is_some() => {
                colour.luma(&self.context, frame, size, meter)?
            }
            _ => frame,
        };
        let x = x.map(|probe| probe.lines(frame, rows, meter));
        let y = y.map(|probe| probe.lines(frame, rows, meter));
        Ok([x.transpose()?, y.transpose()?])
    }

    /// `leader` looks at the luma of each frame, and the operators of the components follow it.
    #[must_use]
    pub fn with_leader(mut self, leader: O) -> Self {
        self.leader = Some(leader);
        self
    }

    /// Frames are split again although limits are tried, because they change from trial to trial.
    pub(crate) fn split_in_trials(&mut self) {
        self.is_trial = false;
    }

    /// All operators: one, or those of red, green and blue.
    pub fn all(&self) -> &[O] {
        &self.parts
    }

    /// See [`Self::all`]; then the one that looks at the luma, if there is one.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut O> {
        self.parts.iter_mut().chain(&mut self.leader)
    }

    /// See [`Self::with_leader`].
    pub fn leader(&self) -> Option<&O> {
        self.leader.as_ref()
    }

    /// The device.
    pub fn context(&self) -> &Arc<ClContext> {
        &self.context
    }

    /// The layout of the frames.
    pub fn layout(&self) -> &FrameLayout {
        &self.layout
    }

    /// Whether red, green and blue are judged apart.
    pub fn are_apart(&self) -> bool {
        self.parts.len() == COMPONENTS
    }

    /// A frame of `rows` rows as grey: itself, or its luma, which is computed on the device.
    ///
    /// # Errors
    /// The failing call.
    pub fn grey<'a>(
        &'a mut self,
        frame: &'a ClFrame,
        rows: usize,
        meter: &Arc<Meter>,
    ) -> Result<&'a ClFrame, ClError> {
        let size = [self.layout.width, rows];
        match &mut self.colour {
            None => Ok(frame),
            Some(colour) => colour.luma(&self.context, frame, size, meter),
        }
    }

    /// The planes of a frame of `rows` rows in the order of [`Self::all`], which are computed on the device.
    ///
    /// # Errors
    /// The failing call.
    pub fn planes<'a>(
        &'a mut self,
        frame: &'a ClFrame,
        rows: usize,
        meter: &Arc<Meter>,
    ) -> Result<Vec<&'a ClFrame>, ClError> {
        let size = [self.layout.width, rows];
        match &mut self.colour {
            None => Ok(vec![frame]),
            Some(colour) => {
                colour.split(&self.context, frame, size, meter)?;
                Ok(colour.planes.iter().collect())
            }
        }
    }

    fn mark_apart(&mut self, subject: Subject, target: MaskTarget) -> Result<Marked, ClError> {
        let Self {
            context,
            parts,
            leader,
            colour: Some(colour),
            layout,
            is_trial,
            ..
        } = self
        else {
            return Err(no_operator());
        };
        let (window, meter) = (subject.window, subject.meter);
        let size = [layout.width, window.height];
        if let Some(leader) = leader.as_mut().filter(|_| !*is_trial) {
            let frame = colour.luma(context, subject.frame, size, meter)?;
            leader.look(Subject { frame, ..subject }, None)?;
        }
        if !*is_trial {
            colour.split(context, subject.frame, size, meter)?;
        }
        let Some(join) = &mut colour.join else {
            return Err(no_operator());
        };
        for (part, frame) in parts.iter_mut().zip(&colour.planes) {
            part.look(Subject { frame, ..subject }, leader.as_ref())?;
        }
        join.mark(context, parts, &colour.planes, subject, target)
    }
}

impl<O: Submitted + Repeating> Components<O> {
    /// The pitches along x and y in use, px; 0 for none.
    pub fn pitches(&self) -> [f64; 2] {
        self.parts.first().map_or([0.0; 2], Repeating::pitches)
    }

    /// See [`Repeating::learn_contrast`]; `None` if no component shows the pattern.
    ///
    /// # Errors
    /// The failing call.
    pub fn learn_contrasts(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        estimated: [bool; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<Contrasts>, ClError> {
        let size = [self.layout.width, rows];
        let planes: Vec<&ClFrame> = match &mut self.colour {
            None => vec![frame],
            Some(colour) => {
                colour.split(&self.context, frame, size, meter)?;
                colour.planes.iter().collect()
            }
        };
        let mut contrasts = Contrasts::default();
        for ((part, plane), contrast) in self.parts.iter_mut().zip(planes).zip(&mut contrasts.0) {
            let learned = part.learn_contrast(plane, rows, estimated, meter)?;
            *contrast = learned.unwrap_or(0.0);
        }
        Ok((contrasts.largest() > 0.0).then_some(contrasts))
    }

    /// Sets the minimum contrasts, `None` if they are unknown; returns whether they were others. In a component without
    /// contrast the pattern is not looked for.
    pub fn set_minimum(&mut self, minimum: Option<Contrasts>) -> bool {
        let mut is_new = false;
        for (at, part) in self.parts.iter_mut().enumerate() {
            is_new |= part.set_contrast(match minimum {
                None => Contrast::Unknown,
                Some(Contrasts(minimum)) => Contrast::Known(minimum[at.min(COMPONENTS - 1)]),
            });
        }
        is_new
    }
}

impl Colour {
    /// Fills [`Self::planes`].
    fn split(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        size: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let count = if self.join.is_some() { COMPONENTS } else { 1 };
        let has_rows = (self.planes.iter()).all(|plane| split::holds(plane, size));
        if self.planes.len() != count || !has_rows {
            let planes = (0..count).map(|_| ClFrame::grey(context, size, meter));
            self.planes = planes.collect::<Result<_, _>>()?;
        }
        (self.splitter).run(context, frame, &self.planes, size, meter)
    }

    fn luma(
        &mut self,
        context: &Arc<ClContext>,
        frame: &ClFrame,
        size: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<&ClFrame, ClError> {
        let luma = match self.luma.take() {
            Some(luma) if split::holds(&luma, size) => luma,
            _ => ClFrame::grey(context, size, meter)?,
        };
        let luma = self.luma.insert(luma);
        (self.splitter).run(context, frame, std::slice::from_ref(luma), size, meter)?;
        Ok(luma)
    }

    /// Runs each kernel once: PoCL generates code at the first launch.
    fn warm_up(&mut self, context: &Arc<ClContext>, layout: &FrameLayout) -> Result<(), ClError> {
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let size = [small.width, small.height];
        let frame = ClFrame::scratch(context, &small, &meter)?;
        self.split(context, &frame, size, &meter)?;
        self.luma(context, &frame, size, &meter)?;
        if let Some(join) = &mut self.join {
            join.warm_up(context, &self.planes, size, &meter)?;
        }
        Ok(())
    }
}

fn no_operator() -> ClError {
    ClError::Input("the components of the frame have no operators".into())
}

impl<O: Submitted> Inspection for Components<O> {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        if self.are_apart() {
            let result = self.mark_apart(subject, mask);
            if result.is_err() {
                self.parts.iter_mut().for_each(O::fail);
            }
            return result;
        }
        let size = [self.layout.width, subject.window.height];
        if let Some(colour) = self.colour.as_mut().filter(|_| !self.is_trial) {
            colour.split(&self.context, subject.frame, size, subject.meter)?;
        }
        let frame = plane_of(&self.colour, 0, subject.frame);
        let part = self.parts.first_mut().ok_or_else(no_operator)?;
        part.mark(Subject { frame, ..subject }, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        if let Some(Colour {
            join: Some(join),
            planes,
            ..
        }) = &mut self.colour
        {
            let web = (finder, limits);
            return join.list(&self.context, &mut self.parts, planes, (subject, mask), web);
        }
        let frame = plane_of(&self.colour, 0, subject.frame);
        let part = self.parts.first_mut().ok_or_else(no_operator)?;
        part.list(Subject { frame, ..subject }, mask, finder, limits)
    }

    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError> {
        if let Some(Colour {
            join: Some(join),
            planes,
            ..
        }) = &mut self.colour
        {
            return join.draw(
                &self.context,
                &mut self.parts,
                planes,
                (subject, picture),
                out,
            );
        }
        let frame = plane_of(&self.colour, 0, subject.frame);
        let part = self.parts.first_mut().ok_or_else(no_operator)?;
        part.draw(Subject { frame, ..subject }, picture, out)
    }

    fn limits(&self) -> Vec<Limit> {
        if !self.are_apart() {
            return self.parts.iter().flat_map(O::limits).collect();
        }
        let parts = self.parts.iter().zip(Component::ALL);
        let limits = parts.flat_map(|(part, component)| {
            part.limits().into_iter().map(move |limit| Limit {
                component: Some(component),
                rule: Rule {
                    margin: MARGIN * limit.rule.margin,
                    ..limit.rule
                },
                ..limit
            })
        });
        limits.collect()
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        let mut all = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let frame = plane_of(&self.colour, at, subject.frame);
            match part.demands(Subject { frame, ..subject })? {
                Some(demands) => all.extend(demands),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.is_trial = values.is_some();
        let count = self.limits().len() / self.parts.len().max(1);
        for (at, part) in self.parts.iter_mut().enumerate() {
            let own = values.map(|values| values.get(at * count..(at + 1) * count));
            part.try_limits(own.map(|own| own.unwrap_or(&[])))?;
        }
        Ok(())
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        let are_apart = self.are_apart();
        let count = self.limits().len() / self.parts.len().max(1);
        let mut all = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let own = values.map(|values| values.get(at * count..(at + 1) * count));
            let mut sights = part.sights(own.map(|own| own.unwrap_or(&[])))?;
            if let Some(component) = Component::ALL.get(at).filter(|_| are_apart) {
                for sight in &mut sights {
                    sight.name = format!("{}.{}", sight.name, component.name());
                }
            }
            all.extend(sights);
        }
        Ok(all)
    }

    fn sees_all_alike(&self) -> bool {
        self.parts.iter().all(O::sees_all_alike)
    }

    fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        if self.are_apart() {
            // The differences of a defect are those of one component.
            return Ok(None);
        }
        let part = self.parts.first_mut().ok_or_else(no_operator)?;
        part.mean_level()
    }

    fn basis(&self) -> Basis {
        // All components are judged at the same pixels.
        self.parts.first().map(O::basis).unwrap_or_default()
    }

    fn set_ignored(&mut self, pixels: &Arc<Ignored>) -> Result<(), ClError> {
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.set_ignored(pixels))
    }

    fn reach(&self) -> Reach {
        self.parts.first().map(O::reach).unwrap_or_default()
    }
}

/// The plane of an operator; the frame itself if it is grey.
fn plane_of<'a>(colour: &'a Option<Colour>, at: usize, frame: &'a ClFrame) -> &'a ClFrame {
    let planes = colour.as_ref().map(|colour| &colour.planes);
    planes.and_then(|planes| planes.get(at)).unwrap_or(frame)
}
