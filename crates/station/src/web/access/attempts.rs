//! Wrong tokens by address: after a few, further wrong ones are not even called wrong.
//!
//! The token's length protects the station, not this limit. The limit tells a program with an old
//! token to stop asking. A right token always passes: behind a proxy all clients share one address,
//! and one of them must not lock out the others.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::Refusal;

/// Wrong tokens of an address within [`WINDOW`].
const MAX_WRONG: u32 = 5;
/// The count of an address begins anew so long after its first wrong token.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1024;

/// Counts wrong tokens.
#[derive(Default)]
pub struct Attempts(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Attempts {
    /// Counts a wrong token of the address, and says how the request is refused.
    pub fn wrong(&self, address: IpAddr) -> Refusal {
        let address = network(address);
        let mut wrong = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|_, (since, _)| since.elapsed() < WINDOW);
        if wrong.len() >= MAX_ADDRESSES && !wrong.contains_key(&address) {
            // More addresses than a plant has: none of them is remembered for a while.
            return Refusal::TOO_MANY_ATTEMPTS;
        }
        let (_, count) = wrong.entry(address).or_insert((Instant::now(), 0));
        if *count >= MAX_WRONG {
            return Refusal::TOO_MANY_ATTEMPTS;
        }
        *count += 1;
        Refusal::WRONG_TOKEN
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
