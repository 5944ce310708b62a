//! The property `stats`, and the choice of the device.

use clinspect_opencl::{ClContext, devices};
use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{ARRANGEMENTS, PLAIN},
    support::{ON_DEVICE, Pipeline, Rig, buffer_of, caps_of, faults, noise, start},
};

fn stat(element: &gst::Element, name: &str) -> u64 {
    let stats: gst::Structure = element.property("stats");
    stats
        .get(name)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Frames that were zero-copy, wrapped and copied.
fn taken(element: &gst::Element) -> [u64; 3] {
    ["frames-zero-copy", "frames-wrapped", "frames-copied"].map(|name| stat(element, name))
}

/// A pipeline after EOS, not yet stopped.
fn run(line: &str) -> Pipeline {
    let pipeline = Pipeline::new(line);
    pipeline.set_state(gst::State::Playing).unwrap();
    let end = pipeline.wait_for_end();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    pipeline
}

/// Without a list of defects: a list reads the mask and the differences.
const CHAIN: &str = "clgaussian name=g ! clhistogram name=h ! clpitchthreshold name=p PUBLISHED pitch-x=8 limits=limits,max-defects=0";

#[test]
fn chain_after_a_source_that_takes_our_pool_copies_no_frame() {
    let Some(device) = start() else { return };
    let shares = device.caps().shares_host_memory;
    for format in ["GRAY8", "I420"] {
        let done = run(&format!(
            "videotestsrc num-buffers=6 ! video/x-raw,format={format},width=320,height=48 ! {CHAIN} ! \
             fakesink sync=false"
        ));
        for name in ["g", "h", "p"] {
            let element: gst::Element = done.get(name);
            assert_eq!(stat(&element, "frames"), 6, "{name}");
            assert_eq!(taken(&element), [6, 0, 0], "{name}, {format}");
            assert_eq!(stat(&element, "frame-downloads"), 0, "{name}");
            assert_eq!(stat(&element, "image-copies"), 0, "{name}");
            // Only the first element uploads a frame, once.
            let uploads = if shares || name != "g" { 0 } else { 6 };
            assert_eq!(stat(&element, "frame-uploads"), uploads, "{name}");
        }
        // The source maps each frame once for writing; no other element maps a frame.
        assert_eq!(stat(&done.get("g"), "host-maps"), 6);
        assert_eq!(stat(&done.get("h"), "host-maps"), 0);
        // The mask stays on the device until it is mapped; only counts are read back per frame.
        assert_eq!(stat(&done.get("g"), "bytes-downloaded"), 0);
        assert!(stat(&done.get("h"), "bytes-downloaded") >= 6 * 256 * 4);
        assert_eq!(stat(&done.get("p"), "bytes-downloaded"), 6 * 32);
    }
}

#[test]
fn chain_with_a_reader_at_its_end_downloads_the_mask_alone() {
    let Some(device) = start() else { return };
    let done = run(&format!(
        "videotestsrc num-buffers=4 ! video/x-raw,format=GRAY8,width=320,height=48 ! {CHAIN} ! \
         filesink location=/dev/null sync=false"
    ));
    let masks = if device.caps().shares_host_memory {
        0
    } else {
        4
    };
    for (name, downloads) in [("g", 0), ("h", 0), ("p", masks)] {
        let element: gst::Element = done.get(name);
        assert_eq!(stat(&element, "frame-downloads"), downloads, "{name}");
    }
    assert_eq!(stat(&done.get("p"), "host-maps"), 4);
}

#[test]
fn list_of_defects_reads_the_mask_and_differences_but_no_frame() {
    let Some(device) = start() else { return };
    let done = run(
        "videotestsrc num-buffers=4 ! video/x-raw,format=GRAY8,width=320,height=48 ! \
         clpitchthreshold name=p PUBLISHED pitch-x=8 ! fakesink sync=false",
    );
    let element: gst::Element = done.get("p");
    assert_eq!(taken(&element), [4, 0, 0]);
    assert_eq!(
        stat(&element, "frame-uploads") > 0,
        !device.caps().shares_host_memory
    );
    // The source maps each frame, the list maps each mask.
    assert_eq!(stat(&element, "host-maps"), 8);
    let (masks, mask_bytes) = if device.caps().shares_host_memory {
        (0, 0)
    } else {
        (4, 4 * 40 * 48)
    };
    assert_eq!(stat(&element, "frame-downloads"), masks);
    // The rest: 24 bytes per run of marked pixels, and eight counters per frame.
    let differences = stat(&element, "bytes-downloaded") - mask_bytes - 4 * 32;
    assert!(
        differences > 0 && differences.is_multiple_of(24),
        "{differences}"
    );
}

#[test]
fn a_web_moves_no_byte_more_than_its_strips_judged_alone() {
    if start().is_none() {
        return;
    }
    let moved = |source: &str, output: &str, web: bool| {
        let done = run(&format!(
            "videotestsrc num-buffers=9 ! video/x-raw,format=GRAY8,width=320,height=48 ! {source} \
             clgaussian name=g line-scan={web} ! \
             clpitchthreshold name=p PUBLISHED pitch-x=8 pitch-y=6 limits=limits,max-defects=0 output={output} line-scan={web} ! \
             filesink location=/dev/null sync=false"
        ));
        let fields = [
            "frames",
            "frames-zero-copy",
            "frames-wrapped",
            "frames-copied",
            "image-copies",
            "host-maps",
            "frame-uploads",
            "frame-downloads",
            "bytes-uploaded",
            "bytes-downloaded",
        ];
        ["g", "p"].map(|name| fields.map(|field| (name, field, stat(&done.get(name), field))))
    };
    // Frames in our memory, and in memory of the source.
    for source in ["", "identity drop-allocation=true !"] {
        for output in ["mask", "frame"] {
            let strips_alone = moved(source, output, false);
            assert_eq!(
                moved(source, output, true),
                strips_alone,
                "{source} output={output}"
            );
        }
    }
}

#[test]
fn rgb_chain_of_the_issue_copies_no_frame() {
    let Some(device) = start() else { return };
    let done = run(
        "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=320,height=48 ! \
         clgaussian name=g ! clhistogram name=h ! fakesink sync=false",
    );
    for name in ["g", "h"] {
        assert_eq!(taken(&done.get(name)), [3, 0, 0], "{name}");
        assert_eq!(stat(&done.get(name), "frame-downloads"), 0);
    }
    let uploads = if device.caps().shares_host_memory {
        0
    } else {
        3
    };
    assert_eq!(stat(&done.get("g"), "frame-uploads"), uploads);
    assert_eq!(stat(&done.get("h"), "frame-uploads"), 0);
}

#[test]
fn videoconvert_before_an_element_writes_into_its_pool() {
    if start().is_none() {
        return;
    }
    let done = run(
        "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=48 ! videoconvert ! \
         video/x-raw,format=GRAY8 ! clhistogram name=h ! fakesink sync=false",
    );
    assert_eq!(taken(&done.get("h")), [3, 0, 0]);
}

#[test]
fn foreign_frame_is_wrapped_or_copied_once() {
    let Some(device) = start() else { return };
    for element in ON_DEVICE {
        let frame = noise(Format::Gray8, [40, 8], ARRANGEMENTS[1]);
        let mut rig = Rig::new(element, &caps_of(&frame));
        for _ in 0..3 {
            rig.pass(buffer_of(&frame, &device));
        }
        let element = rig.only(element.split(' ').next().unwrap());
        let shares = device.caps().shares_host_memory;
        let expected = if shares { [0, 3, 0] } else { [0, 0, 3] };
        assert_eq!(taken(&element), expected);
        let uploads = if shares { 0 } else { 3 };
        assert_eq!(stat(&element, "frame-uploads"), uploads);
        // A frame in memory of the device, after the frames in host memory.
        let ours = noise(Format::Gray8, [40, 8], PLAIN);
        rig.pass(buffer_of(&ours, &device));
        assert_eq!(taken(&element)[0], 1);
    }
}

#[test]
fn stats_begin_anew_at_every_start_and_are_kept_after_a_stop() {
    if start().is_none() {
        return;
    }
    let done = run("videotestsrc num-buffers=3 ! clhistogram name=h ! fakesink sync=false");
    let element: gst::Element = done.get("h");
    done.set_state(gst::State::Null).unwrap();
    assert_eq!(stat(&element, "frames"), 3);
    done.set_state(gst::State::Paused).unwrap();
    let (result, ..) = done.state(gst::ClockTime::from_seconds(20));
    result.unwrap();
    assert!(stat(&element, "frames") <= 2);
}

#[test]
fn profile_gives_duration_and_rate_of_each_step() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, [320, 64], ARRANGEMENTS[1]);
    for element in ON_DEVICE {
        let factory = element.split(' ').next().unwrap();
        let mut rig = Rig::new(&format!("{element} profile=true"), &caps_of(&frame));
        for _ in 0..4 {
            let output = rig.pass(buffer_of(&frame, &device));
            drop(output.into_mapped_buffer_readable().unwrap());
        }
        let stats: gst::Structure = rig.only(factory).property("stats");
        let shares = device.caps().shares_host_memory;
        let downloads = match factory {
            "clhistogram" => !device.caps().shares_results,
            "clpitchthreshold" | "clreference" => true,
            _ => !shares,
        };
        for (step, happens) in [
            ("upload", !shares),
            ("kernel", true),
            ("download", downloads),
        ] {
            let number = |what: &str| stats.get::<u64>(format!("{step}-{what}")).unwrap();
            let rate = |what: &str| stats.get::<f64>(format!("{step}-{what}")).unwrap();
            assert_eq!(number("count") > 0, happens, "{factory}, {step}: {stats}");
            if happens {
                assert!(number("last-ns") > 0 && number("mean-ns") > 0, "{stats}");
                assert!(
                    rate("last-mbps") > 0.0 && rate("mean-mbps") > 0.0,
                    "{stats}"
                );
            }
        }
        has_timeline(&stats, [!shares, true, downloads]);
        // The element logs its statistics after the stop.
        let stopped = rig.only(factory);
        drop(rig);
        let kept: gst::Structure = stopped.property("stats");
        has_timeline(&kept, [!shares, true, downloads]);
        // Without a list nothing is read.
        let mut rig = Rig::new(element, &caps_of(&frame));
        rig.pass(buffer_of(&frame, &device));
        let stats: gst::Structure = rig.only(factory).property("stats");
        assert!(!stats.has_field("kernel-count"), "{stats}");
        assert!(!stats.has_field("frame-last-ns"), "{stats}");
    }
}

#[test]
fn profile_measures_every_kernel() {
    if start().is_none() {
        return;
    }
    let frames = |count: u64| {
        format!(
            "videotestsrc pattern=pinwheel num-buffers={count} ! video/x-raw,format=GRAY16_LE,width=320,height=64 !"
        )
    };
    let done = run(&format!(
        "{} clgaussian name=g line-scan=true profile=true ! fakesink sync=false",
        frames(1)
    ));
    // One strip is one frame: its rows are copied on the device, then filtered.
    assert_eq!(stat(&done.get("g"), "kernel-count"), 2);
    let pitch = |count, contrast| {
        run(&format!(
            "{} clpitchthreshold name=p pitch-x=8 pitch-y=0 min-contrast={contrast} limits=limits,max-defects=0 profile=true ! \
             fakesink sync=false",
            frames(count)
        ))
        .get::<gst::Element>("p")
    };
    let kernels = |count| stat(&pitch(count, -1), "kernel-count");
    // The first frame: its middle, in which a turned pattern is looked for; sums of pairs of pixels, and of tiles, from which
    // the minimum contrast is learned; the comparison; tiles without the pattern.
    assert_eq!(kernels(1), 5);
    // After the first four frames no turned pattern is looked for: the comparison; tiles without the pattern.
    assert_eq!(kernels(8) - kernels(4), 4 * 2);
    let alone = pitch(1, 0);
    assert_eq!(stat(&alone, "kernel-count"), 1);
    let stats: gst::Structure = alone.property("stats");
    let rate = stats.get::<f64>("kernel-last-mbps").unwrap();
    let bytes = rate * stat(&alone, "kernel-last-ns") as f64 / 1e3;
    assert!((bytes - 320. * 64. * 2.).abs() < 1., "{bytes}: {stats}");
}

/// Checks the timeline of the last frame, in which these steps happen: upload, kernel, download.
fn has_timeline(stats: &gst::Structure, happen: [bool; 3]) {
    let mut spans = Vec::new();
    for (step, happens) in ["upload", "kernel", "download"].into_iter().zip(happen) {
        let first = spans.len();
        for name in std::iter::once(step.to_owned()).chain((2..).map(|n| format!("{step}-{n}"))) {
            let number = |what: &str| stats.get::<u64>(format!("{name}-last-{what}-ns"));
            let Ok(start) = number("start") else { break };
            spans.push((start, number("end").unwrap(), number("gap").unwrap()));
        }
        assert_eq!(spans.len() > first, happens, "{step}: {stats}");
    }
    spans.sort_unstable();
    assert_eq!(spans[0].0, 0, "{stats}");
    let mut total = 0;
    for (start, end, gap) in spans {
        assert!(end > start && gap == start.saturating_sub(total), "{stats}");
        total = total.max(end);
    }
    assert_eq!(stats.get::<u64>("frame-last-ns").unwrap(), total, "{stats}");
}

/// Starts an element with this `device`; returns the name of the device in use, or the error text.
fn choose(element: &str, device: &str) -> Result<String, String> {
    let line = format!("fakesrc ! {element} name=e device=\"{device}\" ! fakesink");
    let pipeline = Pipeline::new(&line);
    let element: gst::Element = pipeline.get("e");
    let name = || {
        let stats: gst::Structure = element.property("stats");
        stats.get::<String>("device").unwrap()
    };
    assert_eq!(name(), "");
    // READY needs no device, PAUSED does.
    pipeline.set_state(gst::State::Ready).unwrap();
    let started = element.set_state(gst::State::Paused);
    let name = name();
    let errors = faults(&pipeline.bus().unwrap(), gst::MessageType::Error);
    if started.is_ok() {
        assert!(errors.is_empty(), "{errors:?}");
        assert!(!name.is_empty());
        Ok(name)
    } else {
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(name, "");
        Err(errors[0].text.clone())
    }
}

#[test]
fn device_every_form_chooses_what_it_names() {
    if start().is_none() {
        return;
    }
    let devices = devices().unwrap();
    let of_kind = |gpu: bool| -> Vec<&str> {
        devices
            .iter()
            .filter(|d| if gpu { d.is_gpu } else { d.caps.is_cpu })
            .map(|d| d.name.as_str())
            .collect()
    };
    let (gpus, cpus) = (of_kind(true), of_kind(false));
    for element in ["clgaussian", "clhistogram", "clpitchthreshold"] {
        let first = gpus.first().or(cpus.first()).copied();
        assert_eq!(choose(element, "auto").ok().as_deref(), first);
        for (form, found) in [
            ("gpu", gpus.first()),
            ("gpu:0", gpus.first()),
            ("gpu:1", gpus.get(1)),
            ("cpu", cpus.first()),
            ("cpu:0", cpus.first()),
            ("cpu:7", cpus.get(7)),
        ] {
            match (choose(element, form), found) {
                (Ok(name), Some(found)) => assert_eq!(name, **found, "{form}"),
                (Err(text), None) => assert!(text.contains(form), "{form}: {text}"),
                (chosen, found) => panic!("{form}: {chosen:?} instead of {found:?}"),
            }
        }
        let name = &devices[0].name;
        let part = name[..name.len() / 2].to_uppercase();
        let chosen = choose(element, &part).unwrap();
        assert!(chosen.to_uppercase().contains(&part));
    }
}

#[test]
fn device_unknown_is_an_error_that_lists_what_there_is() {
    if start().is_none() {
        return;
    }
    for element in ["clgaussian", "clhistogram", "clpitchthreshold"] {
        let text = choose(element, "radeon 9999").unwrap_err();
        assert!(text.contains("radeon 9999"), "{text}");
        for device in devices().unwrap() {
            assert!(text.contains(&device.name), "{text}");
        }
    }
}

#[test]
fn device_default_comes_from_the_environment() {
    if start().is_none() {
        return;
    }
    let expected = std::env::var("CLINSPECT_DEVICE").unwrap_or_else(|_| "auto".into());
    for element in ["clgaussian", "clhistogram", "clpitchthreshold"] {
        let element = gst::ElementFactory::make(element).build().unwrap();
        assert_eq!(element.property::<String>("device"), expected);
    }
}

#[test]
fn elements_on_one_device_share_its_context() {
    let Some(device) = start() else { return };
    let name = device.device_name().to_owned();
    let again = clinspect_opencl::open(&name).unwrap();
    let first = clinspect_opencl::open(&name.to_lowercase()).unwrap();
    assert!(again.shares_memory_with(&first));
    let context: &ClContext = &again;
    assert_eq!(context.device_name(), name);
}
