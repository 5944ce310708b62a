//! Where a broker is, and how it is asked.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use clinspect_results::text;
use gst::glib;
use rumqttc::{
    ConnectReturnCode, ConnectionError, MqttOptions, NetworkOptions, TlsConfiguration, Transport,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::address::Host;

/// A file of user and password is no longer than this, bytes.
const MOST_CREDENTIALS: u64 = 4096;
/// A file of certificates is no longer than this, bytes: those of all public authorities have 0.2 MB.
const MOST_CERTIFICATES: u64 = 16 << 20;

/// A connection without traffic is checked after this time; the broker publishes the last will after one and a half.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Longest wait for the broker's answer to a new connection, seconds.
const CONNECT_LIMIT: u64 = 5;
/// Largest packet: what the broker may send, and a report.
const PACKETS: [usize; 2] = [64 << 10, 64 << 20];
/// Pause before a new connection: the first one, and the longest.
pub const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// A pause is longer by up to this part of it, so that the stations of a plant do not come back all at once.
const JITTER: f64 = 0.5;
/// Why a packet cannot be handed over.
pub const ENDED: &str = "the client library has ended";

/// A broker.
pub struct Broker {
    /// Name or address.
    pub host: Host,
    /// TCP port.
    pub port: u16,
    /// With `mqtts`.
    is_tls: bool,
    /// The files of user and password, and of certificates; empty: none. They are read for each connection, because people
    /// correct them, and passwords and certificates expire.
    credentials_file: String,
    ca_file: String,
}

impl Broker {
    /// Checks the settings and the files that they name; an empty name stands for no file.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    pub fn new(uri: &str, credentials_file: &str, ca_file: &str) -> Result<Self, String> {
        // The text of a wrong URI may hold a password, so no error repeats it.
        const FORM: &str = "uri must be mqtt://HOST, mqtts://HOST or either with :PORT";
        let (scheme, authority) = uri.split_once("://").ok_or(FORM)?;
        if authority.contains('@') {
            return Err(
                "uri holds a user or a password, which other users of this machine could read; put them into \
                 credentials-file"
                    .into(),
            );
        }
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "mqtt" => false,
            "mqtts" => true,
            _ => return Err(FORM.into()),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = Host::with_port(authority).map_err(|why| format!("{FORM}: {why}"))?;
        let port = port.unwrap_or(if is_tls { 8883 } else { 1883 });
        if !is_tls && !ca_file.is_empty() {
            return Err("ca-file needs a uri that begins with mqtts://".into());
        }
        let broker = Self {
            host,
            port,
            is_tls,
            credentials_file: credentials_file.to_owned(),
            ca_file: ca_file.to_owned(),
        };
        broker.options("")?;
        Ok(broker)
    }

    /// How this client connects now: reads the files.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    pub fn options(&self, id: &str) -> Result<MqttOptions, String> {
        let mut options = MqttOptions::new(id, self.host.bare(), self.port);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_max_packet_size(PACKETS[0], PACKETS[1]);
        if !self.credentials_file.is_empty() {
            let [user, password] = credentials(Path::new(&self.credentials_file))?;
            options.set_credentials(user, password);
        }
        if self.is_tls {
            let tls = TlsConfiguration::Rustls(tls(&self.ca_file)?);
            options.set_transport(Transport::tls_with_config(tls));
        }
        Ok(options)
    }

    /// What an error means; without a secret.
    pub fn in_words(&self, error: &ConnectionError) -> String {
        let place = self.place();
        match error {
            ConnectionError::ConnectionRefused(
                ConnectReturnCode::BadUserNamePassword | ConnectReturnCode::NotAuthorized,
            ) => format!(
                "the broker {place} refuses user and password; set those that it knows in credentials-file"
            ),
            ConnectionError::NetworkTimeout => format!("the broker {place} does not answer"),
            error => format!("the broker {place} cannot be used: {error}"),
        }
    }

    /// For messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// How long a connection may take.
pub fn network() -> NetworkOptions {
    let mut network = NetworkOptions::new();
    network.set_connection_timeout(CONNECT_LIMIT);
    network
}

/// A client's name. Brokers close the older one of two connections with the same name, so clients have different ones.
pub fn new_id() -> String {
    format!(
        "clinspect-{:08x}{:08x}",
        glib::random_int(),
        glib::random_int()
    )
}

/// The factor of a pause.
pub fn jitter() -> f64 {
    1.0 + JITTER * glib::random_double()
}

/// User and password: two lines, or one with a colon between them.
fn credentials(path: &Path) -> Result<[String; 2], String> {
    let place = path.display();
    let cannot =
        |why: &dyn std::fmt::Display| format!("credentials-file={place} cannot be read: {why}");
    let metadata = fs::metadata(path).map_err(|error| cannot(&error))?;
    if !metadata.is_file() || metadata.len() > MOST_CREDENTIALS {
        return Err(cannot(&"it is no file of two lines"));
    }
    // systemd passes a credential to a service's user by an access list, which shows as a right of the group.
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(format!(
            "credentials-file={place} can be read by other users; make it private: chmod 600 {place}"
        ));
    }
    let text = text::read(path, MOST_CREDENTIALS).map_err(|error| cannot(&error))?;
    let lines: Vec<&str> = text::lines(&text).collect();
    let parts = match lines[..] {
        [user, password] => Some((user, password)),
        [line] => line.split_once(':'),
        _ => None,
    };
    match parts {
        Some((user, password)) if !user.is_empty() => Ok([user.into(), password.into()]),
        _ => Err(format!(
            "credentials-file={place} needs two lines, the user and the password"
        )),
    }
}

/// TLS with the certificates of `ca_file`, else with those of the system.
fn tls(ca_file: &str) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    if ca_file.is_empty() {
        // Certificates of the system that rustls does not take are left out, like in other programs.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(
                "this system has no certificates; install ca-certificates, or set ca-file".into(),
            );
        }
    } else {
        let cannot =
            |why: &dyn std::fmt::Display| format!("ca-file={ca_file} cannot be used: {why}");
        let pem = text::read_bytes(Path::new(ca_file), MOST_CERTIFICATES)
            .map_err(|error| cannot(&error))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| cannot(&error))?;
            roots.add(certificate).map_err(|error| cannot(&error))?;
        }
        if roots.is_empty() {
            return Err(cannot(&"it holds no certificate in PEM"));
        }
    }
    // Named, because an application may link another provider too.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(uri: &str) -> String {
        Broker::new(uri, "", "").err().unwrap_or_default()
    }

    #[test]
    fn uri_gives_host_and_port_and_holds_no_secret() {
        for (uri, port, is_tls) in [
            ("mqtt://broker", 1883, false),
            ("mqtt://broker:1884/", 1884, false),
            ("mqtts://broker", 8883, true),
        ] {
            let broker = Broker::new(uri, "", "").unwrap();
            assert_eq!((broker.port, broker.is_tls), (port, is_tls), "{uri}");
            assert_eq!(broker.host.bare(), "broker");
        }
        let broker = Broker::new("mqtts://[::1]", "", "").unwrap();
        assert_eq!(broker.host.bare(), "::1");
        assert_eq!(broker.place(), "[::1]:8883");
        for uri in [
            "",
            "broker",
            "http://broker",
            "mqtt://",
            "mqtt://b/x",
            "mqtt://b:99999",
        ] {
            assert!(error(uri).contains("mqtt://HOST"), "{uri}: {}", error(uri));
        }
        for uri in [
            "mqtt://user:hidden@broker",
            "mqtts://user:hidden@[::1]:8883",
            "mqtt://user:hid/hidden@[fe80::1%eth0]",
        ] {
            let text = error(uri);
            assert!(
                text.contains("credentials-file") && !text.contains("hidden"),
                "{text}"
            );
        }
        for (uri, word) in [
            ("mqtt://::1:1883", "brackets"),
            ("mqtts://[fe80::1%25eth0]:8883", "zone"),
        ] {
            let text = error(uri);
            assert!(
                text.contains(word) && text.contains("mqtt://HOST"),
                "{text}"
            );
        }
    }
}
