//! The known name that was probably meant.

/// Letters after which the begin of a name counts as the name.
const BEGIN: usize = 3;

/// The name that differs least from `word`, if few letters differ or one is the begin of the other.
pub fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let begins = |name: &&&str| {
        word.len().min(name.len()) >= BEGIN && (name.starts_with(word) || word.starts_with(**name))
    };
    if let Some(name) = names.iter().find(begins) {
        return Some(name);
    }
    let limit = (word.chars().count() / 3).max(1);
    let distances = names
        .iter()
        .map(|name| (strsim::levenshtein(word, name), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= limit).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_given_only_if_few_letters_differ() {
        let names = ["threshold", "pitch-x", "pitch-y"];
        assert_eq!(nearest("treshold", &names), Some("threshold"));
        assert_eq!(nearest("pitch_x", &names), Some("pitch-x"));
        assert_eq!(nearest("thresh", &names), Some("threshold"));
        assert_eq!(nearest("colour", &names), None);
    }
}
