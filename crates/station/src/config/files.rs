//! Files that a configuration names.

use std::{
    env, fs,
    ops::Range,
    path::{Path, PathBuf},
};

use super::mistakes::Mistakes;

/// Where systemd passes credentials to services.
const CREDENTIALS: &str = "/run/credentials";
/// The folder of a service's own credentials.
const OWN_CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Whether a file is missing that systemd passes to the service when it starts. Only a check may go
/// on without it; it adds a note.
pub fn comes_with_the_service(
    path: &Path,
    key: &str,
    span: &Range<usize>,
    mistakes: &mut Mistakes<'_>,
) -> bool {
    let own = env::var_os(OWN_CREDENTIALS).is_some_and(|own| path.starts_with(own));
    let is_missing =
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let is_excused = mistakes.is_check() && is_missing && (own || path.starts_with(CREDENTIALS));
    if is_excused {
        let text = format!(
            "{key}: {} is there only while the service runs, so this check leaves it out",
            path.display()
        );
        mistakes.note(span, text);
    }
    is_excused
}

/// The files into which results are written.
#[derive(Default)]
pub struct ResultFiles(Vec<PathBuf>);

impl ResultFiles {
    /// Adds the file of a table `publish`. A file of two tables is a mistake.
    pub fn add(&mut self, location: &str, span: &Range<usize>, mistakes: &mut Mistakes<'_>) {
        if location.is_empty() || location == "-" {
            return;
        }
        let file = real(Path::new(location));
        if self.0.contains(&file) {
            let text = format!(
                "location: {location} is the file of another publish table too; on a full disk each would cut lines of \
                 the other; give each a file of its own"
            );
            mistakes.add(span, text);
        } else {
            self.0.push(file);
        }
    }
}

/// The file without links, as far as its folders exist.
fn real(path: &Path) -> PathBuf {
    let whole = path.canonicalize();
    whole.unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            let folder = folder.canonicalize();
            folder.map_or_else(|_| path.into(), |folder| folder.join(name))
        }
        _ => path.into(),
    })
}
