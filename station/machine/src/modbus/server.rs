//! Connections of PLCs, and their limits.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, Id, JoinSet},
    time::timeout,
};

use super::{
    Modbus,
    wire::{self, HEADER, Header, MOST_BYTES},
};
use crate::{address::canonical, info, locks::Mutex, warning};

/// Connections at once.
const MOST_CONNECTIONS: usize = 8;
/// A connection without a request for so long gives way to a new one.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(2);
/// A connection without a request for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Longest time from the first byte of a request to its last, and to send an answer.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
/// Shortest time between two log lines about connections.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Answers requests on the listener.
pub(super) async fn accept(modbus: Arc<Modbus>, listener: TcpListener) {
    let mut places = Places::default();
    // Dropped with this future, it ends the connections.
    let mut tasks = JoinSet::new();
    let (mut closed, mut opened) = (LogLimit::default(), LogLimit::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = tasks.join_next_with_id() => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                places.free(id);
                let connections = places.0.len();
                modbus.numbers.connections.store(connections, Relaxed);
                continue;
            }
        };
        let Ok((stream, peer)) = accepted else {
            // The process has no free file descriptor: wait for one.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let address = canonical(peer).ip();
        let refused = if !modbus.lets_in(address) {
            Some("allow-from does not have this address")
        } else if !places.make_room() {
            Some("all places are taken by clients that ask all the time")
        } else {
            None
        };
        if let Some(why) = refused {
            modbus.numbers.refused.fetch_add(1, Relaxed);
            if closed.is_due() {
                warning!(
                    "Modbus: a connection from {address} was closed: {why}; others within a minute are only counted"
                );
            }
            continue;
        }
        if opened.is_due() {
            info!("Modbus: a connection from {address}; others within a minute are not logged");
        }
        let last = Arc::new(LastRequest::now());
        let task = tasks.spawn(talk(modbus.clone(), stream, last.clone()));
        places.0.push(Place { task, last });
        let connections = places.0.len();
        modbus.numbers.connections.store(connections, Relaxed);
    }
}

impl Modbus {
    fn lets_in(&self, address: IpAddr) -> bool {
        let networks = &self.settings.allow_from;
        // Without a list the server listens on a loopback address.
        networks.is_empty() || networks.iter().any(|network| network.contains(address))
    }
}

/// Answers the requests of one connection.
async fn talk(modbus: Arc<Modbus>, mut stream: TcpStream, last: Arc<LastRequest>) {
    // An answer is a small packet and must not wait for the next one.
    let _ = stream.set_nodelay(true);
    // A connection that ends, sends nonsense or is too slow is closed; a PLC opens another one.
    while let Ok(true) = exchange(&modbus, &mut stream, &last).await {}
}

/// Answers one request. Returns whether the connection stays.
async fn exchange(
    modbus: &Arc<Modbus>,
    stream: &mut TcpStream,
    last: &LastRequest,
) -> io::Result<bool> {
    let mut header = [0; HEADER];
    let (first, rest) = header.split_at_mut(1);
    timeout(IDLE, stream.read_exact(first)).await??;
    timeout(REQUEST_WITHIN, stream.read_exact(rest)).await??;
    let Some(header) = Header::of(header) else {
        return Ok(false);
    };
    let mut bytes = [0; MOST_BYTES];
    let Some(bytes) = bytes.get_mut(..header.len) else {
        return Ok(false);
    };
    timeout(REQUEST_WITHIN, stream.read_exact(bytes)).await??;
    last.set();
    let result = wire::request(bytes).and_then(|request| modbus.answer(&request));
    modbus.numbers.count(result.is_err());
    let answer = header.answer(bytes, &result);
    timeout(REQUEST_WITHIN, stream.write_all(&answer)).await??;
    Ok(true)
}

/// The connections.
#[derive(Default)]
struct Places(Vec<Place>);

struct Place {
    task: AbortHandle,
    last: Arc<LastRequest>,
}

impl Places {
    fn free(&mut self, id: Id) {
        self.0.retain(|place| place.task.id() != id);
    }

    /// Closes the connection that was silent for the longest time, if all places are taken: it may be the end of a cable that
    /// was pulled. Returns whether there is a place.
    fn make_room(&mut self) -> bool {
        if self.0.len() < MOST_CONNECTIONS {
            return true;
        }
        let silent = (0..self.0.len()).max_by_key(|index| self.0[*index].last.elapsed());
        let silent = silent.filter(|index| self.0[*index].last.elapsed() >= GIVES_WAY_AFTER);
        if let Some(index) = silent {
            self.0.swap_remove(index).task.abort();
        }
        silent.is_some()
    }
}

/// When the last request came.
struct LastRequest(Mutex<Instant>);

impl LastRequest {
    fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn set(&self) {
        *self.0.lock() = Instant::now();
    }

    fn elapsed(&self) -> Duration {
        let last = self.0.lock();
        last.elapsed()
    }
}

/// Lets a log line through once a minute.
#[derive(Default)]
struct LogLimit(Option<Instant>);

impl LogLimit {
    fn is_due(&mut self) -> bool {
        let is_due = self.0.is_none_or(|last| last.elapsed() >= LOG_EVERY);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}
