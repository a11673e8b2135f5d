//! Progress and partial results: who asked for them, how are they sent, and how are they read?
//!
//! The reports of a request are queued before its response, because both go through the queue of the connection
//! in the order of the handler. This module never decides what is worth a report.
//!
//! Invariant: every `begin` is followed by one `end`, also if the handler is cancelled or panics. The `end` of a
//! request's progress precedes the response.

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

    /// The token that the parts of the result carry, if the caller wants them.
    fn partial_result_token(&self) -> Option<&ProgressToken>;

    /// The same token, for the caller to set.
    fn partial_result_token_mut(&mut self) -> &mut Option<ProgressToken>;

    /// The result without anything in it: the response of a request whose result was sent in parts.
    fn empty_result() -> ResultOf<Self>;
}

/// The params of a request whose progress can be reported.
///
/// Implemented for the params of every such request of the protocol.
pub trait WorkDoneParams {
    /// The token that the reports carry, if the caller wants them.
    fn work_done_token(&self) -> Option<&ProgressToken>;

    /// The same token, for the caller to set.
    fn work_done_token_mut(&mut self) -> &mut Option<ProgressToken>;
}
