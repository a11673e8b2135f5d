//! The encoding of outgoing calls and notifications in the JSON-RPC version of the dialect.

use antiphon_core::{Id, Method, Params, encode};
use bytes::{BufMut as _, BytesMut};

/// The encoding of outgoing calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallStyle {
    #[default]
    V2,
    /// JSON-RPC 1.0: no `jsonrpc`, and every message has `params` and `id`.
    V1,
    /// Like `V1`, with `"jsonrpc":"1.0"`, as in the documentation of Bitcoin nodes. btcd requires it.
    StatedV1,
}

impl CallStyle {
    /// Appends a call up to its id.
    #[inline(always)]
    pub(crate) fn encode_head(self, method: &Method, params: Option<&Params>, out: &mut BytesMut) {
        match self {
            Self::V2 => encode::call_head(method, params, out),
            Self::V1 => head_of_v1(b"{\"method\":", method, params, out),
            Self::StatedV1 => {
                head_of_v1(b"{\"jsonrpc\":\"1.0\",\"method\":", method, params, out);
            }
        }
    }

    /// Appends the end of a notification. In 1.0, its id is null.
    #[inline(always)]
    pub(crate) fn end_notification(self, out: &mut BytesMut) {
        match self {
            Self::V2 => out.put_u8(b'}'),
            Self::V1 | Self::StatedV1 => encode_id(&Id::Null, out),
        }
    }
}

/// Appends the id and the closing brace to the encoded head of a request.
pub(crate) fn encode_id(id: &Id, out: &mut BytesMut) {
    out.extend_from_slice(b",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.put_u8(b'}');
}

#[cold]
fn head_of_v1(before: &[u8], method: &Method, params: Option<&Params>, out: &mut BytesMut) {
    out.extend_from_slice(before);
    out.extend_from_slice(method.as_json().as_bytes());
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.map_or(b"[]", |params| params.as_json().as_bytes()));
}
