//! The program, run on the device that `CLINSPECT_DEVICE` names, with simulated scenes whose defects are known.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use clinspect_testkit::{
    cloth::ClothSpec,
    label::LabelSpec,
    panel::PanelSpec,
    planted::Planted,
    scenes::{self, Sequence},
    tools::has_device,
};
use image::RgbImage;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_inspect");

fn run(args: &[&str]) -> Output {
    let output = Command::new(PROGRAM).args(args).output();
    output.expect("the program starts")
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of a successful run with `--json`: frames, then the summary.
fn json_lines(output: &Output) -> (Vec<Value>, Value) {
    let (status, errors) = (output.status, text(&output.stderr));
    assert!(status.success(), "{status}: {errors}");
    let printed = text(&output.stdout);
    let lines = printed.lines();
    let lines = lines.map(|line| serde_json::from_str(line).expect("each line is an object"));
    let mut lines: Vec<Value> = lines.collect();
    let summary = lines.pop().expect("there is a summary");
    assert_eq!(summary["type"], "summary");
    assert!(lines.iter().all(|line| line["type"] == "frame"));
    assert_eq!(summary["frames"], lines.len());
    (lines, summary)
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

    /// Inspects the PNG files of the folder, in the order of their names; pictures go to its subfolder `out`.
    fn inspect(&self, options: &[&str]) -> (Vec<Value>, Value) {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        files.sort();
        let output = Command::new(PROGRAM)
            .arg("--source")
            .args(files)
            .args(["--json", "--output"])
            .arg(self.path("out"))
            .args(options)
            .output();
        json_lines(&output.expect("the program starts"))
    }

    /// The picture of a failed frame.
    fn picture(&self, frame: usize) -> RgbImage {
        let picture = image::open(self.path(&format!("out/frame-{frame:06}.png")));
        picture.expect("a picture of the failed frame").into_rgb8()
    }

    fn pictures(&self) -> usize {
        let entries = fs::read_dir(self.path("out")).expect("the pictures");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .filter(|name| text(name.as_encoded_bytes()).ends_with(".png"))
            .count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a pixel of a picture is marked: red in a grey frame, and not yellow as boxes are.
fn is_marked(picture: &RgbImage, x: usize, y: usize) -> bool {
    let pixel = picture.get_pixel_checked(x as u32, y as u32);
    pixel.is_some_and(|pixel| u32::from(pixel.0[0]) > 2 * u32::from(pixel.0[1]))
}

/// Every planted defect has a marked pixel.
#[track_caller]
fn are_marked(picture: &RgbImage, planted: &[Planted<&str>]) {
    assert!(!planted.is_empty());
    for defect in planted {
        let found = defect.pixels().any(|(x, y)| is_marked(picture, x, y));
        assert!(found, "{} at {}, {}", defect.kind, defect.x, defect.y);
    }
}

fn marked_pixels(picture: &RgbImage) -> usize {
    let positions = picture.enumerate_pixels();
    positions
        .filter(|(x, y, _)| is_marked(picture, *x as usize, *y as usize))
        .count()
}

fn all_bad(frames: usize) -> Sequence {
    Sequence {
        frames,
        bad_every: 1,
        ..Sequence::default()
    }
}

#[test]
fn panels_every_planted_defect_is_marked_in_the_pictures() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("panel");
    let planted = scenes::panels(&folder.0, PanelSpec::default(), all_bad(5)).unwrap();
    let (frames, summary) = folder.inspect(&["--inspection", "threshold=10"]);
    assert_eq!(frames.len(), 5);
    for (number, (frame, planted)) in frames.iter().zip(&planted).enumerate() {
        assert_eq!(
            (&frame["frame"], &frame["verdict"]),
            (&number.into(), &"fail".into())
        );
        let picture = folder.picture(number);
        assert_eq!((picture.width(), picture.height()), (640, 480));
        are_marked(&picture, planted);
        assert_eq!(frame["defect_pixels"], marked_pixels(&picture));
    }
    assert_eq!((&summary["failed"], folder.pictures()), (&5.into(), 5));
}

#[test]
fn panels_without_defects_pass() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("clean");
    let clean = Sequence {
        frames: 5,
        defects: 0,
        ..Sequence::default()
    };
    scenes::panels(&folder.0, PanelSpec::default(), clean).unwrap();
    let (frames, summary) = folder.inspect(&[]);
    for frame in &frames {
        assert_eq!(frame["verdict"], "pass", "{frame}");
        assert_eq!(frame["defect_pixels"], 0);
    }
    assert_eq!(
        (&summary["passed"], &summary["failed"]),
        (&5.into(), &0.into())
    );
    assert_eq!(folder.pictures(), 0);
}

#[test]
fn panels_good_ones_pass_and_bad_ones_fail_with_estimated_pitches() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("mixed");
    let six = Sequence {
        frames: 6,
        ..Sequence::default()
    };
    scenes::panels(&folder.0, PanelSpec::default(), six).unwrap();
    let (frames, _) = folder.inspect(&[]);
    let verdicts = ["pass", "pass", "fail", "pass", "pass", "fail"];
    for (frame, verdict) in frames.iter().zip(verdicts) {
        assert_eq!(frame["verdict"], verdict, "{frame}");
        // The pitch is estimated; without defects its error is below 1/100 px.
        for pitch in frame["pitch"].as_array().expect("two pitches") {
            let error = pitch.as_f64().expect("a number") - 7.35;
            assert!(error.abs() < 0.01, "{frame}");
        }
    }

    // The same as text: a line per frame, the defects below it, the summary.
    let files: Vec<PathBuf> = (0..6)
        .map(|frame| folder.path(&scenes::file_name(frame)))
        .collect();
    let output = Command::new(PROGRAM)
        .arg("--source")
        .args(files)
        .output()
        .unwrap();
    let output = text(&output.stdout);
    for (number, verdict) in verdicts.iter().enumerate() {
        assert!(
            output.contains(&format!("frame {number} by inspector: {verdict}, ")),
            "{output}"
        );
    }
    let defects = frames
        .iter()
        .map(|frame| frame["defects"].as_array().expect("a list").len());
    assert_eq!(
        output.matches(", polarity ").count(),
        defects.sum::<usize>()
    );
    assert!(
        output.contains("6 frames: 4 passed, 2 failed, 0 without a verdict"),
        "{output}"
    );
}

/// The defects of 5120 rows of the simulated web, cut into strips of `rows`: position in the web, size and class.
fn defects_of_web(rows: usize) -> Vec<String> {
    let folder = Folder::new(&format!("web-{rows}"));
    let spec = ClothSpec {
        width: 512,
        ..ClothSpec::default()
    };
    scenes::web(&folder.0, spec, 1, 5120 / rows, rows).unwrap();
    let classes = "merge-distance=3 min-area=12 mm-per-pixel=<0.1> \
                   classes=\"hole: mean < -40 and area > 150; knot: area < 400 and mean > 0\"";
    let options = ["--line-scan", "--pictures", "0", "--inspection", classes];
    let (strips, _) = folder.inspect(&options);
    let mut planted: Vec<_> = spec
        .planted(1, 0..5120)
        .into_iter()
        .map(|d| (d, 0))
        .collect();
    let mut found = Vec::new();
    let mut lines = 0;
    for strip in &strips {
        assert_eq!(
            (&strip["web"], &strip["first_line"]),
            (&0.into(), &lines.into())
        );
        lines += strip["height"].as_u64().expect("rows");
        for defect in strip["defects"].as_array().expect("a list") {
            let number = |name: &str| defect[name].as_i64().expect("a number");
            let top = strip["first_line"].as_i64().expect("a number") + number("y");
            let columns = number("x") as u64..(number("x") + number("width")) as u64;
            let rows = top as u64..(top + number("height")) as u64;
            let mut met = 0;
            for (other, times) in &mut planted {
                if other.is_met(columns.clone(), rows.clone()) {
                    *times += 1;
                    met += 1;
                }
            }
            assert!(met > 0, "nothing was planted at {defect}");
            let along = defect["y_m"].as_f64().expect("a length");
            assert!((along - top as f64 / 1e4).abs() < 1e-9, "{defect}");
            let [x, width, height, area, class] =
                ["x", "width", "height", "area", "class"].map(|name| defect[name].to_string());
            found.push(format!("{top} {x} {width} {height} {area} {class}"));
        }
    }
    assert_eq!(lines, 5120);
    let kinds: std::collections::BTreeSet<_> = planted.iter().map(|(d, _)| d.kind.name()).collect();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    for (defect, times) in &planted {
        assert_eq!(*times, 1, "{defect:?}");
    }
    found.sort();
    found
}

#[test]
fn web_every_planted_defect_is_listed_once_wherever_the_web_is_cut() {
    if has_device() {
        assert_eq!(defects_of_web(1024), defects_of_web(40));
    }
}

#[test]
fn labels_train_a_reference_that_finds_every_misprint() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("label");
    let sequence = Sequence {
        frames: 34,
        good: 16,
        ..Sequence::default()
    };
    let planted = scenes::labels(&folder.0, LabelSpec::default(), sequence).unwrap();
    let (frames, summary) = folder.inspect(&["--train", "16"]);
    assert_eq!(frames.len(), 34);
    let mut kinds = std::collections::BTreeSet::new();
    for (number, (frame, planted)) in frames.iter().zip(&planted).enumerate() {
        let expected = match number {
            0..16 => "none",
            // The last of each three.
            number if number % 3 == 0 => "fail",
            _ => "pass",
        };
        assert_eq!(frame["verdict"], expected, "frame {number}");
        let defects = frame["defects"].as_array().unwrap();
        assert_eq!(defects.is_empty(), expected != "fail", "frame {number}");
        assert_eq!(planted.is_empty(), expected != "fail", "frame {number}");
        if expected == "fail" {
            are_marked(&folder.picture(number), planted);
            kinds.extend(planted.iter().map(|misprint| misprint.kind));
        }
    }
    assert_eq!(summary["unjudged"], 16);
    assert!(
        kinds.len() == 5 && kinds.contains("wrong character"),
        "{kinds:?}"
    );
    assert_eq!(folder.pictures(), 6);
    assert!(folder.path("out/reference.npz").exists());
}

#[test]
fn pictures_are_limited() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("limited");
    scenes::panels(&folder.0, PanelSpec::default(), all_bad(3)).unwrap();
    folder.inspect(&["--pictures", "2"]);
    assert_eq!(folder.pictures(), 2);
}

#[test]
fn pattern_that_is_missing_fails() {
    if !has_device() {
        return;
    }
    // A black square that is wider than the largest distance compared.
    let source = "videotestsrc num-buffers=2 pattern=checkers-8 ! \
                  video/x-raw,format=I420,width=640,height=480 ! mix. \
                  videotestsrc num-buffers=2 pattern=black ! \
                  video/x-raw,format=I420,width=130,height=130 ! mix. \
                  compositor name=mix sink_1::xpos=200 sink_1::ypos=150";
    let (frames, summary) = json_lines(&run(&["--source", source, "--json"]));
    assert_eq!(summary["failed"], 2);
    for frame in &frames {
        assert!(frame["missing_pixels"].as_u64() > Some(0), "{frame}");
        let classes: Vec<&Value> = frame["defects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| &d["class"])
            .collect();
        assert!(classes.contains(&&json!("pattern-missing")), "{classes:?}");
    }
}

#[test]
fn deep_panels_every_planted_defect_is_marked() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("deep");
    let spec = PanelSpec {
        bit_depth: 12,
        ..PanelSpec::default()
    };
    let planted = scenes::panels(&folder.0, spec, all_bad(2)).unwrap();
    let (frames, _) = folder.inspect(&["--inspection", "bit-depth=12 threshold=160"]);
    for (number, (frame, planted)) in frames.iter().zip(&planted).enumerate() {
        assert_eq!(frame["format"], "GRAY16_LE");
        let median = frame["median"][0].as_f64().expect("a median");
        assert!((1024.0..3072.0).contains(&median), "{frame}");
        let picture = folder.picture(number);
        are_marked(&picture, planted);
        // 12 bits are shown as 8.
        let levels: u64 = picture.pixels().map(|pixel| u64::from(pixel.0[2])).sum();
        assert!((64..192).contains(&(levels / (640 * 480))));
    }
}

#[track_caller]
fn refused(args: &[&str], sentence: &str) {
    let output = run(args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.contains(sentence), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

#[test]
fn bad_arguments_get_a_sentence_and_exit_code_2() {
    gst::init().expect("GStreamer initialises");
    refused(&[], "--source");
    let test = [
        "--source",
        "videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48",
    ];
    let with = |option, value| [test[0], test[1], option, value];
    refused(&with("--train", "5"), "--output");
    refused(&with("--texture", "5"), "--output");
    refused(&with("--silence", "long"), "--silence");
    refused(&with("--output", "/proc/version/pictures"), "--output");
    refused(&["--source", "no/such.png"], "no/such.png");
    refused(
        &["--source", "nosuchelement ! videoconvert"],
        "nosuchelement",
    );
    refused(
        &["--source", "videotestsrc nosuchproperty=1"],
        "nosuchproperty",
    );
    refused(&["--source", "videotestsrc ! fakesink"], "fakesink");
    refused(&with("--inspection", "nosuchproperty=1"), "nosuchproperty");
    refused(&with("--inspection", "multiples=<0>"), "multiples");
    refused(&with("--inspection", "! fakesink"), "fakesink");
    if has_device() {
        refused(&with("--device", "nosuchdevice"), "nosuchdevice");
        // A name is no part of the pipeline's text.
        let quoted = "no \"such\" device";
        refused(&with("--device", quoted), quoted);
        let error = run(&with("--device", quoted)).stderr;
        assert!(!text(&error).contains("videotestsrc"), "{}", text(&error));
        let pitches = with("--inspection", "pitch-x=40 pitch-y=40");
        refused(&pitches, "no pixel of the 64x48 frame");
        // One direction is judged; defects along the other would pass unnoticed.
        let pitches = with("--inspection", "pitch-x=40 pitch-y=7.35");
        refused(
            &pitches,
            "no pixel of the 64x48 frame can be judged with pitch-x",
        );
    }
}

#[test]
fn frames_without_a_pattern_get_no_verdict_and_a_warning() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc num-buffers=5 pattern=white ! video/x-raw,width=33,height=17";
    let output = run(&["--source", source, "--json"]);
    let (frames, summary) = json_lines(&output);
    assert_eq!(summary["unjudged"], 5);
    for frame in &frames {
        assert_eq!(
            (&frame["width"], &frame["height"]),
            (&33.into(), &17.into())
        );
        assert_eq!(frame["verdict"], "none");
    }
    let warning = "warning: inspector: no repeating pattern";
    assert!(text(&output.stderr).contains(warning));
}

#[test]
fn files_of_different_size_colour_and_depth_are_a_frame_each() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("files");
    let grey = image::GrayImage::from_pixel(64, 48, image::Luma([77]));
    grey.save(folder.path("a.png")).expect("a picture");
    let colour = RgbImage::from_pixel(33, 17, image::Rgb([30, 30, 30]));
    colour.save(folder.path("b.png")).expect("a picture");
    let deep = image::ImageBuffer::from_pixel(35, 18, image::Luma([4096_u16]));
    deep.save(folder.path("c.png")).expect("a picture");
    let (frames, _) = folder.inspect(&[]);
    assert_eq!(frames.len(), 3);
    let expected = [
        (64, "GRAY8", 77.0),
        (33, "GRAY8", 30.0),
        (35, "GRAY16_LE", 4096.0),
    ];
    for (frame, (width, format, mean)) in frames.iter().zip(expected) {
        let seen = (&frame["width"], &frame["format"], &frame["mean"]);
        assert_eq!(seen, (&width.into(), &format.into(), &json!([mean])));
    }

    // A file that cannot be decoded is not skipped.
    let broken = folder.path("d.png");
    fs::write(&broken, "no picture").expect("a file");
    let output = run(&["--source", broken.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("d.png"));
}

/// A live source that sends `frames` frames and fails.
fn failing(frames: u32) -> String {
    format!(
        "videotestsrc is-live=true ! video/x-raw,framerate=50/1,width=96,height=72 ! identity error-after={frames}"
    )
}

#[test]
fn live_source_that_fails_is_started_again_and_frames_count_on() {
    if !has_device() {
        return;
    }
    let output = run(&["--source", &failing(5), "--frames", "9", "--json"]);
    let (frames, summary) = json_lines(&output);
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(frame["frame"], number);
    }
    assert_eq!(frames.len(), 9);
    let waits = text(&output.stderr)
        .matches("waiting for the source")
        .count();
    assert_eq!(summary["restarts"], waits);
    assert!(waits > 0);
}

#[test]
fn silent_source_is_started_again() {
    if !has_device() {
        return;
    }
    // A frame after three seconds, the next one after three more.
    let source = "videotestsrc is-live=true ! video/x-raw,framerate=50/1,width=64,height=48 ! \
                  identity sleep-time=3000000";
    let output = run(&[
        "--source",
        source,
        "--frames",
        "2",
        "--silence",
        "1",
        "--json",
    ]);
    let (_, summary) = json_lines(&output);
    assert_eq!(summary["restarts"], 1);
    assert!(text(&output.stderr).contains("no result for 1s"));
}

#[test]
fn source_that_is_started_again_keeps_the_trained_reference() {
    if !has_device() {
        return;
    }
    let folder = Folder::new("kept");
    let source = failing(12);
    let options = words("--train 4 --frames 18 --json --output");
    let args = [&["--source", &source], &options[..], &[folder.name()]].concat();
    let output = run(&args);
    assert!(text(&output.stderr).contains("waiting for the source"));
    let (frames, _) = json_lines(&output);
    for (number, frame) in frames.iter().enumerate() {
        let expected = if number < 4 { "none" } else { "pass" };
        assert_eq!(frame["verdict"], expected, "frame {number}");
    }
}

#[test]
fn line_camera_that_is_started_again_begins_a_web() {
    if !has_device() {
        return;
    }
    let source = failing(20);
    let options = words("--line-scan --inspection --frames 30 --json");
    let mut args = vec!["--source", &source];
    args.extend(options);
    args.insert(4, "pitch-x=16 pitch-y=0 min-contrast=0");
    let (frames, summary) = json_lines(&run(&args));
    let begins = frames
        .iter()
        .filter(|frame| frame["first_line"] == 0)
        .count();
    assert!(begins > 1);
    assert_eq!(summary["restarts"], begins - 1);
}

#[test]
fn source_that_never_worked_is_not_waited_for() {
    if !has_device() {
        return;
    }
    let output = run(&[
        "--source",
        "videotestsrc is-live=true ! identity error-after=1",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

/// Interrupts a program; it must end in order.
fn interrupt(mut program: Child) {
    let kill = Command::new("kill")
        .args(["-INT", &program.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    assert!(program.wait().expect("it ends").success());
}

#[test]
fn camera_that_is_not_there_is_waited_for_until_ctrl_c() {
    gst::init().expect("GStreamer initialises");
    if gst::ElementFactory::find("aravissrc").is_none() || !has_device() {
        return;
    }
    let mut inspect = Command::new(PROGRAM)
        .args(["--source", "aravissrc camera-name=nosuchcamera"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(inspect.stderr.take().expect("a pipe")).lines();
    let waits = lines.find(|line| {
        let line = line.as_ref().expect("a readable line");
        line.contains("waiting for the source") && line.contains("nosuchcamera")
    });
    assert!(waits.is_some());
    interrupt(inspect);
}

#[test]
fn ctrl_c_ends_with_a_summary() {
    if !has_device() {
        return;
    }
    let source = "videotestsrc is-live=true ! video/x-raw,width=64,height=48";
    let mut inspect = Command::new(PROGRAM)
        .args(["--source", source, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(inspect.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("a readable line");
    assert!(first.contains("\"frame\""));
    let last = std::thread::spawn(move || lines.map(|line| line.expect("a line")).last());
    interrupt(inspect);
    let last = last.join().unwrap().expect("more lines");
    assert!(last.contains("\"summary\""), "{last}");
}

#[test]
fn help_needs_neither_device_nor_source() {
    let no_drivers = Folder::new("vendors");
    let help = Command::new(PROGRAM)
        .arg("--help")
        .env("OCL_ICD_VENDORS", &no_drivers.0)
        .output();
    let help = help.expect("the program starts");
    assert!(help.status.success());
    assert!(
        text(&help.stdout).contains("Usage: inspect"),
        "{}",
        text(&help.stdout)
    );
}
