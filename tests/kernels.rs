//! The text of the kernels: every function reads its parameters, and every file that a kernel names, or that names a
//! kernel, exists.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Files with one of these endings below a folder of the repository, with their text.
fn files(folder: &str, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if endings
                .iter()
                .any(|&ending| path.extension().is_some_and(|e| e == ending))
            {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// OpenCL C without comments; a line that goes on after a backslash is one line.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        code += part.split_once("*/").map_or("", |(_, rest)| rest);
    }
    code.replace("\\\n", " ")
}

/// The texts of each macro.
fn macros<'a>(codes: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let mut found = BTreeMap::<_, String>::new();
    for line in codes.flat_map(str::lines) {
        if let Some(rest) = line.trim().strip_prefix("#define ") {
            let name = words(rest).next().unwrap_or_default();
            let body = &rest.trim_start()[name.len()..];
            *found.entry(name).or_default() += &format!(" {body}");
        }
    }
    found
}

/// The words of a text and of the macros that it uses.
fn expanded<'a>(text: &'a str, macros: &'a BTreeMap<&str, String>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut texts = vec![text];
    while let Some(text) = texts.pop() {
        for word in words(text) {
            if found.insert(word) {
                texts.extend(macros.get(word).map(String::as_str));
            }
        }
    }
    found
}

/// A function definition.
struct Function<'a> {
    name: &'a str,
    parameters: &'a str,
    body: &'a str,
}

/// The functions of a file: the opening and the closing brace of a body stand alone at the start of a line.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("\n{").map(|at| from + at) {
        let end = at + code[at..].find("\n}").expect("a closing brace");
        let (head, body) = (code[..at].trim_end(), &code[at..end]);
        from = end;
        let mut depth = 0;
        let open = head.char_indices().rev().find(|&(_, c)| {
            depth += i32::from(c == ')') - i32::from(c == '(');
            depth == 0
        });
        if let (true, Some((open, _))) = (head.ends_with(')'), open) {
            found.push(Function {
                name: words(&head[..open]).last().unwrap_or_default(),
                parameters: &head[open + 1..head.len() - 1],
                body,
            });
        }
    }
    found
}

/// The names of parameters; those that a macro lists are inserted.
fn parameter_names(list: &str, macros: &BTreeMap<&str, String>) -> Vec<String> {
    let mut names = Vec::new();
    for parameter in list.split(',').map(str::trim) {
        let name = words(parameter.split('[').next().unwrap_or_default()).last();
        match name.and_then(|name| macros.get(name)) {
            Some(list) => names.extend(parameter_names(list, macros)),
            None => names.extend(name.filter(|&name| name != "void").map(str::to_owned)),
        }
    }
    names
}

/// A parameter is unused if no definition of the function in its file reads it: variants of a function share a list.
fn unused_parameters(codes: &[(String, String)]) -> BTreeSet<String> {
    let shared = macros(codes.iter().map(|(_, code)| code.as_str()));
    let mut unused = BTreeSet::new();
    let mut used = BTreeSet::new();
    for (file, code) in codes {
        // A file's own macro is meant, if several files have one of that name.
        let mut macros_of_file = shared.clone();
        macros_of_file.extend(macros([code.as_str()].into_iter()));
        for function in functions(code) {
            let body = expanded(function.body, &macros_of_file);
            for name in parameter_names(function.parameters, &macros_of_file) {
                let parameter = format!("{file}: {name} of {}", function.name);
                let list = if body.contains(name.as_str()) {
                    &mut used
                } else {
                    &mut unused
                };
                list.insert(parameter);
            }
        }
    }
    unused.retain(|parameter| !used.contains(parameter));
    unused
}

#[test]
fn kernels_read_all_their_parameters() {
    let kernels = files("kernels", &["cl"]);
    let codes: Vec<(String, String)> = (kernels.iter())
        // It declares functions only.
        .filter(|(path, _)| !path.ends_with("builtins.cl"))
        .map(|(path, text)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), without_comments(text))
        })
        .collect();
    let count: usize = codes.iter().map(|(_, code)| functions(code).len()).sum();
    assert!(count > 250, "{count} functions");
    let unused = unused_parameters(&codes);
    assert!(unused.is_empty(), "{unused:#?}");
}

/// The words of a text that end like a file, with the folders before them.
fn addresses<'a>(text: &'a str, ending: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(|c: char| !is_word(c) && !"./*-".contains(c))
        .map(|word| word.trim_end_matches(['.', '*']).trim_start_matches('*'))
        .filter(move |word| word.ends_with(ending) && word.len() > ending.len())
}

/// Whether a path, in which one star stands for anything, is that of a file.
fn exists(paths: &BTreeSet<String>, address: &str) -> bool {
    match address.split_once('*') {
        Some((head, tail)) => {
            (paths.iter()).any(|path| path.starts_with(head) && path.ends_with(tail))
        }
        None => paths.contains(address),
    }
}

#[test]
fn files_that_kernels_name_and_kernels_that_files_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let relative = |path: &Path| {
        path.strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    let folders = ["crates", "src", "tests", "docs", "kernels"];
    let texts: Vec<(PathBuf, String)> = (folders.iter())
        .flat_map(|folder| files(folder, &["cl", "rs", "md"]))
        .filter(|(path, _)| !path.ends_with("tests/kernels.rs"))
        .collect();
    let paths: BTreeSet<String> = texts.iter().map(|(path, _)| relative(path)).collect();
    let mut wrong = Vec::new();
    for (path, text) in &texts {
        let mut check = |address: &str, target: &str| {
            if !exists(&paths, target) {
                wrong.push(format!("{}: {address}", relative(path)));
            }
        };
        for address in addresses(text, ".cl") {
            check(
                address,
                &format!("kernels/{}", address.trim_start_matches("kernels/")),
            );
        }
        if relative(path).starts_with("kernels/") {
            for ending in [".rs", ".md"] {
                for address in addresses(text, ending) {
                    check(address, address);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
