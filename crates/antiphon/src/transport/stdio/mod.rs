//! This process's stdin and stdout, for a server that an editor or a tool starts.
//!
//! Nothing else may write to stdout: logs go to stderr.
//!
//! A blocking read or write cannot be cancelled, and a runtime waits for those that it has started when it
//! shuts down. So a thread of our own reads stdin, and another one writes stdout: `main` can return while the
//! parent neither writes nor reads.

mod stdin;
mod stdout;

use antiphon_core::framing::Framing;
use tokio::io::{Join, join};

use self::stdin::Stdin;
use self::stdout::Stdout;
use super::stream::FramedStream;
use crate::connection::Connection;
use crate::engine::Settings;
use crate::peer::{AtEof, Wire};

/// Frames over stdin and stdout.
pub(crate) type StdioTransport = FramedStream<Join<Stdin, Stdout>>;

/// The wire over stdin and stdout. After the end of stdin, it ends when every accepted request has its
/// response. A parent that closes stdin may still read, so there is no timeout. A dialect can set one.
pub(crate) fn wire(framing: Option<Framing>, settings: &Settings) -> Wire<StdioTransport> {
    let longest = settings.limits.longest_frame();
    FramedStream::new(join(Stdin::default(), Stdout::new()), framing, longest)
        .into_wire(Connection::new("stdio"), AtEof::Drain(settings.stdin_drain()))
}
