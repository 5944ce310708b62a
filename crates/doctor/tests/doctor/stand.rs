//! A machine for the doctor: its folders, plugins, drivers, and what the doctor says.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clinspect_testkit::tools::{Run, Sandbox, run};
use serde_json::Value;

/// The program under test.
pub const DOCTOR: &str = env!("CARGO_BIN_EXE_clinspect-doctor");

/// A machine.
pub struct Stand {
    pub sandbox: Sandbox,
    variables: Vec<(String, PathBuf)>,
    removed: Vec<&'static str>,
}

impl Stand {
    /// This machine with folders of its own; `name` is unique to a test.
    pub fn new(name: &str) -> Self {
        let sandbox = Sandbox::new(&format!("doctor-{name}"));
        let cache = sandbox.path().join("cache");
        let stand = Self {
            sandbox,
            variables: Vec::new(),
            removed: Vec::new(),
        };
        stand.with("CLINSPECT_CACHE_DIR", cache)
    }

    /// With an environment variable.
    pub fn with(mut self, variable: &str, value: impl Into<PathBuf>) -> Self {
        self.variables.push((variable.to_owned(), value.into()));
        self
    }

    /// Without an environment variable.
    pub fn without(mut self, variable: &'static str) -> Self {
        self.variables.retain(|(name, _)| name != variable);
        self.removed.push(variable);
        self
    }

    /// With these drivers only: pairs of a name and the library.
    pub fn with_drivers(self, drivers: &[(&str, &str)]) -> Self {
        let folder = self.sandbox.folder("vendors");
        for (name, library) in drivers {
            fs::write(folder.join(name), format!("{library}\n")).unwrap();
        }
        self.with("OCL_ICD_VENDORS", folder)
    }

    /// The command, with arguments between blanks.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = self.sandbox.command(DOCTOR);
        command
            .args(arguments.split_whitespace())
            .env_remove("CLINSPECT_DEVICE")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        for variable in &self.removed {
            command.env_remove(variable);
        }
        command
    }

    /// What the doctor says with these arguments, as JSON.
    pub fn told(&self, arguments: &str) -> DoctorOutput {
        DoctorOutput::of(run(&mut self.command(&format!("--json {arguments}"))))
    }

    /// A library of C code.
    pub fn library(&self, code: &str) -> String {
        let source = self.sandbox.path().join("driver.c");
        fs::write(&source, code).unwrap();
        let library = self.sandbox.path().join("driver.so");
        compile(&library, [source]);
        library.display().to_string()
    }
}

/// Builds a library.
pub fn compile(library: &Path, sources: impl IntoIterator<Item = impl AsRef<OsStr>>) {
    let mut command = Command::new("cc");
    command.args("-std=c11 -shared -fPIC -O1 -fvisibility=hidden -pthread -o".split(' '));
    run(command.arg(library).args(sources)).succeeded();
}

/// The doctor's JSON object.
#[derive(Debug)]
pub struct DoctorOutput {
    pub code: Option<i32>,
    pub json: Value,
}

impl DoctorOutput {
    pub fn of(done: Run) -> Self {
        let json = serde_json::from_str(&done.output());
        let json = json.unwrap_or_else(|error| panic!("{error}: {}", done.text()));
        Self {
            code: done.code(),
            json,
        }
    }

    /// The figures of a section.
    pub fn data(&self, section: &str) -> &Value {
        &self.json["sections"][section]["data"]
    }

    /// Lines of a section: mark, text, and what to do.
    pub fn lines(&self, section: &str) -> Vec<[String; 3]> {
        let lines = self.json["sections"][section]["lines"].as_array();
        let lines = lines.unwrap_or_else(|| panic!("no section {section}: {}", self.json));
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let line = |line| ["mark", "text", "do"].map(|key| text(line, key));
        lines.iter().map(line).collect()
    }

    /// Fails unless one line of the section has this mark and holds these texts; what to do counts as text.
    #[track_caller]
    pub fn says(&self, section: &str, mark: &str, texts: &[&str]) {
        let lines = self.lines(section);
        let fits = |[of, text, mend]: &[String; 3]| {
            let all = format!("{text}\n{mend}");
            of == mark && texts.iter().all(|text| all.contains(text))
        };
        assert!(lines.iter().any(fits), "{mark} {texts:?}: {lines:#?}");
    }

    /// Fails if a line of the section has this mark.
    #[track_caller]
    pub fn has_no(&self, section: &str, mark: &str) {
        let lines = self.lines(section);
        assert!(lines.iter().all(|[of, ..]| of != mark), "{lines:#?}");
    }

    /// The states of the operators on all devices.
    pub fn states(&self) -> Vec<&str> {
        let tested = self.data("self-test").as_array().unwrap();
        tested
            .iter()
            .map(|one| one["state"].as_str().unwrap())
            .collect()
    }
}
