//! Texts of others, such as elements, may repeat an address with a user and a password in it.

use std::borrow::Cow;

/// The text, with `…` for what stands between `://` and `@` in an address.
pub fn cut(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return text.into();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|at| at + 3) {
        let (before, after) = rest.split_at(start);
        out += before;
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        let authority = &after[..end.unwrap_or(after.len())];
        // A password may hold `/`, so the last `@` before a blank counts.
        let word = after
            .split([' ', '\n', '"', '\''])
            .next()
            .unwrap_or(authority);
        rest = match word.rfind('@') {
            Some(at) => {
                out += "…";
                &after[at..]
            }
            None => after,
        };
    }
    (out + rest).into()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn user_and_password_of_addresses_are_cut() {
        for (text, wanted) in [
            ("no address", "no address"),
            ("a@b and rtsp://host/x", "a@b and rtsp://host/x"),
            (
                "Connecting to rtsp://user:pw@host/x",
                "Connecting to rtsp://…@host/x",
            ),
            (
                "\"rtsp://u:p@a\" and 'mqtt://u:q@b:1'",
                "\"rtsp://…@a\" and 'mqtt://…@b:1'",
            ),
            ("rtsp://u:p/w@d@host", "rtsp://…@host"),
        ] {
            assert_eq!(cut(text), wanted);
        }
    }
}
