//! Recipes that are read over the cameras of the file, and saved as a whole.

use std::fs;

use clinspect_testkit::tools::Sandbox;
use config::{
    file::{Config, Purpose},
    recipes::{Recipes, SaveError},
};
use plan::{Analyzer, CameraConfig, Source};

use super::Folder;

/// A grey PNG of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, 0x49, 0x44, 0x41, 0x54,
    0x78, 0x9c, 0x63, 0x60, 0, 0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

pub fn open(sandbox: &Sandbox, own: &str) -> (std::sync::Arc<Recipes>, Folder) {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    gstinspectoverlay::register_static().unwrap();
    gstinspectpublish::register_static().unwrap();
    let file = sandbox.path().join("station.toml");
    let folder = sandbox.path().join("recipes");
    fs::write(&file, format!("recipes = {folder:?}\n{own}")).unwrap();
    let config = Config::read(&file).unwrap();
    let (recipes, _) = Recipes::open(folder.clone(), config.cameras).unwrap();
    (recipes, Folder(folder))
}

const OWN: &str = r#"
[[camera]]
name = "left"
aravis = "Some-Camera"
pixel-format = "Mono12p"
caps = "video/x-raw, width=640"
silence = 7
gaussian = { sigma = 1.5 }
histogram = {}
flat-field = { location = "/var/lib/light.npz" }
pitch = { pitch-x = 16, threshold = 30 }
"#;

#[track_caller]
fn read(recipes: &Recipes, text: &str) -> CameraConfig {
    let mut cameras = recipes.check_text("cloth", text).unwrap();
    assert_eq!(cameras.len(), 1);
    cameras.remove(0)
}

#[test]
fn keys_of_a_recipe_replace_those_of_the_file_and_others_stay() {
    let sandbox = Sandbox::new("recipe-merge");
    let (recipes, folder) = open(&sandbox, OWN);
    let same = read(&recipes, "[[camera]]\nname = \"left\"\n");
    assert_eq!(same.silence.as_secs(), 7);
    assert_eq!(
        (same.analyzer, same.analysis.get("threshold")),
        (Analyzer::Pitch, Some("30.0"))
    );
    assert_eq!(same.analysis.get("bit-depth"), Some("12"));
    // What the file names stays for all recipes.
    let light = same.flat_field.as_ref().unwrap().get("location").unwrap();
    assert!(light.contains("/var/lib/light.npz"), "{light}");

    // A table replaces the whole table, an analyzer the other analyzer.
    let other = "[[camera]]\nname = \"left\"\nsilence = 9\ngaussian = false\nhistogram = { bins = 64 }\nreference = {}\n";
    let other = read(&recipes, other);
    assert_eq!((other.silence.as_secs(), other.gaussian), (9, None));
    assert_eq!(other.analyzer, Analyzer::Reference);
    assert_eq!(
        (
            other.analysis.get("threshold"),
            other.analysis.get("pitch-x")
        ),
        (None, None)
    );
    let model = other.analysis.get("location").unwrap().to_owned();
    let own = folder.0.join("cloth");
    assert!(
        model.contains(own.join("left-reference.npz").to_str().unwrap()),
        "{model}"
    );
    let limits = other.analysis.get("learn").unwrap();
    assert!(
        limits.contains(own.join("left-limits.npz").to_str().unwrap()),
        "{limits}"
    );

    // One key of the source changes, and what follows from it.
    let format = "[[camera]]\nname = \"left\"\npixel-format = \"Mono8\"\n";
    let format = read(&recipes, format);
    let Source::Aravis {
        camera,
        pixel_format,
        caps,
        ..
    } = &format.source
    else {
        panic!("{:?}", format.source);
    };
    assert_eq!(
        (camera.as_str(), pixel_format.as_ref().unwrap().format.name),
        ("Some-Camera", "Mono8")
    );
    assert!(
        caps.as_ref()
            .unwrap()
            .to_string()
            .contains("width=(int)640")
    );
    assert_eq!(
        format.analysis.get("bit-depth"),
        None,
        "the depth of the format before"
    );
    let source = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n";
    assert_eq!(
        read(&recipes, source).source,
        Source::Description("videotestsrc".into())
    );
    assert_eq!(read(&recipes, source).analysis.get("bit-depth"), None);
}

#[test]
fn recipe_is_saved_whole_and_nobody_overwrites_another() {
    let sandbox = Sandbox::new("recipe-save");
    let (recipes, folder) = open(&sandbox, OWN);
    let text = |mask: &str| {
        format!(
            "# by hand\n[[camera]]\nname = \"left\"\npitch = {{ ignore = {{ mask = \"{mask}\" }} }}\n"
        )
    };
    let mask = [("left-ignore.png".to_owned(), PNG.to_vec())];
    let save = |text: &str, files: &[_], hash: Option<&str>| {
        recipes.save("cloth", text, files, hash, "test")
    };

    // The mask is checked before it is in its place.
    let failed = save(&text("left-ignore.png"), &[], None).unwrap_err();
    assert!(
        matches!(&failed, SaveError::Mistakes(of) if of[0].text.contains("left-ignore.png")),
        "{failed}"
    );
    let failed = save(
        &text("left-ignore.png"),
        &[("left-ignore.png".into(), b"x".to_vec())],
        None,
    );
    assert!(matches!(failed, Err(SaveError::Mistakes(_))));
    assert_eq!(recipes.list(), []);
    let first = save(&text("left-ignore.png"), &mask, None).unwrap();
    assert_eq!(
        fs::read(folder.0.join("cloth/left-ignore.png")).unwrap(),
        PNG
    );
    assert_eq!(recipes.text("cloth").unwrap(), text("left-ignore.png"));
    let listed = recipes.list();
    assert_eq!(
        (listed[0].hash.as_str(), listed[0].mistakes.len()),
        (first.hash.as_str(), 0)
    );

    // Somebody else made it, and somebody else changed a file of it.
    for expected in [None, Some("0123456789abcdef")] {
        let failed = save("", &[], expected);
        assert!(matches!(failed, Err(SaveError::Changed(now)) if now == text("left-ignore.png")));
    }
    fs::write(folder.0.join("cloth/left-limits.npz"), "learned").unwrap();
    let failed = save(&text("left-ignore.png"), &[], Some(&first.hash));
    assert!(matches!(failed, Err(SaveError::Changed(_))));
    let now = recipes.list()[0].hash.clone();
    assert_ne!(now, first.hash);
    let read = recipes.read("cloth", Purpose::Run).unwrap();
    assert_eq!(read.id.hash, now);
    // A file goes with the text that needed it.
    let gone = [("left-ignore.png".to_owned(), Vec::new())];
    let failed = save(&text("left-ignore.png"), &gone, Some(&now));
    assert!(matches!(failed, Err(SaveError::Mistakes(_))));
    save("[[camera]]\nname = \"left\"\n", &gone, Some(&now)).unwrap();
    assert!(!folder.0.join("cloth/left-ignore.png").exists());
    assert!(folder.0.join("cloth/left-limits.npz").exists());

    for (name, file) in [
        ("../cloth", "a.png"),
        ("cloth", "../a.png"),
        ("cloth", ".png"),
        ("cloth", "a.toml"),
    ] {
        let failed = recipes.save(name, "", &[(file.to_owned(), PNG.to_vec())], None, "test");
        assert!(matches!(failed, Err(SaveError::Name(_))), "{name} {file}");
    }
    let changes = recipes.changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(
        (changes[1].from.as_deref(), changes[1].to.as_str()),
        (None, "cloth")
    );
    let hidden = |folder: &std::path::Path| {
        let names = fs::read_dir(folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        Vec::from_iter(names.filter(|name| name.starts_with('.')))
    };
    assert_eq!(
        hidden(&folder.0),
        [".history"],
        "something of a save is left"
    );
    assert_eq!(hidden(&folder.0.join(".history/cloth")), [""; 0]);
}

#[test]
fn after_a_loss_of_power_a_save_is_whole_or_gone() {
    let sandbox = Sandbox::new("recipe-power");
    let (recipes, folder) = open(&sandbox, "");
    let text = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n";
    let before = recipes.save("cloth", text, &[], None, "test").unwrap();
    drop(recipes);
    // Not whole: the power was lost while the files were written.
    let saving = folder.0.join(".saving-cloth");
    fs::create_dir(&saving).unwrap();
    fs::write(saving.join("cloth.toml"), "[[cam").unwrap();
    let (recipes, _) = open(&sandbox, "");
    assert_eq!(recipes.hash("cloth"), Ok(before.hash));
    assert!(!saving.exists());
    drop(recipes);
    // Whole, and the power was lost before the text was in its place; one file was already.
    let saved = folder.0.join(".saved-cloth");
    fs::create_dir(&saved).unwrap();
    fs::write(folder.0.join("cloth/a.png"), PNG).unwrap();
    fs::write(saved.join("b.png"), PNG).unwrap();
    let after = format!("{text}triggered = true\n");
    fs::write(saved.join("cloth.toml"), &after).unwrap();
    let (recipes, _) = open(&sandbox, "");
    assert_eq!(recipes.text("cloth").unwrap(), after);
    assert!(folder.0.join("cloth/b.png").is_file() && !saved.exists());
}
