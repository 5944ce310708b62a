//! The table `[modbus]`: the PLC that reads outcomes and, if it may, triggers cameras and switches recipes.

use std::{net::SocketAddr, ops::Range, time::Duration};

use plan::{MOST_CAMERAS, ModbusSettings, Network};
use toml::de::DeValue;

use super::{
    mistakes::Mistakes,
    table::{Table, wrong_type},
};

/// Longest time between two beats of the PLC, if the file does not say so.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(1);
/// Range of `heartbeat-timeout-ms`.
const TIMEOUTS_MS: Range<u64> = 50..60_000;
/// An address for messages.
const EXAMPLE: &str = "192.168.1.20:502";

/// Reads the table, if there is one.
pub(super) fn read(
    file: &mut Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<ModbusSettings> {
    let mut table = file.table("modbus", mistakes)?;
    let listen = listen(&mut table, mistakes);
    let allow_from = allow_from(&mut table, mistakes);
    let allow_commands = table.boolean("allow-commands", mistakes).unwrap_or(false);
    let timeout = table.whole("heartbeat-timeout-ms", TIMEOUTS_MS, mistakes);
    if let Some((listen, span)) = &listen
        && !listen.ip().is_loopback()
        && !table.has("allow-from")
    {
        mistakes.add_missing(
            span,
            "other machines can reach this address; set allow-from to the address of the PLC, such as \
             allow-from = [\"192.168.1.10\"], or listen on 127.0.0.1",
        );
    }
    table.finish(mistakes);
    let (listen, _) = listen?;
    Some(ModbusSettings {
        listen,
        allow_from,
        allow_commands,
        heartbeat_timeout: timeout.map_or(HEARTBEAT_TIMEOUT, Duration::from_millis),
    })
}

/// Notes the mistake if the PLC would have no camera, or too many.
pub(super) fn check_cameras(file: &Table<'_, '_>, cameras: usize, mistakes: &mut Mistakes<'_>) {
    let place = file.place("modbus");
    if cameras == 0 {
        mistakes.add_missing(
            &place,
            "modbus gives registers to the cameras of this file in their order, and the file has none; add a table [[camera]]",
        );
    } else if cameras > MOST_CAMERAS {
        mistakes.add(
            &place,
            format!("modbus has registers for {MOST_CAMERAS} cameras, and the file has {cameras}; run a second station"),
        );
    }
}

fn listen(
    table: &mut Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<(SocketAddr, Range<usize>)> {
    if !table.has("listen") {
        let text = format!(
            "modbus has no listen; add the address of this PC where the PLC connects, such as listen = \"{EXAMPLE}\""
        );
        mistakes.add_missing(&table.span, text);
    }
    let (text, span) = table.string("listen", mistakes)?;
    match text.parse() {
        Ok(address) => Some((machine::address::canonical(address), span)),
        Err(_) => {
            let text = format!(
                "listen = {text:?} is no address with a port; write one such as \"{EXAMPLE}\""
            );
            mistakes.add(&span, text);
            None
        }
    }
}

fn allow_from(table: &mut Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Vec<Network> {
    let Some(value) = table.value("allow-from") else {
        return Vec::new();
    };
    let wanted = "a list of addresses, such as [\"192.168.1.10\"]";
    let DeValue::Array(values) = value.get_ref() else {
        wrong_type("allow-from", wanted, value, mistakes);
        return Vec::new();
    };
    if values.is_empty() {
        mistakes.add(
            &value.span(),
            "allow-from is empty, so no PLC can connect; add its address, or leave modbus out",
        );
    }
    let mut networks = Vec::new();
    for value in values.iter() {
        let Some(text) = value.get_ref().as_str() else {
            let wanted = "an address in quotes, such as \"192.168.1.10\"";
            wrong_type("an entry of allow-from", wanted, value, mistakes);
            continue;
        };
        match text.parse() {
            Ok(network) => networks.push(network),
            Err(()) => mistakes.add(
                &value.span(),
                format!("allow-from has {text:?}, which is no address; write one such as \"192.168.1.10\", or a network such as \"192.168.1.0/24\""),
            ),
        }
    }
    networks
}
