//! Hosts and ports as people write them: the one place where they are read and printed.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// A host: a name, or an IP address without brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(String);

impl Host {
    /// Reads a host: a name, an IPv4 address, or an IPv6 address with or without brackets.
    ///
    /// # Errors
    /// A sentence that says what to write.
    pub fn new(text: &str) -> Result<Self, String> {
        let in_brackets = text
            .strip_prefix('[')
            .map(|rest| rest.strip_suffix(']').unwrap_or(""));
        let inner = in_brackets.unwrap_or(text);
        if inner.contains('%') && inner.contains(':') {
            return Err(
                "an IPv6 address with a zone, such as %eth0, cannot be used; write an address without a zone, or a name"
                    .into(),
            );
        }
        if in_brackets.is_some() || inner.contains(':') {
            let address: Ipv6Addr = inner
                .parse()
                .map_err(|_| "an IPv6 address is expected between [ and ], such as [fd00::7]")?;
            return Ok(Self(address.to_string()));
        }
        if inner.is_empty() {
            return Err("the host is empty; write a name or an address".into());
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !inner.chars().all(is_of_name) {
            return Err("a host has letters, digits, -, _ and . only".into());
        }
        Ok(Self(inner.into()))
    }

    /// Reads `HOST` or `HOST:PORT`; an IPv6 address needs brackets.
    ///
    /// # Errors
    /// A sentence that says what to write, without the text.
    pub fn with_port(text: &str) -> Result<(Self, Option<u16>), String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err(
                "an IPv6 address needs brackets, with a port as well: [fd00::7]:1883".into(),
            );
        }
        let is_port = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port.map(|port| Some(port).filter(is_port)?.parse().ok()) {
            None => None,
            Some(Some(port)) if port > 0 => Some(port),
            Some(_) => return Err("the port must be a number from 1 to 65535".into()),
        };
        Ok((Self::new(host)?, port))
    }

    /// The host without brackets: what resolvers, TLS and GStreamer's elements take.
    pub fn bare(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    /// As it stands before a port: an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.parse() {
            Ok(IpAddr::V6(address)) => write!(f, "[{address}]"),
            _ => f.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_for_printing_only() {
        for (text, bare, printed) in [
            ("broker", "broker", "broker"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
            ("[::1]", "::1", "[::1]"),
            ("::1", "::1", "[::1]"),
            ("[2001:DB8:0:0::7]", "2001:db8::7", "[2001:db8::7]"),
            (
                "[::ffff:192.0.2.7]",
                "::ffff:192.0.2.7",
                "[::ffff:192.0.2.7]",
            ),
        ] {
            let host = Host::new(text).unwrap();
            assert_eq!((host.bare(), host.to_string().as_str()), (bare, printed));
        }
    }

    #[test]
    fn a_port_is_split_off_behind_the_brackets_only() {
        for (text, bare, port) in [
            ("broker", "broker", None),
            ("broker:1", "broker", Some(1)),
            ("[::1]", "::1", None),
            ("[::1]:8883", "::1", Some(8883)),
        ] {
            let (host, found) = Host::with_port(text).unwrap();
            assert_eq!((host.bare(), found), (bare, port), "{text}");
        }
        for (text, word) in [
            ("::1", "brackets"),
            ("::1:8883", "brackets"),
            ("[::1]:", "port"),
            ("[::1]:0", "port"),
            ("broker:+1", "port"),
            ("broker:99999", "port"),
            ("[::1]8883", "[fd00::7]"),
            ("[fe80::1%eth0]:1883", "zone"),
            ("fe80::1%eth0", "brackets"),
            (":1883", "empty"),
            ("a b", "letters"),
        ] {
            let error = Host::with_port(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_that_cannot_work_are_refused_with_a_sentence() {
        for (text, word) in [
            ("", "empty"),
            ("[]", "[fd00::7]"),
            ("[::1", "[fd00::7]"),
            ("[127.0.0.1]", "[fd00::7]"),
            ("[broker]", "[fd00::7]"),
            ("::1:8883:", "[fd00::7]"),
            ("[fe80::1%eth0]", "zone"),
            ("[fe80::1%25eth0]", "zone"),
            ("fe80::1%eth0", "zone"),
        ] {
            let error = Host::new(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
