//! Progress and partial results.

use crate::types::{ProgressToken, RequestWithPartialResults};

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
