//! Requests that the station does not carry out: a status and a sentence.

use std::borrow::Cow;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// Why a request was refused. The sentence never repeats a part of the request.
#[derive(Debug)]
pub struct Refusal(pub StatusCode, pub Cow<'static, str>);

impl Refusal {
    pub const NO_PAGE: Self = Self::new(StatusCode::NOT_FOUND, "The station has no such page.");
    pub const NO_CAMERA: Self = Self::new(
        StatusCode::NOT_FOUND,
        "The station has no camera of this name.",
    );
    pub const NO_RECIPES: Self = Self::new(
        StatusCode::NOT_FOUND,
        "The station has no recipes; set recipes to a folder in the station's file.",
    );
    pub const NO_FAILURE: Self = Self::new(
        StatusCode::NOT_FOUND,
        "The station no longer keeps this failed frame; it keeps the last ones only.",
    );
    pub const METHOD: Self = Self::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This page does not take this kind of request.",
    );
    pub const TOO_LARGE: Self = Self::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "The request is too large: settings of a set-up may have 256 KiB, a mask 4 MiB, all others 4 KiB.",
    );
    pub const TOO_MANY_ANSWERS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "Too many large answers wait for slow clients; try again.",
    );
    pub const TOO_SLOW: Self = Self::new(
        StatusCode::REQUEST_TIMEOUT,
        "The request took too long; try again.",
    );
    pub const TOKEN: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "The station's token is needed: log in on the page, or send the header Authorization: Bearer TOKEN.",
    );
    pub const WRONG_TOKEN: Self = Self::new(
        StatusCode::UNAUTHORIZED,
        "The token is wrong. The station's token is in the file that token-file names.",
    );
    pub const TOO_MANY_ATTEMPTS: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        "Too many wrong tokens came from this address. The station's token is in the file that token-file names.",
    );
    pub const HOST: Self = Self::new(
        StatusCode::FORBIDDEN,
        "Open this page as http://127.0.0.1 or http://localhost with its port, on the station itself; for other names and proxies set token-file.",
    );
    pub const ORIGIN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "The browser's address is not the Host of this request. Open the station's own page; if a proxy is before the station, let the proxy pass Host on (nginx: proxy_set_header Host $http_host).",
    );
    pub const WRITING_OFF: Self = Self::new(
        StatusCode::FORBIDDEN,
        "Commands are switched off; set allow-writing = true and token-file in the station's file.",
    );
    pub const TOO_MANY_VIEWERS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "Too many pages are open; close another page of this station.",
    );
    pub const NO_PICTURE: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "The camera sends no pictures now.",
    );

    pub const fn new(status: StatusCode, sentence: &'static str) -> Self {
        Self(status, Cow::Borrowed(sentence))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.0;
        let mut response = (status, self.1.into_owned() + "\n").into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        }
        response
    }
}
