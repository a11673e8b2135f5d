//! This process's stdin and stdout, for a server that an editor or a tool starts.
//!
//! Nothing else may write to stdout then: logs go to stderr.

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use tokio::io::{Join, Stdin, Stdout, join, stdin, stdout};

use super::stream::FramedStream;
use crate::connection::Connection;
use crate::peer::{AtEof, Wire};

/// Frames over stdin and stdout.
pub(crate) type StdioTransport = FramedStream<Join<Stdin, Stdout>>;

/// The wire of this process. The end of stdin ends it when everything accepted has been answered,
/// however long that takes: whoever closed stdin still reads.
pub(crate) fn wire(framing: Option<Framing>, limits: &Limits) -> Wire<StdioTransport> {
    FramedStream::new(join(stdin(), stdout()), framing, limits.longest_frame())
        .into_wire(Connection::new("stdio"), AtEof::Drain(None))
}
