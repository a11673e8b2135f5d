//! Raw TCP.

use std::io;

use antiphon_core::Limits;
use antiphon_core::framing::Framing;
use tokio::net::TcpStream;

use super::stream::FramedStream;
use crate::context::Connection;
use crate::peer::{AtEnd, Wire};

/// Frames over a TCP connection.
pub(crate) type TcpTransport = FramedStream<TcpStream>;

/// Connects, without Nagle's delay.
pub(crate) async fn connect(authority: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A wire of a connected stream.
pub(crate) fn wire(
    stream: TcpStream,
    framing: Option<Framing>,
    limits: &Limits,
) -> Wire<TcpTransport> {
    let facts = Connection::new("tcp").from(stream.peer_addr().ok());
    let transport = FramedStream::new(stream, framing, limits.longest_frame()).whole_lines();
    let meter = transport.meter();
    Wire { transport, facts, meter, at_end: AtEnd::Drain(Some(limits.shutdown_timeout)) }
}
