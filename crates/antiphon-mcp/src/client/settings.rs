//! The settings of a client that a connection needs.

use std::time::Duration;

use crate::types::{ClientCapabilities, Implementation, Revision};

/// The settings of a client.
#[derive(Clone)]
pub(super) struct Settings {
    /// The name of the client.
    pub(super) info: Implementation,
    /// The capabilities that the application has named. Handlers add theirs.
    pub(super) capabilities: ClientCapabilities,
    /// The timeout of a call.
    pub(super) timeout: Option<Duration>,
    /// How long a server may take to answer the probe for modern revisions.
    pub(super) probe_timeout: Duration,
    /// Whether a lost connection is opened again.
    pub(super) reconnects: bool,
    /// How often a server may ask for input within one call.
    pub(super) input_rounds: usize,
    /// Whether arguments and results are checked against the schemas of a tool.
    pub(super) validates: bool,
    /// The only revision to use.
    pub(super) revision: Option<Revision>,
    /// What is known about the server.
    pub(super) assumed: Option<super::ServerEra>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            info: Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::new(),
            timeout: Some(Duration::from_secs(60)),
            probe_timeout: Duration::from_secs(5),
            reconnects: true,
            input_rounds: 16,
            validates: true,
            revision: None,
            assumed: None,
        }
    }
}
