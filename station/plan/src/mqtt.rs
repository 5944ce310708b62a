//! The broker through which others switch recipes: the table `[mqtt]`.

/// A broker, and the topic of the station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttSettings {
    /// `mqtt://HOST` or `mqtts://HOST`, either with `:PORT`.
    pub uri: String,
    /// The file with user and password; empty: none.
    pub credentials_file: String,
    /// Certificates of authorities, PEM; empty: those of the system.
    pub ca_file: String,
    /// The station's topic.
    pub topic: String,
}
