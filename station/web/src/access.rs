//! Who may read and who may write.
//!
//! A browser gets a cookie in exchange for the token.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use config::token::Token;
use machine::locks::Mutex;
use serde_json::json;

use super::{Site, connections::Peer, files, refusal::Refusal};

mod origin;

/// How long a browser stays logged in.
const SESSION: Duration = Duration::from_secs(30 * 24 * 3600);
/// Wrong tokens of an address within [`WINDOW`].
const MAX_WRONG: u32 = 5;
/// The count of an address begins anew so long after its first wrong token.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1024;

/// What requests may do.
#[derive(Debug, Default)]
pub struct Access {
    /// Needed to read, unless the page listens on a loopback address, and always to write.
    pub token: Option<Arc<Token>>,
    /// Whether commands are allowed, with the token.
    pub write: bool,
}

/// Counts wrong tokens by address: after a few, the answer no longer says that a token is wrong.
///
/// The token's length protects the station, not this limit. The limit makes a program with an old token stop
/// asking. A right token always passes: behind a proxy all clients share one address, and one of them must not
/// lock out the others.
#[derive(Default)]
pub struct Attempts(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Attempts {
    /// Counts a wrong token of the address, and returns the refusal of the request.
    pub fn wrong(&self, address: IpAddr) -> Refusal {
        let address = network(address);
        let mut wrong = self.0.lock();
        wrong.retain(|_, (since, _)| since.elapsed() < WINDOW);
        if wrong.len() >= MAX_ADDRESSES && !wrong.contains_key(&address) {
            // More addresses than a plant has: none of them is remembered for a while.
            return Refusal::TOO_MANY_ATTEMPTS;
        }
        let (_, count) = wrong.entry(address).or_insert((Instant::now(), 0));
        if *count >= MAX_WRONG {
            return Refusal::TOO_MANY_ATTEMPTS;
        }
        *count += 1;
        Refusal::WRONG_TOKEN
    }
}

/// A host owns 64 bits of IPv6 addresses, so they count as one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => std::net::Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address => address,
    }
}

/// What one request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Nothing but the page's files.
    Nothing,
    /// Read results.
    Read,
    /// Read, and write if the station allows writing.
    Token,
}

/// Refuses requests before they reach their page.
pub async fn guard(
    State(site): State<Arc<Site>>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let right = right(&site, peer, &request)?;
    let path = request.uri().path();
    if right == Right::Nothing && !files::is_public(path) && path != "/api/session" {
        return Err(Refusal::TOKEN);
    }
    request.extensions_mut().insert(right);
    Ok(next.run(request).await)
}

fn right(site: &Site, peer: Peer, request: &Request) -> Result<Right, Refusal> {
    let headers = request.headers();
    let host = origin::host(request)?;
    let is_local = site.address.ip().is_loopback()
        && origin::is_loopback(host, site.address.port())
        && !origin::is_forwarded(headers);
    if site.access.token.is_none() && !is_local {
        return Err(Refusal::HOST);
    }
    origin::check(request, host)?;
    let Some(token) = &site.access.token else {
        return Ok(Right::Read);
    };
    if let Some(presented) = bearer(headers) {
        if presented.is_some_and(|presented| token.is(presented.as_bytes())) {
            return Ok(Right::Token);
        }
        return Err(site.attempts.wrong(peer.0));
    }
    if cookie(headers, &cookie_name(site)).is_some_and(|value| token.is_cookie(value)) {
        return Ok(Right::Token);
    }
    Ok(if is_local {
        Right::Read
    } else {
        Right::Nothing
    })
}

/// The token in `Authorization`; `Some(None)` if that header is of another kind.
fn bearer(headers: &HeaderMap) -> Option<Option<&str>> {
    let value = headers.get(header::AUTHORIZATION)?;
    let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
    Some(parts.and_then(|(scheme, token)| {
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
    }))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(of, _)| *of == name)
        .map(|(_, value)| value)
}

/// Ports and paths of a host share cookies; stations on one host, or behind one proxy, must not log each other out.
fn cookie_name(site: &Site) -> String {
    let port = site.address.port();
    // A cookie that ended in 1970: its tag differs from station to station and opens nothing.
    let ended = site.access.token.as_ref().map(|token| token.cookie(0));
    let tag = ended.as_deref().and_then(|cookie| cookie.get(2..10));
    format!("clinspect-{port}-{}", tag.unwrap_or_default())
}

fn set_cookie(site: &Site, value: &str, seconds: u64) -> [(header::HeaderName, String); 1] {
    let name = cookie_name(site);
    [(
        header::SET_COOKIE,
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"),
    )]
}

/// `GET /api/session`: what the page may do.
pub async fn session(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
) -> Response {
    let writing = match (site.access.write && site.access.token.is_some(), right) {
        (false, _) => "off",
        (true, Right::Token) => "allowed",
        (true, _) => "token",
    };
    Json(json!({
        "reading": right != Right::Nothing,
        "writing": writing,
        "logged_in": right == Right::Token,
        "has_token": site.access.token.is_some(),
    }))
    .into_response()
}

/// `POST /api/session` with the token in `Authorization`: sets the cookie.
pub async fn log_in(
    State(site): State<Arc<Site>>,
    Extension(right): Extension<Right>,
) -> Result<Response, Refusal> {
    match &site.access.token {
        Some(token) if right == Right::Token => {
            let value = token.new_cookie(SESSION);
            let cookie = set_cookie(&site, &value, SESSION.as_secs());
            Ok((StatusCode::NO_CONTENT, cookie).into_response())
        }
        _ => Err(Refusal::TOKEN),
    }
}

/// `DELETE /api/session`: removes the cookie.
pub async fn log_out(State(site): State<Arc<Site>>) -> Response {
    (StatusCode::NO_CONTENT, set_cookie(&site, "", 0)).into_response()
}

/// Whether a request may send commands.
pub fn may_write(site: &Site, right: Right) -> Result<(), Refusal> {
    match (site.access.write && site.access.token.is_some(), right) {
        (false, _) => Err(Refusal::WRITING_OFF),
        (true, Right::Token) => Ok(()),
        (true, _) => Err(Refusal::TOKEN),
    }
}

/// Whether the method changes nothing.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
