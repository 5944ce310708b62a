//! Packed masks of any size, stride and length: either unpacked to the pixels that the reference
//! packed, or refused by `clmaskunpack` with an error.

use arbitrary::{Result, Unstructured};
use clinspect_core::mask::{packed_stride, unpack_row};

use crate::{
    frames::{foreign_memory, read},
    oracle::pitch_threshold::pack,
    support::{Rig, register},
};

const MAX_SIDE: usize = 70;

/// See the module.
pub fn run(data: &[u8]) {
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    register();
    let width = input.int_in_range(1..=MAX_SIDE)?;
    let height = input.int_in_range(1..=MAX_SIDE)?;
    let row = packed_stride(width);
    let stride = match input.int_in_range(0..=3)? {
        0 => row,
        1 => row + input.int_in_range(0..=9)?,
        2 => input.int_in_range(1..=i32::MAX as usize)?,
        _ => input.int_in_range(1..=row)?,
    };
    // A complete mask, one that is a few bytes short or long, or one of any length.
    let whole = stride.saturating_mul(height - 1).saturating_add(row);
    let len = match input.int_in_range(0..=3)? {
        0 | 1 => whole,
        2 => whole
            .saturating_add(input.int_in_range(0..=4)?)
            .saturating_sub(2),
        _ => input.int_in_range(0..=2000)?,
    };
    if len > 20_000 {
        return Ok(());
    }
    let mut bytes = input.bytes(len.min(input.len()))?.to_vec();
    bytes.resize(len, 0xa5);
    let base = input.int_in_range(0..=3)?;
    if len >= whole && stride >= row {
        assert_packing(&bytes, [width, height], stride);
    }
    assert_unpacked(&bytes, [width, height], stride, base);
    Ok(())
}

fn is_marked(bytes: &[u8], stride: usize, x: usize, y: usize) -> bool {
    bytes[y * stride + x / 8] & (0x80 >> (x % 8)) != 0
}

/// The library's rows compared with the reference's packing, in both directions.
fn assert_packing(bytes: &[u8], [width, height]: [usize; 2], stride: usize) {
    let mask: Vec<bool> = (0..width * height)
        .map(|at| is_marked(bytes, stride, at % width, at / width))
        .collect();
    let packed = pack(&mask, width, height);
    let row = packed_stride(width);
    assert_eq!(packed.len(), row * height);
    let mut pixels = vec![7; width];
    for y in 0..height {
        unpack_row(&packed[y * row..(y + 1) * row], &mut pixels);
        for (x, &pixel) in pixels.iter().enumerate() {
            let expected = if mask[y * width + x] { 255 } else { 0 };
            assert_eq!(pixel, expected, "({x}, {y}) of {width}x{height}");
        }
    }
}

/// The element's output, or its error.
fn assert_unpacked(bytes: &[u8], [width, height]: [usize; 2], stride: usize, base: usize) {
    let caps = gst::Caps::builder("video/x-bitmask")
        .field("width", width as i32)
        .field("height", height as i32)
        .field("framerate", gst::Fraction::new(10, 1))
        .field("stride", stride as i32)
        .field("bit-order", "msb-first")
        .build();
    let mut rig = Rig::new("clmaskunpack", &caps);
    let mut buffer = gst::Buffer::new();
    if !bytes.is_empty() {
        let writable = buffer.get_mut().expect("a new buffer");
        writable.append_memory(foreign_memory(bytes, base));
    }
    let row = packed_stride(width);
    let needed = stride.saturating_mul(height - 1).saturating_add(row);
    let about = format!("{} bytes as {caps}", bytes.len());
    if stride < row || bytes.len() < needed {
        assert!(rig.push(buffer).is_err(), "{about}");
        assert!(rig.is_silent(), "{about}");
        return;
    }
    let output = rig.pass(buffer);
    let info = gst_video::VideoInfo::from_caps(&rig.output_caps()).expect("GRAY8 caps");
    let pixels = read(&output);
    assert_eq!(pixels.len(), info.size(), "{about}");
    for y in 0..height {
        for x in 0..width {
            let expected = if is_marked(bytes, stride, x, y) {
                255
            } else {
                0
            };
            let at = y * info.stride()[0] as usize + x;
            assert_eq!(pixels[at], expected, "({x}, {y}): {about}");
        }
    }
}
