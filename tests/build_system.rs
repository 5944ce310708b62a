//! `meson install` puts the plugin where GStreamer looks for it, or where it is told to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod tools;

use std::path::Path;

use tools::{Sandbox, exists, run, skip};

/// Longest time a step of the build may take, s: it may have to build all dependencies.
const BUILD_LIMIT_S: u32 = 900;

#[test]
fn meson_install_puts_the_plugin_into_gstreamers_folder_or_the_one_it_is_given() {
    for program in ["meson", "ninja", "pkg-config", "cargo"] {
        if !exists(program) {
            return skip(&format!("{program} is not installed"));
        }
    }
    let sandbox = Sandbox::new("meson");
    let (build, destination) = (sandbox.path().join("build"), sandbox.folder("root"));
    // What is built already is used again: <target>/<profile>/deps/<this test>.
    let exe = std::env::current_exe().unwrap();
    let target = exe.ancestors().nth(3).unwrap();
    let meson = |args: &[&str]| {
        let mut command = sandbox.command_within(BUILD_LIMIT_S, "meson");
        command
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("DESTDIR", &destination)
            // A critical of GLib is no business of meson's tools.
            .env_remove("G_DEBUG");
        run(&mut command).succeeded()
    };
    let build = build.to_str().unwrap();
    let kind = if cfg!(debug_assertions) {
        "-Dbuildtype=debug"
    } else {
        "-Dbuildtype=release"
    };
    meson(&["setup", build, kind]);
    meson(&["compile", "-C", build]);
    meson(&["install", "-C", build, "--no-rebuild"]);
    let mut pkg_config = sandbox.command("pkg-config");
    let folder = run(pkg_config.args(["--variable=pluginsdir", "gstreamer-1.0"])).succeeded();
    let inside = |folder: &str| destination.join(folder.trim().trim_start_matches('/'));
    let installed = inside(&folder.output());
    assert_installed(&sandbox, &installed);

    meson(&["configure", build, "-Dplugins_install_dir=/x/y"]);
    meson(&["install", "-C", build]);
    assert_installed(&sandbox, &inside("/x/y"));
}

/// Fails unless GStreamer finds the plugin in this folder.
#[track_caller]
fn assert_installed(sandbox: &Sandbox, folder: &Path) {
    let file = folder.join("libgstclinspect.so");
    assert!(file.is_file(), "{} is missing", file.display());
    if !exists("gst-inspect-1.0") {
        return skip("gst-inspect-1.0 is not installed");
    }
    let mut inspect = sandbox.command("gst-inspect-1.0");
    inspect.arg("clinspect").env("GST_PLUGIN_PATH", folder);
    let listed = run(&mut inspect).succeeded().output();
    assert!(listed.contains("clgaussian"), "{listed}");
    assert!(listed.contains(file.to_str().unwrap()), "{listed}");
}
