//! The addresses at which the station listens. The network of an address may come up later than the station, and the
//! inspection does not wait for it.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, time::sleep};

use crate::{
    answer::{Line, Server},
    error, info,
};

/// Time between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// Binds the address, and tries again until this works. Meanwhile an alarm says so: in the log, at each camera on the
/// page (`show`), and to the PLC.
pub async fn bind(
    what: Server,
    address: SocketAddr,
    line: &Arc<Line>,
    show: &impl Fn(&str),
) -> TcpListener {
    let mut told: Option<String> = None;
    loop {
        let error = match TcpListener::bind(address).await {
            Ok(listener) => {
                line.set_unreachable(what, false);
                // Port 0 takes a free port.
                let address = listener.local_addr().unwrap_or(address);
                let text = match what {
                    Server::Page => format!("the page is at http://{address}/"),
                    Server::Modbus => format!("PLCs connect at {address} (Modbus TCP)"),
                };
                info!("{text}");
                if told.is_some() {
                    show(&text);
                }
                return listener;
            }
            Err(error) => error,
        };
        let why = sentence(what, address, &error);
        if told.as_ref() != Some(&why) {
            line.set_unreachable(what, true);
            error!("{why}");
            show(&why);
            told = Some(why);
        }
        sleep(RETRY).await;
    }
}

/// What does not work, why, and what to do.
fn sentence(what: Server, address: SocketAddr, error: &io::Error) -> String {
    let (effect, key) = match what {
        Server::Page => ("the page cannot be served", "listen"),
        Server::Modbus => ("no PLC can connect", "listen of [modbus]"),
    };
    let (cause, advice) = match error.kind() {
        io::ErrorKind::AddrNotAvailable => (
            "no network of this PC has this address".to_owned(),
            format!("plug in and switch on its network, or correct {key}"),
        ),
        io::ErrorKind::AddrInUse => (
            "another program uses this port".to_owned(),
            format!("end the program, or set another port in {key}"),
        ),
        io::ErrorKind::PermissionDenied => (
            "the station may not use this port".to_owned(),
            format!("give it CAP_NET_BIND_SERVICE, or set a port from 1024 on in {key}"),
        ),
        _ => (error.to_string(), format!("correct {key}")),
    };
    format!(
        "{effect} at {address}, because {cause}; {advice}. The cameras run, and the station tries again each second"
    )
}
