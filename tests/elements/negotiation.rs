//! Negotiation of caps on both pads.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{Frame, PLAIN, read},
    support::{Pipeline, Rig, buffer_of, caps_of, judged, noise, start},
};

const SIZE: [usize; 2] = [37, 9];
const ELEMENT: &str = "clpitchthreshold name=e PUBLISHED pitch-x=5.5 threshold=20";

/// The output of an element: caps, and bytes of each buffer.
type Sent = Vec<(gst::Caps, Vec<u8>)>;

/// Runs one frame through `ELEMENT ! rest`, and returns what the element sends.
fn masks(frame: &Frame, rest: &str, device: &Arc<clinspect_opencl::ClContext>) -> Sent {
    let line = format!("appsrc name=in format=time ! {ELEMENT} ! {rest}");
    let pipeline = Pipeline::new(&line);
    let input: gst_app::AppSrc = pipeline.get("in");
    input.set_caps(Some(&caps_of(frame)));
    let sent = Arc::new(Mutex::new(Vec::new()));
    let pad = pipeline.get::<gst::Element>("e").static_pad("src").unwrap();
    let collected = sent.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let buffer = info.buffer().unwrap();
        let caps = pad.current_caps().unwrap();
        collected.lock().unwrap().push((caps, read(buffer)));
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    input.push_buffer(buffer_of(frame, device)).unwrap();
    input.end_of_stream().unwrap();
    let end = pipeline.wait_for_end();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    pipeline.set_state(gst::State::Null).unwrap();
    std::mem::take(&mut sent.lock().unwrap())
}

#[test]
fn pitch_threshold_sinks_that_take_anything_get_packed_masks() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let expected = judged(&frame, 5.5, 0.0, 20.0);
    assert!(expected.defect_pixels > 0);
    for sink in [
        "filesink location=/dev/null",
        "appsink wait-on-eos=false",
        "fakesink",
        "queue ! fakesink",
        "tee ! queue ! fakesink",
        "identity ! video/x-bitmask ! fakesink",
    ] {
        let sent = masks(&frame, sink, &device);
        let [(caps, bytes)] = &sent[..] else {
            panic!("{sink}: {} buffers", sent.len())
        };
        let fields = caps.structure(0).unwrap();
        assert_eq!(fields.name(), "video/x-bitmask", "{sink}");
        assert_eq!(fields.get::<i32>("width"), Ok(37));
        assert_eq!(fields.get::<i32>("height"), Ok(9));
        assert_eq!(fields.get::<i32>("stride"), Ok(5));
        assert_eq!(fields.get::<&str>("bit-order"), Ok("msb-first"));
        assert!(fields.has_field("framerate"));
        assert_eq!(*bytes, expected.packed, "{sink}");
    }
}

#[test]
fn pitch_threshold_converters_get_grey_masks() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mask = judged(&frame, 5.5, 0.0, 20.0).mask;
    for rest in [
        "videoconvert ! fakesink",
        "videoconvert ! video/x-raw,format=RGB ! fakesink",
        "video/x-raw ! fakesink",
    ] {
        let sent = masks(&frame, rest, &device);
        let [(caps, bytes)] = &sent[..] else {
            panic!("{rest}: {} buffers", sent.len())
        };
        let info = gst_video::VideoInfo::from_caps(caps).unwrap();
        assert_eq!(info.format(), Format::Gray8);
        let stride = info.stride()[0] as usize;
        for (at, &marked) in mask.iter().enumerate() {
            let pixel = bytes[at / 37 * stride + at % 37];
            assert_eq!(pixel, if marked { 255 } else { 0 }, "{rest}: pixel {at}");
        }
    }
}

#[test]
fn pitch_threshold_caps_filter_for_pbm_gets_pictures_with_header() {
    let Some(device) = start() else { return };
    for size in [SIZE, [1000, 1]] {
        let frame = noise(Format::Gray8, size, PLAIN);
        let sent = masks(&frame, "image/x-portable-bitmap ! fakesink", &device);
        let [(caps, bytes)] = &sent[..] else {
            panic!("{} buffers", sent.len())
        };
        assert_eq!(
            caps.structure(0).unwrap().get::<i32>("width"),
            Ok(size[0] as i32)
        );
        let mut picture = format!("P4\n{} {}\n", size[0], size[1]).into_bytes();
        picture.extend(judged(&frame, 5.5, 0.0, 20.0).packed);
        assert_eq!(*bytes, picture);
    }
}

/// Source caps for fixed caps on the sink pad.
fn output_caps(element: &str, caps: &str, wanted: &str) -> gst::Caps {
    let rig = Rig::between(
        element,
        &caps.parse::<gst::Caps>().unwrap(),
        &wanted.parse::<gst::Caps>().unwrap(),
    );
    rig.output_caps()
}

#[test]
fn pitch_threshold_grey_frame_keeps_its_colorimetry() {
    let Some(_device) = start() else { return };
    let caps = "video/x-raw,format=GRAY8,width=64,height=4,framerate=25/1,colorimetry=1:4:5:1,\
                pixel-aspect-ratio=2/1,interlace-mode=progressive";
    let out = output_caps("clpitchthreshold PUBLISHED pitch-x=4", caps, "video/x-raw");
    let out = out.structure(0).unwrap();
    assert_eq!(out.get::<&str>("colorimetry"), Ok("1:4:5:1"));
    assert_eq!(
        out.get::<gst::Fraction>("pixel-aspect-ratio"),
        Ok(gst::Fraction::new(2, 1))
    );
    assert_eq!(
        out.get::<gst::Fraction>("framerate"),
        Ok(gst::Fraction::new(25, 1))
    );
}

#[test]
fn pitch_threshold_mask_of_a_yuv_frame_has_no_colorimetry_of_its_luma() {
    let Some(_device) = start() else { return };
    let caps = "video/x-raw,format=I420,width=64,height=4,framerate=25/1,colorimetry=bt709,\
                chroma-site=mpeg2";
    let out = output_caps("clpitchthreshold PUBLISHED pitch-x=4", caps, "video/x-raw");
    let out = out.structure(0).unwrap();
    assert_eq!(out.get::<&str>("format"), Ok("GRAY8"));
    assert!(!out.has_field("chroma-site"), "{out}");
    assert_ne!(out.get::<&str>("colorimetry"), Ok("bt709"));
}

#[test]
fn gaussian_and_histogram_send_the_caps_they_take() {
    let Some(_device) = start() else { return };
    for element in ["clgaussian", "clhistogram"] {
        let caps = "video/x-raw,format=I420,width=64,height=4,framerate=25/1,colorimetry=bt709,\
                    chroma-site=mpeg2,pixel-aspect-ratio=2/1,interlace-mode=progressive";
        let out = output_caps(element, caps, "ANY");
        assert!(out.is_strictly_equal(&caps.parse::<gst::Caps>().unwrap()));
    }
}

/// Formats of a pad template.
fn formats(element: &str, pad: &str) -> Vec<String> {
    let factory = gst::ElementFactory::find(element).unwrap();
    let template = factory
        .static_pad_templates()
        .into_iter()
        .find(|template| template.name_template() == pad)
        .unwrap();
    let caps = template.caps();
    let list = caps.structure(0).unwrap().value("format").unwrap();
    match list.get::<gst::List>() {
        Ok(list) => list.iter().map(|v| v.get::<String>().unwrap()).collect(),
        Err(_) => vec![list.get::<String>().unwrap()],
    }
}

#[test]
fn templates_name_the_contracts_formats_and_plain_memory() {
    if start().is_none() {
        return;
    }
    for element in ["clgaussian", "clhistogram"] {
        let formats = formats(element, "sink");
        for format in [
            "GRAY8",
            "RGB",
            "BGR",
            "RGBx",
            "xRGB",
            "BGRx",
            "RGBA",
            "ARGB",
            "ABGR",
            "I420",
            "YV12",
            "NV12",
            "NV21",
            "Y42B",
            "Y444",
            "YUY2",
            "UYVY",
            "GRAY16_LE",
            "GRAY16_BE",
        ] {
            assert!(formats.iter().any(|f| f == format), "{element}: {format}");
        }
    }
    let formats = formats("clpitchthreshold", "sink");
    for format in [
        "GRAY8",
        "GRAY16_LE",
        "GRAY16_BE",
        "I420",
        "NV12",
        "RGB",
        "BGRA",
    ] {
        assert!(formats.iter().any(|f| f == format), "{format}");
    }
    // Sources that have the choice send grey, as before.
    let place = |format: &str| formats.iter().position(|f| f == format);
    assert!(place("GRAY8") < place("I420") && place("GRAY16_BE") < place("RGB"));
    for format in ["GBR", "YUY2", "RGB16"] {
        assert!(!formats.iter().any(|f| f == format), "{format}");
    }
    for element in [
        "clgaussian",
        "clhistogram",
        "clpitchthreshold",
        "clsurface",
        "cltexture",
    ] {
        for template in gst::ElementFactory::find(element)
            .unwrap()
            .static_pad_templates()
        {
            let text = template.caps().to_string();
            assert!(!text.contains("memory:"), "{element}: {text}");
        }
    }
}

#[test]
fn pitch_threshold_offers_packed_then_grey_then_pbm() {
    let Some(device) = start() else { return };
    let order =
        |caps: &gst::Caps| -> Vec<String> { caps.iter().map(|s| s.name().to_string()).collect() };
    let expected = ["video/x-bitmask", "video/x-raw", "image/x-portable-bitmap"];
    let factory = gst::ElementFactory::find("clpitchthreshold").unwrap();
    for template in factory.static_pad_templates() {
        if template.direction() == gst::PadDirection::Src {
            // Mask caps first, then the frame caps of output=frame.
            let order = order(&template.caps());
            assert_eq!(order[..3], expected);
            assert_eq!(order[3..], ["video/x-raw"]);
        }
    }
    // An I420 frame, because for a grey frame GStreamer puts the frame's caps first in the answer.
    let frame = noise(Format::I420, [64, 4], PLAIN);
    let mut rig = Rig::new("clpitchthreshold PUBLISHED pitch-x=4", &caps_of(&frame));
    rig.pass(buffer_of(&frame, &device));
    let pad = rig.only("clpitchthreshold").static_pad("src").unwrap();
    assert_eq!(order(&pad.query_caps(None)), expected);
}

#[test]
fn elements_inspect_late_frames_too() {
    if start().is_none() {
        return;
    }
    for element in [
        "clgaussian",
        "clhistogram",
        "clpitchthreshold",
        "clsurface",
        "cltexture",
    ] {
        let element = gst::ElementFactory::make(element).build().unwrap();
        assert!(!element.property::<bool>("qos"));
    }
}
