//! Verdicts as they come: server-sent events.
//!
//! Each client checks ten times a second which cameras have changed and gets the newest state of each, so a
//! fast camera or a slow client makes no queue, and no frame waits for a client.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use run::state::{Camera, Cameras, Status};
use tokio::{
    sync::{Semaphore, watch},
    time::MissedTickBehavior,
};
use tokio_stream::{StreamExt, wrappers::IntervalStream};

use super::{Site, api, files::NO_BUFFER, refusal::Refusal};
use clinspect_results::report::Report;

/// Clients at once.
const MAX_CLIENTS: usize = 64;
/// Interval between two checks.
const PACE: Duration = Duration::from_millis(100);
/// Checks without a change after which a keep-alive event is sent. Without any event the page shows
/// its results as old.
const KEEP_ALIVE: u32 = 20;

/// Checks between two paddings.
const PAD_AFTER: u32 = 10;
/// A proxy may hold the end of a stream back until a buffer is full: 4 or 8 KiB. A comment of this
/// length, bytes, pushes the events before it through; a second picture of at least this length the first one.
pub const PADDING: usize = 8192;

/// Places for clients.
pub type Places = Arc<Semaphore>;

/// [`MAX_CLIENTS`] places.
pub fn places() -> Places {
    Arc::new(Semaphore::new(MAX_CLIENTS))
}

/// `GET /events`.
pub async fn events(State(site): State<Arc<Site>>) -> Result<Response, Refusal> {
    let place = site.events.clone().try_acquire_owned();
    let place = place.map_err(|_| Refusal::TOO_MANY_VIEWERS)?;
    let mut feed = Feed::new(site.cameras.clone());
    let mut ticks = tokio::time::interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let texts = IntervalStream::new(ticks).filter_map(move |_| {
        let _ = &place;
        feed.next_events()
            .map(|text| Ok::<_, Infallible>(Bytes::from(text)))
    });
    let content_type = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        NO_BUFFER,
    ];
    Ok((content_type, Body::from_stream(texts)).into_response())
}

/// What one client has seen.
struct Feed {
    list: Cameras,
    cameras: Vec<CameraFeed>,
    quiet: u32,
    /// Whether events were sent after the last padding.
    is_held: bool,
    /// Checks since the last padding.
    unpadded: u32,
}

struct CameraFeed {
    camera: Arc<Camera>,
    report: watch::Receiver<Option<Arc<Report>>>,
    status: watch::Receiver<Status>,
}

impl CameraFeed {
    fn new(camera: &Arc<Camera>) -> Self {
        let mut seen = Self {
            camera: camera.clone(),
            report: camera.report.subscribe(),
            status: camera.status.subscribe(),
        };
        // A new client gets every camera once.
        seen.report.mark_changed();
        seen
    }

    fn take_changes(&mut self) -> bool {
        let report = take(&mut self.report);
        let status = take(&mut self.status);
        report || status
    }
}

/// Whether the value is new; marks it as seen. A value that comes meanwhile is new at the next
/// check, or is in the summary, which is made after this one.
fn take<T>(receiver: &mut watch::Receiver<T>) -> bool {
    let is_new = receiver.has_changed().unwrap_or(false);
    if is_new {
        receiver.mark_unchanged();
    }
    is_new
}

impl Feed {
    fn new(mut list: Cameras) -> Self {
        list.mark_changed();
        Self {
            list,
            cameras: Vec::new(),
            quiet: 0,
            is_held: false,
            unpadded: PAD_AFTER,
        }
    }

    fn next_events(&mut self) -> Option<String> {
        let mut text = String::new();
        if self.list.has_changed().unwrap_or(false) {
            let cameras = self.list.borrow_and_update();
            self.cameras = cameras.iter().map(CameraFeed::new).collect();
            let names: Vec<&str> = cameras.iter().map(|camera| &*camera.name).collect();
            push(&mut text, "cameras", &serde_json::json!(names));
        }
        for seen in &mut self.cameras {
            if seen.take_changes() {
                push(&mut text, "camera", &api::summary(&seen.camera));
            }
        }
        self.quiet = if text.is_empty() { self.quiet + 1 } else { 0 };
        if self.quiet >= KEEP_ALIVE {
            self.quiet = 0;
            push(&mut text, "alive", &serde_json::Value::Null);
        }
        self.is_held |= !text.is_empty();
        self.unpadded = self.unpadded.saturating_add(1);
        if self.is_held && self.unpadded >= PAD_AFTER {
            (self.is_held, self.unpadded) = (false, 0);
            text.push(':');
            text.extend(std::iter::repeat_n(' ', PADDING));
            text.push_str("\n\n");
        }
        (!text.is_empty()).then_some(text)
    }
}

/// JSON has no line breaks, so an event's data is one line.
fn push(text: &mut String, event: &str, data: &serde_json::Value) {
    use std::fmt::Write;
    // Writing to a string cannot fail.
    let _ = write!(text, "event: {event}\ndata: {data}\n\n");
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Instant};

    use super::*;

    #[test]
    fn every_event_is_followed_by_padding_within_a_second() {
        let camera =
            Arc::new(Camera::new("left", &machine::answer::Line::new().expect("a line")).0);
        let (_sender, list) = watch::channel(Arc::new(vec![camera.clone()]));
        let mut feed = Feed::new(list);
        for round in 0..3 {
            let text = Status::Failed(run::state::Trouble::CameraLost, round.to_string());
            camera.status.send_replace(text);
            let sent: String = (0..PAD_AFTER).filter_map(|_| feed.next_events()).collect();
            let after = sent.rfind("data:").map_or(0, |at| sent.len() - at);
            assert!(after > PADDING, "{after} bytes after the last event");
        }
    }

    #[test]
    fn no_status_is_lost_between_two_checks() {
        let camera =
            Arc::new(Camera::new("left", &machine::answer::Line::new().expect("a line")).0);
        let mut seen = CameraFeed::new(&camera);
        seen.take_changes();
        thread::scope(|scope| {
            for round in 0..300 {
                let text = Status::Failed(run::state::Trouble::CameraLost, round.to_string());
                let sender = scope.spawn(|| camera.status.send_replace(text));
                let start = Instant::now();
                while !seen.take_changes() {
                    let waited = start.elapsed();
                    assert!(
                        waited < Duration::from_secs(5),
                        "round {round} is never seen"
                    );
                }
                let _ = sender.join();
            }
        });
    }
}
