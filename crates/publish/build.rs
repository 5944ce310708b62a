//! Gives `plugin_define!` the version and the release date.

fn main() {
    gst_plugin_version_helper::info();
    // Without these lines cargo compiles the plugin again after a change of any file beside it. Git writes a line into this
    // file for each commit.
    for file in ["build.rs", "Cargo.toml", "../../.git/logs/HEAD"] {
        if std::path::Path::new(file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
}
