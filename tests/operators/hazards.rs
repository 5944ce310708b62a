//! Host and kernels alternate on the same memory, without explicit waits.

use std::sync::Arc;

use clinspect_core::variant::GaussianVariant;
use clinspect_opencl::frame::{Importer, layout_of};
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{Arithmetic, Gaussian};
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    frames::{Frame, OUTPUT_POISON, PLAIN, assert_same, read},
    gaussian::settings,
    oracle::gaussian::gaussian_integer,
};

/// Large enough for a kernel and a transfer to overlap.
const SIZE: [usize; 2] = [1924, 1087];
const ROUNDS: usize = 20;

pub fn filtered(frame: &Frame, taps: usize) -> Frame {
    let mut filtered = frame.clone();
    filtered.set(&[gaussian_integer(frame.component(0), taps, 0.0)], frame);
    filtered
}

/// A Gaussian whose kernel takes longer than the host's work on a frame, and its results for the inputs.
pub fn slow_gaussian(device: &Arc<ClContext>, inputs: &[Frame; 2]) -> (Gaussian, [Frame; 2]) {
    let (taps, variant) = if device.caps().is_cpu {
        (3, None)
    } else {
        (31, Some(GaussianVariant::Direct))
    };
    let layout = layout_of(&inputs[0].info).unwrap();
    let slow = settings(taps, 0.0, Arithmetic::Integer, (variant, false));
    let filter = Gaussian::new(device, &layout, &slow).unwrap();
    (
        filter,
        [filtered(&inputs[0], taps), filtered(&inputs[1], taps)],
    )
}

#[test]
fn host_overwrites_what_kernels_still_read_and_kernels_what_the_host_just_wrote() {
    let Some(device) = device::open() else { return };
    let inputs = [Content::Random, Content::Natural]
        .map(|content| Frame::showing(Format::Gray8, SIZE, PLAIN, content, 0));
    // A kernel that takes longer than a map by the host.
    let (mut filter, expected) = slow_gaussian(&device, &inputs);
    let meter = Meter::new(false);
    let mut importer = Importer::new(&device, &meter, &inputs[0].info).unwrap();
    let mut source = inputs[0].buffer(&device, &meter);
    let blank = Frame::poisoned(Format::Gray8, SIZE, PLAIN, OUTPUT_POISON);
    let (_, mut output) = blank.output(&device);
    let garbage = vec![OUTPUT_POISON; blank.bytes.len()];
    for round in 0..ROUNDS {
        let write = |buffer: &mut gst::Buffer, bytes: &[u8]| {
            let done = buffer.get_mut().unwrap().copy_from_slice(0, bytes);
            assert_eq!(done, Ok(()));
        };
        write(&mut source, &inputs[round % 2].bytes);
        write(&mut output, &garbage);
        let from = importer.import(&source).unwrap();
        let to = importer.output(&output).unwrap();
        filter.run(&from, &to, &meter).unwrap();
        write(&mut source, &garbage);
        assert_same(&read(&output), &expected[round % 2], || {
            format!("round {round}")
        });
    }
}

#[test]
fn memory_read_again_is_not_transferred_again() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [67, 9], PLAIN, Content::Random, 0);
    let meter = Meter::new(false);
    let layout = layout_of(&input.info).unwrap();
    let plain = settings(3, 0.0, Arithmetic::Integer, (None, false));
    let mut filter = Gaussian::new(&device, &layout, &plain).unwrap();
    let importer = Importer::new(&device, &meter, &input.info).unwrap();
    let mut output = input.buffer(&device, &meter);
    let moved = u64::from(!device.caps().shares_host_memory);
    for round in 1..4 {
        let to = importer.output(&output).unwrap();
        let before = meter.totals();
        filter.run(&input.import(&device), &to, &meter).unwrap();
        for _ in 0..3 {
            assert_same(&read(&output), &filtered(&input, 3), || {
                format!("round {round}")
            });
        }
        let totals = meter.totals();
        assert_eq!(totals.downloads - before.downloads, moved);
        assert_eq!(totals.host_maps - before.host_maps, 3);
        // The host reads what it wrote.
        let writable = output.get_mut().unwrap();
        writable.copy_from_slice(20, &[1, 2, 3, 4]).unwrap();
        let mut changed = filtered(&input, 3);
        changed.bytes[20..24].copy_from_slice(&[1, 2, 3, 4]);
        assert_same(&read(&output), &changed, || {
            format!("round {round}, filled")
        });
    }
}
