//! Finds out the revision of a server, and starts a session with a legacy one.
//!
//! Modern revisions have no handshake. A probe with `server/discover` tells whether the server has one. Any error that only
//! modern servers send means a modern server, and anything else a legacy one (2026-07-28, versioning).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use antiphon::RawJson;
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::call::{CallOptions, decoded};
use super::core::Core;
use super::error::McpError;
use super::served_tasks;
use crate::types::{
    DiscoverResult, Implementation, InitializeParams, InitializeResult, Revision,
    ServerCapabilities, methods,
};

/// What is known about a server.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub(super) revision: Revision,
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) instructions: Option<String>,
}

impl Default for ServerState {
    fn default() -> Self {
        Self {
            revision: Revision::LATEST,
            info: None,
            capabilities: ServerCapabilities::new(),
            instructions: None,
        }
    }
}

/// The revision and transport of a server. Save it, and pass it to
/// [`assume`](super::McpClientBuilder::assume) when you connect to the same server again, to save the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerEra {
    /// The revision.
    pub revision: Revision,
    /// Whether the server has only the HTTP+SSE transport of 2024-11-05.
    #[serde(default)]
    pub http_sse: bool,
}

impl ServerEra {
    /// Describes a server.
    pub fn new(revision: Revision) -> Self {
        Self { revision, http_sse: false }
    }
}

impl Core {
    /// Finds out the revision of the server.
    pub(super) async fn open(self: &Arc<Self>) -> Result<(), McpError> {
        if let Some(revision) = self.settings.revision {
            return match revision.is_modern() {
                true => self.discover(revision).await.and_then(|found| self.adopt(&found)),
                false => self.initialize(revision).await,
            };
        }
        let assumed = self.settings.assumed.map(|era| era.revision);
        if let Some(revision) = assumed.filter(|revision| !revision.is_modern()) {
            match self.initialize(revision).await {
                Err(error) if !is_final(&error) => {
                    tracing::info!(%error, "the server is not as assumed");
                }
                outcome => return outcome,
            }
        }
        self.detect().await
    }

    /// Probes for a modern revision, and falls back to a handshake.
    async fn detect(self: &Arc<Self>) -> Result<(), McpError> {
        let core = self.clone();
        // A task, because dropping the probe would cancel it, and a legacy server knows no cancellation yet.
        let mut probe = tokio::spawn(async move { core.discover(Revision::LATEST).await });
        let _end = AbortOnDrop(probe.abort_handle());
        let Ok(found) = timeout(self.settings.probe_timeout, &mut probe).await else {
            tracing::debug!("no response to the probe, so the server has a legacy revision");
            let initialized = self.initialize(Revision::LATEST_LEGACY).await;
            return match (initialized, timeout(self.settings.probe_timeout, probe)) {
                // The server only starts slowly.
                (Err(McpError::Rpc(error)), probe) => match probe.await {
                    Ok(Ok(Ok(found))) => self.adopt(&found),
                    _ => Err(McpError::Rpc(error)),
                },
                (outcome, _) => outcome,
            };
        };
        match found.map_err(|error| McpError::Protocol(error.to_string()))? {
            Ok(found) if self.adopt(&found).is_ok() => Ok(()),
            Ok(found) => self.choose(found.supported_versions).await,
            Err(error) => match error.supported_revisions() {
                Some(supported) => self.choose(supported).await,
                None if error.is_modern() || is_final(&error) => Err(error),
                None => {
                    tracing::debug!(%error, "the server has a legacy revision");
                    self.initialize(Revision::LATEST_LEGACY).await
                }
            },
        }
    }

    /// Uses the latest of the revisions that the server supports.
    async fn choose(self: &Arc<Self>, supported: Vec<String>) -> Result<(), McpError> {
        let known = supported.iter().filter_map(|date| Revision::parse(date));
        match known.max() {
            Some(revision) if revision.is_modern() => {
                let found = self.discover(revision).await?;
                self.adopt(&found)
            }
            Some(revision) => self.initialize(revision).await,
            None => Err(McpError::NoCommonRevision { supported }),
        }
    }

    /// Asks the server what it is, in a modern revision.
    pub(super) async fn discover(&self, revision: Revision) -> Result<DiscoverResult, McpError> {
        self.set_state(ServerState { revision, ..ServerState::default() });
        self.wire.speak(Some(revision));
        let options = CallOptions::default();
        let id = self.next_id();
        let result = self.send(id, methods::DISCOVER, &BTreeMap::new(), &options).await?;
        decoded(methods::DISCOVER, &result)
    }

    /// Uses a modern revision that both sides support.
    pub(super) fn adopt(&self, found: &DiscoverResult) -> Result<(), McpError> {
        let only = self.settings.revision;
        let common = found.revisions().filter(|revision| revision.is_modern());
        let Some(revision) = common.filter(|it| only.is_none_or(|only| only == *it)).max() else {
            return Err(McpError::NoCommonRevision { supported: found.supported_versions.clone() });
        };
        self.wire.speak(Some(revision));
        self.inbox.is_asked.store(false, Ordering::Release);
        self.set_state(ServerState {
            revision,
            info: found.server_info(),
            capabilities: found.capabilities.clone(),
            instructions: found.instructions.clone(),
        });
        Ok(())
    }

    /// Starts a session with a legacy server.
    pub(super) async fn initialize(&self, revision: Revision) -> Result<(), McpError> {
        self.set_state(ServerState { revision, ..ServerState::default() });
        self.wire.speak(None);
        self.inbox.is_asked.store(true, Ordering::Release);
        let mut capabilities = self.capabilities();
        capabilities.extensions = None;
        capabilities.tasks =
            self.has_tasks().then(|| served_tasks::capability(&capabilities)).flatten();
        let declares_tasks = capabilities.tasks.is_some();
        self.inbox.tasks.clear();
        let params = InitializeParams::new(revision, capabilities, self.settings.info.clone());
        let encode = |source| McpError::Encode { method: methods::INITIALIZE.to_owned(), source };
        let members = RawJson::encode(&params).and_then(|json| json.decode()).map_err(encode)?;
        let options = CallOptions::default();
        let result = self.send(self.next_id(), methods::INITIALIZE, &members, &options).await?;
        let result: InitializeResult = decoded(methods::INITIALIZE, &result)?;
        let known = Revision::parse(&result.protocol_version).filter(|it| !it.is_modern());
        let Some(revision) =
            known.filter(|it| self.settings.revision.is_none_or(|only| only == *it))
        else {
            return Err(McpError::NoCommonRevision { supported: vec![result.protocol_version] });
        };
        self.wire.speak(Some(revision));
        let serves_tasks = declares_tasks && revision == Revision::V2025_11_25;
        self.inbox.serves_tasks.store(serves_tasks, Ordering::Release);
        self.set_state(ServerState {
            revision,
            info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
        });
        self.post(methods::INITIALIZED, None).await?;
        self.wire.initialized().await;
        Ok(())
    }
}

/// Ends a task with the handshake: without a timeout, a probe that gets no response would keep the connection open for
/// ever.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether another handshake would fail in the same way.
fn is_final(error: &McpError) -> bool {
    error.is_disconnect()
        || matches!(
            error,
            McpError::Unauthorized { .. }
                | McpError::Credentials(_)
                | McpError::Unreachable { .. }
                | McpError::Connect(_)
        )
}
