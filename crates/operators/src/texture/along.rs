//! The steps of a comparison along vectors of any angle; kernels in `kernels/texture_vectors.cl`.

use clinspect_core::{
    ClError,
    layout::SampleType,
    texture::{Repeat, VectorRepeat},
};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, NdRange, ProgramSource, Submission};

use super::memory::repeat_arg;
use crate::{
    sample_options,
    source::{plain_group, upload},
};

/// Pixels of a work-item on a CPU, and on a GPU.
const LANES: [usize; 2] = [16, 1];
/// What `texture_smooth` gets, which makes only the smoothed samples then.
pub(super) const SMOOTH_ONLY: Repeat = Repeat {
    pitch: 0,
    full: 0,
    edge: 0,
    scale: 0,
};

/// The kernels along the first and the second vector.
#[derive(Debug)]
pub(super) struct Along {
    kernels: [(Kernel, [usize; 2]); 2],
    lanes: usize,
    /// The vectors in use, and the places of their means.
    vectors: Option<([VectorRepeat; 2], [Mem; 2])>,
}

impl Along {
    /// Compiles the kernels; `for_gpu`: work-items read adjacent pixels.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, for_gpu: bool) -> Result<Self, ClError> {
        let lanes = LANES[usize::from(for_gpu)];
        // The pictures are the same for all samples.
        let options = sample_options(SampleType::U8, false);
        let options = format!("{options} -DLANES={lanes}");
        let program = context.program(ProgramSource::TextureVectors, &options)?;
        let kernel = |name| {
            let kernel = program.kernel(name)?;
            let group = plain_group(context, &kernel)?;
            Ok::<_, ClError>((kernel, group))
        };
        Ok(Self {
            kernels: [kernel("texture_first")?, kernel("texture_second")?],
            lanes,
            vectors: None,
        })
    }

    /// Takes the vectors.
    ///
    /// # Errors
    /// The failing call.
    pub fn take(
        &mut self,
        context: &ClContext,
        vectors: &[VectorRepeat; 2],
    ) -> Result<(), ClError> {
        if self.vectors.as_ref().is_some_and(|(now, _)| now == vectors) {
            return Ok(());
        }
        let [a, b] = vectors;
        let places = |of: &VectorRepeat| upload(context, &of.places(), "places of a mean");
        self.vectors = Some((*vectors, [places(a)?, places(b)?]));
        Ok(())
    }

    /// Enqueues both steps for planes of `size` pixels; `plane`: the arguments `width`, `height`, `pictures` and `pitch`.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        size: [usize; 2],
        [width, height, pictures, pitch]: [Arg; 4],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let Some((vectors, places)) = &self.vectors else {
            return Ok(());
        };
        let steps = vectors.iter().zip(places);
        let names = ["texture_first", "texture_second"];
        for (((kernel, group), name), (along, places)) in
            self.kernels.iter_mut().zip(names).zip(steps)
        {
            let ([x, y], [other_x, other_y]) = (along.vector, along.other);
            let args = [
                width,
                height,
                Arg::I32x4([x, y, other_x, other_y]),
                repeat_arg(&along.repeat),
                Arg::Mem(places),
                pictures,
                pitch,
            ];
            let range = NdRange::cover([size[0].div_ceil(self.lanes), size[1]], *group);
            submission.run(kernel, name, &args, &range)?;
        }
        Ok(())
    }
}
