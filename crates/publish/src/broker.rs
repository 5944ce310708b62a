//! Where a broker is, and how it is asked.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use http::Uri;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

/// A file of user and password is no longer than this, bytes.
const MOST_CREDENTIALS: u64 = 4096;

/// A broker.
pub struct Broker {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User and password.
    pub credentials: Option<[String; 2]>,
    /// With `mqtts`.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Broker {
    /// Reads the settings and the files that they name; an empty name is none.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    pub fn new(uri: &str, credentials_file: &str, ca_file: &str) -> Result<Self, String> {
        // The text of a wrong URI may hold a password, so no error repeats it.
        const FORM: &str = "uri must be mqtt://HOST, mqtts://HOST or either with :PORT";
        let parsed: Uri = uri.parse().map_err(|_| FORM)?;
        let authority = parsed.authority().ok_or(FORM)?;
        if authority.as_str().contains('@') {
            return Err(
                "uri holds a user or a password, which other users of this machine could read; put them into \
                 credentials-file"
                    .into(),
            );
        }
        let is_tls = match parsed.scheme_str() {
            Some("mqtt") => false,
            Some("mqtts") => true,
            _ => return Err(FORM.into()),
        };
        if authority.host().is_empty()
            || parsed.query().is_some()
            || !matches!(parsed.path(), "" | "/")
        {
            return Err(FORM.into());
        }
        // A port that is too large is no port to the parser.
        let port = match (
            authority.port_u16(),
            authority.as_str().ends_with(authority.host()),
        ) {
            (Some(port), _) => port,
            (None, true) if is_tls => 8883,
            (None, true) => 1883,
            (None, false) => return Err(FORM.into()),
        };
        if !is_tls && !ca_file.is_empty() {
            return Err("ca-file needs a uri that begins with mqtts://".into());
        }
        Ok(Self {
            host: authority.host().into(),
            port,
            credentials: (!credentials_file.is_empty())
                .then(|| credentials(Path::new(credentials_file)))
                .transpose()?,
            tls: is_tls.then(|| tls(ca_file)).transpose()?,
        })
    }

    /// For messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
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
    let text = fs::read_to_string(path).map_err(|error| cannot(&error))?;
    let text = text.trim_end_matches(['\r', '\n']);
    let parts = text.split_once('\n').or_else(|| text.split_once(':'));
    let (user, password) = parts.ok_or_else(|| {
        format!("credentials-file={place} needs two lines, the user and the password")
    })?;
    let user = user.trim_end_matches('\r');
    if user.is_empty() || password.contains(['\n', '\r']) {
        return Err(format!(
            "credentials-file={place} needs two lines, the user and the password"
        ));
    }
    Ok([user.into(), password.into()])
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
        let certificates =
            CertificateDer::pem_file_iter(ca_file).map_err(|error| cannot(&error))?;
        for certificate in certificates {
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
            assert_eq!((broker.port, broker.tls.is_some()), (port, is_tls), "{uri}");
            assert_eq!(broker.host, "broker");
        }
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
        let text = error("mqtt://user:hidden@broker");
        assert!(
            text.contains("credentials-file") && !text.contains("hidden"),
            "{text}"
        );
    }
}
