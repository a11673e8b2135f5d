//! Progress and partial results.

use crate::types::{ProgressToken, RequestWithPartialResults};

/// The params of a request whose result may arrive in parts.
///
/// Implemented for the params of every such request of the protocol.
pub trait PartialResultParams {
    /// The request.
    type Request: RequestWithPartialResults;

    /// The token that the parts of the result carry.
    fn partial_result_token(&mut self) -> &mut Option<ProgressToken>;
}
