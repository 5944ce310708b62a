//! Gives `plugin_define!` the version and the release date.

fn main() {
    gst_plugin_version_helper::info();
}
