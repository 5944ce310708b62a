//! The draft as a recipe: its text, what changed in it, and saving.

use std::fs;

use config::{file::NUMBER, recipes::SaveError};
use similar::{ChangeTag, TextDiff};

use super::Draft;

/// Unchanged lines around a change.
const AROUND: usize = 2;
/// The first lines of a recipe that the page made.
const HEAD: &str = "# A recipe of the station: what belongs to one product. docs/station-reference.md describes the keys.\n\
                    # The set-up page writes this file and keeps remarks; it may also be edited by hand.\n\n";

/// Why a draft was not saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveRefused {
    /// Somebody else saved meanwhile: what the draft would change in the text that is there now.
    Changed(Vec<String>),
    /// A sentence.
    Refused(String),
}

impl Draft {
    /// The recipe's text, and the lines that change in the recipe of that name: `+ …`, `- …`, or `  …` around them.
    ///
    /// `without`: cameras that are left out.
    ///
    /// # Errors
    /// A sentence.
    pub fn recipe(&self, name: &str, without: &[String]) -> Result<(String, Vec<String>), String> {
        let _alone = self.shared.alone();
        let text = self.text(name, without);
        let before = match self.shared.recipes.exists(name) {
            true => self
                .shared
                .recipes
                .text(name)
                .map_err(|why| why.to_string())?,
            false => String::new(),
        };
        let changes = changed_lines(&before, &text);
        Ok((text, changes))
    }

    /// Saves the draft under that name, with its files, without the cameras that are left out. A recipe that changed since the
    /// draft began stays as it is.
    ///
    /// # Errors
    /// Why it was not saved.
    pub fn save(&self, name: &str, without: &[String], who: &str) -> Result<String, SaveRefused> {
        let refused = SaveRefused::Refused;
        let _alone = self.shared.alone();
        let text = self.text(name, without);
        let (expected, camera) = {
            let state = self.shared.state();
            if state.config.is_none() {
                return Err(refused(
                    "the settings have a mistake; correct it first".to_owned(),
                ));
            }
            let base = state.base.as_ref().filter(|_| state.is_of(name));
            if base.is_none() && state.names.iter().any(|of| of == name) {
                let text = format!(
                    "there is already a recipe {name}; choose another name, or set up its cameras while it is in use"
                );
                return Err(refused(text));
            }
            (base.map(|(_, hash)| hash.clone()), state.name.clone())
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.shared.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            // While limits are learned there is a folder, too.
            if !entry.file_type().is_ok_and(|of| of.is_file()) {
                continue;
            }
            let file = entry.file_name().to_string_lossy().into_owned();
            if without.iter().any(|of| file.starts_with(&format!("{of}-"))) {
                continue;
            }
            let content = fs::read(entry.path())
                .map_err(|why| refused(format!("{file} cannot be read: {why}")))?;
            files.push((file, content));
        }
        // A file without content is removed: what this camera had, and has no longer.
        let own = format!("{camera}-");
        for file in self.shared.recipes.files(name) {
            let file = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if file.starts_with(&own) && !files.iter().any(|(of, _)| *of == file) {
                files.push((file, Vec::new()));
            }
        }
        files.sort();
        let saved = self
            .shared
            .recipes
            .save(name, &text, &files, expected.as_deref(), who);
        let saved = saved.map_err(|error| match error {
            SaveError::Changed(now) => SaveRefused::Changed(changed_lines(&now, &text)),
            error => refused(format!("the recipe of {camera} is not saved: {error}")),
        })?;
        // Later saves of this draft change what it saved itself.
        let mut state = self.shared.state();
        if !state.is_of(name) {
            state.document.remove(NUMBER);
        }
        state.base = Some((name.to_owned(), saved.hash.to_string()));
        state.mark_saved();
        Ok(saved.hash.to_string())
    }

    /// Cameras of the recipe beside the draft's own that may be left out: those that the station's file does not have.
    pub(super) fn others(&self) -> Vec<String> {
        let state = self.shared.state();
        let bases = self.shared.recipes.bases();
        let is_other =
            |name: &&str| *name != state.name && bases.iter().all(|of| of.name != **name);
        let names = super::draft::names(&state.document);
        names.filter(is_other).map(str::to_owned).collect()
    }

    fn text(&self, name: &str, without: &[String]) -> String {
        let without: Vec<String> = self
            .others()
            .into_iter()
            .filter(|of| without.contains(of))
            .collect();
        let state = self.shared.state();
        let mut document = state.document.clone();
        // A PLC asks by this number for the recipe with the name before.
        if !state.is_of(name) {
            document.remove(NUMBER);
        }
        drop(state);
        super::draft::leave_out(&mut document, &without);
        let text = document.to_string();
        match text.trim_start().starts_with('#') || self.shared.recipes.exists(name) {
            true => text,
            false => format!("{HEAD}{}", text.trim_start()),
        }
    }
}

/// The lines that change, and some around them: each with +, - or a space before it.
pub fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        if !lines.is_empty() {
            lines.push("…".to_owned());
        }
        for change in group.iter().flat_map(|of| diff.iter_changes(of)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{sign} {}", change.value().trim_end_matches('\n')));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn changed_lines_are_marked_and_far_ones_left_out() {
        let before = "a\nb\nc\nd\ne\nf\n";
        let after = "a\nb\nc\nd\nE\nf\ng\n";
        assert_eq!(
            changed_lines(before, after),
            ["  c", "  d", "- e", "+ E", "  f", "+ g"]
        );
        assert_eq!(changed_lines(before, before), Vec::<String>::new());
        assert_eq!(changed_lines("", "a\n"), ["+ a"]);
    }
}
