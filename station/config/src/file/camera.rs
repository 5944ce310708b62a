//! The table `[[camera]]`.

use std::ops::Range;

use plan::{
    Analyzer, CameraConfig, Controls, LONGEST_NAME, MOST_AROUND, PIXEL_FORMATS, PixelFormat,
    Properties, RecordingSettings, RequestedFormat, Source, is_name,
};
use run::secrets;
use toml::de::DeValue;

use super::{
    machine as of_machine, mistakes::Mistakes, nearest::nearest, output as of_output, properties,
    repeats as of_repeats, table::Table,
};

const DEVICE: (&str, &str) = ("device", "set device in [[camera]]");
const PACKING: (&str, &str) = ("packing", "set pixel-format in [[camera]]");
const PASSES_FRAMES: (&str, &str) = ("output", "the frame goes on to the page; leave it out");
const REPORTS: (&str, &str) = (
    "reports",
    "the page and publish have the results; leave it out",
);
const QOS: (&str, &str) = ("qos", "every frame is inspected; leave it out");

/// Why `clflatfield` and `clreference` need a file, with the end of its name.
const FLAT_FIELD_FILE: [&str; 2] = ["frames would pass without a correction", "flat-field"];
const REFERENCE_FILE: [&str; 2] = [
    "it would train again with whatever frames come then, bad ones included",
    "reference",
];

/// Reads the table of a camera. In a recipe, `bases` are the station's own cameras: what the table lacks is as in the one of
/// its name.
pub(super) fn read(
    table: &mut Table<'_, '_>,
    bases: Option<&[CameraConfig]>,
    mistakes: &mut Mistakes<'_>,
) -> CameraConfig {
    let name = name(table, mistakes);
    let base = bases.and_then(|bases| bases.iter().find(|base| base.name == name));
    let source = source(table, base, mistakes);
    let device = table.string("device", mistakes);
    let silence = table.seconds("silence", 0.1..3600.0, mistakes);
    let start_timeout = table.seconds("start-timeout", 1.0..3600.0, mistakes);
    let triggered = table.boolean("triggered", mistakes);
    let live_rate = table.number("live-rate", 0.1..60.0, mistakes);
    let picture_width = table.whole("picture-width", 64..8192, mistakes);
    let picture_width = picture_width.map(|width| u32::try_from(width).unwrap_or(u32::MAX));
    let is_recipe = bases.is_some();
    let machine = of_machine::read(table, is_recipe, mistakes);
    let output = of_output::read(table, is_recipe, mistakes);
    let mut element = |key, factory, reserved: &[_]| {
        // So a recipe leaves out an element that the station's file has.
        if base.is_some() && table.is_false(key) {
            return Some(None);
        }
        let table = table.table(key, mistakes)?;
        match factory {
            // The station gives the elements of a recipe their files.
            _ if is_recipe => {}
            "clflatfield" => need_location(&table, FLAT_FIELD_FILE, &name, mistakes),
            "clreference" => need_location(&table, REFERENCE_FILE, &name, mistakes),
            "cltexture" | "clsurface" => need_limits(&table, &name, mistakes),
            _ => {}
        }
        Some(Some(properties::read(&table, factory, reserved, mistakes)))
    };
    let unpack = match source {
        Source::Aravis { .. } => element("unpack", "clunpack", &[DEVICE, QOS, PACKING]),
        Source::Description(_) => element("unpack", "clunpack", &[DEVICE, QOS]),
    };
    let flat_field = element("flat-field", "clflatfield", &[DEVICE, QOS]);
    let gaussian = element("gaussian", "clgaussian", &[DEVICE, QOS]);
    let histogram = element("histogram", "clhistogram", &[DEVICE, QOS, REPORTS]);
    let reserved = [DEVICE, QOS, REPORTS, PASSES_FRAMES];
    let pitch = element("pitch", "clpitchthreshold", &reserved);
    let reference = element("reference", "clreference", &reserved);
    let texture = element("texture", "cltexture", &reserved);
    let surface = element("surface", "clsurface", &reserved);
    let overlay = element("overlay", "inspectoverlay", &[]);
    let mut analyzers = vec![
        ("pitch", Analyzer::Pitch, pitch.flatten()),
        ("reference", Analyzer::Reference, reference.flatten()),
        ("texture", Analyzer::Texture, texture.flatten()),
        ("surface", Analyzer::Surface, surface.flatten()),
    ];
    analyzers.retain(|(_, _, properties)| properties.is_some());
    if let [.., (before, ..), (last, ..)] = analyzers[..] {
        let text = format!(
            "a camera has both {before} and {last}; keep pitch if a pattern repeats exactly within the frame, texture for \
             cloth and the like, whose repeats differ, reference if each frame shows the same object, else surface"
        );
        mistakes.add(&table.place(last), text);
    }
    let publishers = publish(table, mistakes);
    let recording = recording(table, mistakes);
    let repeats = of_repeats::read(table, mistakes);
    let mut camera = match base {
        Some(base) => base.without_depth_of_source(),
        None => CameraConfig::new(name, source.clone()),
    };
    camera.source = source;
    set(&mut camera.device, device.map(|(device, _)| Some(device)));
    set(&mut camera.silence, silence);
    set(&mut camera.start_timeout, start_timeout);
    set(&mut camera.triggered, triggered);
    if let Some(machine) = machine {
        (camera.machine, camera.input) = (machine.settings, machine.input);
        camera.trigger_source = machine.trigger_source;
    }
    // No frame is due at a time.
    camera.triggered |= camera.waits_for_machine();
    set(&mut camera.output, output.map(Some));
    if let Some(output) = &camera.output {
        of_output::check(output, &camera.source, &camera.machine, table, mistakes);
    }
    of_machine::check(&camera, table, mistakes);
    set(&mut camera.live_rate, live_rate);
    set(&mut camera.picture_width, picture_width);
    set(&mut camera.unpack, unpack.map(Option::unwrap_or_default));
    set(&mut camera.flat_field, flat_field);
    set(&mut camera.gaussian, gaussian);
    set(&mut camera.histogram, histogram);
    set(&mut camera.overlay, overlay.map(Option::unwrap_or_default));
    if let Some((_, analyzer, analysis)) = analyzers.into_iter().next() {
        camera.analyzer = analyzer;
        camera.analysis = analysis.unwrap_or_default();
    }
    if table.has("publish") {
        camera.publish = publishers;
    }
    set(&mut camera.recording, recording.map(Some));
    if let Some(Some(settings)) = &repeats {
        of_repeats::check(settings, &camera, table, mistakes);
    }
    set(&mut camera.repeats, repeats);
    camera.set_depth_of_source();
    camera
}

/// What the file says replaces what was there.
fn set<T>(setting: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *setting = said;
    }
}

fn name(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> String {
    if !table.has("name") {
        mistakes.add_missing(&table.span, "the camera has no name; add name = \"…\"");
    }
    let Some((name, span)) = table.string("name", mistakes) else {
        return String::new();
    };
    if !is_name(&name) {
        let text = format!(
            "name = {name:?}: write 1 to {LONGEST_NAME} letters from a to z, digits, - and _, because the name is part of addresses and file names"
        );
        mistakes.add(&span, text);
        return String::new();
    }
    name
}

/// Where frames come from; `base`: if the table does not say so.
fn source(
    table: &mut Table<'_, '_>,
    base: Option<&CameraConfig>,
    mistakes: &mut Mistakes<'_>,
) -> Source {
    let none = Source::Description(String::new());
    let source = table.string("source", mistakes);
    let mut aravis = table.string("aravis", mistakes);
    let caps = table.string("caps", mistakes);
    let mut before = None;
    if let Some(base) = base.filter(|_| !table.has("source") && !table.has("aravis")) {
        let keys = [&["caps", "pixel-format"][..], &CONTROLS].concat();
        if !keys.iter().any(|key| table.has(key)) {
            return base.source.clone();
        }
        if let Source::Aravis {
            camera,
            pixel_format,
            caps,
            controls,
        } = &base.source
        {
            aravis = Some((camera.clone(), table.span.clone()));
            before = Some((pixel_format.clone(), caps.clone(), *controls));
        }
    }
    let pixel_format = pixel_format(table, aravis.is_some(), mistakes);
    let (pixel_format_before, caps_before, controls_before) = before.unwrap_or_default();
    let pixel_format = pixel_format.or(pixel_format_before);
    let controls = controls(table, aravis.is_some(), mistakes).or(controls_before);
    let parsed = caps.as_ref().map(|(caps, _)| caps.parse::<gst::Caps>());
    if let Some((caps, span)) = &caps {
        if let Some(Err(_)) = parsed {
            mistakes.add(span, format!("caps = \"{caps}\" are no caps; write them as \"video/x-raw, format=GRAY8, width=640\""));
            return none;
        }
        if aravis.is_none() {
            mistakes.add(&table.place("caps"), "caps belong to aravis; write the caps of a source behind it, as \"v4l2src ! video/x-raw, width=640\"");
        }
    }
    let (source, span) = match (source, aravis) {
        (Some(_), Some((_, span))) => {
            mistakes.add(
                &span,
                "a camera has both source and aravis; keep one of them",
            );
            return none;
        }
        (Some((source, span)), None) => (Source::Description(source), span),
        (None, Some((camera, span))) => {
            let before = caps_before.and_then(|caps| caps.parse().ok());
            let caps = parsed.and_then(Result::ok).or(before);
            let mut formats = caps.iter().flat_map(|caps| caps.iter());
            if pixel_format.is_some() && formats.any(|structure| structure.has_field("format")) {
                mistakes.add(
                    &table.place("caps"),
                    "both caps and pixel-format name a format; leave format out of caps",
                );
            }
            let source = Source::Aravis {
                camera,
                pixel_format,
                caps: caps.map(|caps| caps.to_string()),
                controls,
            };
            (source, span)
        }
        // Another mistake says that caps and pixel-format do not belong to the source of the station's file.
        (None, None) if base.is_some() => return none,
        (None, None) => {
            if !table.has("source") && !table.has("aravis") {
                mistakes.add_missing(
                    &table.span,
                    "the camera has no source; add source = \"…\" (a pipeline as for gst-launch-1.0) or aravis = \"…\" (the name of a \
                     GigE Vision or USB3 Vision camera, as arv-tool-0.8 prints it)",
                );
            }
            return none;
        }
    };
    if mistakes.asks_sources() {
        check_source(&source, &span, mistakes);
    }
    source
}

/// The keys of what a camera is set to.
const CONTROLS: [&str; 3] = ["exposure", "gain", "black-level"];

/// What the camera is set to. Each camera has its own ranges, so only the camera can refuse a value.
fn controls(table: &mut Table<'_, '_>, is_genicam: bool, mistakes: &mut Mistakes<'_>) -> Controls {
    for key in CONTROLS {
        if table.has(key) && !is_genicam {
            let text = format!(
                "{key} belongs to aravis; set a property of the element of source, or use the tool of the camera's maker"
            );
            mistakes.add(&table.place(key), text);
        }
    }
    Controls {
        exposure: table.number("exposure", 0.0..1e8, mistakes),
        gain: table.number("gain", -1e6..1e6, mistakes),
        black_level: table.number("black-level", -1e6..1e6, mistakes),
    }
}

/// The pixel format that the camera is asked for.
fn pixel_format(
    table: &mut Table<'_, '_>,
    is_genicam: bool,
    mistakes: &mut Mistakes<'_>,
) -> Option<RequestedFormat> {
    let (name, span) = table.string("pixel-format", mistakes)?;
    if !is_genicam {
        mistakes.add(
            &table.place("pixel-format"),
            "pixel-format belongs to aravis; for packed frames of another source set packing in unpack, as \
             unpack = { packing = \"mono12p\" }",
        );
    }
    let Some(format) = PixelFormat::by_name(&name) else {
        let known = PIXEL_FORMATS.map(|format| format.name);
        let same = known.iter().find(|known| known.eq_ignore_ascii_case(&name));
        let advice = match same.copied().or_else(|| nearest(&name, &known)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known formats: {}", known.join(", ")),
        };
        mistakes.add(
            &span,
            format!("pixel-format = {name:?} is unknown; {advice}"),
        );
        return None;
    };
    let unpacked = match format.needs_unpack() {
        true => "; clunpack unpacks them on the device",
        false => "",
    };
    mistakes.note(&span, format!("the camera is asked for {format}{unpacked}"));
    let place = mistakes.place(&span);
    Some(RequestedFormat { format, place })
}

/// Makes the source without starting it.
fn check_source(source: &Source, span: &Range<usize>, mistakes: &mut Mistakes<'_>) {
    let text = match source {
        Source::Description(text) | Source::Aravis { camera: text, .. } => text,
    };
    if secrets::has_user(text) {
        mistakes.add(
            span,
            "the source holds a user or a password in an address, which messages and logs repeat; set the properties of \
             the element instead, for instance user-id and user-pw of rtspsrc, and let only root read this file",
        );
    }
    check_password("the source", text, span, mistakes);
    let Err(error) = run::source::bin(&source.without_controls(), false) else {
        return;
    };
    let why = secrets::without_users(error.message());
    let advice = if error.matches(gst::ParseError::NoSuchElement) {
        "install its GStreamer plugin, or correct the name"
    } else if error.matches(gst::ParseError::Link) {
        "end the source with an element that sends frames, not with a sink, and check the caps"
    } else {
        "try it with gst-launch-1.0"
    };
    mistakes.add(span, format!("the source is no pipeline: {why}; {advice}"));
}

/// A password in the file must not be for all eyes.
fn check_password(key: &str, text: &str, span: &Range<usize>, mistakes: &mut Mistakes<'_>) {
    if secrets::has_password(text)
        && let Some(command) = mistakes.command_to_hide_file()
    {
        let text =
            format!("{key} holds a password, and every user can read this file; run: {command}");
        mistakes.add(span, text);
    }
}

/// A camera starts again by itself, so an element that learns keeps in a file what it has learned.
fn need_location(
    table: &Table<'_, '_>,
    [why, end]: [&str; 2],
    camera: &str,
    mistakes: &mut Mistakes<'_>,
) {
    let camera = if camera.is_empty() { "NAME" } else { camera };
    let text = format!(
        "{} has no location: a camera starts again by itself after a failure, and {why}; set location to a file, for \
         instance \"/var/lib/clinspect-station/{camera}-{end}.npz\"",
        table.name
    );
    match table.text("location") {
        Some(("", span)) => mistakes.add(&span, text),
        None if !table.has("location") => mistakes.add_missing(&table.span, text),
        _ => {}
    }
}

/// A texture learns its limits from the first frames, unless it has them. A surface needs a file in any case: limits say
/// nothing without its model.
fn need_limits(table: &Table<'_, '_>, camera: &str, mistakes: &mut Mistakes<'_>) {
    let camera = if camera.is_empty() { "NAME" } else { camera };
    let (analyzer, needs_model) = (&table.name, table.name == "surface");
    let (learned, or) = match needs_model {
        true => ("what it learns", ""),
        false => ("its limits", ", or thresholds"),
    };
    let text = format!(
        "{analyzer} has no file for {learned}: a camera starts again by itself after a failure, and it would learn from \
         whatever frames come then, bad ones included; set learn = {{ location = \
         \"/var/lib/clinspect-station/{camera}-{analyzer}.npz\" }}{or}"
    );
    let entries = table.entries();
    let value = |key| entries.iter().find(|(name, _, _)| *name == key);
    let is_empty = |value: &DeValue| match value {
        DeValue::Array(values) => values.is_empty(),
        DeValue::String(text) => matches!(text.trim(), "" | "<>" | "< >"),
        _ => false,
    };
    if !needs_model && value("thresholds").is_some_and(|(_, _, value)| !is_empty(value.get_ref())) {
        return;
    }
    match value("learn").map(|(_, span, value)| (span, value.get_ref())) {
        Some((span, DeValue::Table(learn))) => match learn.get("location") {
            Some(location) if is_empty(location.get_ref()) => {
                mistakes.add(&location.span(), text);
            }
            Some(_) => {}
            None => mistakes.add(span, text),
        },
        // Another mistake names the type.
        Some(_) => {}
        None => mistakes.add_missing(&table.span, text),
    }
}

/// The tables of `inspectpublish`; it sends the camera's name if the file gives no other.
fn publish(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Vec<Properties> {
    let tables = table.tables("publish", mistakes);
    let mut publish = Vec::new();
    for table in tables {
        for (key, _, value) in table.entries() {
            if let Some(text) = value.get_ref().as_str() {
                check_password(key, text, &value.span(), mistakes);
            }
        }
        publish.push(properties::read(&table, "inspectpublish", &[], mistakes));
    }
    publish
}

/// Recordings, with the limits of [`RecordingSettings`].
fn recording(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<RecordingSettings> {
    const ANY: Range<u64> = 0..u64::MAX;
    let mut table = table.table("recording", mistakes)?;
    if !table.has("folder") {
        mistakes.add_missing(&table.span, "recording has no folder; add folder = \"…\"");
    }
    let folder = table.string("folder", mistakes);
    let folder_span = folder
        .as_ref()
        .map_or(table.span.clone(), |(_, span)| span.clone());
    let mut number = |key, range| table.whole(key, range, mistakes);
    let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let before = small(number("before", 0..u64::from(MOST_AROUND)));
    let after = small(number("after", 0..u64::from(MOST_AROUND)));
    let max_age_hours = small(number("max-age-hours", 0..u64::from(u32::MAX)));
    let max_count = number("max-count", ANY);
    let max_bytes = number("max-bytes", ANY);
    table.finish(mistakes);
    let (folder, _) = folder?;
    let mut settings = RecordingSettings::new(folder.into());
    settings.before = before.unwrap_or(settings.before);
    settings.after = after.unwrap_or(settings.after);
    settings.max_age_hours = max_age_hours.unwrap_or(settings.max_age_hours);
    settings.max_count = max_count.unwrap_or(settings.max_count);
    settings.max_bytes = max_bytes.unwrap_or(settings.max_bytes);
    if let Err(why) = settings.check() {
        mistakes.add(&folder_span, format!("recording: {why}"));
    }
    Some(settings)
}
