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
    let distances = names.iter().map(|name| (distance(word, name), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= limit).then_some(name)
}

/// Letters to insert, remove or replace to make `b` of `a`.
///
/// # Source
/// Wagner and Fischer, "The String-to-String Correction Problem", Journal of the ACM 21 (1974).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_of_known_words() {
        for (a, b, wanted) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), wanted, "{a} {b}");
            assert_eq!(distance(b, a), wanted, "{b} {a}");
        }
    }

    #[test]
    fn nearest_is_given_only_if_few_letters_differ() {
        let names = ["threshold", "pitch-x", "pitch-y"];
        assert_eq!(nearest("treshold", &names), Some("threshold"));
        assert_eq!(nearest("pitch_x", &names), Some("pitch-x"));
        assert_eq!(nearest("thresh", &names), Some("threshold"));
        assert_eq!(nearest("colour", &names), None);
    }
}
