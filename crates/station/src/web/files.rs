//! The page's files, which are part of the program, and the headers of every response.

use axum::{
    extract::Path,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};

use super::refusal::Refusal;

/// Names, types and contents.
const FILES: [(&str, &str, &str); 11] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("../../page/style.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../../page/icon.svg"),
    ),
    (
        "station.js",
        JAVASCRIPT,
        include_str!("../../page/station.js"),
    ),
    ("ask.js", JAVASCRIPT, include_str!("../../page/ask.js")),
    ("card.js", JAVASCRIPT, include_str!("../../page/card.js")),
    (
        "dialogs.js",
        JAVASCRIPT,
        include_str!("../../page/dialogs.js"),
    ),
    ("dom.js", JAVASCRIPT, include_str!("../../page/dom.js")),
    (
        "pictures.js",
        JAVASCRIPT,
        include_str!("../../page/pictures.js"),
    ),
    ("plots.js", JAVASCRIPT, include_str!("../../page/plots.js")),
    (
        "recipes.js",
        JAVASCRIPT,
        include_str!("../../page/recipes.js"),
    ),
    (
        "verdicts.js",
        JAVASCRIPT,
        include_str!("../../page/verdicts.js"),
    ),
];

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Nothing comes from another host, runs inline, or shows the page in a frame. Nothing is kept on
/// a disk: results are a plant's secrets, and the page's files are few.
pub const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Tells nginx and its relatives to pass a stream on as it comes.
pub const NO_BUFFER: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// The page.
pub async fn index() -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (content_type, include_str!("../../page/index.html")).into_response()
}

/// Its style, scripts and icon, by name.
pub async fn other(Path(name): Path<String>) -> Result<Response, Refusal> {
    let (_, content_type, text) = FILES
        .iter()
        .find(|(of, ..)| *of == name)
        .ok_or(Refusal::NO_PAGE)?;
    Ok(([(header::CONTENT_TYPE, *content_type)], *text).into_response())
}

/// Whether a path needs no token. The page's files hold no results.
pub fn is_public(path: &str) -> bool {
    let name = path.strip_prefix('/').unwrap_or(path);
    name.is_empty() || FILES.iter().any(|(of, ..)| *of == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_page_are_relative() {
        let index = ("index.html", "", include_str!("../../page/index.html"));
        for (name, _, text) in FILES.iter().chain([&index]) {
            for quoted in text.split(['"', '\'', '`']) {
                let path = quoted.strip_prefix('/').unwrap_or_default();
                let is_path = path.starts_with(|of: char| of.is_ascii_alphabetic());
                assert!(!is_path, "{name} has an absolute address: /{path}");
            }
        }
    }
}
