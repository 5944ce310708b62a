//! Pictures: live ones, and those of failed frames, all from memory.
//!
//! Over HTTP/1.1 a browser opens six connections to a host, and an endless picture holds one. So
//! the page shows the endless picture (`/live/NAME`) only of a camera that is shown alone, and
//! asks for single pictures (`/live/NAME.jpg`) in turn when it shows several.

use std::{
    io,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use run::state::{Camera, Failure, FailurePictures, Picture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_stream::{Stream, StreamExt, wrappers::WatchStream};

use super::{Site, events::PADDING, files::NO_BUFFER, refusal::Refusal};

/// Endless pictures at once.
const MAX_STREAMS: usize = 32;
/// Shortest time between two pictures of one client: people see no more than that.
const PACE: Duration = Duration::from_millis(80);
/// Interval between two checks of a stream without a new picture. After the first check the last picture is sent a
/// second time: a proxy may hold the end of it back until a buffer is full, and a browser shows only whole pictures.
const CHECK: Duration = Duration::from_secs(1);
/// Checks after which the last picture is sent again, so that a client that is gone is noticed. The stream fails if
/// frames came before two such repetitions, and no picture.
const AGAIN: u32 = 5;
/// Longest wait for a single picture.
const PICTURE_WITHIN: Duration = Duration::from_secs(2);

const BOUNDARY: &str = "next-picture";

/// Places for endless pictures.
pub type Places = Arc<Semaphore>;

/// [`MAX_STREAMS`] places.
pub fn places() -> Places {
    Arc::new(Semaphore::new(MAX_STREAMS))
}

/// Asks the camera for live pictures while it exists. It does not keep a removed camera.
struct Viewer(Weak<Camera>);

impl Viewer {
    fn new(camera: &Arc<Camera>) -> Self {
        camera.viewers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::downgrade(camera))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Some(camera) = self.0.upgrade() {
            camera.viewers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// `GET /live/NAME` and `GET /live/NAME.jpg`.
pub async fn live(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    match name.strip_suffix(".jpg") {
        Some(name) => next_picture(site.camera(name)?).await,
        None => {
            let camera = site.camera(&name)?;
            let place = site.live.clone().try_acquire_owned();
            Ok(endless(
                &camera,
                place.map_err(|_| Refusal::TOO_MANY_VIEWERS)?,
            ))
        }
    }
}

/// The next picture. An older one could show a line as it was long ago.
async fn next_picture(camera: Arc<Camera>) -> Result<Response, Refusal> {
    let mut pictures = camera.live.subscribe();
    let _viewer = Viewer::new(&camera);
    let next = wait_for_next(&mut pictures);
    match tokio::time::timeout(PICTURE_WITHIN, next).await {
        Ok(Some(picture)) => Ok(jpeg(picture)),
        _ => Err(Refusal::NO_PICTURE),
    }
}

/// Waits for a picture that comes after now; `None` if the camera is gone.
async fn wait_for_next(pictures: &mut watch::Receiver<Option<Picture>>) -> Option<Picture> {
    loop {
        pictures.changed().await.ok()?;
        if let Some(picture) = pictures.borrow_and_update().clone() {
            return Some(picture);
        }
    }
}

/// One picture after the other. A slow client gets the newest picture when it is ready for one.
fn endless(camera: &Arc<Camera>, place: OwnedSemaphorePermit) -> Response {
    let pictures = WatchStream::from_changes(camera.live.subscribe()).filter_map(|newest| newest);
    let frames = {
        let camera = Arc::downgrade(camera);
        move || {
            let camera = camera.upgrade();
            camera.map_or(0, |camera| camera.counters.frames.load(Ordering::Relaxed))
        }
    };
    let kept = (Viewer::new(camera), place);
    let first = tokio_stream::once(Ok(Bytes::from(format!("--{BOUNDARY}\r\n"))));
    let body = Body::from_stream(first.chain(parts(pictures, frames, kept)));
    let content_type = format!("multipart/x-mixed-replace; boundary={BOUNDARY}");
    ([(header::CONTENT_TYPE, content_type)], [NO_BUFFER], body).into_response()
}

/// The parts of the body; `kept` is dropped with them. `frames` counts the camera's frames.
fn parts<K>(
    pictures: impl Stream<Item = Picture>,
    frames: impl Fn() -> u64,
    kept: K,
) -> impl Stream<Item = io::Result<Bytes>> {
    let mut last = None;
    let mut counted = frames();
    // Whether frames came before the last repetition, and no picture.
    let mut is_late = false;
    // Checks since the last picture.
    let mut checks: u32 = 0;
    pictures
        .timeout_repeating(tokio::time::interval(CHECK))
        .throttle(PACE)
        .filter_map(move |next| {
            let _ = &kept;
            checks = if next.is_ok() {
                0
            } else {
                checks.wrapping_add(1)
            };
            if checks == 1 {
                return last.as_ref().map(|picture| Ok(part(picture, PADDING)));
            }
            if !checks.is_multiple_of(AGAIN) {
                return None;
            }
            let more = frames() > counted;
            counted = frames();
            match next {
                Ok(picture) => (last, is_late) = (Some(picture), false),
                // Pictures fail, and a picture that stands still would look like the running line.
                // Browsers keep showing it after a proper end, but not after an error.
                Err(_) if more && is_late => return Some(Err(io::ErrorKind::TimedOut.into())),
                Err(_) => is_late = more,
            }
            last.as_ref().map(|picture| Ok(part(picture, 0)))
        })
}

/// A picture with the head of its part, of at least `least` bytes: zeros after the end of a JPEG picture belong to none.
/// The boundary follows it at once: browsers show a picture when they have read the boundary after it.
fn part(picture: &Picture, least: usize) -> Bytes {
    let padding = vec![0; least.saturating_sub(picture.len())];
    let head = format!(
        "Content-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n",
        picture.len() + padding.len()
    );
    let end = format!("\r\n--{BOUNDARY}\r\n");
    [head.as_bytes(), picture, &padding, end.as_bytes()]
        .concat()
        .into()
}

/// A JPEG picture.
pub fn jpeg(picture: impl Into<Picture>) -> Response {
    ([(header::CONTENT_TYPE, "image/jpeg")], picture.into()).into_response()
}

/// `GET /failures/NAME/ID.jpg`.
pub async fn failure(
    State(site): State<Arc<Site>>,
    Path((name, picture)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let failure = find(&site, &name, &picture)?;
    of_failure(&failure, |pictures| &pictures.picture)
}

/// `GET /thumbnails/NAME/ID.jpg`.
pub async fn thumbnail(
    State(site): State<Arc<Site>>,
    Path((name, picture)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let number = picture.strip_suffix(".jpg").and_then(|id| id.parse().ok());
    let number: u64 = number.ok_or(Refusal::NO_FAILURE)?;
    let camera = site.camera(&name);
    match camera.and_then(|camera| failure_by_id(&camera, Some(number))) {
        Ok(failure) => of_failure(&failure, |pictures| &pictures.thumbnail),
        // The page got its list a moment ago: what went since, frame or camera, is no error, which a browser would report.
        Err(_) => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn of_failure(
    failure: &Failure,
    of: fn(&FailurePictures) -> &Picture,
) -> Result<Response, Refusal> {
    match &failure.pictures {
        Ok(pictures) => Ok(jpeg(of(pictures).clone())),
        Err(why) => Err(Refusal(StatusCode::NOT_FOUND, why.clone().into())),
    }
}

fn find(site: &Site, name: &str, picture: &str) -> Result<Arc<Failure>, Refusal> {
    let id = picture.strip_suffix(".jpg").and_then(|id| id.parse().ok());
    failure_by_id(&*site.camera(name)?, id)
}

/// A failed frame by its number.
pub fn failure_by_id(camera: &Camera, id: Option<u64>) -> Result<Arc<Failure>, Refusal> {
    let history = camera.history();
    let mut failures = history.failures.iter();
    let found = failures.find(|failure| Some(failure.id) == id);
    found.cloned().ok_or(Refusal::NO_FAILURE)
}
