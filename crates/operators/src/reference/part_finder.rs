//! Finds parts at any place and angle: docs/semantics.md, "Free placement"; kernel `reference_part`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::FrameLayout,
    place::{Cut, Light, Model as Searched, Motion, Pose, Region, Search, edge_share},
    reference::{Aligner, MOST_WARPED, Model, Step, Warp},
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};

use super::{Base, blocks::BlockSums, part_reader::PartReader};

/// Side of the blocks whose samples are summed, px.
const SIDE: usize = 4;

/// What parts are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSettings {
    /// The trained picture, of the frames' size.
    pub model: Arc<Model>,
    /// The part in it; `None`: what differs from its ground.
    pub region: Option<Region>,
    /// Scales that parts have, 1/256.
    pub scales: Vec<i32>,
    /// Most that parts are turned, 1/16384 turn.
    pub most_angle: i32,
    /// Parts in a frame.
    pub wanted: usize,
    /// The light of a part may differ from that of the training, and change over the part.
    pub follows_light: bool,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
}

/// A pose, and what the fit made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPart {
    /// Where the search found it.
    pub pose: Pose,
    /// Where the pixels of the cut lie in the frame.
    pub motion: Motion,
    /// How surely the part is there, 0 to 1.
    pub place_score: f64,
    /// The share of the part that lies in the frame.
    pub inside: f64,
    /// How far the fit got.
    pub step: Step,
    /// Its light; that of the training, unless light is followed.
    pub light: Light,
    /// How far the part is from the trained one, grey levels; 0 if unknown.
    pub misfit: f64,
}

/// Finds parts in frames of one layout.
#[derive(Debug)]
pub struct PartFinder {
    base: Base,
    sums: BlockSums,
    region: Region,
    model: Searched,
    search: Search,
    fitter: Fitter,
}

/// Fits a part from a pose.
#[derive(Debug)]
struct Fitter {
    cut: Cut,
    aligner: Aligner,
    sums: BlockSums,
    reader: PartReader,
    /// Pixels of level 4 of the cut that lie in the part, and the trained sums there; `None` if light is not followed.
    trained: Option<Vec<([usize; 2], u16)>>,
}

impl PartFinder {
    /// Prepares the search for frames of `layout`, whose plane 0 is read.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the frames or the part do not suit a search; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PartSettings,
    ) -> Result<Self, ClError> {
        let base = Base::new(context, layout, settings.bit_depth)?;
        let PartSettings { model, .. } = settings;
        let [width, height] = base.size;
        if width.max(height) > MOST_WARPED {
            return Err(ClError::Refused(format!(
                "frames of {width}x{height} pixels are too large to be searched for parts: a side has at most {MOST_WARPED} \
                 pixels; cut them"
            )));
        }
        (model.check_fits(base.size, base.sample.bits())).map_err(ClError::Refused)?;
        let sums = model.block_sums(base.depth);
        let region = match &settings.region {
            Some(region) if region.is_of(base.size) => region.clone(),
            Some(_) => {
                return Err(ClError::Refused(format!(
                    "the region is not that of a picture of {width}x{height} pixels; draw it again"
                )));
            }
            None => Region::found(&sums, base.size).map_err(ClError::Refused)?,
        };
        let searched = Searched::new(&sums, base.size, &region, &settings.scales);
        Ok(Self {
            sums: BlockSums::new(&base)?,
            fitter: Fitter::new(&base, &sums, &region, settings.follows_light)?,
            model: searched.map_err(ClError::Refused)?,
            search: Search::new(base.size, settings.wanted).turned_by(settings.most_angle),
            region,
            base,
        })
    }

    /// The part in the trained picture.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// What is searched for.
    pub fn model(&self) -> &Searched {
        &self.model
    }

    /// The rectangle of the trained picture in which parts are compared.
    pub fn cut(&self) -> &Cut {
        &self.fitter.cut
    }

    /// Finds the parts of a frame, at most two more than are wanted: for each place its poses, the surest one first.
    /// Waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn find(&mut self, frame: &ClFrame, meter: &Meter) -> Result<Vec<Vec<FoundPart>>, ClError> {
        let sums = self.sums.of(&self.base, frame, meter)?;
        let places = self.search.find(&self.model, sums);
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            let poses = place.into_iter();
            let fitted = poses.map(|pose| {
                self.fitter
                    .fit((&self.base, frame), &self.model, pose, meter)
            });
            let mut fitted = fitted.collect::<Result<Vec<_>, _>>()?;
            // Of equals the one that the search found surer stays first.
            fitted.sort_by(|a, b| b.place_score.total_cmp(&a.place_score));
            found.push(fitted);
        }
        Ok(found)
    }

    /// Reads a part of a frame, as in the light of the training. Waits until the device has the commands.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        frame: &ClFrame,
        (motion, light): (&Motion, &Light),
        meter: &Meter,
    ) -> Result<(), ClError> {
        (self.fitter.reader).read((&self.base, frame), motion, light, meter)
    }

    /// The part that was read last.
    pub fn part(&self) -> &ClFrame {
        self.fitter.reader.frame()
    }
}

impl Fitter {
    /// `sums`: those of the trained picture.
    fn new(
        base: &Base,
        sums: &[u16],
        region: &Region,
        follows_light: bool,
    ) -> Result<Self, ClError> {
        let cut = Cut::new(region.bounds(), base.size);
        let of_sums = Cut {
            first: cut.first.map(|v| v / SIDE),
            size: cut.size.map(|v| v / SIDE),
        };
        let sums = of_sums.of(sums, base.size[0] / SIDE);
        let is_part = |x: usize, y: usize| region.holds(x + cut.first[0], y + cut.first[1]);
        let aligner = Aligner::of_part(&sums, cut.size, is_part).map_err(ClError::Refused)?;
        let reader = PartReader::new(base, &cut)?;
        let trained = || {
            let columns = of_sums.size[0];
            let at = |[x, y]: [usize; 2]| {
                let place = [x - of_sums.first[0], y - of_sums.first[1]];
                (place, sums[place[1] * columns + place[0]])
            };
            let is_in_cut = |cell: &[usize; 2]| {
                (0..2).all(|axis| {
                    let first = of_sums.first[axis];
                    (first..first + of_sums.size[axis]).contains(&cell[axis])
                })
            };
            let inner = region.inner().into_iter();
            inner.filter(is_in_cut).map(at).collect()
        };
        Ok(Self {
            trained: follows_light.then(trained),
            cut,
            aligner,
            sums: BlockSums::new(reader.base())?,
            reader,
        })
    }

    fn fit(
        &mut self,
        frame: (&Base, &ClFrame),
        model: &Searched,
        pose: Pose,
        meter: &Meter,
    ) -> Result<FoundPart, ClError> {
        let reader = &mut self.reader;
        let through = Motion::new(model, &self.cut, &pose, &Warp::default());
        reader.read(frame, &through, &Light::default(), meter)?;
        let sums = self.sums.of(reader.base(), reader.frame(), meter)?;
        let fit = self.aligner.find(sums);
        let motion = Motion::new(model, &self.cut, &pose, &fit.warp);
        reader.read(frame, &motion, &Light::default(), meter)?;
        let sums = self.sums.of(reader.base(), reader.frame(), meter)?;
        let edges = edge_share(model, sums, self.cut.size, self.cut.first);
        let light = self.trained.as_ref().map(|trained| {
            let columns = self.cut.size[0] / SIDE;
            let both = trained.iter().filter_map(|&([x, y], trained)| {
                let corners = [[0, 0], [SIDE - 1, SIDE - 1], [0, SIDE - 1], [SIDE - 1, 0]];
                let is_inside = corners.iter().all(|[i, j]| {
                    let place = motion.position((SIDE * x + i) as i64, (SIDE * y + j) as i64);
                    (0..2).all(|axis| {
                        (0..=256 * (frame.0.size[axis] as i64 - 1)).contains(&place[axis])
                    })
                });
                is_inside.then(|| ([x, y], sums[y * columns + x], trained))
            });
            Light::between(&both.collect::<Vec<_>>(), self.cut.size, frame.0.depth)
        });
        Ok(FoundPart {
            pose,
            motion,
            place_score: fit.score.min(edges),
            inside: motion.inside(model, &self.cut, frame.0.size),
            step: fit.step,
            misfit: fit.misfit,
            light: light.unwrap_or_default(),
        })
    }
}
