//! The example `inspect`, run as a process on the device that `CLINSPECT_DEVICE` names.
//!
//! `cargo test` builds the examples; before `cargo test --test examples` alone, run
//! `cargo build --examples`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{
    panel::{PanelFrame, PanelGenerator, PanelSpec},
    tools,
};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tools::{example, has_device};

fn run(name: &str, args: &[&str]) -> Output {
    Command::new(example(name))
        .args(args)
        .output()
        .expect("the example starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of a successful run with `--json`: frames, then the summary.
fn json_lines(output: &Output) -> (Vec<Value>, Value) {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        text(&output.stderr)
    );
    let mut lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect();
    let summary = lines.pop().expect("there is a summary");
    assert_eq!(summary["type"], "summary");
    assert!(lines.iter().all(|line| line["type"] == "frame"));
    assert_eq!(summary["frames"], lines.len());
    (lines, summary)
}

/// The frames that `inspect` makes by default, each with eight defects.
fn panels(spec: PanelSpec) -> impl Iterator<Item = PanelFrame> {
    let mut generator = PanelGenerator::new(spec, 1).expect("the panel can be drawn");
    std::iter::repeat_with(move || generator.next_random(8))
}

/// A folder for this test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clinspect-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder is made");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn inspect_panel_finds_every_planted_defect_and_leaves_pictures() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("panel");
    let args = "--frames 5 --bad-every 1 --threshold 10 --fps 0 --json --pictures 3 --output";
    let args: Vec<&str> = args.split(' ').chain([folder.name()]).collect();
    let output = run("inspect", &args);
    let (frames, summary) = json_lines(&output);
    assert_eq!(frames.len(), 5);
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(frame["frame"], number);
        assert_eq!(frame["verdict"], "fail");
        assert!(frame["defect_pixels"].as_u64() > Some(0));
        assert!(frame["latency_ms"].as_f64() > Some(0.0));
        let planted = frame["planted"].as_array().expect("defects were planted");
        assert!(!planted.is_empty());
        for defect in planted {
            assert_eq!(defect["found"], true, "frame {number}: {defect}");
        }
    }
    assert_eq!(summary["failed"], 5);
    assert!(summary["latency_ms_p99"].as_f64() >= summary["latency_ms_p50"].as_f64());
    // The source wrote the frames into device memory.
    assert_eq!(summary["frames_zero_copy"], 5);

    let panels = panels(PanelSpec::default());
    for ((number, frame), panel) in frames.iter().enumerate().take(3).zip(panels) {
        let file = |what: &str| folder.path(&format!("{number:04}-{what}"));
        let original = image::open(file("frame.png")).expect("the frame is a picture");
        assert_eq!(original.as_luma8().expect("grey").as_raw(), &panel.samples);
        let overlay = image::open(file("overlay.png")).expect("the overlay is a picture");
        assert_eq!((overlay.width(), overlay.height()), (640, 480));
        let mask = fs::read(file("mask.pbm")).expect("there is a mask");
        let bits = mask.strip_prefix(b"P4\n640 480\n").expect("a P4 header");
        assert_eq!(bits.len(), 80 * 480);
        let marked: u64 = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
        assert_eq!(frame["defect_pixels"], marked);
        let plot = fs::read_to_string(file("histogram.svg")).expect("there is a plot");
        assert!(plot.starts_with("<svg") && plot.contains("grey level"));
    }
    // Pictures of the first three frames and of up to three failed frames after them: all five.
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 20);
}

#[test]
fn inspect_panel_without_defects_passes() {
    if !has_device() {
        return;
    }
    let args = ["--defects", "0", "--frames", "5", "--fps", "0", "--json"];
    let (frames, summary) = json_lines(&run("inspect", &args));
    for frame in &frames {
        assert_eq!(frame["verdict"], "pass", "{frame}");
        assert_eq!(frame["defect_pixels"], 0);
    }
    assert_eq!(
        (&summary["passed"], &summary["failed"]),
        (&5.into(), &0.into())
    );
}

/// The map of 5120 rows of the simulated web, cut into strips of `rows`: position, size and class.
fn roll(folder: &Folder, rows: u64) -> Vec<String> {
    let (rows, strips) = (rows.to_string(), (5120 / rows).to_string());
    let args = [
        "--source",
        "web",
        "--width",
        "512",
        "--json",
        "--pictures",
        "0",
    ];
    let cut = [
        "--strip-rows",
        &rows,
        "--frames",
        &strips,
        "--output",
        folder.name(),
    ];
    let output = run("inspect", &[args.as_slice(), &cut].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let lines = printed.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let (mut map, mut sums) = (Vec::new(), Vec::new());
    for line in lines {
        match line["type"].as_str() {
            Some("defect") => {
                assert!(line["planted"].as_str() > Some(""), "{line}");
                let fields = ["line", "x", "width", "height", "area", "class", "along_m"];
                map.push(fields.map(|name| line[name].to_string()).join(" "));
            }
            Some("summary") => sums.push(line["roll"].clone()),
            _ => {}
        }
    }
    let [sum] = &sums[..] else { panic!("{sums:?}") };
    assert_eq!((&sum["lines"], &sum["webs"]), (&5120.into(), &1.into()));
    let kinds = sum["planted"].as_object().expect("defects were planted");
    assert_eq!(kinds.len(), 6, "{sum}");
    for (kind, listed) in kinds {
        assert_eq!(listed["once"], listed["planted"], "{kind}: {listed}");
    }
    let map_of_roll = image::open(folder.path("roll-map.png")).expect("the map is a picture");
    let mut classes: Vec<&str> = map
        .iter()
        .filter_map(|line| line.split(' ').nth(5))
        .collect();
    classes.sort_unstable();
    classes.dedup();
    // The legend with a line for each class, a line with the units, the margins, and 2400 rows of the web.
    let legend = 18 * (classes.len() as u32 + 2);
    assert_eq!(map_of_roll.height(), legend + 2448);
    let map_of_roll = map_of_roll.into_rgb8();
    // The first class has the first colour, and both scales have their unit.
    assert_eq!(map_of_roll.get_pixel(88, 18 + 4 + 6).0, [200, 30, 30]);
    let has_ink = |columns: std::ops::Range<u32>| {
        let mut rows = legend - 14..legend;
        rows.any(|y| {
            columns
                .clone()
                .any(|x| map_of_roll.get_pixel(x, y).0[0] < 100)
        })
    };
    assert!(has_ink(4..80) && has_ink(84..170));
    map.sort();
    map
}

#[test]
fn inspect_web_lists_every_planted_defect_once_wherever_the_web_is_cut() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("web");
    let map = roll(&folder, 1024);
    assert_eq!(map, roll(&folder, 40));
}

#[test]
fn roll_map_distinguishes_more_classes_than_it_has_colours() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("classes");
    // Limits between the areas of the planted defects.
    let areas = [
        70, 74, 200, 385, 400, 440, 524, 530, 538, 540, 600, 1200, 1206, 2000, 4000, 4040, 5000,
        7501,
    ];
    let rules = areas.map(|area| format!("c{area}: area < {area}"));
    let rules = rules.join("; ");
    let classes = format!("merge-distance=3 min-area=12 classes=\"{rules}\"");
    let args = "--source web --width 512 --pictures 0 --strip-rows 1024 --frames 10 --json";
    let more = ["--inspection", &classes, "--output", folder.name()];
    let output = run(
        "inspect",
        &[Vec::from_iter(args.split(' ')), more.to_vec()].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let defects = lines.filter(|line| line["type"] == "defect");
    let found: BTreeSet<String> = defects.map(|line| line["class"].to_string()).collect();
    assert!((17..=32).contains(&found.len()), "{found:?}");
    let map = image::open(folder.path("roll-map.png")).expect("the map is a picture");
    let map = map.into_rgb8();
    // What stands before each class in the legend.
    let signs = (1..=found.len() as u32).map(|line| {
        let sign = image::imageops::crop_imm(&map, 84, 4 + 18 * line + 2, 11, 11);
        sign.to_image().into_raw()
    });
    assert_eq!(BTreeSet::from_iter(signs).len(), found.len());
}

#[test]
fn inspect_default_panels_pass_and_fail_and_are_summed_up_by_class() {
    if !has_device() {
        return;
    }
    let args = ["--frames", "6", "--fps", "0"];
    let (frames, summary) = json_lines(&run("inspect", &[&args[..], &["--json"]].concat()));
    let verdicts = ["pass", "pass", "fail", "pass", "pass", "fail"];
    let mut classes = [0_u64; 3];
    for (frame, verdict) in frames.iter().zip(verdicts) {
        assert_eq!(frame["verdict"], verdict, "{frame}");
        // The pitch is estimated; without defects its error is below 1/100 px.
        for pitch in ["pitch_x", "pitch_y"] {
            let error = frame[pitch].as_f64().expect("a number") - 7.35;
            assert!(error.abs() < 0.01, "{pitch}: {frame}");
        }
        for defect in frame["defects"].as_array().expect("a list") {
            let polarity = defect["polarity"].as_i64().expect("a number");
            classes[[-1, 0, 1]
                .iter()
                .position(|&p| p == polarity)
                .expect("-1 to 1")] += 1;
        }
    }
    assert!(classes[0] > 0 && classes[2] > 0, "{classes:?}");
    let counts = ["dark_defects", "mixed_defects", "bright_defects"].map(|name| &summary[name]);
    assert_eq!(counts, classes);
    assert_eq!(summary["missing_pixels"], 0);

    // The same as text: a header with units, a line per frame, the summary.
    let output = run("inspect", &args);
    let output = text(&output.stdout);
    let mut lines = output.lines();
    assert_eq!(
        lines.next(),
        Some(
            " frame  verdict  defects  marked [px]  missing [px]  median [levels]  latency [ms]  \
             planted found"
        )
    );
    for (number, verdict) in verdicts.iter().enumerate() {
        let line = lines.next().expect("a line per frame");
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        assert_eq!(words, [number.to_string().as_str(), verdict]);
    }
    let [dark, mixed, bright] = classes;
    let expected = format!(
        "4 passed, 2 failed, 0 without a verdict\ndefects by polarity\n  \
         bright           {bright:6}\n  dark             {dark:6}\n  mixed            {mixed:6}\n  \
         pattern missing       0 px in 0 frames\n"
    );
    assert!(output.contains(&expected), "{output}");
}

#[test]
fn inspect_labels_train_a_reference_that_finds_every_misprint() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("label");
    let args = "--source label --train 16 --frames 34 --fps 0 --json --pictures 1 --output";
    let args: Vec<&str> = args.split(' ').chain([folder.name()]).collect();
    let (frames, summary) = json_lines(&run("inspect", &args));
    assert_eq!(frames.len(), 34);
    for (number, frame) in frames.iter().enumerate() {
        let expected = match number {
            0..16 => "none",
            // The last of each three.
            number if number % 3 == 0 => "fail",
            _ => "pass",
        };
        assert_eq!(frame["verdict"], expected, "frame {number}");
        let planted = frame["planted"].as_array().unwrap();
        assert_eq!(planted.len(), if expected == "fail" { 8 } else { 0 });
        let defects = frame["defects"].as_array().unwrap().len();
        for misprint in planted {
            assert_eq!(misprint["found"], true, "frame {number}: {misprint}");
            let defect = misprint["defect"].as_u64();
            assert!(defect.is_some_and(|at| at < defects as u64), "{misprint}");
        }
        assert_eq!(defects == 0, expected != "fail", "frame {number}");
    }
    assert_eq!(summary["unjudged"], 16);
    let kinds = summary["planted"].as_object().unwrap();
    assert!(
        kinds.len() == 5 && kinds.contains_key("wrong character"),
        "{kinds:?}"
    );
    assert!(folder.path("0018-overlay.png").exists());
}

#[test]
fn inspect_pattern_that_is_missing_fails_and_is_counted_as_a_class_of_its_own() {
    if !has_device() {
        return;
    }
    // A black square that is wider than the largest distance compared.
    let source = "videotestsrc num-buffers=2 pattern=checkers-8 ! \
                  video/x-raw,format=I420,width=640,height=480 ! mix. \
                  videotestsrc num-buffers=2 pattern=black ! \
                  video/x-raw,format=I420,width=130,height=130 ! mix. \
                  compositor name=mix sink_1::xpos=200 sink_1::ypos=150";
    let (frames, summary) = json_lines(&run("inspect", &["--source", source, "--json"]));
    let missing: Vec<u64> = frames
        .iter()
        .filter_map(|frame| frame["missing_pixels"].as_u64())
        .collect();
    assert!(frames.iter().all(|frame| frame["verdict"] == "fail"));
    assert!(missing.len() == 2 && missing[0] > 0, "{missing:?}");
    assert_eq!(summary["missing_pixels"], missing.iter().sum::<u64>());
    assert_eq!(summary["frames_with_missing_pixels"], 2);
}

#[test]
fn inspect_deep_panel_finds_every_planted_defect() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("deep");
    let args = "--bit-depth 12 --frames 2 --bad-every 1 --threshold 160 --fps 0 --json --output";
    let args: Vec<&str> = args.split(' ').chain([folder.name()]).collect();
    let (frames, _) = json_lines(&run("inspect", &args));
    for frame in &frames {
        assert_eq!(frame["format"], "GRAY16_LE");
        let planted = frame["planted"].as_array().expect("defects were planted");
        assert!(planted.iter().all(|defect| defect["found"] == true));
    }
    // The picture of the source's frame keeps all bits.
    let spec = PanelSpec {
        bit_depth: 12,
        ..PanelSpec::default()
    };
    let panel = panels(spec).next().expect("a panel");
    let original = image::open(folder.path("0000-frame.png")).expect("the frame is a picture");
    let levels = original.as_luma16().expect("grey with 16 bits").as_raw();
    let bytes: Vec<u8> = levels
        .iter()
        .flat_map(|level| level.to_le_bytes())
        .collect();
    assert_eq!(bytes, panel.samples);
}

#[test]
fn inspect_bad_arguments_get_a_sentence_and_exit_code_2() {
    let cases: [(&[&str], &str); 12] = [
        (&["--threshold", "nan"], "a number from 0 to 65535"),
        (&["--pitch-x", "-3"], "-1 or a number from 0 to 65536"),
        (&["--kernel-size", "4"], "an odd number"),
        (&["--inspection", "nosuchproperty=1"], "nosuchproperty"),
        (&["--source", "web", "--train", "5"], "leave --train out"),
        (
            &["--source", "label", "--width", "100"],
            "this label cannot be drawn: width is 100",
        ),
        (&["--train", "5", "--line-scan"], "--line-scan"),
        (&["--width", "0"], "width is 0"),
        (&["--source", "no/such/*.png"], "no file matches"),
        (
            &["--source", "nosuchelement ! videoconvert"],
            "nosuchelement",
        ),
        (
            &["--source", "videotestsrc nosuchproperty=1"],
            "nosuchproperty",
        ),
        (&["--output", "/proc/version/pictures"], "cannot be made"),
    ];
    let device = has_device();
    for (args, sentence) in cases {
        // Descriptions are parsed and the folder created only after a device is open.
        if !["--source", "--output", "--inspection"].contains(&args[0]) || device {
            refused(args, sentence);
        }
    }
    if device {
        refused(&["--device", "nosuchdevice"], "nosuchdevice");
        refused(&["--inspection", "multiples=<0>"], "multiples");
        refused(&["--inspection", "! fakesink"], "more than properties");
        let small = ["--width", "64", "--height", "48", "--frames", "3"];
        refused(
            &[&small[..], &["--pitch-x", "40", "--pitch-y", "40"]].concat(),
            "no pixel of the 64x48 frame",
        );
        // One direction is judged; defects along the other would pass unnoticed.
        refused(
            &[&small[..], &["--pitch-x", "40", "--pitch-y", "7.35"]].concat(),
            "no pixel of the 64x48 frame can be judged with pitch-x",
        );
    }
}

fn refused(args: &[&str], sentence: &str) {
    let output = run("inspect", args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.contains(sentence), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

#[test]
fn inspect_launch_description_is_a_source() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc num-buffers=5 pattern=white ! video/x-raw,width=33,height=17";
    let args = ["--source", source, "--json"];
    // A frame without a pattern gets no verdict, and the element's warning is shown.
    let estimated = run("inspect", &[&args[..], &["--pitch-x", "-1"]].concat());
    let (frames, summary) = json_lines(&estimated);
    assert!(frames.iter().all(|frame| frame["verdict"] == "none"));
    assert_eq!(summary["unjudged"], 5);
    let warning = "warning: clpitchthreshold0: no repeating pattern";
    assert!(text(&estimated.stderr).contains(warning));

    let none = ["--pitch-x", "0", "--pitch-y", "0"];
    let (frames, _) = json_lines(&run("inspect", &[&args[..], &none].concat()));
    assert_eq!(frames.len(), 5);
    for frame in &frames {
        assert_eq!(
            (&frame["width"], &frame["height"]),
            (&33.into(), &17.into())
        );
        assert!(frame.get("verdict").is_none(), "nothing is compared");
    }
}

#[test]
fn inspect_files_of_different_size_and_colour_are_a_frame_each() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("files");
    let grey = image::GrayImage::from_pixel(64, 48, image::Luma([77]));
    grey.save(folder.path("a.png")).expect("a picture");
    let colour = image::RgbImage::from_pixel(33, 17, image::Rgb([10, 20, 30]));
    colour.save(folder.path("b.png")).expect("a picture");
    let pattern = format!("{}/*.png", folder.name());
    let args = "--pitch-x 0 --pitch-y 0 --json --source";
    let args: Vec<&str> = args.split(' ').chain([pattern.as_str()]).collect();
    let (frames, _) = json_lines(&run("inspect", &args));
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0]["median"], serde_json::json!([77.0]));
    assert_eq!(frames[1]["median"], serde_json::json!([10.0, 20.0, 30.0]));
    assert_eq!(frames[1]["width"], 33);

    // What cannot be decoded is not passed over.
    fs::write(folder.path("c.png"), "no picture").expect("a file");
    let output = run("inspect", &["--source", &pattern]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("c.png"));
}

#[test]
fn inspect_live_source_that_fails_is_started_anew_and_frames_count_on() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc is-live=true ! video/x-raw,framerate=100/1,width=64,height=48 \
                  ! identity error-after=5";
    let args = ["--source", source, "--frames", "9", "--json"];
    let output = run("inspect", &args);
    let (frames, summary) = json_lines(&output);
    assert_eq!(frames.len(), 9);
    let numbers: Vec<u64> = frames.iter().filter_map(|f| f["frame"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let lost = summary["lost"].as_u64().expect("lost frames are counted");
    assert_eq!(numbers.last(), Some(&(8 + lost)));
    assert!(text(&output.stderr).contains("waiting for the source"));
}

#[test]
fn inspect_source_that_is_started_anew_keeps_the_trained_reference() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("kept");
    let source = "videotestsrc is-live=true ! video/x-raw,framerate=20/1,width=64,height=48 \
                  ! identity error-after=12";
    let args = [
        "--source",
        source,
        "--train",
        "4",
        "--pictures",
        "0",
        "--frames",
        "18",
        "--json",
    ];
    let output = run(
        "inspect",
        &[&args[..], &["--output", folder.name()]].concat(),
    );
    assert!(text(&output.stderr).contains("waiting for the source"));
    let (frames, _) = json_lines(&output);
    for (number, frame) in frames.iter().enumerate() {
        let expected = if number < 4 { "none" } else { "pass" };
        assert_eq!(frame["verdict"], expected, "frame {number}");
    }
    assert!(folder.path("reference.npz").exists());
}

#[test]
fn inspect_line_camera_that_is_started_anew_begins_a_web() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc is-live=true ! video/x-raw,framerate=100/1,width=64,height=48 \
                  ! identity error-after=20";
    let options =
        "--line-scan --pitch-x 16 --pitch-y 0 --inspection min-contrast=0 --frames 30 --json";
    let args: Vec<&str> = ["--source", source]
        .into_iter()
        .chain(options.split(' '))
        .collect();
    let output = run("inspect", &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let summary: Value =
        serde_json::from_str(printed.lines().last().expect("a summary")).expect("an object");
    let starts = 1 + text(&output.stderr)
        .matches("waiting for the source")
        .count();
    assert!(starts > 1);
    assert_eq!(summary["roll"]["webs"], starts);
    assert_eq!(summary["roll"]["lines"], 30 * 48);
    assert!(text(&output.stderr).contains(&format!("in {starts} webs")));
}

#[test]
fn inspect_source_that_never_worked_is_not_waited_for() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc is-live=true ! identity error-after=1";
    let output = run("inspect", &["--source", source]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn inspect_camera_that_is_not_there_is_an_error_once_nobody_waits() {
    gst::init().expect("GStreamer initialises");
    let camera = gst::ElementFactory::find("aravissrc").is_some();
    if !camera || !has_device() {
        return;
    }
    let args = ["--source", "camera", "--camera-name", "nosuchcamera"];
    let output = run("inspect", &[&args[..], &["--max-wait", "0"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nosuchcamera"));
}

#[test]
fn inspect_ctrl_c_ends_with_a_summary() {
    if !has_device() {
        return;
    }
    let mut inspect = Command::new(example("inspect"))
        .args(["--frames", "0", "--fps", "50", "--json", "--width", "160"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the example starts");
    let mut lines = BufReader::new(inspect.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("a readable line");
    assert!(first.contains("\"frame\""));
    let killed = Command::new("kill")
        .args(["-INT", &inspect.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(killed.success());
    let last = lines.map(|line| line.expect("a readable line")).last();
    assert!(last.expect("more lines").contains("\"summary\""));
    assert!(inspect.wait().expect("it ends").success());
}
