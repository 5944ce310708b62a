//! DESIGN's layers: imports go downward only. Read from the paths in the sources, and the reader
//! is shown to see what it looks for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{fs, path::Path};

/// Layers, and what each may import besides itself.
const LAYERS: [(&str, &[&str]); 8] = [
    ("lib", &["elements", "results"]),
    (
        "elements",
        &["operators", "frame", "opencl", "results", "math", "error"],
    ),
    ("operators", &["frame", "opencl", "math", "error"]),
    ("frame", &["opencl", "math", "error"]),
    ("opencl", &["math", "error"]),
    ("results", &["math", "error"]),
    ("math", &[]),
    ("error", &["math"]),
];

/// What a layer may not name, and what else may not be named below it.
const FORBIDDEN: [(&str, &[&str]); 9] = [
    ("lib", &["opencl3", "cl3"]),
    ("elements", &["opencl3", "cl3"]),
    (
        "operators",
        &["opencl3", "cl3", "gst::Element", "gst_base", "subclass"],
    ),
    (
        "frame",
        &["opencl3", "cl3", "gst::Element", "gst_base", "subclass"],
    ),
    ("opencl", &["gst::Element", "gst_base"]),
    ("results", &["opencl3", "cl3", "gst_base", "subclass"]),
    (
        "math",
        &[
            "opencl3",
            "cl3",
            "gst",
            "gst_base",
            "gst_video",
            "glib",
            "atomic_refcell",
        ],
    ),
    ("error", &["opencl3", "cl3", "gst_base", "gst_video"]),
    (
        "reference",
        &["gstclinspect", "gst", "gst_video", "opencl3", "glib"],
    ),
];

/// The only folder that draws: nothing else names these crates, and it needs no device.
const DRAWING: &str = "src/elements/inspect_overlay/";
const DRAWING_CRATES: [&str; 2] = ["tiny_skia", "skrifa"];
const DEVICE_LAYERS: [&str; 3] = ["operators", "frame", "opencl"];

/// The text without comments and string literals.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let skipped = if found.starts_with("//") {
            found.find('\n').unwrap_or(found.len())
        } else if found.starts_with("/*") {
            found.find("*/").map_or(found.len(), |end| end + 2)
        } else if let Some(string) = found.strip_prefix('"') {
            let mut escaped = false;
            let end = string.char_indices().find(|&(_, c)| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(found.len(), |(end, _)| end + 2)
        } else if found.starts_with("'\"'") {
            3
        } else {
            out.push_str(&found[..1]);
            1
        };
        rest = &found[skipped..];
    }
    out + rest
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a path such as `gst::Element` begins in the code, as whole words.
fn places<'a>(code: &'a str, path: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(path)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = code[..at].chars().next_back();
            let after = code[at + path.len()..].chars().next();
            !before.is_some_and(|c| is_word(c) || c == ':') && !after.is_some_and(is_word)
        })
}

/// The names that follow a path: `a` of `crate::a::b`, `a` and `b` of `crate::{a, b::{c, d}}`.
fn names_after(code: &str) -> Vec<String> {
    let word = |text: &str| -> String { text.chars().take_while(|&c| is_word(c)).collect() };
    let Some(group) = code.strip_prefix('{') else {
        return vec![word(code)];
    };
    let mut depth = 1;
    let mut names = Vec::new();
    let mut begins = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => begins = true,
            c if depth == 1 && begins && is_word(c) => {
                names.push(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The modules at the crate's root that a file names; `depth` modules lie between.
fn imports(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    let root = "super::".repeat(depth);
    for prefix in ["crate::", &root] {
        if prefix.is_empty() {
            continue;
        }
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| is_word(c) || c == ':') {
                names.extend(names_after(&code[at + prefix.len()..]));
            }
        }
    }
    names
}

/// What is wrong with a file; `path` is relative to the repository.
fn violations(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let layer = match parts[..] {
        ["tests", "reference", ..] => "reference",
        [_, layer, ..] => layer,
        _ => panic!("{path} is in no layer"),
    };
    let mut wrong = Vec::new();
    if let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) {
        let modules = parts.len() - 1 - usize::from(parts.last() == Some(&"mod"));
        for name in imports(&code, modules) {
            let is_layer = LAYERS.iter().any(|(layer, _)| **layer == name);
            if is_layer && name != layer && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{path}: {layer} imports {name}"));
            }
            if path.starts_with(DRAWING) && DEVICE_LAYERS.contains(&name.as_str()) {
                wrong.push(format!("{path}: the overlay imports {name}"));
            }
        }
    } else if layer != "reference" {
        wrong.push(format!("{path}: DESIGN has no layer {layer}"));
    }
    if !path.starts_with(DRAWING) {
        for name in DRAWING_CRATES {
            if places(&code, name).next().is_some() {
                wrong.push(format!("{path} names {name}"));
            }
        }
    }
    for (_, forbidden) in FORBIDDEN.iter().filter(|(name, _)| *name == layer) {
        for name in *forbidden {
            if places(&code, name).next().is_some() {
                wrong.push(format!("{path}: {layer} names {name}"));
            }
        }
    }
    wrong
}

/// Calls `each` with path and text of every Rust file under a folder; returns how many.
fn visit(root: &Path, folder: &Path, each: &mut impl FnMut(&str, &str)) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += visit(root, &path, each);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            each(name, &fs::read_to_string(&path).unwrap());
            count += 1;
        }
    }
    count
}

#[test]
fn sources_import_downward_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let mut look = |path: &str, text: &str| wrong.extend(violations(path, text));
    assert!(visit(root, &root.join("src"), &mut look) > 30);
    assert!(visit(root, &root.join("tests/reference"), &mut look) >= 4);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn checker_sees_planted_violations() {
    for (path, text) in [
        ("src/math/mask.rs", "use crate::error::ClError;"),
        ("src/math/mask.rs", "fn f(x: gst::ClockTime) {}"),
        ("src/math/mask.rs", "use gst_video::VideoFormat;"),
        ("src/math/mask.rs", "use super::super::frame;"),
        ("src/opencl/pool.rs", "use crate::frame::ClFrame;"),
        ("src/opencl/pool.rs", "fn f(e: &gst::Element) {}"),
        ("src/frame.rs", "use crate::operators::Gaussian;"),
        ("src/frame.rs", "use super::results;"),
        ("src/frame.rs", "use opencl3::memory::CL_MEM_READ_ONLY;"),
        (
            "src/operators/gaussian.rs",
            "use crate::{\n    error::ClError,\n    elements::base_filter,\n};",
        ),
        (
            "src/operators/mod.rs",
            "fn f() { let x = crate::results::register(); }",
        ),
        (
            "src/operators/gaussian.rs",
            "use gst_base::subclass::prelude::*;",
        ),
        ("src/operators/gaussian.rs", "use gst::Element;"),
        (
            "src/elements/gaussian/imp.rs",
            "use opencl3::types::cl_mem;",
        ),
        (
            "src/results/defects.rs",
            "use crate::{math::mask, opencl::{Meter, ClContext}};",
        ),
        (
            "src/results/defects.rs",
            "use super::super::frame::FORMATS;",
        ),
        ("src/error.rs", "use crate::opencl::ClContext;"),
        ("src/lib.rs", "use crate::opencl::ClContext;"),
        (
            "src/elements/histogram/imp.rs",
            "fn f() -> Option<tiny_skia::Pixmap> { None }",
        ),
        ("src/math/region.rs", "use skrifa::FontRef;"),
        (
            "src/elements/inspect_overlay/bits.rs",
            "use crate::opencl::ClContext;",
        ),
        ("src/other.rs", "fn f() {}"),
        (
            "tests/reference/mod.rs",
            "use gstclinspect::math::weights::weights_q8;",
        ),
        ("tests/reference/plane.rs", "use gst::prelude::*;"),
    ] {
        assert!(!violations(path, text).is_empty(), "{path}: {text}");
    }
}

#[test]
fn checker_lets_downward_imports_comments_and_strings_pass() {
    for (path, text) in [
        (
            "src/elements/gaussian/imp.rs",
            "use crate::{\n    operators::{Gaussian, Arithmetic},\n    frame::FORMATS,\n    \
             results::HistogramResult,\n};",
        ),
        (
            "src/operators/gaussian.rs",
            "use super::{source::PlaneImages, to_i32};",
        ),
        (
            "src/math/mask.rs",
            "//! See crate::elements and gst::Element.",
        ),
        (
            "src/math/mask.rs",
            "const S: &str = \"opencl3::x \\\" gst::y\";",
        ),
        ("src/math/mask.rs", "/* use crate::frame; */ use std::fmt;"),
        ("src/math/region.rs", "use super::layout::Layout;"),
        // Pure crates that are well kept.
        (
            "src/math/components.rs",
            "use rustfft::FftPlanner; #[derive(bytemuck::Pod)] struct S;",
        ),
        ("src/frame.rs", "use gst::BufferRef; // gst::Element is not"),
        ("src/opencl/pool.rs", "use gst::subclass::prelude::*;"),
        (
            "src/elements/inspect_overlay/canvas.rs",
            "use tiny_skia::Pixmap; use crate::{math::mask, results::DefectResult};",
        ),
        ("src/error.rs", "let x = gst::LibraryError::Settings;"),
        (
            "src/lib.rs",
            "pub mod opencl; fn f() { super::elements::gaussian::register(); }",
        ),
        (
            "tests/reference/mod.rs",
            "pub mod plane; use super::plane::put;",
        ),
    ] {
        let wrong = violations(path, text);
        assert!(wrong.is_empty(), "{path}: {text}: {wrong:?}");
    }
}
