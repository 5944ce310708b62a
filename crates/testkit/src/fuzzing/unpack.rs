//! Buffers of any length, with and without a GstVideoMeta of any offset, stride and size, for `clunpack` in every
//! encoding: unpacked as the reference unpacks the rows, or refused with one error.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use clinspect_core::unpack::{Demosaic, Encoding, Output};
use clinspect_opencl::{ClContext, Meter};

use crate::{
    encoded::{Encoded, add_meta, encodings},
    frames::{foreign_memory, our_memory, read},
    support::{Rig, start},
};

/// See the module.
pub fn run(data: &[u8]) {
    let Some(device) = start() else { return };
    let _ = body(&mut Unstructured::new(data), &device);
}

fn body(input: &mut Unstructured, device: &Arc<ClContext>) -> Result<()> {
    let encoding = *input.choose(&encodings())?;
    let is_packed = matches!(encoding, Encoding::Packed(_));
    // Few sizes, since each one may have kernels of its own.
    let size = [*input.choose(&[4, 12, 44])?, *input.choose(&[2, 5])?];
    let output = *input.choose(if is_packed {
        &[Output::Gray16Le, Output::Gray8]
    } else {
        &[Output::Rgb, Output::Rgbx]
    })?;
    let row = encoding.row_bytes(size[0]).expect("whole bytes");
    let fours = row.next_multiple_of(4);
    let deep = if is_packed {
        fours
    } else {
        row / size[0] * size[0].next_multiple_of(4)
    };

    let meta = input.arbitrary::<bool>()?;
    let (mut offset, mut stride, mut told) = (0, row as i32, size);
    if meta {
        offset = input.int_in_range(0..=40)?;
        stride += input.int_in_range(0..=30)?;
        match input.int_in_range(0..=9)? {
            0 => offset = input.arbitrary()?,
            1 => stride = input.arbitrary()?,
            2 => told[input.int_in_range(0..=1)?] = input.int_in_range(0..=100)?,
            _ => {}
        }
    }
    let end = |stride: i32| {
        let stride = usize::try_from(stride).ok().filter(|&s| s >= row)?;
        stride
            .checked_mul(size[1] - 1)?
            .checked_add(row)?
            .checked_add(offset)
    };
    let whole = end(stride).filter(|&end| end < 100_000);
    let len = match (input.int_in_range(0..=5)?, whole) {
        (0, _) => input.int_in_range(0..=2 * fours * size[1])?,
        (1, Some(whole)) => whole - 1,
        (2, Some(whole)) => whole,
        (3, _) => fours * size[1],
        (4, _) => deep * size[1],
        _ => row * size[1],
    };

    // The definition of the rows: the meta, else the padding that the length allows.
    let usual = if is_packed { row } else { fours };
    let by_length = [usual, fours, deep, row];
    let lies = if meta {
        let is_told = told == size;
        end(stride)
            .filter(|&end| is_told && end <= len)
            .map(|_| (offset, stride as usize))
    } else {
        let mut fitting = by_length.into_iter();
        let stride = fitting.find(|s| s * size[1] == len).unwrap_or(usual);
        let end = stride * (size[1] - 1) + row;
        (end <= len).then_some((0, stride))
    };

    let ours = input.arbitrary()?;
    let mut bytes = input.bytes(len.min(input.len()))?.to_vec();
    bytes.resize(len, 0x5b);
    let base = 1;
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("a new buffer");
    if len > 0 {
        writable.append_memory(if ours {
            our_memory(device, &Meter::new(false), &bytes, base)
        } else {
            foreign_memory(&bytes, base)
        });
    }
    if meta {
        let format = if is_packed {
            gst_video::VideoFormat::Gray16Le
        } else {
            gst_video::VideoFormat::Encoded
        };
        add_meta(writable, format, told, offset, stride);
    }

    let mut frame = Encoded {
        encoding,
        size,
        bytes: Vec::new(),
    };
    let about = format!("{frame:?}: {len} bytes, meta {meta} {told:?} {offset} {stride}, {lies:?}");
    let wanted = gst::Caps::builder("video/x-raw").field("format", output.name());
    let mut rig = Rig::between(&frame.element(), &frame.caps(), &wanted.build());
    let pushed = rig.push(buffer);
    let Some((start, stride)) = lies else {
        assert_eq!(pushed, Err(gst::FlowError::Error), "{about}");
        assert!(rig.is_silent(), "{about}");
        assert_eq!(rig.errors().len(), 1, "{about}");
        return Ok(());
    };
    assert!(pushed.is_ok(), "{pushed:?}, {:?}: {about}", rig.errors());
    for y in 0..size[1] {
        let from = start + y * stride;
        frame.bytes.extend_from_slice(&bytes[from..from + row]);
    }
    let unpacked = read(&rig.harness().pull().expect("a buffer comes out"));
    let expected = frame.unpacked(Demosaic::Bilinear, output, &unpacked);
    assert!(unpacked == expected, "{about}");
    Ok(())
}
