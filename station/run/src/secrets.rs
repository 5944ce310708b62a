//! Users and passwords, in a configuration and in texts of elements, which may repeat an address.

/// Properties of GStreamer's sources that hold a password.
const PASSWORDS: [&str; 4] = ["user-pw", "proxy-pw", "password", "passphrase"];

/// Whether an address in the text names a user before its host, as `rtsp://user:password@camera`.
pub fn has_user(text: &str) -> bool {
    text.split("://").skip(1).any(|after| {
        let ends = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace();
        after
            .split(ends)
            .next()
            .is_some_and(|host| host.contains('@'))
    })
}

/// Whether the text sets a property that holds a password.
pub fn has_password(text: &str) -> bool {
    PASSWORDS.iter().any(|name| {
        text.split(name)
            .skip(1)
            .any(|after| after.trim_start().starts_with('='))
    })
}

/// The text without users and passwords in addresses.
pub fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for after in parts {
        hidden += "://";
        // A password may hold a slash, so everything up to the last @ of the word goes.
        let ends = |c: char| matches!(c, '"' | '\'') || c.is_whitespace();
        let word = after.find(ends).unwrap_or(after.len());
        let host = after[..word].rfind('@');
        hidden += host.map_or("", |_| "…");
        hidden += &after[host.unwrap_or(0)..];
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_addresses_are_found_and_hidden() {
        for (text, hidden) in [
            (
                "rtspsrc location=rtsp://u:p@cam/s",
                "rtspsrc location=rtsp://…@cam/s",
            ),
            (
                "location=\"rtsp://u:p@cam\" ! x",
                "location=\"rtsp://…@cam\" ! x",
            ),
            ("a://u@b c://d@e/f@g", "a://…@b c://…@g"),
        ] {
            assert!(has_user(text), "{text}");
            assert_eq!(without_users(text), hidden);
        }
        for text in [
            "rtsp://cam/s",
            "videotestsrc",
            "rtsp://cam:554/user@home",
            "a@b",
        ] {
            assert!(!has_user(text), "{text}");
        }
        assert_eq!(
            without_users("rtsp://u:p/w@cam \"x\""),
            "rtsp://…@cam \"x\""
        );
        assert_eq!(without_users("no element \"x\""), "no element \"x\"");
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
            assert_eq!(without_users(text), wanted);
        }
    }

    #[test]
    fn passwords_are_found() {
        for text in ["rtspsrc user-pw=x", "srtsrc passphrase = \"x\""] {
            assert!(has_password(text), "{text}");
        }
        for text in ["rtspsrc user-id=x", "queue name=password-less"] {
            assert!(!has_password(text), "{text}");
        }
    }
}
