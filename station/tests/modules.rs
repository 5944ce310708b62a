//! The modules of each crate of the station use one another in one direction only, as Cargo demands of the crates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules in the text behind `crate::`, such as `config::Config` or `{config::{self, Config}, info}`.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let nesting = |c| i32::from(c == '{') - i32::from(c == '}');
    let mut depth = 0;
    let end = text.find(|c| {
        depth += nesting(c);
        depth == 0 && !is_word(c)
    });
    let path = &text[..end.unwrap_or(text.len())];
    let mut depth = 0;
    let items = path.trim_start_matches('{').split(move |c| {
        depth += nesting(c);
        depth == 0 && c == ','
    });
    items.filter_map(move |item| item.split(|c| !is_word(c)).find(|word| !word.is_empty()))
}

/// Adds what the code in a file or folder uses to its module. Tests may use any.
fn add(path: &Path, module: &str, graph: &mut Graph) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            add(&entry.unwrap().path(), module, graph);
        }
    } else if !path.ends_with("tests.rs") {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let used = code.split("crate::").skip(1).flat_map(modules);
        let uses = graph.entry(module.to_owned()).or_default();
        uses.extend(used.map(str::to_owned));
    }
}

/// The folders with the sources of the station's crates.
fn sources() -> Vec<PathBuf> {
    let station = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(station).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path().join("src"));
    let own = [station.join("src")];
    own.into_iter()
        .chain(crates.filter(|path| path.is_dir()))
        .collect()
}

#[test]
fn modules_form_no_circle() {
    let mut found = 0;
    for source in sources() {
        let mut graph = Graph::new();
        for entry in fs::read_dir(&source).unwrap() {
            let path = entry.unwrap().path();
            add(
                &path,
                path.file_stem().unwrap().to_str().unwrap(),
                &mut graph,
            );
        }
        found += graph.values().flatten().count();
        // A module is in no circle if all that it uses, or all that use it, are in none.
        loop {
            let modules: BTreeSet<String> = graph.keys().cloned().collect();
            graph.retain(|module, uses| {
                uses.retain(|of| of != module && modules.contains(of));
                !uses.is_empty()
            });
            let used: BTreeSet<String> = graph.values().flatten().cloned().collect();
            graph.retain(|module, _| used.contains(module));
            if graph.len() == modules.len() {
                break;
            }
        }
        assert!(
            graph.is_empty(),
            "circles in {}: {graph:#?}",
            source.display()
        );
    }
    assert!(found > 50, "the test does not read the code");
}
