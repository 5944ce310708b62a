//! What GStreamer finds: its version, the plugins and the elements.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
    time::Duration,
};

use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    probe::Probe,
    report::{Report, Section},
};

/// The elements of this project by plugin, with the Debian package.
const OWN: [(&str, &str, &[&str]); 3] = [
    (
        "clinspect",
        "gstreamer1.0-clinspect",
        &[
            "clflatfield",
            "clgaussian",
            "clhistogram",
            "clpitchthreshold",
            "clreference",
            "clsurface",
            "cltexture",
            "clunpack",
            "clmaskunpack",
        ],
    ),
    (
        "inspectoverlay",
        "gstreamer1.0-clinspect",
        &["inspectoverlay"],
    ),
    (
        "inspectpublish",
        "gstreamer1.0-inspectpublish",
        &["inspectpublish"],
    ),
];
/// Plugins of sources, with an element, the cameras, and the Debian package.
const SOURCES: [(&str, &str, &str, &str); 2] = [
    (
        "aravis",
        "aravissrc",
        "GigE Vision and USB3 Vision cameras",
        "libaravis-0.8-0",
    ),
    (
        "video4linux2",
        "v4l2src",
        "V4L2 cameras",
        "gstreamer1.0-plugins-good",
    ),
];
/// Variables that name folders of plugins. GStreamer reads the first of each pair that is set.
const FOLDERS: [[&str; 2]; 2] = [
    ["GST_PLUGIN_PATH_1_0", "GST_PLUGIN_PATH"],
    ["GST_PLUGIN_SYSTEM_PATH_1_0", "GST_PLUGIN_SYSTEM_PATH"],
];
/// What removes GStreamer's list of plugins, which it makes anew.
const FORGET: &str = "rm -f ~/.cache/gstreamer-1.0/registry.*.bin";

/// What the child process finds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct GStreamerState {
    version: String,
    plugins: BTreeMap<String, Plugin>,
    /// Elements that GStreamer can make.
    elements: BTreeSet<String>,
    /// Files of plugins that GStreamer refuses to load.
    blacklisted: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Plugin {
    version: String,
    file: String,
}

impl GStreamerState {
    /// Whether GStreamer can make this element.
    pub fn has(&self, element: &str) -> bool {
        self.elements.contains(element)
    }
}

/// Asks GStreamer, as a pipeline would.
pub fn probe() -> GStreamerState {
    let registry = gst::Registry::get();
    let own = OWN.iter().map(|(plugin, ..)| *plugin);
    let names = own.chain(SOURCES.iter().map(|(plugin, ..)| *plugin));
    let found = names.filter_map(|name| {
        let plugin = registry.find_plugin(name)?;
        let file = plugin
            .filename()
            .map_or(String::new(), |file| file.display().to_string());
        let version = plugin.version().to_string();
        Some((name.to_owned(), Plugin { version, file }))
    });
    let elements = OWN.iter().flat_map(|(.., elements)| elements.iter());
    let elements = elements.chain(SOURCES.iter().map(|(_, element, ..)| element));
    // Its plugin is loaded only now.
    let loads = |element: &&&str| {
        gst::ElementFactory::find(element).is_some_and(|factory| factory.load().is_ok())
    };
    let plugins = registry.plugins();
    let blacklisted = plugins
        .iter()
        .filter(|plugin| {
            plugin
                .plugin_flags()
                .contains(gst::PluginFlags::BLACKLISTED)
        })
        .map(|plugin| {
            let file = plugin.filename();
            file.map_or_else(
                || plugin.plugin_name().to_string(),
                |file| file.display().to_string(),
            )
        });
    let (major, minor, micro, _) = gst::version();
    GStreamerState {
        version: format!("{major}.{minor}.{micro}"),
        plugins: found.collect(),
        elements: elements.filter(loads).map(ToString::to_string).collect(),
        blacklisted: blacklisted.collect(),
    }
}

/// Adds the section; the result says which elements there are.
pub fn examine(report: &mut Report, limit: Duration) -> GStreamerState {
    let mut section = Section::new("gstreamer", "GStreamer");
    let found = match Probe::Gstreamer.ask::<GStreamerState>(limit, &[]) {
        Ok(found) => {
            judge(&mut section, &found);
            section.set_data(&found);
            found
        }
        Err(trouble) => {
            section.fault(
                format!("GStreamer cannot be asked: {trouble}"),
                format!(
                    "find the plugin at fault with gst-inspect-1.0; then remove it, and {FORGET}"
                ),
            );
            GStreamerState::default()
        }
    };
    for variable in FOLDERS.iter().filter_map(|pair| {
        pair.iter()
            .find_map(|name| Some((*name, env::var_os(name)?)))
    }) {
        let (name, value) = variable;
        for folder in env::split_paths(&value).filter(|f| !f.as_os_str().is_empty()) {
            if !folder.is_dir() {
                section.fault(
                    format!("{name} names {}, which is no folder", folder.display()),
                    format!("unset {name}, or set it to the folder of libgstclinspect.so"),
                );
            }
        }
    }
    report.add(section);
    found
}

fn judge(section: &mut Section, found: &GStreamerState) {
    section.ok(format!("GStreamer {}", found.version));
    for (plugin, package, elements) in OWN {
        let missing: Vec<&str> = elements.iter().copied().filter(|e| !found.has(e)).collect();
        let file = format!("libgst{plugin}.so");
        let blacklisted = found.blacklisted.iter().find(|path| path.ends_with(&file));
        if let Some(path) = blacklisted {
            section.fault(
                format!("GStreamer refuses to load {path}, because it crashed or does not fit this system"),
                format!("install {package} for this release of the system; then {FORGET}"),
            );
        } else if missing.is_empty() {
            let plugin_found = found.plugins.get(plugin);
            let (version, path) =
                plugin_found.map_or(("", ""), |plugin| (&*plugin.version, &*plugin.file));
            section.ok(format!(
                "plugin {plugin} {version} in {path}: {}",
                elements.join(", ")
            ));
        } else {
            let text = format!("GStreamer does not find {}", missing.join(", "));
            let mend = how_to_find(&file, package);
            // A pipeline that publishes nothing does not need it.
            if plugin == "inspectpublish" {
                section.advise(text, mend);
            } else {
                section.fault(text, mend);
            }
        }
    }
    let versions: BTreeSet<&str> = OWN
        .iter()
        .filter_map(|(plugin, ..)| found.plugins.get(*plugin))
        // Behind the hyphen is the commit of a build, which is of no interest for packages.
        .filter_map(|plugin| plugin.version.split('-').next())
        .collect();
    if versions.len() > 1 {
        section.advise(
            "the plugins of this project have different versions",
            "install packages of one version, or unset GST_PLUGIN_PATH",
        );
    }
    for (plugin, element, cameras, package) in SOURCES {
        match found.plugins.get(plugin) {
            Some(Plugin { version, file }) if found.has(element) => {
                section.ok(format!("plugin {plugin} {version} in {file}: {element}"));
            }
            _ => section.advise(
                format!("GStreamer does not find {element}, the source for {cameras}"),
                format!("sudo apt install {package}"),
            ),
        }
    }
}

/// What to do if a plugin of this project is not found.
fn how_to_find(file: &str, package: &str) -> String {
    let program = env::current_exe().unwrap_or_default();
    match program.parent().filter(|folder| folder.join(file).exists()) {
        Some(folder) => export(folder),
        None => format!(
            "sudo apt install ./{package}_*.deb, or set GST_PLUGIN_PATH to the folder of {file}; then {FORGET}"
        ),
    }
}

fn export(folder: &Path) -> String {
    format!("export GST_PLUGIN_PATH={}", folder.display())
}
