//! Addresses that may connect.

use std::{fmt, net::IpAddr, str::FromStr};

/// An address, or a network of addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether the address, in canonical form, is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let begin = |address| {
            let (number, width) = number(address);
            // A shift by all bits overflows.
            (width, number.checked_shr(width - self.bits.min(width)))
        };
        begin(self.address) == begin(address)
    }
}

/// The address as a number, and how many bits it has.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), u32::BITS),
        IpAddr::V6(address) => (address.into(), u128::BITS),
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let (_, width) = number(address);
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| ()))?;
        (bits <= width).then_some(Self { address, bits }).ok_or(())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_has_the_addresses_that_begin_with_its_bits() {
        for (network, address, is_in) in [
            ("192.168.1.10", "192.168.1.10", true),
            ("192.168.1.10", "192.168.1.11", false),
            ("192.168.1.0/24", "192.168.1.255", true),
            ("192.168.1.77/24", "192.168.1.1", true),
            ("192.168.1.0/24", "192.168.2.0", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("0.0.0.0/8", "::1", false),
            ("::/0", "::1", true),
            ("::/0", "1.2.3.4", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("10.0.0.0/31", "10.0.0.1", true),
            ("10.0.0.0/31", "10.0.0.2", false),
        ] {
            let network: Network = network.parse().unwrap();
            let found = network.contains(address.parse().unwrap());
            assert_eq!(found, is_in, "{network} {address}");
        }
        for text in [
            "",
            "plc",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0/8",
            "::/129",
            "1.2.3.4/-1",
        ] {
            assert_eq!(text.parse::<Network>(), Err(()), "{text}");
        }
    }
}
