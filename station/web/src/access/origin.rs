//! Where a request comes from: the name that the client used for the station, and the page that
//! sent the request.
//!
//! A page of another host can make a browser send requests to the station. With DNS rebinding it
//! can also read the answers, because its own name then leads to 127.0.0.1; but the request still
//! carries that name.

use axum::{
    extract::Request,
    http::{HeaderMap, header, uri::Authority},
};
use machine::address::is_local_host;

use super::{Refusal, is_safe};

/// The host and port that the client asked for.
pub fn host(request: &Request) -> Result<&str, Refusal> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let host = host.filter(|host| host.parse::<Authority>().is_ok() && !host.contains('@'));
    match (host, hosts.next(), request.uri().authority()) {
        (Some(host), None, None) => Ok(host),
        // A request for a proxy names the host twice.
        (Some(host), None, Some(named)) if named.as_str().eq_ignore_ascii_case(host) => Ok(host),
        _ => Err(Refusal::HOST),
    }
}

/// Whether the name means this PC, with the station's port.
pub fn is_loopback(host: &str, port: u16) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    is_local_host(name) && authority.port_u16().unwrap_or(80) == port
}

/// Whether a proxy passed the request on: then the loopback address says nothing of the client.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "via",
    ]
    .iter()
    .any(|name| headers.contains_key(*name))
}

/// Refuses requests of other pages.
pub fn check(request: &Request, host: &str) -> Result<(), Refusal> {
    let headers = request.headers();
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let of = origin.split_once("://").map(|(_, host)| host);
        // Browsers leave out the port of their scheme in both headers.
        if !of.is_some_and(|of| of.eq_ignore_ascii_case(host)) {
            return Err(Refusal::ORIGIN);
        }
    } else if !is_safe(request.method()) && headers.contains_key(header::COOKIE) {
        // A browser names the origin of every request that changes something.
        return Err(Refusal::ORIGIN);
    }
    // A link on another page may lead here; its scripts, pictures and forms may not.
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_foreign = matches!(site, Some(b"cross-site" | b"same-site"));
    let is_link = is_safe(request.method())
        && headers
            .get("sec-fetch-mode")
            .is_some_and(|mode| mode == "navigate")
        && headers
            .get("sec-fetch-dest")
            .is_some_and(|to| to == "document");
    if is_foreign && !is_link {
        return Err(Refusal::ORIGIN);
    }
    Ok(())
}
