//! Frames as files.

use std::io::Cursor;

use gst_video::VideoFormat;
use image::{DynamicImage, GrayImage, ImageFormat, RgbImage, RgbaImage};
use run::frame::Frame;

use super::scenes::{frame, start};

/// The pixels without padding.
fn pixels(frame: &Frame) -> Vec<u8> {
    let map = frame.buffer().map_readable().unwrap();
    let info = frame.info();
    let row = usize::try_from(info.comp_pstride(0)).unwrap() * info.width() as usize;
    let rows = map.chunks(usize::try_from(info.stride()[0]).unwrap());
    rows.flat_map(|of| of[..row].to_vec()).collect()
}

#[test]
fn grey_and_colour_frames_come_back_from_a_png_bit_for_bit() {
    start();
    for (format, bytes) in [
        (VideoFormat::Gray8, 1),
        (VideoFormat::Gray16Le, 2),
        (VideoFormat::Rgb, 3),
    ] {
        for size in [[1, 1], [5, 3], [67, 2]] {
            let count = size[0] * size[1] * bytes;
            let samples: Vec<u8> = (0..count).map(|at| (at * 37 % 251) as u8).collect();
            let before = frame(format, size, &samples);
            let after = Frame::read(&before.png(&[]).unwrap()).unwrap();
            assert_eq!(after.info(), before.info(), "{format} {size:?}");
            assert_eq!(pixels(&after), samples, "{format} {size:?}");
        }
    }
    let info = gst_video::VideoInfo::builder(VideoFormat::Gray8, 4, 4)
        .par(gst::Fraction::new(2, 1))
        .build()
        .unwrap();
    let wide = Frame::copy_of(&gst::Buffer::from_slice([7; 16]), &info).unwrap();
    assert_eq!(
        Frame::read(&wide.png(&[]).unwrap()).unwrap().info().par(),
        info.par()
    );
}

#[test]
fn other_pictures_are_read_and_other_files_are_refused_with_a_sentence() {
    start();
    let encode = |picture: &DynamicImage, format| {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let grey =
        DynamicImage::ImageLuma8(GrayImage::from_fn(9, 5, |x, y| [(x * 20 + y) as u8].into()));
    let read = |bytes: &[u8]| Frame::read(bytes).unwrap();
    let pgm = read(&encode(&grey, ImageFormat::Pnm));
    assert_eq!(pgm.info().format(), VideoFormat::Gray8);
    assert_eq!(pixels(&pgm), grey.as_bytes());
    // Samples of 12 bits, as in a PNG of 16 bits.
    for maxval in ["4095", "65535"] {
        let file = [b"P5 2 1 ", maxval.as_bytes(), b"\n\x0f\xff\x01\x02"].concat();
        let sixteen = read(&file);
        assert_eq!(sixteen.info().format(), VideoFormat::Gray16Le, "{maxval}");
        assert_eq!(pixels(&sixteen), [0xff, 0x0f, 0x02, 0x01], "{maxval}");
    }
    let colour = DynamicImage::ImageRgb8(RgbImage::from_pixel(16, 16, [200, 100, 50].into()));
    let jpeg = read(&encode(&colour, ImageFormat::Jpeg));
    assert_eq!(jpeg.info().format(), VideoFormat::Rgb);
    assert!(pixels(&jpeg)[0].abs_diff(200) < 8);
    let clear = DynamicImage::ImageRgba8(RgbaImage::from_pixel(3, 2, [1, 2, 3, 9].into()));
    assert_eq!(
        pixels(&read(&encode(&clear, ImageFormat::Png))),
        [1, 2, 3].repeat(6)
    );
    let png = encode(&grey, ImageFormat::Png);
    // A head that promises 60000 x 60000 pixels in a few bytes.
    let mut bomb = b"P5 60000 60000 255\n".to_vec();
    bomb.extend([0; 100]);
    for (bytes, part) in [
        (&b""[..], "no PNG, PNM or JPEG"),
        (b"hello", "no PNG, PNM or JPEG"),
        (&png[..png.len() / 2], "cannot be read"),
        (&bomb, "larger than 256 MiB"),
    ] {
        let why = Frame::read(bytes).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}

/// A pixel that is twice as wide as high is twice as high as wide in a picture that was turned.
#[test]
fn a_picture_that_its_exif_turns_has_turned_pixels() {
    start();
    let info = gst_video::VideoInfo::builder(VideoFormat::Gray8, 4, 2)
        .par(gst::Fraction::new(2, 1))
        .build()
        .unwrap();
    let wide = Frame::copy_of(&gst::Buffer::from_slice([1, 2, 3, 4, 5, 6, 7, 8]), &info).unwrap();
    let mut png = wide.png(&[]).unwrap();
    // The chunk eXIf with orientation 6, behind the head.
    let exif = b"\0\0\0\x1aeXIfMM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let chunk = [&exif[..], &0xd667_4b69_u32.to_be_bytes()].concat();
    png.splice(33..33, chunk);
    let turned = Frame::read(&png).unwrap();
    assert_eq!([turned.info().width(), turned.info().height()], [2, 4]);
    assert_eq!(turned.info().par(), gst::Fraction::new(1, 2));
    assert_eq!(pixels(&turned), [5, 1, 6, 2, 7, 3, 8, 4]);
}

#[test]
fn a_jpeg_has_square_pixels_and_the_width_that_is_asked_for() {
    start();
    let wide = frame(VideoFormat::Gray16Le, [64, 32], &[0x80; 64 * 32 * 2]);
    let picture = image::load_from_memory(&wide.jpeg(16).unwrap()).unwrap();
    assert_eq!([picture.width(), picture.height()], [16, 8]);
    let level = picture.to_luma8().get_pixel(3, 3).0[0];
    assert!(level.abs_diff(0x80) < 4, "{level}");
}
