//! WebSocket: one JSON text a message, text or binary.
//!
//! tokio-websockets does the protocol: pings are answered, fragments joined, invalid UTF-8 closes
//! with 1007, a message over the limit with 1009. Frames that go out gather until they are flushed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::Limits as Bounds;
use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_websockets::{
    ClientBuilder, CloseCode, Config, Limits, Message, Payload, ServerBuilder, WebSocketStream,
};

use super::{Meter, Metered, TransportError, tcp};
use crate::context::Connection;
use crate::endpoint::Authority;
use crate::peer::{AtEnd, Wire};

/// What gathers before the sink writes without being flushed.
const GATHER: usize = 64 * 1024;
/// Pings answered before the other side has taken one pong: past it, it only floods.
const MAX_UNSENT_PONGS: usize = 1_024;

/// What is let by of a message that was refused, and for how long.
const MAX_LET_BY: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(1);

/// Messages over a WebSocket.
pub(crate) struct WsTransport<S> {
    socket: WebSocketStream<Metered<S>>,
    meter: Arc<Meter>,
    unsent_pongs: usize,
    /// Why it ends, once the goodbyes are said.
    fault: Option<String>,
    let_by: usize,
    /// How long the other side may go on, where it is we who end it.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> WsTransport<S> {
    fn new(socket: WebSocketStream<Metered<S>>, meter: Arc<Meter>) -> Self {
        Self { socket, meter, unsent_pongs: 0, fault: None, let_by: 0, patience: None }
    }
}

fn config() -> Config {
    Config::default().flush_threshold(GATHER).frame_size(usize::MAX)
}

fn limits(bounds: &Bounds) -> Limits {
    Limits::default().max_payload_len(Some(bounds.frame_bytes))
}

/// Takes over a stream whose handshake is done.
pub(crate) fn serve<S>(
    stream: Metered<S>,
    facts: Connection,
    bounds: &Bounds,
) -> Wire<WsTransport<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let meter = stream.meter();
    // The handshake is over, and nothing has been said yet.
    meter.whole(false);
    let socket = ServerBuilder::new().config(config()).limits(limits(bounds)).serve(stream);
    let transport = WsTransport::new(socket, meter.clone());
    Wire { transport, facts, meter, at_end: AtEnd::Cancel }
}

/// Connects and shakes hands.
pub(crate) async fn connect(
    authority: &Authority,
    path: &str,
    headers: &HeaderMap,
    bounds: &Bounds,
) -> io::Result<Wire<WsTransport<TcpStream>>> {
    let stream = tcp::connect(&authority.with_default_port(80)).await?;
    let facts = Connection::new("ws").from(stream.peer_addr().ok());
    let stream = Metered::new(stream);
    let meter = stream.meter();
    let uri = format!("ws://{authority}{path}");
    let mut builder = ClientBuilder::new()
        .uri(&uri)
        .map_err(io::Error::other)?
        .config(config())
        .limits(limits(bounds));
    for (name, value) in headers {
        builder = builder.add_header(name.clone(), value.clone()).map_err(io::Error::other)?;
    }
    let (socket, _response) = builder.connect_on(stream).await.map_err(io::Error::other)?;
    meter.whole(false);
    let transport = WsTransport::new(socket, meter.clone());
    Ok(Wire { transport, facts, meter, at_end: AtEnd::Cancel })
}

fn reason(error: &tokio_websockets::Error) -> String {
    match error {
        tokio_websockets::Error::PayloadTooLong { max_len, .. } => {
            format!("a message is over the limit of {max_len} bytes; raise the frame limit")
        }
        other => format!("the other side broke the WebSocket protocol: {other}"),
    }
}

/// What a close says that is more than a goodbye.
fn complaint((code, reason): (CloseCode, &str)) -> Option<String> {
    let code = u16::from(code);
    (code > 1001 && code != 1005)
        .then(|| format!("the other side closed the WebSocket with {code}: {reason}"))
}

fn broken(error: tokio_websockets::Error) -> TransportError {
    match error {
        tokio_websockets::Error::Io(error) => TransportError::Io(error),
        other => TransportError::Broken(other.to_string()),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for WsTransport<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(fault) = &self.fault {
                // The goodbye that says why goes out first.
                let fault = TransportError::Broken(fault.clone());
                let flushed = ready!(Pin::new(&mut self.socket).poll_flush(cx));
                if flushed.is_ok() {
                    ready!(self.poll_let_by(cx));
                }
                return Poll::Ready(Some(flushed.map_err(broken).and(Err(fault))));
            }
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(message)) if message.is_text() || message.is_binary() => {
                    self.meter.whole(false);
                    return Poll::Ready(Some(Ok(message.into_payload().into())));
                }
                Some(Ok(message)) => {
                    self.meter.whole(false);
                    if message.is_ping() {
                        self.pong(cx)?;
                    }
                    self.fault = message.as_close().and_then(complaint);
                }
                Some(Err(tokio_websockets::Error::Io(error))) => {
                    return Poll::Ready(Some(Err(TransportError::Io(error))));
                }
                Some(Err(error)) => self.close_for(&error),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WsTransport<S> {
    /// The pong is queued by then; it goes out, or it counts.
    fn pong(&mut self, cx: &mut Context<'_>) -> Result<(), TransportError> {
        self.unsent_pongs += 1;
        if self.unsent_pongs > MAX_UNSENT_PONGS {
            let flood = "pings come faster than pongs are taken".to_owned();
            return Err(TransportError::Broken(flood));
        }
        if let Poll::Ready(flushed) = Pin::new(&mut self.socket).poll_flush(cx) {
            flushed.map_err(broken)?;
            self.unsent_pongs = 0;
        }
        Ok(())
    }

    /// Lets some of what the other side still sends go by: a socket that is closed before is reset,
    /// and the goodbye lost.
    fn poll_let_by(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(patience) = &mut self.patience else { return Poll::Ready(()) };
        if patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut waste = [0; 16 * 1024];
        while self.let_by < MAX_LET_BY {
            let mut buf = ReadBuf::new(&mut waste);
            match ready!(Pin::new(self.socket.get_mut()).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => self.let_by += buf.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }

    /// Most faults have queued their close frame; a message that grew too large by fragments has
    /// not.
    fn close_for(&mut self, error: &tokio_websockets::Error) {
        self.fault = Some(reason(error));
        self.patience = Some(Box::pin(sleep(PATIENCE)));
        if let tokio_websockets::Error::PayloadTooLong { .. } = error {
            let goodbye = Message::close(Some(CloseCode::MESSAGE_TOO_BIG), "message too big");
            let _ = Pin::new(&mut self.socket).start_send(goodbye);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sink<Bytes> for WsTransport<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.socket).poll_ready(cx).map_err(broken)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        let message = Message::text(Payload::from(message));
        Pin::new(&mut self.socket).start_send(message).map_err(broken)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(broken)?;
        self.unsent_pongs = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(broken)
    }
}
