//! Work that takes a while, off the threads that answer requests.

use axum::http::StatusCode;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::refusal::Refusal;

/// Pictures that are decoded at once: one takes up to 256 MiB.
static DECODING: Semaphore = Semaphore::const_new(2);

/// Runs what reads or writes files, or takes a while. It goes on if the client leaves or the answer takes too long.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let failed = Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The station has a fault; its log says more.",
    );
    spawn_blocking(work).await.map_err(|_| failed)
}

/// Runs what decodes a picture of any size.
pub async fn decoding<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let turn = DECODING.acquire().await;
    blocking(move || {
        // With the work and not with the request, which may end before.
        let _turn = turn;
        work()
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        time::Duration,
    };

    use super::*;

    #[test]
    fn pictures_whose_requests_ended_are_decoded_two_at_a_time() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build();
        let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
        runtime.expect("a runtime").block_on(async {
            for _ in 0..6 {
                let counts = counts.clone();
                let work = decoding(move || {
                    let [now, most] = &*counts;
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    std::thread::sleep(Duration::from_millis(300));
                    now.fetch_sub(1, SeqCst);
                });
                // The client has left.
                let _ = tokio::time::timeout(Duration::from_millis(20), work).await;
            }
        });
        assert_eq!(counts[1].load(SeqCst), 2);
    }
}
