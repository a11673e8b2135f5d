//! The era of a request: modern requests state everything themselves, legacy requests belong to a session.

use std::sync::Arc;

use antiphon::{Code, ErrorObject};

use super::request::{RequestMeta, invalid_params};
use super::session::Session;
use crate::types::error_codes::{
    RESOURCE_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, URL_ELICITATION_REQUIRED,
    UnsupportedProtocolVersion,
};
use crate::types::{LoggingLevel, Revision};

/// The era of one request.
#[derive(Clone, Debug)]
pub(crate) enum Era {
    /// The request states its revision and the capabilities of its client.
    Modern(Revision),
    /// The request belongs to a session.
    Legacy(Arc<Session>),
}

impl Era {
    /// The era of a request with this metadata. `session` is the one of the connection.
    ///
    /// # Errors
    /// Fails with -32022 for a revision that is not modern or not known, and with -32602 if the metadata is
    /// incomplete.
    pub(crate) fn of(
        meta: &RequestMeta<'_>,
        revisions: &[Revision],
        session: Option<&Arc<Session>>,
    ) -> Result<Self, ErrorObject> {
        match (&meta.protocol_version, session) {
            (Some(version), _) => modern(version, meta, revisions).map(Self::Modern),
            (None, Some(session)) => Ok(Self::Legacy(session.clone())),
            (None, None) => Err(missing("protocolVersion")),
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// The revision of the request; the latest legacy one before `initialize`.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Modern(revision) => *revision,
            Self::Legacy(session) => {
                session.agreement().map_or(Revision::LATEST_LEGACY, |agreement| agreement.revision)
            }
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Modern(_) => None,
            Self::Legacy(session) => Some(session),
        }
    }
}

/// Checks the metadata of a modern request.
///
/// # Errors
/// Like [`Era::of`].
pub(crate) fn check_modern(
    meta: &RequestMeta<'_>,
    revisions: &[Revision],
) -> Result<(), ErrorObject> {
    Era::of(meta, revisions, None).map(drop)
}

fn modern(
    version: &str,
    meta: &RequestMeta<'_>,
    revisions: &[Revision],
) -> Result<Revision, ErrorObject> {
    let revision = Revision::parse(version)
        .filter(|revision| revision.is_modern() && revisions.contains(revision))
        .ok_or_else(|| unsupported(version, revisions))?;
    if let Some(level) = meta.log_level {
        let known = serde_json::from_str::<LoggingLevel>(level.get());
        known.map_err(|_| {
            invalid_params("_meta.io.modelcontextprotocol/logLevel", "unknown log level")
        })?;
    }
    match meta.client_capabilities {
        Some(capabilities) if capabilities.get().starts_with('{') => Ok(revision),
        Some(_) => Err(invalid_params(
            "_meta.io.modelcontextprotocol/clientCapabilities",
            "must be an Object",
        )),
        None => Err(missing("clientCapabilities")),
    }
}

/// The error of a modern request in its own codes: those of earlier revisions must not be sent any more.
pub(crate) fn without_legacy_codes(error: ErrorObject) -> ErrorObject {
    let code = match error.code.0 {
        RESOURCE_NOT_FOUND => Code::INVALID_PARAMS,
        URL_ELICITATION_REQUIRED => Code::INTERNAL_ERROR,
        _ => return error,
    };
    ErrorObject { code, ..error }
}

/// The error -32022, with the revisions that the server supports.
pub(crate) fn unsupported(requested: &str, revisions: &[Revision]) -> ErrorObject {
    let requested: String = requested.chars().take(64).collect();
    ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version")
        .with_data(&UnsupportedProtocolVersion::new(revisions, requested))
}

/// The error -32602 of a request without metadata that 2026-07-28 requires.
pub(crate) fn missing(name: &str) -> ErrorObject {
    invalid_params("", &format!("missing `io.modelcontextprotocol/{name}` in `_meta`"))
}
