//! `clunpack`: every encoding in every memory, negotiation, what passes, and bad input.

use std::sync::Arc;

use clinspect_core::unpack::{Demosaic, Encoding, Output, Packing, Pattern};
use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    encoded::{Encoded, Rows, add_meta, encodings},
    frames::{ARRANGEMENTS, OUTPUT_POISON, Owner, PLAIN, read},
    support::{Pipeline, Rig, buffer_of, caps_of, feed, noise, start},
};

/// Rows that are no multiple of four bytes, in every encoding.
const PACKED_SIZE: [usize; 2] = [44, 7];
const BAYER_SIZE: [usize; 2] = [37, 11];
const MONO12P: Encoding = Encoding::Packed(Packing::Mono12p);

const fn bayer(pattern: Pattern, bits: u32) -> Encoding {
    Encoding::Bayer {
        pattern,
        bits,
        big_endian: false,
    }
}

fn size_of(encoding: Encoding) -> [usize; 2] {
    match encoding {
        Encoding::Packed(_) => PACKED_SIZE,
        Encoding::Bayer { .. } => BAYER_SIZE,
    }
}

fn raw(output: Output) -> gst::Caps {
    gst::Caps::builder("video/x-raw")
        .field("format", output.name())
        .build()
}

/// The element's number in `stats`.
fn stat(element: &gst::Element, name: &str) -> u64 {
    let stats: gst::Structure = element.property("stats");
    stats.get(name).unwrap()
}

/// Asserts that a buffer holds the unpacked frame in GStreamer's own layout.
#[track_caller]
fn assert_unpacked(output: &gst::Buffer, input: &Encoded, demosaic: Demosaic, to: Output) {
    let found = read(output);
    let wanted = input.unpacked(demosaic, to, &found);
    let differs = found.iter().zip(&wanted).position(|(a, b)| a != b);
    assert_eq!(
        differs, None,
        "{:?}, {demosaic:?} to {to:?}: the first byte that differs",
        input.encoding
    );
    assert_ne!(found, vec![OUTPUT_POISON; found.len()]);
}

/// Sends the frame through the element in every memory and layout, and compares the results.
#[track_caller]
fn assert_in_any_memory(
    device: &Arc<ClContext>,
    encoding: Encoding,
    demosaic: Demosaic,
    to: Output,
) {
    let input = Encoded::random(encoding, size_of(encoding), 7);
    let choice = match demosaic {
        Demosaic::Bilinear => "bilinear",
        Demosaic::Gradient => "gradient",
    };
    let line = format!("{} demosaic={choice}", input.element());
    let mut rig = Rig::between(&line, &input.caps(), &raw(to));
    let described = Rows::Described {
        before: 7,
        padding: 13,
    };
    for owner in [Owner::Foreign, Owner::Ours] {
        for rows in [Rows::Dense, Rows::InFours, described] {
            let output = rig.pass(input.buffer(device, owner, rows, 0));
            assert_unpacked(&output, &input, demosaic, to);
        }
    }
    // The caps of packed samples demand two bytes a sample.
    if let Encoding::Packed(_) = encoding {
        let behind = 2 * input.size[0] * input.size[1] - input.bytes.len();
        let output = rig.pass(input.buffer(device, Owner::Foreign, Rows::Dense, behind));
        assert_unpacked(&output, &input, demosaic, to);
    }
    assert!(rig.errors().is_empty());
}

#[test]
fn frames_of_every_encoding_in_any_memory_equal_the_reference() {
    let Some(device) = start() else { return };
    for (n, encoding) in encodings().into_iter().enumerate() {
        let outputs: &[Output] = match encoding {
            Encoding::Packed(_) => &[Output::Gray16Le, Output::Gray8],
            Encoding::Bayer { .. } => &Output::ALL[n % 5..=n % 5],
        };
        let demosaic = [Demosaic::Bilinear, Demosaic::Gradient][n / 5 % 2];
        for &output in outputs {
            assert_in_any_memory(&device, encoding, demosaic, output);
        }
    }
}

/// Cameras send data behind the picture, such as 312 bytes of chunk data.
#[test]
fn rows_follow_each_other_directly_in_a_buffer_that_is_too_short_for_padded_ones() {
    let Some(device) = start() else { return };
    for (bits, size, more) in [
        (8, [722, 242], [1, 16, 312, 2 * 241 - 1]),
        (8, [45, 30], [1, 16, 60, 3 * 29 - 1]),
        (12, [721, 242], [1, 16, 312, 2 * 241 - 1]),
    ] {
        let input = Encoded::random(bayer(Pattern::Rggb, bits), size, 5);
        let mut rig = Rig::between(&input.element(), &input.caps(), &raw(Output::Gray16Le));
        for behind in more {
            let output = rig.pass(input.buffer(&device, Owner::Foreign, Rows::Dense, behind));
            assert_unpacked(&output, &input, Demosaic::Bilinear, Output::Gray16Le);
            let padded = input.buffer(&device, Owner::Foreign, Rows::InFours, behind);
            let output = rig.pass(padded);
            assert_unpacked(&output, &input, Demosaic::Bilinear, Output::Gray16Le);
        }
        assert!(rig.errors().is_empty());
    }
}

#[test]
fn bayer_pictures_become_every_output_by_both_methods() {
    let Some(device) = start() else { return };
    for demosaic in [Demosaic::Bilinear, Demosaic::Gradient] {
        for output in Output::ALL {
            assert_in_any_memory(&device, bayer(Pattern::Grbg, 12), demosaic, output);
        }
    }
}

/// The bytes are written down here, so that nothing else need be right.
#[test]
fn packed_samples_written_by_hand_have_their_values() {
    let Some(device) = start() else { return };
    for (packing, bytes, samples) in [
        (
            Packing::Mono12p,
            &[0xbc, 0x3a, 0x12][..],
            &[0xabc_u16, 0x123][..],
        ),
        (Packing::Mono12Packed, &[0xab, 0x3c, 0x12], &[0xabc, 0x123]),
        (
            Packing::Mono10p,
            &[0x01, 0x08, 0x30, 0x00, 0x01],
            &[0x001, 0x002, 0x003, 0x004],
        ),
        (Packing::Mono10Packed, &[0xff, 0x12, 0x80], &[0x3fe, 0x201]),
    ] {
        let input = Encoded {
            encoding: Encoding::Packed(packing),
            size: [samples.len(), 1],
            bytes: bytes.to_vec(),
        };
        let mut rig = Rig::between(&input.element(), &input.caps(), &raw(Output::Gray16Le));
        let output = rig.pass(input.buffer(&device, Owner::Foreign, Rows::Dense, 0));
        let words: Vec<u16> = read(&output)
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        assert_eq!(words[..samples.len()], *samples, "{packing:?}");
    }
}

#[test]
fn chain_behind_shares_the_unpacked_frame() {
    let Some(device) = start() else { return };
    for (input, threshold, wanted) in [
        (
            Encoded::random(MONO12P, [64, 16], 3),
            "threshold=400 bit-depth=12",
            "GRAY16_LE",
        ),
        (
            Encoded::random(bayer(Pattern::Rggb, 8), [64, 16], 3),
            "threshold=20",
            "RGB",
        ),
    ] {
        let line = format!(
            "{} ! clgaussian ! clpitchthreshold pitch-x=8 min-contrast=0 {threshold} output=frame",
            input.element()
        );
        let mut rig = Rig::new(&line, &input.caps());
        // The format that downstream prefers is GRAY8.
        let negotiated = rig.output_caps();
        let format = negotiated.structure(0).unwrap().get::<&str>("format");
        assert_eq!(format, Ok(wanted));
        let bytes = input.bytes.len() as u64;
        for _ in 0..3 {
            rig.pass(input.buffer(&device, Owner::Foreign, Rows::Dense, 1000));
        }
        let shares = device.caps().shares_host_memory;
        let unpacker = rig.only("clunpack");
        let taken = ["frames-zero-copy", "frames-wrapped", "frames-copied"];
        let counts = |element: &gst::Element| taken.map(|name| stat(element, name));
        assert_eq!(
            counts(&unpacker),
            if shares { [0, 3, 0] } else { [0, 0, 3] }
        );
        // Neither unpacked samples nor the bytes behind the last row cross the bus.
        let uploaded = if shares { 0 } else { 3 * bytes };
        assert_eq!(stat(&unpacker, "bytes-uploaded"), uploaded);
        for factory in ["clgaussian", "clpitchthreshold"] {
            assert_eq!(counts(&rig.only(factory)), [3, 0, 0], "{factory}");
        }
    }
}

#[test]
fn raw_video_passes_as_it_is_and_upstream_may_use_the_memory_behind() {
    let Some(device) = start() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::Rgb, Format::Nv12] {
        for arrangement in ARRANGEMENTS {
            let frame = noise(format, [37, 11], arrangement);
            let mut rig = Rig::new("clunpack", &caps_of(&frame));
            let buffer = buffer_of(&frame, &device);
            let pointer = buffer.as_ptr();
            let output = rig.pass(buffer);
            assert_eq!(output.as_ptr(), pointer);
            assert_eq!(rig.output_caps(), caps_of(&frame));
        }
    }
    let done = Pipeline::new(
        "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8 ! clunpack ! clgaussian name=g ! fakesink",
    );
    done.set_state(gst::State::Playing).unwrap();
    assert_eq!(done.wait_for_end().type_(), gst::MessageType::Eos);
    assert_eq!(stat(&done.get("g"), "frames-zero-copy"), 3);
}

#[test]
fn caps_that_change_mid_stream_are_unpacked_as_they_say() {
    let Some(device) = start() else { return };
    let first = Encoded::random(bayer(Pattern::Bggr, 8), BAYER_SIZE, 1);
    let mut rig = Rig::new("clunpack", &first.caps());
    for round in 0..2 {
        for encoding in [
            bayer(Pattern::Bggr, 8),
            bayer(Pattern::Gbrg, 8),
            bayer(Pattern::Gbrg, 12),
        ] {
            for size in [BAYER_SIZE, [64, 3 + round]] {
                let input = Encoded::random(encoding, size, 2);
                rig.renegotiate(&input.caps());
                for rows in [Rows::Dense, Rows::InFours] {
                    let output = rig.pass(input.buffer(&device, Owner::Foreign, rows, 0));
                    assert_unpacked(&output, &input, Demosaic::Bilinear, Output::Rgb);
                }
            }
        }
        let grey = noise(Format::Gray8, [37, 11], PLAIN);
        rig.renegotiate(&caps_of(&grey));
        let output = rig.pass(buffer_of(&grey, &device));
        assert_eq!(read(&output), grey.bytes);
    }
}

#[test]
fn demosaic_changes_while_frames_flow_and_packing_does_not() {
    let Some(device) = start() else { return };
    let input = Encoded::random(bayer(Pattern::Grbg, 8), BAYER_SIZE, 5);
    let mut rig = Rig::new("clunpack", &input.caps());
    let frame = || input.buffer(&device, Owner::Foreign, Rows::InFours, 0);
    assert_unpacked(&rig.pass(frame()), &input, Demosaic::Bilinear, Output::Rgb);
    let element = rig.only("clunpack");
    element.set_property_from_str("demosaic", "gradient");
    element.set_property_from_str("packing", "mono12p");
    let shows = |output: &gst::Buffer, demosaic| {
        let found = read(output);
        input.unpacked(demosaic, Output::Rgb, &found) == found
    };
    rig.settle(
        frame,
        |output| shows(output, Demosaic::Gradient),
        |output| shows(output, Demosaic::Bilinear),
    );
    // New caps are read with the packing of the start, too.
    let other = Encoded::random(bayer(Pattern::Rggb, 8), [20, 6], 5);
    rig.renegotiate(&other.caps());
    let output = rig.pass(other.buffer(&device, Owner::Foreign, Rows::InFours, 0));
    assert_unpacked(&output, &other, Demosaic::Gradient, Output::Rgb);
}

#[test]
fn gradient_that_a_small_frame_refuses_leaves_bilinear() {
    let Some(device) = start() else { return };
    let input = Encoded::random(bayer(Pattern::Grbg, 8), [2, 2], 5);
    let mut rig = Rig::new("clunpack", &input.caps());
    let pass = |rig: &mut Rig| {
        let output = rig.pass(input.buffer(&device, Owner::Foreign, Rows::InFours, 0));
        assert_unpacked(&output, &input, Demosaic::Bilinear, Output::Rgb);
    };
    pass(&mut rig);
    let element = rig.only("clunpack");
    element.set_property_from_str("demosaic", "gradient");
    let began = std::time::Instant::now();
    let warnings = loop {
        pass(&mut rig);
        let warnings = rig.warnings();
        if !warnings.is_empty() {
            break warnings;
        }
        assert!(began.elapsed().as_secs() < 60, "no warning came");
    };
    assert!(
        warnings[0].text.contains("demosaic=bilinear"),
        "{warnings:?}"
    );
    let demosaic = element.property_value("demosaic");
    assert_eq!(demosaic.serialize().unwrap(), "bilinear");
}

#[test]
fn metas_times_and_flags_are_kept_and_the_video_meta_is_not() {
    let Some(device) = start() else { return };
    for encoding in [MONO12P, bayer(Pattern::Rggb, 10)] {
        let input = Encoded::random(encoding, [40, 6], 4);
        let mut rig = Rig::new(&input.element(), &input.caps());
        let rows = Rows::Described {
            before: 3,
            padding: 5,
        };
        let mut buffer = input.buffer(&device, Owner::Foreign, rows, 0);
        let writable = buffer.get_mut().unwrap();
        writable.set_pts(gst::ClockTime::from_mseconds(120));
        writable.set_duration(gst::ClockTime::from_mseconds(10));
        writable.set_offset(4711);
        let flags = gst::BufferFlags::MARKER | gst::BufferFlags::CORRUPTED;
        writable.set_flags(flags);
        gst_video::VideoRegionOfInterestMeta::add(writable, "face", (1, 2, 3, 4));
        let mut custom = gst::meta::CustomMeta::add(writable, "TestForeignMeta").unwrap();
        custom.mut_structure().set("answer", 42);
        let output = rig.pass(buffer);
        assert_eq!(output.pts(), Some(gst::ClockTime::from_mseconds(120)));
        assert_eq!(output.duration(), Some(gst::ClockTime::from_mseconds(10)));
        assert_eq!(output.offset(), 4711);
        assert!(output.flags().contains(flags));
        let regions = output.iter_meta::<gst_video::VideoRegionOfInterestMeta>();
        let regions: Vec<_> = regions.map(|region| region.rect()).collect();
        assert_eq!(regions, [(1, 2, 3, 4)]);
        let custom = gst::meta::CustomMeta::from_buffer(&output, "TestForeignMeta").unwrap();
        assert_eq!(custom.structure().get::<i32>("answer"), Ok(42));
        let meta = output.meta::<gst_video::VideoMeta>();
        assert!(
            meta.is_none_or(|meta| meta.stride()[0] != 45),
            "{encoding:?}"
        );
        let element = rig.only("clunpack");
        assert_eq!(stat(&element, "frames-corrupted"), 1);
    }
}

#[test]
fn caps_keep_size_rate_and_shape_of_a_pixel() {
    let Some(_device) = start() else { return };
    for (line, media, formats) in [
        ("clunpack", "video/x-bayer,format=rggb", "RGB"),
        ("clunpack", "video/x-bayer,format=gbrg16be", "RGB"),
        (
            "clunpack packing=mono10p",
            "video/x-raw,format=GRAY16_LE",
            "GRAY16_LE",
        ),
    ] {
        let caps = format!(
            "{media},width=64,height=4,framerate=25/1,max-framerate=50/1,pixel-aspect-ratio=2/1"
        );
        let input: gst::Caps = caps.parse().unwrap();
        let rig = Rig::new(line, &input);
        assert!(rig.errors().is_empty());
        let mut wanted = input.structure(0).unwrap().to_owned();
        wanted.set_name("video/x-raw");
        wanted.set("format", formats);
        let output = rig.output_caps();
        assert!(wanted.is_subset(output.structure(0).unwrap()), "{output}");
        let info = gst_video::VideoInfo::from_caps(&output).unwrap();
        assert_eq!(
            info.interlace_mode(),
            gst_video::VideoInterlaceMode::Progressive
        );
    }
}

/// The formats that the element accepts on its sink pad for frames of `wanted`.
fn accepted(line: &str, wanted: &str) -> String {
    let bin = gst::parse::bin_from_description(line, true).unwrap();
    let peer = gst::Caps::builder("video/x-raw")
        .field("format", wanted)
        .build();
    let sink = gst::ElementFactory::make("capsfilter")
        .property("caps", peer)
        .build()
        .unwrap();
    let pipeline = gst::Pipeline::new();
    pipeline.add_many([bin.upcast_ref(), &sink]).unwrap();
    bin.link(&sink).unwrap();
    bin.static_pad("sink").unwrap().query_caps(None).to_string()
}

#[test]
fn sink_asks_for_what_downstream_can_get() {
    if start().is_none() {
        return;
    }
    let colour = accepted("clunpack", "BGR");
    assert!(
        colour.contains("rggb10le") && colour.contains("BGR"),
        "{colour}"
    );
    assert!(!colour.contains("GRAY16_LE"), "{colour}");
    let deep = accepted("clunpack packing=mono12p", "GRAY16_LE");
    assert!(deep.contains("format=(string){ GRAY16_LE"), "{deep}");
    let none = accepted("clunpack", "NV12");
    assert!(!none.contains("bayer"), "{none}");
}

/// Frames in a file, as `multifilesrc` reads them, without a VideoMeta.
#[test]
fn raw_frames_of_a_file_are_unpacked() {
    let Some(_device) = start() else { return };
    let input = Encoded::random(MONO12P, [640, 48], 9);
    let path = std::env::temp_dir().join(format!("clunpack-{}.12p", std::process::id()));
    std::fs::write(&path, [&input.bytes[..], &input.bytes].concat()).unwrap();
    let pipeline = Pipeline::new(&format!(
        "filesrc location={} blocksize={} ! {} ! {} ! appsink name=out sync=false",
        path.display(),
        input.bytes.len(),
        input.caps(),
        input.element()
    ));
    pipeline.set_state(gst::State::Playing).unwrap();
    let sink: gst_app::AppSink = pipeline.get("out");
    for _ in 0..2 {
        let sample = sink.pull_sample().unwrap();
        let output = sample.buffer_owned().unwrap();
        assert_unpacked(&output, &input, Demosaic::Bilinear, Output::Gray16Le);
    }
    let _ = std::fs::remove_file(&path);
}

/// Asserts that frames are refused with one error that contains every word.
#[track_caller]
fn assert_refused(line: &str, caps: &gst::Caps, buffer: gst::Buffer, words: &[&str]) {
    let fate = feed(line, caps, vec![buffer.clone(), buffer]);
    assert_eq!(fate.received, 0, "{line}");
    assert_eq!(fate.errors.len(), 1, "{line}: {:?}", fate.errors);
    let text = &fate.errors[0].text;
    for word in words {
        assert!(text.contains(word), "{line}: \"{text}\" lacks {word}");
    }
}

fn labelled(format: &str, [width, height]: [usize; 2]) -> gst::Caps {
    let media = if format.chars().next().is_some_and(char::is_uppercase) {
        "video/x-raw"
    } else {
        "video/x-bayer"
    };
    format!("{media},format={format},width={width},height={height},framerate=25/1")
        .parse()
        .unwrap()
}

#[test]
fn settings_that_do_not_fit_the_caps_are_refused() {
    if start().is_none() {
        return;
    }
    let buffer = || gst::Buffer::with_size(4096).unwrap();
    for (line, format, size, words) in [
        (
            "clunpack packing=mono10p",
            "GRAY16_LE",
            [42, 4],
            &["42 samples of Mono10p", "inside a byte", "such as 40"][..],
        ),
        (
            "clunpack packing=mono12p",
            "rggb",
            [40, 4],
            &["packing=mono12p", "rggb", "set packing=none"],
        ),
        (
            "clunpack packing=mono12packed",
            "GRAY8",
            [40, 4],
            &["GRAY16_LE", "GRAY8", "packing=none", "Mono12Packed"],
        ),
        ("clunpack", "rggb", [1, 40], &["1x40", "at least 2x2"]),
        (
            "clunpack demosaic=gradient",
            "bggr12le",
            [40, 2],
            &["40x2", "demosaic=bilinear"],
        ),
        (
            "clunpack memory-object=image",
            "rggb",
            [40, 4],
            &["memory-object=auto"],
        ),
    ] {
        assert_refused(line, &labelled(format, size), buffer(), words);
    }
}

#[test]
fn short_frames_are_refused_with_what_would_fit() {
    if start().is_none() {
        return;
    }
    let size = [40, 4];
    for (line, format, bytes, words) in [
        // 240 bytes are needed, and Mono10p has 200.
        (
            "clunpack packing=mono12p",
            "GRAY16_LE",
            239,
            &["239 bytes", "Mono12p need 240", "PixelFormat"][..],
        ),
        (
            "clunpack packing=mono12p",
            "GRAY16_LE",
            200,
            &[
                "200 bytes",
                "Mono12p need 240",
                "length of frames with packing=mono10p",
            ],
        ),
        ("clunpack", "rggb", 159, &["159 bytes", "rggb need 160"]),
        // Without padding.
        ("clunpack", "rggb 42", 167, &["167 bytes", "rggb need 168"]),
        (
            "clunpack",
            "rggb12le",
            240,
            &["240 bytes", "need 320", "packed Bayer", "BayerRG12"],
        ),
        (
            "clgaussian",
            "GRAY16_LE",
            240,
            &[
                "240 bytes",
                "clunpack packing=mono12p or packing=mono10packed or packing=mono12packed",
            ],
        ),
        (
            "clhistogram",
            "GRAY16_LE",
            200,
            &["200 bytes", "put clunpack packing=mono10p before"],
        ),
        (
            "clpitchthreshold pitch-x=8",
            "GRAY16_LE",
            240,
            &["packing=mono12p"],
        ),
        ("clflatfield", "GRAY16_LE", 240, &["packing=mono12p"]),
    ] {
        let buffer = gst::Buffer::with_size(bytes).unwrap();
        let (format, width) = format.split_once(' ').unwrap_or((format, "40"));
        let size = [width.parse().unwrap(), size[1]];
        assert_refused(line, &labelled(format, size), buffer, words);
    }
    // Frames of another length have no such advice.
    let fate = feed(
        "clgaussian",
        &labelled("GRAY16_LE", size),
        vec![gst::Buffer::with_size(239).unwrap()],
    );
    assert!(
        !fate.errors[0].text.contains("clunpack"),
        "{:?}",
        fate.errors
    );
}

#[test]
fn video_meta_that_contradicts_the_frame_is_refused() {
    let Some(device) = start() else { return };
    let input = Encoded::random(MONO12P, [40, 4], 1);
    for (format, size, offset, stride, word) in [
        (Format::Gray16Le, [40, 4], 0, 59, "stride of 59"),
        (Format::Gray16Le, [40, 4], 1, 60, "need 241"),
        (
            Format::Gray16Le,
            [40, 4],
            usize::MAX,
            60,
            "does not end inside",
        ),
        (Format::Gray16Le, [40, 3], 0, 60, "40x3"),
        (Format::Gray8, [40, 4], 0, 60, "GRAY8"),
    ] {
        let mut buffer = input.buffer(&device, Owner::Foreign, Rows::Dense, 0);
        add_meta(buffer.get_mut().unwrap(), format, size, offset, stride);
        assert_refused(&input.element(), &input.caps(), buffer, &[word]);
    }
}
