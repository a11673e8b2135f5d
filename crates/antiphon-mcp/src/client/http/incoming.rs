//! The messages of a server in HTTP bodies and event streams.

use antiphon::core::{Invalid, Message, Payload, Response, Rules, decode};
use antiphon::{Id, Params, RawJson};
use bytes::Bytes;

use crate::client::error::McpError;
use crate::client::inbox::Inbox;

/// A request of a legacy server.
pub(super) struct ServerRequest {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<RawJson>,
}

/// What a body or event contains besides notifications, which are handled at once.
#[derive(Default)]
pub(super) struct Received {
    /// The responses.
    pub(super) responses: Vec<Response>,
    /// The requests.
    pub(super) requests: Vec<ServerRequest>,
}

/// Reads the messages of a body or an event. `origin` is the id of the request whose response carries them.
///
/// # Errors
/// Fails if it is not JSON-RPC. A response with both a result and an error, or with an invalid id, is not.
pub(super) fn read(
    json: impl Into<Bytes>,
    inbox: &Inbox,
    origin: Option<u64>,
) -> Result<Received, McpError> {
    let rules = Rules { null_params: true, ..Rules::default() };
    let mut received = Received::default();
    let mut take = |entry: Result<Message, Invalid>| match entry {
        Ok(Message::Response(response)) => {
            received.responses.push(response);
            Ok(())
        }
        Ok(Message::Request(request)) => {
            let method = request.method.as_str().to_owned();
            let params = request.params.map(Params::into_json);
            received.requests.push(ServerRequest { id: request.id, method, params });
            Ok(())
        }
        Ok(Message::Notification(notification)) => {
            let params = notification.params.map(Params::into_json);
            inbox.notification(notification.method.as_str(), params.as_ref(), origin);
            Ok(())
        }
        Err(invalid) => {
            Err(McpError::Protocol(format!("a message is not JSON-RPC: {}", invalid.error)))
        }
    };
    match decode(&json.into(), &rules) {
        Payload::One(entry) => take(entry)?,
        // Revision 2025-03-26 has batches.
        Payload::Batch(entries) => entries.into_iter().try_for_each(take)?,
    }
    Ok(received)
}

/// Takes the outcome of a call from the responses of its own stream. A response with another id is an error.
pub(super) fn outcome(responses: Vec<Response>, id: u64) -> Result<Option<RawJson>, McpError> {
    let mut found = None;
    for response in responses {
        if response.id.as_u64() != Some(id) {
            let text: String = response.id.as_str().chars().take(64).collect();
            let reason = format!("a response has the id {text}, and the request has {id}");
            return Err(McpError::Protocol(reason));
        }
        if found.is_some() {
            return Err(McpError::Protocol(format!("the request {id} has two responses")));
        }
        found = Some(response.outcome.map_err(McpError::Rpc)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::handlers::Handlers;

    fn read_outcome(json: &'static str) -> Result<Option<RawJson>, McpError> {
        let received = read(json.as_bytes(), &Inbox::new(Handlers::default()), None)?;
        outcome(received.responses, 7)
    }

    #[test]
    fn only_a_valid_response_with_the_right_id_is_accepted() {
        let ok = read_outcome(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).unwrap();
        assert_eq!(ok.unwrap().as_str(), "{}");
        let none = read_outcome(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
        assert_eq!(none, None);
        let error = read_outcome(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}"#);
        assert_eq!(error.unwrap_err().code(), Some(1));
        for json in [
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            r#"{"id":7,"result":{}}"#,
            "nonsense",
        ] {
            let error = read_outcome(json).unwrap_err();
            assert!(matches!(error, McpError::Protocol(_)), "{json}: {error}");
        }
    }
}
