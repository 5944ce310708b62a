//! Wrong tokens by address: after a few, the address waits.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::Refusal;

/// Wrong tokens of an address within [`WINDOW`].
const MAX_WRONG: u32 = 5;
/// An address waits so long after its first wrong token.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1024;

/// Counts wrong tokens.
#[derive(Default)]
pub struct Attempts(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Attempts {
    /// Compares a token, unless too many wrong ones came from the address.
    ///
    /// The lock is held while `compare` runs, so requests at the same time get no extra attempts.
    pub fn check(
        &self,
        address: IpAddr,
        compare: impl FnOnce() -> Option<()>,
    ) -> Result<(), Refusal> {
        let address = network(address);
        let mut wrong = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|_, (since, _)| since.elapsed() < WINDOW);
        if wrong
            .get(&address)
            .is_some_and(|(_, count)| *count >= MAX_WRONG)
        {
            return Err(Refusal::TOO_MANY_ATTEMPTS);
        }
        if compare().is_some() {
            wrong.remove(&address);
            return Ok(());
        }
        if wrong.len() >= MAX_ADDRESSES && !wrong.contains_key(&address) {
            // More addresses than a plant has: refuse all new ones for a while.
            return Err(Refusal::TOO_MANY_ATTEMPTS);
        }
        wrong.entry(address).or_insert((Instant::now(), 0)).1 += 1;
        Err(Refusal::WRONG_TOKEN)
    }
}

/// A host owns 64 bits of IPv6 addresses, so they count as one.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => std::net::Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        },
        address => address,
    }
}
