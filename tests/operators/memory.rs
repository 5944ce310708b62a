//! Our memory under GStreamer's maps, and chains of operators without waits between them.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_opencl::frame::{Importer, layout_of};
use clinspect_opencl::{ClAllocator, ClContext, ImportPath, Meter, ResultMemory, new_video_pool};
use clinspect_operators::{Arithmetic, Gaussian, Histogram};
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    frames::{Frame, OUTPUT_POISON, PADDED, PLAIN, assert_same, our_memory, read},
    gaussian::settings,
    histogram_job::{ALL, CHOICES, assert_bins},
    oracle::gaussian::gaussian_integer,
};

/// `frame` filtered by the reference, in the same layout.
fn filtered(frame: &Frame) -> Frame {
    let components: Vec<Vec<u32>> = (0..frame.component_count())
        .map(|c| gaussian_integer(frame.component(c), 3, 0.0))
        .collect();
    let mut filtered = frame.clone();
    filtered.set(&components, frame);
    filtered
}

/// A filter for frames like `frame`.
fn filter(device: &Arc<ClContext>, frame: &Frame) -> Gaussian {
    let layout = layout_of(&frame.info).expect("a layout");
    let s = settings(3, 0.0, Arithmetic::Integer, (None, false));
    Gaussian::new(device, &layout, &s).expect("a filter")
}

#[test]
fn memory_written_in_part_keeps_the_rest() {
    let Some(device) = device::open() else { return };
    let bytes: Vec<u8> = (0..=255).collect();
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().unwrap();
    writable.append_memory(our_memory(&device, &Meter::new(false), &bytes, 3));
    // gst_buffer_fill() maps write-only and changes these bytes.
    writable.copy_from_slice(100, &[1, 2, 3, 4]).unwrap();
    let mut expected = bytes;
    expected[100..104].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(read(&buffer), expected);
}

#[test]
fn memory_written_by_a_kernel_and_then_in_part_keeps_the_rest() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [67, 9], PLAIN, Content::Random, 0);
    let output = Frame::poisoned(Format::Gray8, [67, 9], PLAIN, OUTPUT_POISON);
    let (to, mut buffer) = output.output(&device);
    let meter = Meter::new(false);
    filter(&device, &input)
        .run(&input.import(&device), &to, &meter)
        .unwrap();
    // Only the map waits for the kernel.
    let writable = buffer.get_mut().unwrap();
    writable.copy_from_slice(70, &[1, 2, 3, 4]).unwrap();
    let mut expected = filtered(&input);
    for y in 0..9 {
        let padding = y * 68 + 67;
        expected.bytes[padding] = OUTPUT_POISON;
    }
    expected.bytes[70..74].copy_from_slice(&[1, 2, 3, 4]);
    assert_same(&read(&buffer), &expected, || "after a fill".into());
}

#[test]
fn memory_mapped_twice_is_unmapped_once_both_are_done() {
    let Some(device) = device::open() else { return };
    let bytes = [7, 8, 9];
    let memory = our_memory(&device, &Meter::new(false), &bytes, 0);
    let first = memory.map_readable().unwrap();
    {
        let second = memory.map_readable().unwrap();
        assert_eq!(
            (first.as_slice(), second.as_slice()),
            (&bytes[..], &bytes[..])
        );
    }
    assert_eq!(first.as_slice(), bytes);
    drop(first);
    assert_eq!(memory.map_readable().unwrap().as_slice(), bytes);
}

#[test]
fn memory_shared_in_part_is_the_same_memory_further_on() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Rgb, [33, 7], PADDED, Content::Random, 0);
    let meter = Meter::new(false);
    // The frame after 11 other bytes, as a sub-region of a sub-region without a copy.
    let mut bytes = vec![OUTPUT_POISON; 11];
    bytes.extend(&input.bytes);
    let mut whole = gst::Buffer::new();
    let memory = our_memory(&device, &meter, &bytes, 5);
    whole.get_mut().unwrap().append_memory(memory);
    let cut = |buffer: &gst::Buffer, from: usize| {
        buffer
            .copy_region(gst::BufferCopyFlags::MEMORY, from..)
            .unwrap()
    };
    let mut part = cut(&cut(&whole, 4), 7);
    assert_eq!(read(&part), input.bytes);
    input.add_meta(part.make_mut());
    let mut importer = Importer::new(&device, &meter, &input.info).unwrap();
    let frame = importer.import(&part).unwrap();
    assert_eq!(frame.taken(), ImportPath::ZeroCopy);
    let mut bins = Vec::new();
    histogram(&device, &input)
        .run(&frame, &meter, &mut bins)
        .unwrap();
    assert_bins(&bins, &ALL.expected(&input), || input.describe());
}

fn histogram(device: &Arc<ClContext>, input: &Frame) -> Histogram {
    let layout = layout_of(&input.info).expect("a layout");
    Histogram::new(device, &layout, &ALL.settings(input, CHOICES[0])).expect("a histogram")
}

#[test]
fn operators_in_a_row_wait_for_each_other_on_the_device() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::I420] {
        let input = Frame::showing(format, [257, 119], PADDED, Content::Natural, 0);
        let twice = filtered(&filtered(&input));
        let meter = Meter::new(false);
        let mut first = filter(&device, &input);
        let mut second = filter(&device, &input);
        let mut counter = histogram(&device, &input);
        // Buffers are reused while commands on them may be in flight.
        let blank = Frame::poisoned(format, input.size(), PADDED, OUTPUT_POISON);
        let (_, middle) = blank.output(&device);
        let (_, last) = blank.output(&device);
        let mut importer = Importer::new(&device, &meter, &input.info).unwrap();
        let source = input.buffer(&device, &Meter::new(false));
        for _ in 0..5 {
            let from = importer.import(&source).unwrap();
            let to = importer.output(&middle).unwrap();
            first.run(&from, &to, &meter).unwrap();
            let from = importer.import(&middle).unwrap();
            let to = importer.output(&last).unwrap();
            second.run(&from, &to, &meter).unwrap();
            let frame = importer.import(&last).unwrap();
            assert_eq!(frame.taken(), ImportPath::ZeroCopy);
            let mut bins = Vec::new();
            counter.run(&frame, &meter, &mut bins).unwrap();
            assert_bins(&bins, &ALL.expected(&twice), || input.describe());
        }
        // The chain transferred no frame; the maps that poisoned the memories count on other meters.
        let totals = meter.totals();
        assert_eq!((totals.frames, totals.zero_copy), (15, 15));
        assert_eq!(
            (totals.host_maps, totals.uploads, totals.downloads),
            (0, 0, 0)
        );
    }
}

#[test]
fn pool_buffer_used_again_holds_the_new_frame_alone() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let input = Frame::showing(Format::Gray8, [64, 16], PLAIN, Content::Random, 0);
    let allocator = ClAllocator::new(&device, &meter);
    let caps = input.info.to_caps().unwrap();
    let pool = new_video_pool(&allocator, &caps, input.info.size() as u32, 1, true).unwrap();
    pool.set_active(true).unwrap();
    let mut gaussian = filter(&device, &input);
    for round in 0..3 {
        let mut buffer = pool.acquire_buffer(None).unwrap();
        let mut wanted = filtered(&input);
        if round == 1 {
            // The host writes the whole frame.
            let writable = buffer.get_mut().unwrap();
            writable.copy_from_slice(0, &input.bytes).unwrap();
            wanted = input.clone();
        } else {
            let importer = Importer::new(&device, &meter, &input.info).unwrap();
            let to = importer.output(&buffer).unwrap();
            gaussian.run(&input.import(&device), &to, &meter).unwrap();
            let writable = buffer.get_mut().unwrap();
            writable.copy_from_slice(10, &[1, 2, 3, 4]).unwrap();
            wanted.bytes[10..14].copy_from_slice(&[1, 2, 3, 4]);
        }
        assert_same(&read(&buffer), &wanted, || format!("round {round}"));
    }
    pool.set_active(false).unwrap();
}

#[test]
fn result_memory_is_zero_at_first_and_holds_what_host_and_commands_write() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let submission = || device.submit(&meter, 0);
    let mut memory = ResultMemory::new(&device, 64, "a result").unwrap();
    let read = |memory: &mut ResultMemory, offset, len| {
        let mut out = vec![OUTPUT_POISON; len];
        submission().read_result(memory, offset, &mut out, "a result")?;
        Ok::<_, ClError>(out)
    };
    assert_eq!(read(&mut memory, 0, 64).unwrap(), [0; 64]);
    let lent = submission().shared_result(&mut memory, 64, "a result");
    if !device.caps().shares_results {
        assert!(matches!(lent, Err(ClError::Input(_))), "{lent:?}");
        return;
    }
    lent.unwrap().fill(7);
    assert_eq!(read(&mut memory, 60, 4).unwrap(), [7; 4]);
    let mut zero = submission();
    zero.zero(memory.mem(), 32, "a result").unwrap();
    let bytes = zero.shared_result(&mut memory, 64, "a result").unwrap();
    assert_eq!(bytes, [[0; 32], [7; 32]].concat());
    let past = read(&mut memory, 61, 4);
    assert!(matches!(past, Err(ClError::Input(_))), "{past:?}");
    let downloaded = meter.totals().bytes_downloaded;
    assert_eq!(downloaded, 64 + 64 + 4 + 64 + 4);
}
