//! The station's page, its live pictures and its API over HTTP.
//!
//! No path of a request reaches the file system: the page's files are part of the program, and
//! pictures come from memory, found by a camera's name and a number.

// The JSON of a camera has many fields.
#![recursion_limit = "256"]

mod access;
mod api;
mod blocking;
mod connections;
mod events;
mod files;
mod live;
pub mod metrics;
mod recipes;
mod recorded;
mod refusal;
mod setup;
mod waiting;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use ::setup::Setup;
use axum::{
    Router,
    body::HttpBody,
    extract::{DefaultBodyLimit, Request},
    middleware::{self, Next},
    response::Response,
    routing::{get, post, put},
};
use config::recipes::Recipes;
use machine::modbus::Modbus;
use run::state::{Camera, Cameras};
use tokio::net::TcpListener;

pub use access::Access;
pub use recipes::USER;
use refusal::Refusal;

/// Longest body of most requests, bytes. A command is the longest.
const MAX_BODY: usize = 4096;
/// Longest settings of a draft, bytes: regions may have a thousand points.
const MAX_SETTINGS: usize = 256 << 10;
/// Largest picture of pixels that are not judged, bytes.
const MAX_MASK: usize = 4 << 20;

/// Longest time from a request's head to the head of its response.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// What all requests share.
struct Site {
    cameras: Cameras,
    setup: Option<Arc<Setup>>,
    access: Access,
    recipes: Option<Arc<Recipes>>,
    modbus: Option<Arc<Modbus>>,
    address: SocketAddr,
    attempts: access::Attempts,
    live: live::Places,
    events: events::Places,
}

impl Site {
    /// The camera of that name.
    fn camera(&self, name: &str) -> Result<Arc<Camera>, Refusal> {
        let cameras = self.cameras.borrow();
        let found = cameras.iter().find(|camera| camera.name == name);
        found.cloned().ok_or(Refusal::NO_CAMERA)
    }
}

/// Serves the page until the future is dropped.
///
/// # Errors
/// The address is not a loopback address and `access` has no token, or the listener has no
/// address.
pub async fn serve(
    listener: TcpListener,
    cameras: Cameras,
    access: Access,
    setup: Option<Arc<Setup>>,
    modbus: Option<Arc<Modbus>>,
) -> io::Result<()> {
    let address = machine::address::canonical(listener.local_addr()?);
    if access.token.is_none() && !address.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "the page listens on {address} without a token, so everyone in the network could \
                 read results; set token-file, or listen on 127.0.0.1"
            ),
        ));
    }
    let site = Arc::new(Site {
        cameras,
        recipes: setup.as_ref().map(|setup| setup.recipes.clone()),
        setup,
        access,
        modbus,
        address,
        attempts: access::Attempts::default(),
        live: live::places(),
        events: events::places(),
    });
    if let Some(setup) = site.setup.clone() {
        tokio::spawn(tidy(Arc::downgrade(&setup)));
    }
    connections::accept(listener, router(site)).await
}

fn router(site: Arc<Site>) -> Router {
    let unread = waiting::Budget::new();
    Router::new()
        .route("/", get(files::index))
        .route("/{file}", get(files::other))
        .route(
            "/api/session",
            get(access::session)
                .post(access::log_in)
                .delete(access::log_out),
        )
        .route("/api/cameras", get(api::cameras))
        .route("/api/cameras/{name}", get(api::camera))
        .route("/api/cameras/{name}/history", get(api::history))
        .route("/api/cameras/{name}/roll", get(api::roll))
        .route("/api/cameras/{name}/report", get(api::report))
        .route("/api/cameras/{name}/failures/{id}", get(api::failure))
        .route(
            "/api/cameras/{name}/failures/{id}/verdict",
            post(recorded::judge_failure),
        )
        .route("/api/cameras/{name}/recordings", get(recorded::list))
        .route(
            "/api/cameras/{name}/recordings/{base}/verdict",
            post(recorded::judge),
        )
        .route("/recordings/{name}/{picture}", get(recorded::picture))
        .route("/api/cameras/{name}/command", post(api::command))
        .route("/api/setup/cameras", get(setup::cameras))
        .route("/api/setup/drafts", get(setup::drafts).post(setup::begin))
        .nest("/api/setup/drafts/{id}", of_draft())
        .route("/api/plc", get(api::plc))
        .route("/api/recipes", get(recipes::list))
        .route("/api/recipes/{name}/versions", get(recipes::versions))
        .route("/api/recipes/{name}/back", post(recipes::go_back))
        .route("/api/recipe", post(recipes::switch))
        .route("/live/{name}", get(live::live))
        .route("/failures/{name}/{picture}", get(live::failure))
        .route("/thumbnails/{name}/{picture}", get(live::thumbnail))
        .route("/events", get(events::events))
        .route("/healthz", get(api::health))
        .route("/metrics", get(api::metrics))
        .fallback(|| async { Refusal::NO_PAGE })
        .method_not_allowed_fallback(|| async { Refusal::METHOD })
        .layer(middleware::from_fn_with_state(site.clone(), access::guard))
        .layer(middleware::from_fn(move |request, next| {
            waiting::bounded(unread.clone(), request, next)
        }))
        .layer(middleware::from_fn(small_and_in_time))
        .layer(middleware::from_fn(headers))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(site)
}

/// Ends drafts that nobody asks about: they hold frames, and perhaps a camera.
async fn tidy(setup: Weak<Setup>) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        match setup.upgrade() {
            Some(setup) => setup.forget_old(),
            None => return,
        }
    }
}

/// What can be asked of a draft.
fn of_draft() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(setup::state).delete(setup::end))
        .route(
            "/settings",
            put(setup::settings).layer(DefaultBodyLimit::max(MAX_SETTINGS)),
        )
        .route("/live", get(setup::live))
        .route("/live/{picture}", get(setup::live_picture))
        .route("/measure", post(setup::measure))
        .route("/frames", post(setup::keep))
        .route("/collect", post(setup::collect))
        .route(
            "/frames/{frame}",
            get(setup::frame_picture)
                .put(setup::change_frame)
                .delete(setup::forget_frame),
        )
        .route("/teach", post(setup::teach).delete(setup::stop_teaching))
        .route("/teach/again", post(setup::teach_again))
        .route("/try", post(setup::try_all))
        .route(
            "/mask",
            put(setup::mask)
                .delete(setup::no_mask)
                .layer(DefaultBodyLimit::max(MAX_MASK)),
        )
        .route("/recipe", get(setup::recipe))
        .route("/save", post(setup::save))
}

/// Longest body of a request, bytes.
fn most_bytes(path: &str) -> usize {
    let of_draft = path.strip_prefix("/api/setup/drafts/");
    match of_draft.and_then(|rest| rest.split_once('/')) {
        Some((_, "settings")) => MAX_SETTINGS,
        Some((_, "mask")) => MAX_MASK,
        _ => MAX_BODY,
    }
}

/// Refuses a request that announces a large body, and ends one that takes too long.
async fn small_and_in_time(request: Request, next: Next) -> Result<Response, Refusal> {
    let announced = request.body().size_hint().lower();
    if announced > most_bytes(request.uri().path()) as u64 {
        return Err(Refusal::TOO_LARGE);
    }
    tokio::time::timeout(ANSWER_WITHIN, next.run(request))
        .await
        .map_err(|_| Refusal::TOO_SLOW)
}

/// The security headers of every response.
async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in files::HEADERS {
        headers.insert(name, value.clone());
    }
    response
}
