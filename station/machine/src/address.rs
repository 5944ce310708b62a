//! One form of every address, for all decisions.

use std::net::{IpAddr, SocketAddr};

/// The address as IPv4 if it is an IPv4 address inside IPv6 (`::ffff:127.0.0.1`), as a dual-stack
/// socket reports the IPv4 clients. Other addresses stay whole: a link-local one needs its zone.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Whether a host of a request (without the port) means this PC: `localhost`, or a loopback
/// address in any form. A page of another host cannot use an address as its name.
pub fn is_local_host(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address: Option<IpAddr> = match literal {
        Some(literal) => literal.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    };
    address.is_some_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_of_a_link_local_address_stays() {
        let text = "[fe80::1%2]:8080";
        let address = text.parse().map(canonical);
        assert!(address.is_ok_and(|of| of.to_string() == text));
    }

    #[test]
    fn every_dress_of_a_loopback_address_is_this_pc() {
        for text in [
            "127.0.0.1:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:7f00:2]:80",
        ] {
            let address = text.parse().map(canonical);
            assert!(address.is_ok_and(|of| of.ip().is_loopback()), "{text}");
        }
        for host in [
            "localhost",
            "LOCALHOST.",
            "127.0.0.2",
            "[::1]",
            "[0:0::1]",
            "[::FFFF:127.0.0.1]",
        ] {
            assert!(is_local_host(host), "{host}");
        }
        for host in [
            "",
            "localhost.evil",
            "[localhost]",
            "[127.0.0.1]",
            "::1",
            "[::ffff:10.0.0.1]",
            "10.0.0.1",
        ] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
