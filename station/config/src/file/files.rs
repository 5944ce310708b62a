//! Files that a configuration names.

use std::{env, fs, ops::Range, path::Path};

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
