//! `Texture` along vectors of any angle compared with its sequential reference.

use clinspect_core::{ClError, lattice::Lattice};
use clinspect_opencl::frame::layout_of;
use clinspect_operators::{Inspection, NoiseFrom, Repeating, Texture, TextureSettings};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{ARRANGEMENTS, Frame, PADDED, PLAIN},
    lattice::Numbers,
    texture::{FORMATS, JOB, Job, VARIANTS, check, check_strips, cloth},
};

/// A job with random vectors of at least 2 px that a frame of this size may hold.
fn job(numbers: &mut Numbers, size: [usize; 2]) -> Job {
    let most = (size[0].min(size[1]) as u32 / 2).clamp(2, 14);
    let vectors = loop {
        let lattice = numbers.lattice(most);
        let is_long = |v: &[f64; 2]| v[0].abs().max(v[1].abs()) >= 2.0;
        if lattice.vectors().iter().all(is_long) {
            break lattice.vectors().to_vec();
        }
    };
    Job {
        vectors,
        noise_from: [NoiseFrom::Around, NoiseFrom::Above][numbers.below(2) as usize],
        ..JOB
    }
}

#[test]
fn texture_lattices_on_frames_of_every_format_and_size_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut numbers = Numbers::new(0);
    let mut arrangements = ARRANGEMENTS.iter().cycle();
    for format in FORMATS {
        for size in SIZES
            .into_iter()
            .chain([[9, 9], [31, 63], [64, 64], [97, 130], [200, 70]])
        {
            let arrangement = *arrangements.next().expect("a cycle");
            let input = cloth(format, size, arrangement, 0);
            check(&device, &input, &job(&mut numbers, size));
        }
    }
}

#[test]
fn random_texture_lattices_equal_reference() {
    let Some(device) = device::open() else { return };
    let mut numbers = Numbers::new(100_000);
    for n in 0..60 {
        let size = [20 + numbers.below(110), 20 + numbers.below(70)].map(|side| side as usize);
        let format = [Format::Gray8, Format::Gray16Be, Format::Gray16Le][n % 3];
        // Random samples reach the extremes of all sums.
        let input = match n % 2 {
            0 => Frame::showing(format, size, ARRANGEMENTS[n % 5], Content::Random, 0),
            _ => cloth(format, size, ARRANGEMENTS[n % 5], 0),
        };
        check(&device, &input, &job(&mut numbers, size));
    }
}

#[test]
fn texture_along_chosen_vectors_equals_reference() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [150, 101], PADDED, 0);
    for vectors in [
        // Whole and sixteenths, steep ones first, of equal components, negative, and one only.
        vec![[9.0, 4.0], [-4.0, 9.0]],
        vec![[-2.0625, 9.9375], [12.25, 1.0]],
        vec![[6.5, 6.5], [6.5, -6.5]],
        vec![[-7.3, -2.2], [1.0, -5.5]],
        vec![[9.4, 3.1]],
        vec![[0.0, 8.0]],
        // One of them lies along an axis; as long as the frame holds; shorter than the window of vectors.
        vec![[7.3, 0.0], [3.6, 5.0]],
        vec![[3.0, 6.0], [0.0, 5.5]],
        vec![[74.0, 3.0], [-5.0, 50.0]],
        vec![[2.0, 0.0625], [-1.9, 2.0]],
    ] {
        check(&device, &input, &Job { vectors, ..JOB });
    }
}

#[test]
fn texture_lattice_along_the_axes_is_that_of_the_pitches() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [97, 60], PLAIN, 0);
    let layout = layout_of(&input.info).expect("a layout");
    for (vectors, lengths) in [
        (vec![[7.3, 0.0], [0.0, -5.0]], [7.3, 5.0]),
        (vec![[-7.3, 0.0]], [7.3, 7.3]),
    ] {
        let job = Job { vectors, ..JOB };
        check(&device, &input, &job);
        let settings = job.settings(&input, None);
        let operator = Texture::new(&device, &layout, &settings).expect("an operator");
        assert_eq!((operator.pitches(), operator.lattice()), (lengths, None));
        assert_eq!(operator.basis().pitches, lengths);
    }
    // Along columns first: the reference shows that it is not the same.
    let job = Job {
        vectors: vec![[0.0, 5.0], [7.3, 0.0]],
        ..JOB
    };
    check(&device, &input, &job);
}

#[test]
fn texture_regions_and_ignored_pixels_along_vectors_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [211, 133], PADDED, 0);
    let job = Job {
        vectors: vec![[7.1, 1.6], [-1.2, 4.9]],
        rois: vec![[0, 0, 30, 30], [20, 11, 99, 110], [150, 2, 61, 131]],
        ignored: vec![vec![40.0, 20.0, 160.0, 33.3, 70.5, 120.0]],
        ..JOB
    };
    check(&device, &input, &job);
}

#[test]
fn texture_strips_of_a_web_along_vectors_equal_one_frame() {
    check_strips(&[[7.1, 2.6], [-3.4, 6.9]]);
    check_strips(&[[-8.0, 5.9]]);
}

/// An operator whose vectors change has the marks of one that was made for them.
#[test]
fn texture_whose_vectors_change_equals_reference() {
    let Some(device) = device::open() else { return };
    let input = cloth(Format::Gray8, [120, 90], PLAIN, 0);
    for variant in VARIANTS {
        let made = |job: &Job| {
            let layout = layout_of(&input.info).expect("a layout");
            match Texture::new(&device, &layout, &job.settings(&input, Some(variant))) {
                Err(ClError::Refused(why)) if why.starts_with("Items needs") => None,
                operator => Some(operator.expect("an operator")),
            }
        };
        let Some(mut operator) = made(&JOB) else {
            continue;
        };
        for vectors in [
            vec![],
            vec![[9.0, 2.0], [-2.0, 6.0]],
            vec![[8.0, 3.0]],
            vec![],
        ] {
            let job = Job { vectors, ..JOB };
            let lattice = Lattice::new(&job.vectors).ok();
            operator.set_repeats(JOB.pitches, lattice).expect("repeats");
            crate::texture::check_marks(&device, &input, &job, &mut operator);
            // Those that do not fit leave all as it was.
            let long = Lattice::new(&[[80.0, 9.0]]).ok();
            assert!(operator.set_repeats(JOB.pitches, long).is_err());
            crate::texture::check_marks(&device, &input, &job, &mut operator);
        }
    }
}

#[test]
fn texture_lattice_that_cannot_be_compared_along_is_refused_with_a_sentence() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [97, 60], PLAIN, Content::Random, 0);
    let layout = layout_of(&input.info).expect("a layout");
    let refusal = |vectors: &[[f64; 2]]| {
        let settings = TextureSettings {
            lattice: Lattice::new(vectors).ok(),
            ..JOB.settings(&input, None)
        };
        match Texture::new(&device, &layout, &settings) {
            Err(ClError::Refused(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    };
    let long = refusal(&[[9.0, 1.0], [-3.0, 31.0]]);
    assert!(long.contains("the vector (-3, 31) of lattice"), "{long}");
    assert!(long.contains("97x60"), "{long}");
    // The vector along the lines is as long.
    let lines = refusal(&[[31.0, 1.0]]);
    assert!(lines.contains("the vector (-1, 31) of lattice"), "{lines}");
    let short = refusal(&[[1.5, 1.0], [-1.0, 8.0]]);
    assert!(
        short.contains("(1.5, 1)") && short.contains("shorter than 2"),
        "{short}"
    );
}
