//! Progress and partial results: which requests want them, how a server sends them, and how an editor reads them.
//!
//! The reports of a request precede its response, because both use the write queue of the connection. This module never
//! decides when to report.
//!
//! Invariant: every `begin` is followed by one `end`, even if the handler is cancelled or panics, and no `end` is sent
//! without a `begin`. Nothing with a token follows the last response of the requests that have this
//! token.

mod part_queue;
mod partial_results;
mod report;
mod report_line;
mod reporters;
mod result_stream;
mod work_done;

pub use self::partial_results::PartialResults;
pub use self::report::WorkDoneReport;
pub(crate) use self::reporters::Reporters;
pub use self::result_stream::ResultStream;
pub use self::work_done::{BeginProgress, WorkDoneProgress};
use crate::types::{ProgressToken, Request, RequestWithPartialResults};

/// The result of the request that has these params.
pub type ResultOf<P> = <<P as PartialResultParams>::Request as Request>::Result;

/// The params of a request whose result may arrive in parts.
///
/// Implemented for the params of every such request of the protocol.
pub trait PartialResultParams {
    /// The request.
    type Request: RequestWithPartialResults;

    /// Returns the token for the parts of the result. `None` if the caller wants the result in one piece.
    fn partial_result_token(&self) -> Option<&ProgressToken>;

    /// Returns a mutable reference to the token, so that a caller can set it.
    fn partial_result_token_mut(&mut self) -> &mut Option<ProgressToken>;

    /// Returns an empty result: the response of a request whose result was sent in parts.
    fn empty_result() -> ResultOf<Self>;
}

/// The params of a request whose progress can be reported.
///
/// Implemented for the params of every such request of the protocol.
pub trait WorkDoneParams {
    /// Returns the token for the reports. `None` if the caller wants no progress.
    fn work_done_token(&self) -> Option<&ProgressToken>;
}
