//! Twelve boards of DeepPCB: a template and a test picture each.

use std::{fs, path::PathBuf, sync::Arc};

use run::frame::Frame;
use setup::advice::{Object, advise};

pub fn frame(path: &std::path::Path) -> Arc<Frame> {
    Arc::new(Frame::read(&fs::read(path).unwrap()).unwrap())
}

#[test]
fn boards_are_the_same_and_black_and_white() {
    gst::init().unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/real/deeppcb");
    let Ok(entries) = fs::read_dir(&folder) else {
        // These pictures are no part of the repository, whatever devices must be there.
        println!("SKIP {} is missing", folder.display());
        return;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let templates = paths.filter(|path| path.to_str().unwrap().ends_with("_temp.jpg"));
    let mut count = 0;
    for template in templates {
        let test = template.to_str().unwrap().replace("_temp", "_test");
        let advice = advise(&[frame(&template), frame(test.as_ref())]).unwrap();
        assert_eq!(
            advice.object,
            Object::Same,
            "{} {advice:?}",
            template.display()
        );
        let analysis = &advice.settings["analysis"];
        assert_eq!(advice.settings["gaussian"], serde_json::Value::Null);
        let values = ["align", "normalize", "threshold", "opening", "min-area"]
            .map(|key| analysis[key].to_string());
        assert_eq!(
            values,
            ["\"affine\"", "\"none\"", "12.0", "3", "9"],
            "{advice:?}"
        );
        count += 1;
    }
    assert_eq!(count, 12);
}
