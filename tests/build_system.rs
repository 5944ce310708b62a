//! `meson install` installs the plugin into GStreamer's plugin folder or the configured one, and `clinspect-doctor`;
//! `scripts/setup` names the Rust version it needs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use tools::{Sandbox, exists, run, skip};

/// Time limit of a build step, s; a step may build all dependencies.
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
    // Reuse the target folder: this test is <target>/<profile>/deps/<name>.
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
            // GLib criticals in meson's tools must not abort them.
            .env_remove("G_DEBUG");
        // What cargo tells a test about its package: with it, build scripts of dependencies run again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text == "OUT_DIR"
                || text.starts_with("CARGO_PKG_")
                || text.starts_with("CARGO_MANIFEST_")
            {
                command.env_remove(&name);
            }
        }
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
    let mut programs = sandbox.command("find");
    let found = run(programs
        .arg(&destination)
        .args(["-path", "*/bin/clinspect-doctor"]))
    .succeeded();
    let help = run(sandbox.command(found.output().trim()).arg("--help")).succeeded();
    assert!(help.output().contains("--no-speed"), "{}", help.output());

    meson(&["configure", build, "-Dplugins_install_dir=/x/y"]);
    meson(&["install", "-C", build]);
    assert_installed(&sandbox, &inside("/x/y"));
}

/// Asserts that GStreamer finds the plugins in this folder.
#[track_caller]
fn assert_installed(sandbox: &Sandbox, folder: &Path) {
    for (plugin, element) in [
        ("clinspect", "clgaussian"),
        ("inspectoverlay", "inspectoverlay"),
        ("inspectpublish", "inspectpublish"),
    ] {
        let file = folder.join(format!("libgst{plugin}.so"));
        assert!(file.is_file(), "{} is missing", file.display());
        if !exists("gst-inspect-1.0") {
            return skip("gst-inspect-1.0 is not installed");
        }
        let mut inspect = sandbox.command("gst-inspect-1.0");
        inspect
            .args(["--plugin", plugin])
            .env("GST_PLUGIN_PATH", folder);
        let listed = run(&mut inspect).succeeded().output();
        assert!(listed.contains(element), "{listed}");
        assert!(listed.contains(file.to_str().unwrap()), "{listed}");
    }
}

/// A folder to use as PATH: the programs that `scripts/setup` uses, without `apt-get`, and a Rust version.
fn path_with_rust(sandbox: &Sandbox, version: Option<&str>) -> PathBuf {
    let folder = sandbox.folder(version.unwrap_or("none"));
    let path = std::env::var_os("PATH").unwrap();
    for program in [
        "bash", "cut", "dirname", "grep", "sed", "sort", "timeout", "tr",
    ] {
        let found = std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .find(|file| file.is_file());
        symlink(found.unwrap(), folder.join(program)).unwrap();
    }
    for program in version.map_or(&[][..], |_| &["cargo", "rustc"]) {
        let file = folder.join(program);
        let text = format!(
            "#!/bin/sh\necho {program} {} '(1 2026-01-01)'\n",
            version.unwrap()
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[test]
fn setup_takes_the_rust_that_cargo_toml_asks_for_or_newer_and_no_older() {
    let sandbox = Sandbox::new("setup");
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    let (major, minor) = wanted.split_once('.').unwrap();
    let before = minor.parse::<u32>().unwrap() - 1;
    let setup = |version: Option<&str>| {
        let mut setup = sandbox.command("scripts/setup");
        setup
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("PATH", path_with_rust(&sandbox, version));
        run(&mut setup)
    };
    for version in [
        format!("{wanted}.0"),
        format!("{major}.100.1"),
        "2.0.0".into(),
    ] {
        setup(Some(&version)).succeeded();
    }
    let old = format!("{major}.{before}.9");
    for version in [Some(&*old), Some("1.63.0"), None] {
        let refused = setup(version);
        assert_eq!(refused.code(), Some(1), "{version:?}: {}", refused.text());
        let says = format!("Rust {wanted} or newer");
        assert!(refused.text().contains(&says), "{}", refused.text());
    }
}
