//! Frames that contradict their caps: one element error, no output, no crash.

use clinspect_opencl::frame::layout_of;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{Frame, PLAIN, add_video_meta, foreign_memory, read},
    support::{ON_DEVICE, Rig, buffer_of, caps_of, noise, start},
};

const SIZE: [usize; 2] = [40, 8];

/// Asserts that each element refuses the frame that `spoil` damaged, in each kind of memory, with one error
/// that contains `word`.
#[track_caller]
fn assert_refused(format: Format, word: &str, spoil: impl Fn(gst::Buffer) -> gst::Buffer) {
    let Some(device) = start() else { return };
    for element in ON_DEVICE {
        for arrangement in [PLAIN, crate::frames::ARRANGEMENTS[1]] {
            let frame = noise(format, SIZE, arrangement);
            let mut rig = Rig::new(element, &caps_of(&frame));
            rig.pass(buffer_of(&frame, &device));
            let about = format!("{element}, {:?}", arrangement.owner);
            let spoilt = spoil(buffer_of(&frame, &device));
            assert_eq!(rig.push(spoilt), Err(gst::FlowError::Error), "{about}");
            assert!(rig.is_silent(), "{about}");
            let errors = rig.errors();
            assert_eq!(errors.len(), 1, "{about}: {errors:?}");
            assert!(errors[0].text.contains(word), "{about}: {errors:?}");
            // The element works again if the application continues.
            rig.pass(buffer_of(&frame, &device));
        }
    }
}

/// Puts a GstVideoMeta on a buffer.
fn with_meta(
    mut buffer: gst::Buffer,
    format: Format,
    size: [u32; 2],
    offset: usize,
    stride: i32,
) -> gst::Buffer {
    let info = gst_video::VideoInfo::builder(format, size[0], size[1])
        .build()
        .unwrap();
    add_video_meta(buffer.get_mut().unwrap(), &info, &[offset], &[stride]);
    buffer
}

#[test]
fn short_buffer_is_refused() {
    assert_refused(Format::Gray8, "bytes", |mut buffer| {
        let size = buffer.size();
        buffer.get_mut().unwrap().set_size(size - 1);
        buffer
    });
    assert_refused(Format::I420, "plane 2", |mut buffer| {
        let size = buffer.size();
        buffer.get_mut().unwrap().set_size(size - 1);
        buffer
    });
    assert_refused(Format::Gray8, "0 bytes", |_| gst::Buffer::new());
}

/// A frame without a GstVideoMeta whose rows follow each other directly, with bytes behind them.
fn tight(frame: &Frame, behind: usize) -> gst::Buffer {
    let layout = layout_of(&frame.info).unwrap();
    let mut bytes = vec![0x5a; layout.bytes()];
    let row = layout.planes[0].row_bytes;
    for (y, to) in bytes
        .chunks_exact_mut(row)
        .enumerate()
        .take(frame.size()[1])
    {
        to.copy_from_slice(&frame.bytes[y * frame.info.stride()[0] as usize..][..row]);
    }
    bytes.resize(bytes.len() + behind, 0xa5);
    gst::Buffer::from_slice(bytes)
}

#[test]
fn grey_rows_that_follow_each_other_directly_are_read() {
    let Some(device) = start() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Gray16Be] {
        let frame = noise(format, [161, 42], PLAIN);
        let mut rig = Rig::new("clgaussian", &caps_of(&frame));
        let padded = read(&rig.pass(buffer_of(&frame, &device)));
        for behind in [0, 1, 16, 2 * 41 - 1] {
            let output = read(&rig.pass(tight(&frame, behind)));
            assert_eq!(output, padded, "{format} {behind}");
        }
        assert!(rig.errors().is_empty());
    }
}

#[test]
fn rows_that_follow_each_other_directly_in_other_formats_are_refused_with_their_strides() {
    if start().is_none() {
        return;
    }
    for (format, places) in [
        (Format::Rgb, "with stride 123 and offset 0, or"),
        (
            Format::I420,
            "stride 41 and offset 0, stride 21 and offset 328, stride 21 and offset 412, or",
        ),
    ] {
        let frame = noise(format, [41, 8], PLAIN);
        for element in ON_DEVICE {
            let mut rig = Rig::new(element, &caps_of(&frame));
            assert_eq!(rig.push(tight(&frame, 0)), Err(gst::FlowError::Error));
            let text = rig.errors().remove(0).text;
            for part in ["attach a GstVideoMeta", places, "a multiple of 4"] {
                assert!(text.contains(part), "{element}: {text}");
            }
        }
    }
}

#[test]
fn video_meta_outside_the_data_is_refused() {
    for (offset, stride) in [
        (1, 40),
        (0, 41),
        (320, 40),
        (usize::MAX, 40),
        (usize::MAX - 300, 40),
        (0, i32::MAX),
    ] {
        assert_refused(Format::Gray8, "does not end", |buffer| {
            with_meta(buffer, Format::Gray8, [40, 8], offset, stride)
        });
    }
}

#[test]
fn stride_zero_negative_or_under_a_row_is_refused() {
    for stride in [0, -1, -40, i32::MIN, 39] {
        assert_refused(Format::Gray8, "stride", |buffer| {
            with_meta(buffer, Format::Gray8, [40, 8], 0, stride)
        });
    }
}

#[test]
fn video_meta_of_another_size_or_format_is_refused() {
    for (format, size) in [
        (Format::Gray8, [41, 8]),
        (Format::Gray8, [40, 7]),
        (Format::Gray16Le, [40, 8]),
        (Format::Gray8, [u32::MAX / 4, 8]),
    ] {
        assert_refused(Format::Gray8, "GstVideoMeta", |mut buffer| {
            // Built by hand, because GStreamer rejects some of these.
            let writable = buffer.get_mut().unwrap();
            let strides = [40_i32];
            let added = gst_video::VideoMeta::add_full(
                writable,
                gst_video::VideoFrameFlags::empty(),
                format,
                size[0],
                size[1],
                &[0],
                &strides,
            );
            if added.is_err() {
                let info = gst_video::VideoInfo::builder(Format::Gray8, 20, 8)
                    .build()
                    .unwrap();
                add_video_meta(writable, &info, &[0], &[40]);
            }
            buffer
        });
    }
}

/// An allocator whose memory cannot be mapped.
mod unmappable {
    use gst::{glib, prelude::*, subclass::prelude::*};

    #[derive(Default)]
    pub struct Unmappable;

    #[glib::object_subclass]
    impl ObjectSubclass for Unmappable {
        const NAME: &'static str = "TestUnmappableAllocator";
        type Type = super::Unmappable;
        type ParentType = gst::Allocator;

        fn instance_init(obj: &glib::subclass::InitializingObject<Self>) {
            let allocator = obj.as_ptr() as *mut gst::ffi::GstAllocator;
            // SAFETY: the instance is being made; functions and name live for ever.
            unsafe {
                (*allocator).mem_type = c"TestUnmappable".as_ptr();
                (*allocator).mem_map = Some(map);
                (*allocator).mem_unmap = Some(unmap);
            }
        }
    }

    unsafe extern "C" fn map(
        _memory: *mut gst::ffi::GstMemory,
        _size: usize,
        _flags: gst::ffi::GstMapFlags,
    ) -> glib::ffi::gpointer {
        std::ptr::null_mut()
    }

    unsafe extern "C" fn unmap(_memory: *mut gst::ffi::GstMemory) {}

    impl ObjectImpl for Unmappable {}
    impl GstObjectImpl for Unmappable {}

    // SAFETY: alloc returns an initialised GstMemory without bytes; free undoes it.
    unsafe impl AllocatorImpl for Unmappable {
        unsafe fn alloc(
            &self,
            size: usize,
            _params: &gst::AllocationParams,
        ) -> *mut gst::ffi::GstMemory {
            // SAFETY: GstMemory is plain data that gst_memory_init fills.
            unsafe {
                let memory = Box::into_raw(Box::new(std::mem::zeroed::<gst::ffi::GstMemory>()));
                let allocator = self.obj().as_ptr().cast();
                let none = std::ptr::null_mut();
                gst::ffi::gst_memory_init(memory, 0, allocator, none, size, 0, 0, size);
                memory
            }
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: it came from `alloc`, and its last reference is gone.
            drop(unsafe { Box::from_raw(memory) });
        }
    }
}

gst::glib::wrapper! {
    pub struct Unmappable(ObjectSubclass<unmappable::Unmappable>)
        @extends gst::Allocator, gst::Object;
}

fn unreadable(len: usize) -> gst::Memory {
    let allocator: Unmappable = gst::glib::Object::new();
    allocator.alloc(len, None).unwrap()
}

#[test]
fn unreadable_memory_is_refused() {
    assert_refused(Format::Gray8, "cannot be read", |_| {
        let mut buffer = gst::Buffer::new();
        buffer.get_mut().unwrap().append_memory(unreadable(320));
        buffer
    });
    // In two memories, which a map merges.
    assert_refused(Format::Gray8, "cannot be read", |_| {
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        writable.append_memory(foreign_memory(&[0; 220], 0));
        writable.append_memory(unreadable(100));
        buffer
    });
}

#[test]
fn frame_before_caps_is_not_sent() {
    if start().is_none() {
        return;
    }
    for element in ON_DEVICE {
        let bin = gst::parse::bin_from_description(element, true).unwrap();
        let mut harness = gst_check::Harness::with_element(&bin, Some("sink"), Some("src"));
        harness.play();
        let pad = bin.static_pad("sink").unwrap();
        pad.send_event(gst::event::StreamStart::new("test"));
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        pad.send_event(gst::event::Segment::new(&segment));
        let flow = pad.chain(gst::Buffer::with_size(320).unwrap());
        assert_eq!(flow, Err(gst::FlowError::NotNegotiated), "{element}");
        assert!(harness.try_pull().is_none());
    }
}
