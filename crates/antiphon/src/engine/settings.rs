//! The settings of a server or client, shared by all its connections.

use std::sync::Arc;
#[cfg(feature = "stdio")]
use std::time::Duration;

use antiphon_core::{Id, Limits, Rules, Version, Versions};

use crate::catch_unwind::{Panicked, guarded};
use crate::connection::Connection;
use crate::dialect::{CallStyle, Cancellation, Dialect, ErrorStyle, ProgressStyle};
use crate::tap::Taps;

/// The function of the application that completes the facts of a connection before it is served.
pub(crate) type OnConnect = Arc<dyn Fn(&mut Connection) + Send + Sync>;

/// The settings that do not change while a server or client runs.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    /// `None` for plain JSON-RPC, so that the hot path skips the check.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) tap: Taps,
    pub(crate) on_connect: Option<OnConnect>,
}

impl Settings {
    /// Plain JSON-RPC within these limits.
    pub(crate) fn new(limits: Limits) -> Self {
        let rules = limits.rules();
        Self { limits, rules, dialect: None, tap: Taps::default(), on_connect: None }
    }

    /// The same settings in this dialect. An explicit `null_params` wins over that of the dialect.
    pub(crate) fn in_dialect(self, dialect: Dialect, null_params: Option<bool>) -> Self {
        let null_params = null_params.unwrap_or(dialect.null_params);
        let rules = Rules { null_params, versions: dialect.versions, ..self.rules };
        Self { rules, dialect: dialect.unless_plain(), ..self }
    }

    /// The cancellation of the dialect, if it has one.
    #[inline]
    pub(crate) fn cancellation(&self) -> Option<&Cancellation> {
        self.dialect.as_ref()?.cancellation.as_ref()
    }

    /// Returns the ids of the calls that a cancellation with this id may mean: it does not state the version of the
    /// call.
    pub(crate) fn cancelled_ids(&self, id: &Id) -> impl Iterator<Item = Id> + use<> {
        let has_v1 = self.rules.versions != Versions::V2;
        let of_v1 = has_v1.then(|| id.in_version(Version::V1));
        [Some(id.clone()), of_v1].into_iter().flatten()
    }

    /// Returns whether a message may overtake the messages before it.
    pub(crate) fn has_urgent_messages(&self) -> bool {
        self.dialect.as_ref().is_some_and(Dialect::has_urgent_messages)
    }

    /// The progress notification of the dialect, if it has one.
    #[inline]
    pub(crate) fn progress(&self) -> Option<&ProgressStyle> {
        self.dialect.as_ref()?.progress.as_ref()
    }

    /// Returns the encoding of outgoing calls.
    #[inline]
    pub(crate) fn calls(&self) -> CallStyle {
        self.dialect.as_ref().map_or(CallStyle::V2, |dialect| dialect.calls)
    }

    /// Returns the style of library errors.
    #[inline]
    pub(crate) fn errors(&self) -> ErrorStyle {
        self.dialect.as_ref().map_or(ErrorStyle::Plain, |dialect| dialect.errors)
    }

    /// Returns whether a GET without an upgrade gets an empty response.
    #[cfg(feature = "http")]
    pub(crate) fn answers_get(&self) -> bool {
        self.dialect.as_ref().is_some_and(|dialect| dialect.answers_get)
    }

    /// Whether requests wait for a notification whose handler waits for a call to the peer.
    pub(crate) fn is_order_strict(&self) -> bool {
        self.dialect.as_ref().is_some_and(|dialect| dialect.is_strict)
    }

    /// Returns the time in which running calls must finish after the end of stdin. `None` for no limit.
    #[cfg(feature = "stdio")]
    pub(crate) fn stdin_drain(&self) -> Option<Duration> {
        let ends = self.dialect.as_ref().is_some_and(|dialect| dialect.ends_with_stdin);
        ends.then_some(self.limits.shutdown_timeout)
    }

    /// Runs `on_connect` of the application on the facts of a connection or request.
    #[inline]
    pub(crate) fn complete(&self, facts: &mut Connection) -> Result<(), Panicked> {
        match &self.on_connect {
            Some(on_connect) => complete(on_connect, facts),
            None => Ok(()),
        }
    }
}

/// Apart, so that a request without `on_connect` does not pay for it.
#[inline(never)]
fn complete(on_connect: &OnConnect, facts: &mut Connection) -> Result<(), Panicked> {
    guarded("`on_connect`", || on_connect(facts))
}
