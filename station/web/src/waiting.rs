//! A bound on the answers that clients have not read yet.
//!
//! Results of very many defects have 10 MB, and a slow client of each connection may leave an answer unread.

use std::sync::Arc;

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::header,
    middleware::Next,
    response::Response,
};
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;

use super::refusal::Refusal;

/// Bytes of the large answers that are not read yet.
const MOST_BYTES: usize = 128 << 20;
/// Smaller answers do not count: all connections together hold few of them.
const LARGE: usize = 64 << 10;

/// The bytes that are left.
#[derive(Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// [`MOST_BYTES`].
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_BYTES)))
    }

    /// The answer, whose bytes count until it is read; a refusal if too much waits. A larger answer than all bytes
    /// takes all of them.
    fn count(&self, answer: Response) -> Result<Response, Refusal> {
        let size = answer.body().size_hint().exact();
        let size = size.and_then(|size| usize::try_from(size).ok());
        let Some(size) = size.filter(|size| *size > LARGE) else {
            return Ok(answer);
        };
        let bytes = u32::try_from(size.min(MOST_BYTES)).unwrap_or(u32::MAX);
        let taken = self.0.clone().try_acquire_many_owned(bytes);
        let taken = taken.map_err(|_| Refusal::TOO_MANY_ANSWERS)?;
        let (mut head, body) = answer.into_parts();
        head.headers.insert(header::CONTENT_LENGTH, size.into());
        let data = body.into_data_stream().map(move |part| {
            let _ = &taken;
            part
        });
        Ok(Response::from_parts(head, Body::from_stream(data)))
    }
}

/// Counts each large answer.
pub async fn bounded(budget: Budget, request: Request, next: Next) -> Result<Response, Refusal> {
    budget.count(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_beyond_the_bound_are_refused_until_others_are_read() {
        let budget = Budget::new();
        let answer = |size: usize| Response::new(Body::from(vec![0; size]));
        let half = MOST_BYTES / 2;
        let first = budget.count(answer(half)).expect("room");
        assert_eq!(first.headers()[header::CONTENT_LENGTH], half.to_string());
        let second = budget.count(answer(half)).expect("room");
        assert!(budget.count(answer(LARGE + 1)).is_err(), "no room");
        assert!(budget.count(answer(LARGE)).is_ok(), "a small answer");
        drop(first);
        let third = budget.count(answer(half)).expect("room again");
        drop((second, third));
        // Larger than all.
        assert!(budget.count(answer(MOST_BYTES + 1)).is_ok());
    }
}
