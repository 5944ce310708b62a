//! Connections and their limits: how many, how slow, how large.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use machine::locks::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::Sleep,
};

/// Connections at once. A browser opens six, at most; 24 pages fit.
const MAX_CONNECTIONS: usize = 192;
/// Connections of one address at once, unless it is the station itself.
const MAX_OF_ADDRESS: usize = 64;
/// Longest head of a request, bytes; also what one connection buffers.
const MAX_HEAD: usize = 16 * 1024;
/// Headers of a request.
const MAX_HEADERS: usize = 64;
/// Longest time to send a request's head, and longest time between two requests.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// A client that takes no byte for so long is gone.
const READ_WITHIN: Duration = Duration::from_secs(15);

/// The address that a request came from, in canonical form.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Answers requests on the listener.
pub async fn accept(listener: TcpListener, router: Router) -> io::Result<()> {
    let places = Arc::new(Places::default());
    // Dropped with this future, it ends the connections.
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            // The process has no free file descriptor: wait for one.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let address = machine::address::canonical(peer).ip();
        match places.take(address) {
            Some(place) => {
                let router = router.clone().layer(Extension(Peer(address)));
                tasks.spawn(answer(stream, router, place));
            }
            None => refuse(&stream),
        }
    }
}

async fn answer(stream: TcpStream, router: Router, _place: Place) {
    // A verdict is a small packet and must not wait for the next one.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(BoundedStream {
        stream,
        stalled: None,
    });
    // A connection that fails is the client's fault or choice.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(stream, TowerToHyperService::new(router))
        .await;
}

/// Says why the connection ends, as far as that is possible without waiting.
fn refuse(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\n\
          Content-Length: 62\r\nRetry-After: 10\r\n\r\n\
          The station has too many connections; close another page.    \n",
    );
}

/// Counts connections by address.
#[derive(Default)]
struct Places(Mutex<HashMap<IpAddr, usize>>);

impl Places {
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut taken = self.0.lock();
        let of_address = taken.get(&address).copied().unwrap_or(0);
        let is_free = taken.values().sum::<usize>() < MAX_CONNECTIONS
            && (address.is_loopback() || of_address < MAX_OF_ADDRESS);
        is_free.then(|| {
            taken.insert(address, of_address + 1);
            Place {
                places: self.clone(),
                address,
            }
        })
    }
}

/// One connection's place.
struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        match taken.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.address);
            }
        }
    }
}

/// A stream that fails if the client takes nothing for [`READ_WITHIN`].
struct BoundedStream {
    stream: TcpStream,
    /// Runs since the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl BoundedStream {
    fn limit(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(READ_WITHIN)));
        stalled
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
