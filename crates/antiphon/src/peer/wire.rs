//! What a connection is made of: a transport, and the facts about it.
//!
//! [`Transport`] is the seam between a connection and the wire that carries it. The connection never
//! knows which wire it is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_core::framing::FrameError;
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use crate::connection::Connection;
use crate::io::Meter;

/// Whole messages in, whole messages out.
///
/// What is handed to the sink may gather there; a flush sends it. A [`TransportError::Frame`] leaves
/// the stream usable, any other error ends it.
pub trait Transport:
    Stream<Item = Result<Bytes, TransportError>>
    + Sink<Bytes, Error = TransportError>
    + Send
    + Unpin
    + 'static
{
}

impl<T> Transport for T where
    T: Stream<Item = Result<Bytes, TransportError>>
        + Sink<Bytes, Error = TransportError>
        + Send
        + Unpin
        + 'static
{
}

/// What goes wrong on a wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// One message could not be taken; the next one can.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The bytes do not flow any more.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other side broke the rules of the wire.
    #[error("{0}")]
    Broken(String),
}

/// A transport with the facts that the connection above it needs.
pub(crate) struct Wire<T> {
    pub(crate) transport: T,
    pub(crate) facts: Connection,
    pub(crate) meter: Arc<Meter>,
    pub(crate) at_eof: AtEof,
    pub(crate) lines: LineFrames,
}

impl<T> Wire<T> {
    /// A wire whose end of input means that the other side is gone, and whose frames are messages.
    pub(crate) fn new(transport: T, facts: Connection) -> Self {
        let (meter, lines) = (Arc::default(), LineFrames::default());
        Self { transport, facts, meter, at_eof: AtEof::Cancel, lines }
    }
}

/// The meaning of the end of the incoming stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtEof {
    /// The other side may still read: finish what was accepted, for at most this long.
    Drain(Option<Duration>),
    /// The other side is gone.
    Cancel,
}

/// Whether the frames of a transport are whole lines, which may hold several JSON texts.
///
/// The transport turns it on once the framing is known, which may be as late as the first byte. The
/// reader then splits a line that does not decode as one text. `None` for every other transport.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineFrames(Option<Arc<AtomicBool>>);

impl LineFrames {
    /// A flag that is off and may be turned on.
    pub(crate) fn undecided() -> Self {
        Self(Some(Arc::default()))
    }

    pub(crate) fn turn_on(&self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
