//! The page's files, which are part of the program, and the headers of every response.

use axum::{
    extract::Path,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};

use super::refusal::Refusal;

macro_rules! page {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../page/", $name)))),*]
    };
}

/// Names and contents.
const FILES: &[(&str, &str)] = page![
    "ask.js",
    "card.js",
    "dialogs.js",
    "dom.js",
    "icon.svg",
    "pictures.js",
    "plc.js",
    "plots.js",
    "questions.js",
    "recipes.js",
    "setup-camera.js",
    "setup-draft.js",
    "setup-fields.js",
    "setup-frames.js",
    "setup-geometry.js",
    "setup-object.js",
    "setup-regions.js",
    "setup-ruler.js",
    "setup-save.js",
    "setup-shapes.js",
    "setup-stage.js",
    "setup-teach.js",
    "setup-try.js",
    "setup.css",
    "setup.html",
    "setup.js",
    "station.js",
    "style.css",
    "verdicts.js",
];

/// The content type that the end of a name stands for.
const TYPES: [(&str, &str); 4] = [
    (".css", "text/css; charset=utf-8"),
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".svg", "image/svg+xml"),
];

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
    let (_, text) = (FILES.iter().find(|(of, _)| *of == name)).ok_or(Refusal::NO_PAGE)?;
    let kind = TYPES.iter().find(|(end, _)| name.ends_with(end));
    let (_, kind) = kind.ok_or(Refusal::NO_PAGE)?;
    Ok(([(header::CONTENT_TYPE, *kind)], *text).into_response())
}

/// Whether a path needs no token. The page's files hold no results.
pub fn is_public(path: &str) -> bool {
    let name = path.strip_prefix('/').unwrap_or(path);
    name.is_empty() || FILES.iter().any(|(of, _)| *of == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_page_are_relative() {
        let index = ("index.html", include_str!("../../page/index.html"));
        for (name, text) in FILES.iter().chain([&index]) {
            for quoted in text.split(['"', '\'', '`']) {
                let path = quoted.strip_prefix('/').unwrap_or_default();
                let is_path = path.starts_with(|of: char| of.is_ascii_alphabetic());
                assert!(!is_path, "{name} has an absolute address: /{path}");
            }
        }
    }
}
