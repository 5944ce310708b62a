//! The station's page: its API, who may use it, hostile requests, and the page in a browser.

mod access;
mod api;
mod browser;
mod curl;
mod fake;
mod hostile;
mod live;
