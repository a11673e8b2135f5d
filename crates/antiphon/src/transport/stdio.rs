//! This process's stdin and stdout, for a server that an editor or a tool starts.
//!
//! Nothing else may write to stdout: logs go to stderr.

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use tokio::io::{Join, Stdin, Stdout, join, stdin, stdout};

use super::stream::FramedStream;
use crate::connection::Connection;
use crate::peer::{AtEof, Wire};

/// Frames over stdin and stdout.
pub(crate) type StdioTransport = FramedStream<Join<Stdin, Stdout>>;

/// The wire over stdin and stdout. After the end of stdin, it ends when every accepted request has its
/// response. There is no timeout, because a parent that closes stdin may still read.
pub(crate) fn wire(framing: Option<Framing>, limits: &Limits) -> Wire<StdioTransport> {
    FramedStream::new(join(stdin(), stdout()), framing, limits.longest_frame())
        .into_wire(Connection::new("stdio"), AtEof::Drain(None))
}
