//! What a community adds to JSON-RPC: as policy, and never as a fork.
//!
//! Plain JSON-RPC has no way to cancel a call and none to tell how far it has come. A [`Dialect`] says
//! which notifications mean that on a connection; both sides have to agree on it.

mod cancel;
mod progress;

pub use cancel::Cancellation;
pub use progress::{ProgressStyle, Token};

/// Which notifications mean more than the specification says. The default is none.
///
/// ```
/// use antiphon::{Cancellation, Dialect, ProgressStyle};
///
/// // `$/cancelRequest`, `$/progress`
/// let editor = Dialect::lsp();
/// // `notifications/cancelled`, `notifications/progress`
/// let model = Dialect::mcp();
/// // One's own: progress goes by the id of the call, with params of any shape.
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
    /// JSON-RPC as it is specified.
    pub fn plain() -> Self {
        Self::default()
    }

    /// The language server protocol's: `$/cancelRequest` answers -32800, `$/progress` goes by the
    /// `workDoneToken` of the params.
    pub fn lsp() -> Self {
        Self::plain().cancellation(Cancellation::new("$/cancelRequest", "id")).progress(
            ProgressStyle::by_param("$/progress", "token", &["workDoneToken"]).under("value"),
        )
    }

    /// The model context protocol's: what `notifications/cancelled` cancels has no answer,
    /// `notifications/progress` goes by the `progressToken` in the `_meta` of the params.
    pub fn mcp() -> Self {
        let token = ["_meta", "progressToken"];
        Self::plain()
            .cancellation(Cancellation::new("notifications/cancelled", "requestId").silent())
            .progress(ProgressStyle::by_param("notifications/progress", "progressToken", &token))
    }

    /// Cancels calls this way.
    #[must_use]
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Tells progress this way.
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
