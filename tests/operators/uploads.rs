//! Uploads of frames in memory of other elements: copied by the CPU, or read by the device from the
//! source's memory once that is pinned. They run on a CPU too.

use std::sync::Arc;

use clinspect_opencl::frame::{ClFrame, Importer, layout_of};
use clinspect_opencl::{ClContext, ImportPath, Memory, Meter, Totals};
use clinspect_operators::{Arithmetic, Gaussian};
use clinspect_testkit::tools::alone;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_POISON, Owner, PLAIN, Split, assert_same, read,
    },
    gaussian::settings,
    hazards::{filtered, slow_gaussian},
};

/// Less than a page, more than the smallest memory that is pinned, and several pieces of a copy.
const SIZES: [[usize; 2]; 3] = [[33, 7], [515, 389], [2047, 1031]];

/// Frames in memory of one element.
const FOREIGN: Arrangement = ARRANGEMENTS[1];

/// Whether this is the process of `test`, a test of this file; starts it otherwise. Memory is not pinned
/// while the driver stalls in releases, as it may beside other tests' compilers.
fn runs_alone(test: &str) -> bool {
    alone(&format!("uploads::{test}"), &[]).is_none()
}

fn importer(device: &Arc<ClContext>, meter: &Arc<Meter>, frame: &Frame) -> Importer {
    let importer = Importer::new(device, meter, &frame.info).unwrap();
    importer.that_uploads()
}

/// GStreamer's system memory that starts `base` bytes past an aligned address.
fn system_memory(len: usize, base: usize) -> gst::Memory {
    let params = gst::AllocationParams::new(gst::MemoryFlags::empty(), 4095, base, 0);
    let allocator = gst::Allocator::find(None).expect("the default allocator");
    allocator.alloc(len, Some(&params)).expect("system memory")
}

/// A buffer for frames like `frame`, in memory that can be written again.
fn buffer_like(frame: &Frame, device: &Arc<ClContext>) -> gst::Buffer {
    let mut buffer = frame.buffer(device, &Meter::new(false));
    let writable = buffer.get_mut().unwrap();
    for index in 0..writable.n_memory() {
        let memory = writable.peek_memory(index);
        if clinspect_opencl::buffer_of(memory).is_none() {
            let new = system_memory(memory.size(), frame.arrangement.base);
            writable.replace_memory(index, new);
        }
    }
    buffer
}

/// Writes bytes memory by memory, as a source does.
fn write(buffer: &mut gst::Buffer, bytes: &[u8]) {
    let copied = buffer.get_mut().unwrap().copy_from_slice(0, bytes);
    assert_eq!(copied, Ok(()));
}

/// Compares the rows on the device with the frame's.
fn assert_on_device(on_device: &ClFrame, frame: &Frame, about: &dyn Fn() -> String) {
    for component in 0..frame.component_count() {
        let index = frame.info.format_info().plane()[component] as usize;
        let geometry = frame.geometry(component);
        let plane = on_device.plane(index).unwrap();
        let Memory::Buffer(memory) = plane.memory() else {
            panic!("{}: not uploaded", about());
        };
        let poffset = frame.info.format_info().poffset()[component] as usize;
        let row = geometry.pixel_stride * (geometry.width - 1) + frame.kind().size();
        memory
            .read_with(|bytes| {
                for y in 0..geometry.height {
                    let is = &bytes[plane.offset + y * plane.stride + poffset..][..row];
                    let expected = &frame.bytes[geometry.offset + y * geometry.stride..][..row];
                    assert!(
                        is == expected,
                        "{}: component {component}, row {y}",
                        about()
                    );
                }
            })
            .unwrap();
    }
}

#[test]
fn frames_of_every_layout_are_exact_when_copied_and_when_pinned() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::I420,
        Format::Nv12,
        Format::Gray16Le,
    ] {
        for arrangement in ARRANGEMENTS {
            for size in SIZES {
                let contents = [Content::Random, Content::Natural]
                    .map(|content| Frame::showing(format, size, arrangement, content, 0));
                let mut buffer = buffer_like(&contents[0], &device);
                let mut importer = importer(&device, &Meter::new(false), &contents[0]);
                for round in 0..4 {
                    let frame = &contents[round % 2];
                    write(&mut buffer, &frame.bytes);
                    let on_device = importer.import(&buffer).unwrap();
                    if on_device.taken() == ImportPath::ZeroCopy {
                        continue;
                    }
                    assert_on_device(&on_device, frame, &|| {
                        format!("{}, round {round}", frame.describe())
                    });
                }
            }
        }
    }
}

#[test]
fn parts_of_a_larger_memory_are_exact() {
    if !runs_alone("parts_of_a_larger_memory_are_exact") {
        return;
    }
    let Some(device) = device::open() else { return };
    let frames = [Content::Random, Content::Natural]
        .map(|content| Frame::showing(Format::Gray8, [515, 389], FOREIGN, content, 0));
    let len = frames[0].bytes.len();
    let mut whole = gst::Buffer::new();
    let writable = whole.get_mut().unwrap();
    writable.append_memory(system_memory(2 * len + 11, 3));
    let mut importer = importer(&device, &Meter::new(false), &frames[0]);
    for round in 0..4 {
        for (frame, start) in frames.iter().zip([11, 11 + len]) {
            let copied = whole.make_mut().copy_from_slice(start, &frame.bytes);
            assert_eq!(copied, Ok(()));
            let part = whole
                .copy_region(gst::BufferCopyFlags::MEMORY, start..start + len)
                .unwrap();
            let on_device = importer.import(&part).unwrap();
            assert_on_device(&on_device, frame, &|| {
                format!("round {round}, from {start}")
            });
        }
    }
    assert!(device.has_pinned(whole.peek_memory(0)));
}

#[test]
fn memory_is_pinned_when_an_importer_has_its_second_frame() {
    if !runs_alone("memory_is_pinned_when_an_importer_has_its_second_frame") {
        return;
    }
    let Some(device) = device::open() else { return };
    let frame = Frame::showing(Format::Gray8, [515, 389], FOREIGN, Content::Random, 0);
    let buffer = buffer_like(&frame, &device);
    let small = Frame::showing(Format::Gray8, [33, 7], FOREIGN, Content::Random, 0);
    let small_buffer = buffer_like(&small, &device);
    let meter = Meter::new(false);
    let mut importers = [(); 2].map(|()| importer(&device, &meter, &frame));
    for importer in &mut importers {
        importer.import(&buffer).unwrap();
        // Each importer had one frame: two elements of a chain import the same frame.
        assert!(!device.has_pinned(buffer.peek_memory(0)));
    }
    importers[0].import(&buffer).unwrap();
    assert!(device.has_pinned(buffer.peek_memory(0)));
    let mut others = importer(&device, &meter, &small);
    for _ in 0..3 {
        others.import(&small_buffer).unwrap();
    }
    assert!(!device.has_pinned(small_buffer.peek_memory(0)));
    // The last row ends without padding.
    let bytes = 3 * (516 * 388 + 515) + 3 * (36 * 6 + 33);
    let uploads = Totals {
        frames: 6,
        copied: 6,
        uploads: 6,
        bytes_uploaded: bytes,
        ..Totals::default()
    };
    assert_eq!(meter.totals(), uploads);
}

/// Large enough for an upload to last while the source goes on.
const LARGE: [usize; 2] = [1924, 1087];

#[test]
fn memory_rewritten_once_the_frame_is_sent_leaves_the_frame_as_it_was() {
    if !runs_alone("memory_rewritten_once_the_frame_is_sent_leaves_the_frame_as_it_was") {
        return;
    }
    let Some(device) = device::open() else { return };
    let inputs = [Content::Random, Content::Natural]
        .map(|content| Frame::showing(Format::Gray8, LARGE, FOREIGN, content, 0));
    let expected = [filtered(&inputs[0], 3), filtered(&inputs[1], 3)];
    let meter = Meter::new(false);
    let layout = layout_of(&inputs[0].info).unwrap();
    let plain = settings(3, 0.0, Arithmetic::Integer, (None, false));
    let mut filter = Gaussian::new(&device, &layout, &plain).unwrap();
    let mut importer = importer(&device, &meter, &inputs[0]);
    let mut pool = [(); 3].map(|()| buffer_like(&inputs[0], &device));
    let garbage = vec![OUTPUT_POISON; inputs[0].bytes.len()];
    let blank = Frame::poisoned(Format::Gray8, LARGE, PLAIN, OUTPUT_POISON);
    let (to, output) = blank.output(&device);
    for round in 0..24 {
        let source = &mut pool[round % 3];
        write(source, &inputs[round % 2].bytes);
        let mut from = importer.import(source).unwrap();
        filter.run(&from, &to, &meter).unwrap();
        from.wait_for_upload().unwrap();
        drop(from);
        // The camera goes on at once, beside the kernel.
        write(source, &garbage);
        assert_same(&read(&output), &expected[round % 2], || {
            format!("round {round}")
        });
    }
    for source in &pool {
        assert!(device.has_pinned(source.peek_memory(0)));
    }
}

#[test]
fn uploads_are_in_the_timeline_of_their_frame() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, LARGE, FOREIGN, Content::Random, 0);
    let bytes = input.bytes.len() as u64;
    let meter = Meter::new(true);
    let layout = layout_of(&input.info).unwrap();
    let plain = settings(3, 0.0, Arithmetic::Integer, (None, false));
    let mut filter = Gaussian::new(&device, &layout, &plain).unwrap();
    let mut importer = importer(&device, &meter, &input);
    let source = buffer_like(&input, &device);
    let blank = Frame::poisoned(Format::Gray8, LARGE, PLAIN, OUTPUT_POISON);
    let (to, _output) = blank.output(&device);
    // The first frame is copied, the later ones are read where they are.
    for round in 0..4 {
        let from = importer.import(&source).unwrap();
        let done = filter.run(&from, &to, &meter).unwrap();
        done.wait("a frame").unwrap();
        let frame = meter.last_frame().expect("a timeline");
        let seen: Vec<_> = frame
            .steps
            .iter()
            .map(|s| (s.step.name(), s.bytes))
            .collect();
        let is_expected = matches!(seen[..], [("upload", up), ("kernel", _)] if up >= bytes);
        assert!(is_expected, "round {round}: {seen:?}");
    }
}

#[test]
fn frames_in_new_memory_follow_each_other_without_waits() {
    let Some(device) = device::open() else { return };
    let inputs = [Content::Random, Content::Natural]
        .map(|content| Frame::showing(Format::Gray8, LARGE, FOREIGN, content, 0));
    // A kernel that still reads a frame when the next one is uploaded.
    let (mut filter, expected) = slow_gaussian(&device, &inputs);
    let meter = Meter::new(false);
    let mut importer = importer(&device, &meter, &inputs[0]);
    let blank = Frame::poisoned(Format::Gray8, LARGE, PLAIN, OUTPUT_POISON);
    let outputs: Vec<_> = (0..12).map(|_| blank.output(&device)).collect();
    for (round, (to, _)) in outputs.iter().enumerate() {
        let source = inputs[round % 2].buffer(&device, &meter);
        let from = importer.import(&source).unwrap();
        filter.run(&from, to, &meter).unwrap();
        assert!(!device.has_pinned(source.peek_memory(0)));
    }
    for (round, (_, output)) in outputs.iter().enumerate() {
        assert_same(&read(output), &expected[round % 2], || {
            format!("round {round}")
        });
    }
}

#[test]
fn memory_freed_and_allocated_again_at_its_address_is_not_stale() {
    if !runs_alone("memory_freed_and_allocated_again_at_its_address_is_not_stale") {
        return;
    }
    let Some(device) = device::open() else { return };
    // The C library gives pages of larger allocations than 32 MiB back at once, and maps new ones.
    let size = [8192, 4200];
    let mut frame = Frame::poisoned(Format::Gray8, size, FOREIGN, 0);
    let meter = Meter::new(false);
    let mut importer = importer(&device, &meter, &frame);
    let mut addresses = Vec::new();
    for life in 0..4_u8 {
        let mut buffer = buffer_like(&frame, &device);
        for round in 0..4_u8 {
            frame.bytes.fill(16 * life + round);
            frame.bytes[8192 * usize::from(round)] = life;
            write(&mut buffer, &frame.bytes);
            let on_device = importer.import(&buffer).unwrap();
            assert_on_device(&on_device, &frame, &|| {
                format!("life {life}, round {round}")
            });
            assert_eq!(device.has_pinned(buffer.peek_memory(0)), round > 0);
        }
        addresses.push((
            buffer.peek_memory(0).as_ptr(),
            buffer.map_readable().unwrap().as_ptr(),
        ));
    }
    device::say(&format!(
        "addresses of one memory after the other: {addresses:?}"
    ));
}

#[test]
fn split_planes_are_merged_and_never_pinned() {
    let Some(device) = device::open() else { return };
    let arrangement = *ARRANGEMENTS
        .iter()
        .find(|a| a.owner == Owner::Foreign && a.split == Split::Middle)
        .unwrap();
    let frame = Frame::showing(Format::Gray8, [515, 389], arrangement, Content::Random, 0);
    let buffer = buffer_like(&frame, &device);
    let mut importer = importer(&device, &Meter::new(false), &frame);
    for _ in 0..3 {
        importer.import(&buffer).unwrap();
        for memory in buffer.iter_memories() {
            assert!(!device.has_pinned(memory));
        }
    }
}
