//! Our memory used by other elements.

use clinspect_opencl::{Access, ClBuffer, Meter};
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{Frame, PLAIN, add_video_meta, our_memory, read},
    oracle::gaussian::gaussian_integer,
    support::{Rig, buffer_of, caps_of, judged, noise, start},
};

const SIZE: [usize; 2] = [64, 8];

fn frame() -> Frame {
    noise(Format::Gray8, SIZE, PLAIN)
}

/// The pool that an element offers upstream.
fn offered_pool(rig: &mut Rig, caps: &gst::Caps) -> gst::BufferPool {
    let mut query = gst::query::Allocation::new(Some(caps), true);
    assert!(rig.harness().srcpad().unwrap().peer_query(&mut query));
    assert!(
        query
            .find_allocation_meta::<gst_video::VideoMeta>()
            .is_some()
    );
    let (pool, size, min, _) = query.allocation_pools().next().expect("a pool");
    assert!(size >= 512 && min >= 1, "{size} bytes, {min} buffers");
    let pool = pool.expect("a pool of the element's own");
    pool.set_active(true).unwrap();
    pool
}

#[test]
fn four_byte_fill_of_pool_memory_keeps_the_rest() {
    let Some(_device) = start() else { return };
    let frame = frame();
    let caps = caps_of(&frame);
    let mut rig = Rig::new("clgaussian", &caps);
    let pool = offered_pool(&mut rig, &caps);
    for round in 0..3_u8 {
        let mut buffer = pool.acquire_buffer(None).unwrap();
        let writable = buffer.get_mut().unwrap();
        let mut expected: Vec<u8> = frame.bytes.iter().map(|b| b ^ round).collect();
        writable.copy_from_slice(0, &expected).unwrap();
        // gst_buffer_fill() maps write-only.
        writable.copy_from_slice(100, &[1, 2, 3, 4]).unwrap();
        expected[100..104].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(read(&buffer), expected);
        // The device reads the same bytes.
        let mut changed = frame.clone();
        changed.bytes = expected;
        let output = rig.pass(buffer);
        let smoothed = gaussian_integer(changed.component(0), 3, 0.0);
        assert!(read(&output).iter().map(|&b| u32::from(b)).eq(smoothed));
    }
    pool.set_active(false).unwrap();
}

#[test]
fn four_byte_fill_of_what_a_kernel_wrote_keeps_the_rest() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    let mut expected: Vec<u8> = gaussian_integer(frame.component(0), 3, 0.0)
        .iter()
        .map(|&v| v as u8)
        .collect();
    expected[8..12].copy_from_slice(&[9, 8, 7, 6]);
    // More frames than the pool's buffers, so that memory is reused.
    for _ in 0..6 {
        let mut output = rig.pass(buffer_of(&frame, &device));
        let writable = output.make_mut();
        writable.copy_from_slice(8, &[9, 8, 7, 6]).unwrap();
        assert_eq!(read(&output), expected);
    }
}

#[test]
fn shallow_copy_keeps_its_pixels_when_its_buffer_is_used_again() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    let first = rig.pass(buffer_of(&frame, &device));
    let expected = read(&first);
    let copy = first.copy();
    drop(first);
    for level in 0..6 {
        rig.pass(buffer_of(&crate::support::constant(SIZE, level), &device));
    }
    assert_eq!(read(&copy), expected);
}

#[test]
fn copy_of_memory_holds_the_bytes_asked_for_and_is_its_own() {
    let Some(device) = start() else { return };
    let bytes: Vec<u8> = (0..100).collect();
    let memory = our_memory(&device, &Meter::new(false), &bytes, 5);
    // SAFETY: the memory lives, and each copy is a reference of its own.
    let part = |offset, len| unsafe {
        let copy = gst::ffi::gst_memory_copy(memory.as_mut_ptr(), offset, len);
        (!copy.is_null()).then(|| gst::Memory::from_glib_full(copy))
    };
    for (offset, len, expected) in [
        (0, -1, &bytes[..]),
        (7, -1, &bytes[7..]),
        (7, 20, &bytes[7..27]),
        (99, 1, &bytes[99..]),
    ] {
        let mut copy = part(offset, len).unwrap();
        assert!(
            clinspect_opencl::buffer_of(&copy).is_some(),
            "our allocator made it"
        );
        assert_eq!(copy.map_readable().unwrap().as_slice(), expected);
        let written = copy.get_mut().unwrap();
        written.map_writable().unwrap().as_mut_slice().fill(255);
    }
    assert_eq!(memory.map_readable().unwrap().as_slice(), bytes);
}

#[test]
fn maps_nest_and_a_writing_map_inside_a_reading_one_is_refused() {
    let Some(device) = start() else { return };
    let meter = Meter::new(false);
    let memory = our_memory(&device, &meter, &[7; 100], 0);
    {
        let outer = memory.map_readable().unwrap();
        let inner = memory.map_readable().unwrap();
        assert_eq!(outer.as_slice(), inner.as_slice());
        drop(outer);
        assert_eq!(inner.as_slice(), [7; 100]);
        // SAFETY: a map info is plain data; a refused map leaves nothing to unmap.
        let refused = unsafe {
            let mut info: gst::ffi::GstMapInfo = std::mem::zeroed();
            gst::ffi::gst_memory_map(memory.as_mut_ptr(), &mut info, gst::ffi::GST_MAP_WRITE)
        };
        assert_eq!(refused, gst::glib::ffi::GFALSE);
    }
    // GStreamer's lock refuses this map. A shared part has its own lock, so our memory must refuse the map.
    let buffer = ClBuffer::new(&device, 64, &meter).unwrap();
    let access = |write| Access { read: true, write };
    buffer.map(access(false)).unwrap();
    assert!(buffer.map(access(true)).is_err());
    buffer.unmap();
    let outer = buffer.map(access(true)).unwrap();
    assert_eq!(buffer.map(access(false)).unwrap(), outer);
    buffer.unmap();
    buffer.unmap();

    let mut memory = memory;
    let writable = memory.get_mut().unwrap();
    writable.map_writable().unwrap()[3] = 9;
    let bytes = memory.map_readable().unwrap();
    assert_eq!((bytes[2], bytes[3]), (7, 9));
}

#[test]
fn shared_part_of_our_memory_is_read_in_place() {
    let Some(device) = start() else { return };
    let meter = Meter::new(false);
    let frame = frame();
    // The frame lies inside a larger memory, after another frame.
    let mut bytes = vec![0xee; 300];
    bytes.extend(&frame.bytes);
    bytes.extend([0xdd; 50]);
    let whole = our_memory(&device, &meter, &bytes, 0);
    let part = whole.share(300..300 + frame.bytes.len());
    assert_eq!(part.map_readable().unwrap().as_slice(), frame.bytes);
    // A shared part of a shared part.
    let tail = part.share(500..);
    assert_eq!(tail.map_readable().unwrap().as_slice(), &frame.bytes[500..]);
    for (memory, skip) in [(part, 0), (whole, 300)] {
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        writable.append_memory(memory);
        add_video_meta(writable, &frame.info, &[skip], &[64]);
        let mut rig = Rig::new("clpitchthreshold PUBLISHED pitch-x=4.5", &caps_of(&frame));
        let output = rig.pass(buffer);
        assert_eq!(read(&output), judged(&frame, 4.5, 0.0, 10.0).packed);
        let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
        assert_eq!(stats.get::<u64>("frames-zero-copy"), Ok(1));
    }
}

#[test]
fn part_of_a_kernels_output_shared_as_a_buffer_region_is_read_after_the_kernel() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [512, 64], PLAIN);
    let mut rig = Rig::new("clgaussian", &caps_of(&frame));
    let expected: Vec<u8> = gaussian_integer(frame.component(0), 3, 0.0)
        .iter()
        .map(|&v| v as u8)
        .collect();
    for _ in 0..5 {
        let output = rig.pass(buffer_of(&frame, &device));
        let flags = gst::BufferCopyFlags::MEMORY;
        let region = output.copy_region(flags, 1000..3000).unwrap();
        assert_eq!(read(&region), &expected[1000..3000]);
    }
}

#[test]
fn frames_outlive_the_element_that_made_them() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [512, 64], PLAIN);
    let line = "clgaussian ! clhistogram ! clpitchthreshold PUBLISHED pitch-x=8";
    for line in ["clgaussian", line] {
        let mut rig = Rig::new(line, &caps_of(&frame));
        let outputs: Vec<gst::Buffer> = (0..3)
            .map(|_| rig.pass(buffer_of(&frame, &device)))
            .collect();
        let expected = read(&outputs[0]);
        drop(rig);
        for output in outputs {
            assert_eq!(read(&output), expected, "{line}");
        }
    }
}

#[test]
fn offered_pool_outlives_its_element() {
    let Some(_device) = start() else { return };
    let caps = caps_of(&frame());
    let mut rig = Rig::new("clhistogram", &caps);
    let pool = offered_pool(&mut rig, &caps);
    drop(rig);
    let mut buffer = pool.acquire_buffer(None).unwrap();
    buffer.get_mut().unwrap().memset(0..512, 5).unwrap();
    assert_eq!(&read(&buffer)[..512], [5; 512]);
    drop(buffer);
    pool.set_active(false).unwrap();
}
