//! The server for PLCs: the table `[modbus]`.

use std::{net::SocketAddr, time::Duration};

use super::Network;

/// Most cameras that have registers.
pub const MOST_CAMERAS: usize = 10;

/// Where PLCs connect, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModbusSettings {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// The addresses that may connect; empty: all that reach `listen`, which is then a loopback address.
    pub allow_from: Vec<Network>,
    /// Whether the PLC may write.
    pub allow_commands: bool,
    /// Longest time between two beats of the PLC, once its heartbeat has changed for the first time.
    pub heartbeat_timeout: Duration,
}
