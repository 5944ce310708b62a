//! Compiled programs in files, for drivers that keep none.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    cases, layer,
    layer::Report,
    stand::{Frame, Stand},
};

type Scenario = (&'static str, fn() -> Result<(), String>);

/// Every scenario; the first start of the process has kept the programs already.
pub const ALL: &[Scenario] = &[
    ("second start compiles nothing", second_start),
    ("files that are cut or changed", damaged),
    ("binaries that the driver refuses", refused),
    ("a folder that others may write", open_folder),
    ("a file that others may write", open_file),
    ("a folder that cannot be made", no_folder),
    ("a compiler that ends the process", aborts),
];

fn folder() -> PathBuf {
    layer::cache()
}

/// The files of compiled programs.
fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let is_program = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        !String::from_utf8_lossy(&bytes).contains("self-test;")
    };
    entries
        .map(|entry| entry.path())
        .filter(is_program)
        .collect()
}

/// Programs that one start compiles, and those that it loads.
fn start(more_rules: &str) -> Result<[u64; 2], String> {
    let mut case = cases::KEPT;
    case.lies = format!("{}{more_rules}", case.lies).leak();
    let before = Report::now().unwrap_or_default();
    let trace = Stand::new(case).live(None);
    if let Some(error) = trace.errors.first() {
        return Err(error.clone());
    }
    if !trace
        .frames
        .iter()
        .all(|frame| matches!(frame, Frame::Out(_)))
    {
        return Err("frames are missing".into());
    }
    let calls = Report::now().unwrap_or_default().calls_since(&before);
    let of = |name| calls.get(name).copied().unwrap_or(0);
    Ok([
        of("clCreateProgramWithSource"),
        of("clCreateProgramWithBinary"),
    ])
}

fn expect(found: [u64; 2], wanted: [u64; 2]) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("compiled and loaded {found:?}, not {wanted:?}"))
    }
}

fn second_start() -> Result<(), String> {
    expect(start("")?, [0, 1])?;
    for file in programs() {
        fs::remove_file(file).map_err(|error| error.to_string())?;
    }
    expect(start("")?, [1, 0])?;
    expect(start("")?, [0, 1])
}

fn damaged() -> Result<(), String> {
    let [file] = &programs()[..] else {
        return Err(format!("not one program: {:?}", programs()));
    };
    let whole = fs::read(file).map_err(|error| error.to_string())?;
    for cut in [0, 1, 30, whole.len() / 2, whole.len() - 1] {
        fs::write(file, &whole[..cut]).map_err(|error| error.to_string())?;
        expect(start("")?, [1, 0]).map_err(|why| format!("cut at {cut}: {why}"))?;
        expect(start("")?, [0, 1])?;
    }
    let mut changed = whole;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(file, &changed).map_err(|error| error.to_string())?;
    expect(start("")?, [1, 0])
}

fn refused() -> Result<(), String> {
    expect(start("clCreateProgramWithBinary 1+ fail -42\n")?, [1, 1])?;
    expect(start("")?, [0, 1])
}

fn with_mode(path: &Path, mode: u32, wanted: [u64; 2]) -> Result<(), String> {
    let before = fs::metadata(path).map_err(|error| error.to_string())?;
    let set = |permissions| fs::set_permissions(path, permissions);
    set(Permissions::from_mode(mode)).map_err(|error| error.to_string())?;
    let found = start("");
    // A compiled program replaces a file that was not used.
    let _ = set(before.permissions());
    expect(found?, wanted)
}

fn open_folder() -> Result<(), String> {
    with_mode(&folder(), 0o777, [1, 0])?;
    with_mode(&folder(), 0o775, [1, 0])?;
    expect(start("")?, [0, 1])
}

fn open_file() -> Result<(), String> {
    let [file] = &programs()[..] else {
        return Err(format!("not one program: {:?}", programs()));
    };
    with_mode(file, 0o666, [1, 0])?;
    expect(start("")?, [0, 1])
}

fn no_folder() -> Result<(), String> {
    let aside = folder().with_extension("aside");
    fs::rename(folder(), &aside).map_err(|error| error.to_string())?;
    fs::write(folder(), "a file").map_err(|error| error.to_string())?;
    let found = start("");
    let _ = fs::remove_file(folder());
    fs::rename(&aside, folder()).map_err(|error| error.to_string())?;
    expect(found?, [1, 0])
}

/// What a process leaves that ends inside the compiler.
fn aborts() -> Result<(), String> {
    let [file] = &programs()[..] else {
        return Err(format!("not one program: {:?}", programs()));
    };
    let attempts = file.with_extension("attempts");
    fs::remove_file(file).map_err(|error| error.to_string())?;
    fs::write(&attempts, [1]).map_err(|error| error.to_string())?;
    expect(start("")?, [1, 0]).map_err(|why| format!("after one attempt: {why}"))?;
    if attempts.exists() {
        return Err("the record stays after a compiler that returned".into());
    }
    fs::remove_file(file).map_err(|error| error.to_string())?;
    fs::write(&attempts, [2]).map_err(|error| error.to_string())?;
    let error = match start("") {
        Ok(found) => return Err(format!("a third attempt is made: {found:?}")),
        Err(error) => error,
    };
    for words in ["gaussian", "update the driver", "attempts"] {
        if !error.contains(words) {
            return Err(format!("no \"{words}\" in: {error}"));
        }
    }
    fs::remove_file(&attempts).map_err(|error| error.to_string())?;
    expect(start("")?, [1, 0])
}
