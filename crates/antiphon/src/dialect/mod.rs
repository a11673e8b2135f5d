//! Conventions on top of JSON-RPC, such as those of LSP and MCP, as configuration.
//!
//! Plain JSON-RPC can neither cancel a call nor report its progress. A [`Dialect`] names the
//! notifications that do so on a connection. Both peers must use the same dialect.

mod cancel;
mod progress;

pub use cancel::Cancellation;
pub use progress::{ProgressStyle, Token};

/// The notifications that have a meaning beyond the specification. The default is plain JSON-RPC.
///
/// ```
/// use antiphon::{Cancellation, Dialect, ProgressStyle};
///
/// // `$/cancelRequest`, `$/progress`
/// let editor = Dialect::lsp();
/// // `notifications/cancelled`, `notifications/progress`
/// let model = Dialect::mcp();
/// // A custom dialect: progress refers to the id of the call, and params may have any shape.
/// let own = Dialect::plain()
///     .cancellation(Cancellation::new("cancel", "id"))
///     .progress(ProgressStyle::by_id("progress"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) cancellation: Option<Cancellation>,
    pub(crate) progress: Option<ProgressStyle>,
}

impl Dialect {
    /// JSON-RPC as specified, without cancellation and progress.
    pub fn plain() -> Self {
        Self::default()
    }

    /// The Language Server Protocol. A call cancelled with `$/cancelRequest` gets the error -32800;
    /// `$/progress` refers to the `workDoneToken` of the params.
    pub fn lsp() -> Self {
        Self::plain().cancellation(Cancellation::new("$/cancelRequest", "id")).progress(
            ProgressStyle::by_param("$/progress", "token", &["workDoneToken"]).under("value"),
        )
    }

    /// The Model Context Protocol. A call cancelled with `notifications/cancelled` gets no response;
    /// `notifications/progress` refers to the `progressToken` in the `_meta` of the params.
    pub fn mcp() -> Self {
        let token = ["_meta", "progressToken"];
        Self::plain()
            .cancellation(Cancellation::new("notifications/cancelled", "requestId").silent())
            .progress(ProgressStyle::by_param("notifications/progress", "progressToken", &token))
    }

    /// Sets the notification that cancels a call.
    #[must_use]
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets the notification that reports progress.
    #[must_use]
    pub fn progress(mut self, progress: ProgressStyle) -> Self {
        self.progress = Some(progress);
        self
    }

    /// `None` for plain JSON-RPC, so that the hot path skips the check.
    pub(crate) fn unless_plain(self) -> Option<Self> {
        (self != Self::plain()).then_some(self)
    }
}
