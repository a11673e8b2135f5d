//! The [`Transport`] trait between a connection and its wire, and the facts that come with a transport.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_core::framing::FrameError;
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use crate::connection::Connection;
use crate::error::BoxError;
use crate::io::Meter;

/// A duplex transport of whole messages: a `Stream` of incoming and a `Sink` of outgoing messages.
///
/// Each item is one JSON text: a message or a batch. The sink may buffer messages until it is flushed.
/// After a [`TransportError::Frame`] the stream can still be read; any other error ends the connection.
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

/// The error of a transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// One message could not be read. The next one can.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The input has ended for this reason. As after an end without a reason, accepted requests are finished.
    #[error(transparent)]
    Ended(BoxError),
    /// The peer violated the protocol of the transport.
    #[error("{0}")]
    Broken(String),
}

/// A transport, with the facts that the connection above it needs.
pub(crate) struct Wire<T> {
    pub(crate) transport: T,
    pub(crate) facts: Connection,
    pub(crate) meter: Arc<Meter>,
    pub(crate) at_eof: AtEof,
    pub(crate) lines: LineFrames,
}

impl<T> Wire<T> {
    /// A wire whose end of input means that the peer is gone, and whose frames are single messages.
    pub(crate) fn new(transport: T, facts: Connection) -> Self {
        let (meter, lines) = (Arc::default(), LineFrames::default());
        Self { transport, facts, meter, at_eof: AtEof::Cancel, lines }
    }
}

/// The meaning of the end of the incoming stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtEof {
    /// The peer may still read: finish the accepted requests, within this time limit if there is one.
    Drain(Option<Duration>),
    /// The peer is gone.
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
