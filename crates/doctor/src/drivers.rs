//! The OpenCL drivers that are installed, each tried alone: one that hangs or crashes does so in every program that uses
//! OpenCL.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde::Serialize;

use crate::{
    child,
    devices::Device,
    probe::{Probe, Trouble},
    report::{Report, Section},
};

/// Names the folder of the drivers, or one driver. The OpenCL loader reads it.
const VENDORS: &str = "OCL_ICD_VENDORS";
/// The loader's folder if the variable names none.
const FOLDER: &str = "/etc/OpenCL/vendors";
/// First bytes of a library.
const ELF: [u8; 4] = *b"\x7fELF";

/// What the drivers let this program do next.
pub struct Drivers {
    /// Why asking for all devices would hang or crash.
    pub blocked: Option<String>,
}

/// A driver.
#[derive(Debug, Serialize)]
struct Driver {
    /// The file that names it to the loader.
    file: PathBuf,
    library: String,
    /// `works`, `no-device`, `hangs`, `dies`.
    state: &'static str,
    devices: usize,
}

/// Adds the section.
pub fn examine(report: &mut Report, limit: Duration) -> Drivers {
    let mut section = Section::new("drivers", "OpenCL drivers");
    let mut blocked = None;
    let mut drivers = Vec::new();
    let (files, place) = files();
    if files.is_empty() {
        section.fault(
            format!(
                "no OpenCL driver is installed: {} holds no file NAME.icd",
                place.display()
            ),
            "install your GPU's OpenCL driver, or for the CPU: sudo apt install pocl-opencl-icd",
        );
    }
    for file in files {
        let library = fs::read_to_string(&file).unwrap_or_default();
        let library = library.trim().to_owned();
        let name = format!("{} ({library})", file.display());
        let alone = file.display().to_string();
        let answer = Probe::Devices.ask::<Vec<Device>>(limit, &[(VENDORS, &alone)]);
        let mut devices = 0;
        let off =
            format!("update or remove this driver, or switch it off: sudo mv {alone} {alone}.off");
        let state = match answer {
            Ok(found) => {
                devices = found.len();
                let named: Vec<&str> = found.iter().map(|device| &*device.name).collect();
                section.ok(format!("{name}: {}", named.join("; ")));
                "works"
            }
            Err(Trouble::Hangs(how)) => {
                section.fault(format!("the driver {name} hangs: {how}"), off);
                blocked = Some(format!(
                    "the driver {name} hangs in every program that uses OpenCL"
                ));
                "hangs"
            }
            Err(Trouble::Dies(how)) => {
                section.fault(format!("the driver {name} crashes: {how}"), off);
                blocked = Some(format!(
                    "the driver {name} crashes every program that uses OpenCL"
                ));
                "dies"
            }
            Err(Trouble::Fails(why)) => {
                match broken(&library, limit) {
                    Some(fault) => {
                        section.fault(format!("the driver {name} is broken: {fault}"), off)
                    }
                    // Not a fault yet: drivers for GPUs that this PC lacks do no harm.
                    None => section.note(format!("{name}: no device: {why}")),
                }
                "no-device"
            }
        };
        drivers.push(Driver {
            file,
            library,
            state,
            devices,
        });
    }
    section.set_data(&drivers);
    report.add(section);
    Drivers { blocked }
}

/// The files that name drivers to the loader, and their folder.
fn files() -> (Vec<PathBuf>, PathBuf) {
    let place = env::var_os(VENDORS).filter(|value| !value.is_empty());
    let place = place.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    let is_driver = |path: &Path| path.extension().is_some_and(|extension| extension == "icd");
    if is_driver(&place) && place.is_file() {
        return (vec![place.clone()], place);
    }
    let entries = fs::read_dir(&place).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| is_driver(path))
        .collect();
    files.sort();
    (files, place)
}

/// Why a driver's library cannot be loaded, as far as that can be seen from outside.
fn broken(library: &str, limit: Duration) -> Option<String> {
    if library.is_empty() {
        return Some("the file names no library, or this user may not read it".into());
    }
    let path = match library.contains('/') {
        true => PathBuf::from(library),
        false => match known_to_the_linker(library, limit) {
            Some(path) => path,
            None => return Some(format!("the library {library} is not installed")),
        },
    };
    let mut magic = [0; 4];
    match fs::File::open(&path).and_then(|mut file| file.read_exact(&mut magic)) {
        Err(error) => return Some(format!("{} cannot be read: {error}", path.display())),
        Ok(()) if magic != ELF => return Some(format!("{} is no library", path.display())),
        Ok(()) => {}
    }
    let needs = child::run(Command::new("ldd").arg(&path), limit).ok()?;
    let mut missing = needs
        .output
        .lines()
        .filter(|line| line.contains("not found"));
    let missing = missing.next()?.split_whitespace().next()?;
    Some(format!(
        "{} needs {missing}, which is not installed",
        path.display()
    ))
}

/// The file that the dynamic linker loads for a name.
fn known_to_the_linker(library: &str, limit: Duration) -> Option<PathBuf> {
    let folders = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = env::split_paths(&folders).map(|folder| folder.join(library));
    if let Some(path) = own.into_iter().find(|path| path.is_file()) {
        return Some(path);
    }
    let cache = child::run(Command::new("/sbin/ldconfig").arg("-p"), limit).ok()?;
    let mut lines = cache.output.lines().map(str::trim);
    let line = lines.find(|line| line.split_whitespace().next() == Some(library))?;
    Some(line.rsplit(" => ").next()?.into())
}
