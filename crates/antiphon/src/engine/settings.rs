//! The settings of a server or client, shared by all its connections.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use antiphon_core::{Limits, Rules};

use crate::catch_unwind::end_panic;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::tap::Taps;

/// Completes the facts of a connection before anything is served on it.
pub(crate) type OnConnect = Arc<dyn Fn(&mut Connection) + Send + Sync>;

/// Everything that serving needs and that does not change while it runs.
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    /// `None` for plain JSON-RPC, so that the hot path skips the check.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) tap: Taps,
    pub(crate) on_connect: Option<OnConnect>,
}

/// The `on_connect` of the application panicked: the connection or request must not be served.
#[derive(Debug)]
pub(crate) struct OnConnectPanicked;

impl Settings {
    /// Plain JSON-RPC within these limits.
    pub(crate) fn new(limits: Limits) -> Self {
        let rules = limits.rules();
        Self { limits, rules, dialect: None, tap: Taps::default(), on_connect: None }
    }

    /// Lets the application complete the facts of a connection or request.
    pub(crate) fn complete(&self, facts: &mut Connection) -> Result<(), OnConnectPanicked> {
        let Some(complete) = &self.on_connect else { return Ok(()) };
        catch_unwind(AssertUnwindSafe(|| complete(facts))).map_err(|panic| {
            end_panic(panic, |text| tracing::error!(panic = text, "`on_connect` panicked"));
            OnConnectPanicked
        })
    }
}
