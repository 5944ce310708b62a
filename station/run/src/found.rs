//! Cameras that can be chosen on this machine.

use std::{fs, path::Path};

use gst::prelude::*;

use crate::{
    picture_files::{PictureFiles, is_hidden},
    source::folder_description,
};

/// What kind of camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GigE Vision or USB3 Vision: [`FoundCamera::source`] is the value of the key `aravis`.
    Genicam,
    /// A camera of Linux, such as a webcam.
    V4l2,
    /// Pictures in a folder.
    Folder,
}

/// A camera that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCamera {
    /// Names this camera and no other, also after a restart.
    pub id: String,
    /// What kind it is.
    pub kind: Kind,
    /// What people call it.
    pub label: String,
    /// Where it is.
    pub detail: String,
    /// The value of the key `source`; of a GenICam camera that of `aravis`.
    pub source: String,
}

/// GenICam cameras that answer. Takes up to about a second.
///
/// # Errors
/// libaravis is missing; a sentence.
pub fn genicam() -> Result<Vec<FoundCamera>, String> {
    let found = clinspect_aravis::cameras()?
        .into_iter()
        .map(|camera| FoundCamera {
            id: format!("genicam:{}", camera.id),
            kind: Kind::Genicam,
            label: [&*camera.vendor, &camera.model, &camera.serial].join(" "),
            detail: [&*camera.protocol, &camera.address].join(" "),
            source: camera.id,
        });
    Ok(found.collect())
}

/// Cameras of Linux.
pub fn v4l2() -> Vec<FoundCamera> {
    let monitor = gst::DeviceMonitor::new();
    if monitor.add_filter(Some("Video/Source"), None).is_none() {
        return Vec::new();
    }
    let found = monitor.devices().into_iter().filter_map(|device| {
        let properties = device.properties()?;
        v4l2_of(&device.display_name(), &properties)
    });
    let mut found: Vec<FoundCamera> = found.collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup();
    found
}

/// The camera behind a device of GStreamer; `None` if another system than V4L2 reads it.
fn v4l2_of(name: &str, properties: &gst::StructureRef) -> Option<FoundCamera> {
    // From 1.24 on the second name is the usual one.
    let path = ["device.path", "api.v4l2.path"].into_iter();
    let path = path
        .filter_map(|key| properties.get::<String>(key).ok())
        .next()?;
    let is_v4l2 = properties
        .get::<String>("device.api")
        .is_ok_and(|api| api == "v4l2");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:".contains(c);
    if !is_v4l2 || !path.starts_with("/dev/") || !path.chars().all(is_plain) {
        return None;
    }
    let lasting = lasting(Path::new("/dev/v4l/by-id"), &path).unwrap_or_else(|| path.clone());
    Some(FoundCamera {
        id: format!("v4l2:{lasting}"),
        kind: Kind::V4l2,
        label: name.to_owned(),
        detail: path,
        source: format!("v4l2src device={lasting}"),
    })
}

/// The name of a device that stays when cameras are plugged in another order: a link in `links`.
fn lasting(links: &Path, path: &str) -> Option<String> {
    let target = fs::canonicalize(path).ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:".contains(c);
    let names = fs::read_dir(links).ok()?.filter_map(|entry| {
        let link = entry.ok()?.path();
        let is_it = fs::canonicalize(&link).ok()? == target;
        let name = link.to_str()?.to_owned();
        (is_it && name.chars().all(is_plain)).then_some(name)
    });
    names.min()
}

/// The folders directly in `root` that hold pictures. Links are not followed.
///
/// # Errors
/// `root` cannot be read; a sentence.
pub fn folders(root: &Path) -> Result<Vec<FoundCamera>, String> {
    let told = |error| {
        format!(
            "the folder of frames {} cannot be read: {error}",
            root.display()
        )
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(told)? {
        let entry = entry.map_err(told)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_folder = entry.file_type().is_ok_and(|of| of.is_dir());
        if !is_folder || is_hidden(name.as_ref()) || name.chars().any(char::is_control) {
            continue;
        }
        // A folder that only others may read is not offered.
        let count = PictureFiles::list(&entry.path()).map_or(0, |files| files.pictures.len());
        if let (1.., Some(source)) = (count, folder_description(&entry.path())) {
            let detail = if count == 1 {
                "1 picture".to_owned()
            } else {
                format!("{count} pictures")
            };
            found.push(FoundCamera {
                id: format!("folder:{name}"),
                kind: Kind::Folder,
                label: name,
                detail,
                source,
            });
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use clinspect_testkit::tools::Sandbox;
    use plan::Source;

    use super::*;
    use crate::source;

    #[test]
    fn folders_with_pictures_are_offered_whatever_their_names_are() {
        gst::init().expect("GStreamer");
        source::register().expect("the element");
        let sandbox = Sandbox::new("found-folders");
        let root = sandbox.path();
        let names = ["cloth", "a \"b\" ! c\\d", "ünï 'x' $(id) %d"];
        for name in names {
            let folder = sandbox.folder(name);
            fs::write(folder.join("b.PNG"), "x").expect("a file");
            fs::write(folder.join("a.jpeg"), "x").expect("a file");
            fs::write(folder.join("notes.txt"), "x").expect("a file");
        }
        sandbox.folder("empty");
        symlink(root.join("cloth"), root.join("link")).expect("a link");
        fs::write(root.join("alone.png"), "x").expect("a file");

        let found = folders(root).expect("folders");
        let mut labels = found.iter().map(|found| &*found.label).collect::<Vec<_>>();
        labels.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(labels, expected);
        for FoundCamera {
            label,
            detail,
            source,
            ..
        } in found
        {
            assert_eq!(detail, "2 pictures");
            // The description leads to this folder, and to nothing else.
            let bin = source::bin(&Source::Description(source), false).expect("a source");
            assert_eq!(bin.children().len(), 2, "{label}");
            let element = bin
                .children()
                .into_iter()
                .find(|of| of.has_property("location"));
            let location: String = element.expect("the source").property("location");
            assert_eq!(Path::new(&location), root.join(label));
        }
    }

    #[test]
    fn cameras_of_linux_are_those_that_v4l2src_reads() {
        gst::init().expect("GStreamer");
        let device = |api: &str, path: &str| {
            let properties = gst::Structure::builder("properties");
            let properties = properties
                .field("device.api", api)
                .field("device.path", path);
            v4l2_of("Camera", &properties.build())
        };
        let found = device("v4l2", "/dev/video7").expect("a camera");
        assert_eq!(found.id, "v4l2:/dev/video7");
        assert_eq!(found.source, "v4l2src device=/dev/video7");
        assert_eq!(device("pipewire", "/dev/video7"), None);
        assert_eq!(device("v4l2", "/dev/x ! filesink location=/etc/x"), None);
    }

    #[test]
    fn a_link_with_the_serial_number_is_the_lasting_name() {
        let sandbox = Sandbox::new("found-links");
        let links = sandbox.folder("by-id");
        let device = sandbox.path().join("video0");
        fs::write(&device, "").expect("a file");
        let path = device.to_str().expect("a path");
        assert_eq!(lasting(&links, path), None);
        symlink(&device, links.join("usb-Maker_0042-index0")).expect("a link");
        symlink("/dev/null", links.join("usb-Another-index0")).expect("a link");
        let lasting = lasting(&links, path).expect("a name");
        assert!(
            lasting.ends_with("/by-id/usb-Maker_0042-index0"),
            "{lasting}"
        );
    }
}
