//! One HTTP/1.1 connection, with one exchange after another on it.
//!
//! The future of the call drives the exchange, so that no task stands between a call and its socket. An
//! exchange that is dropped early drops its connection too.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::ExchangeError;
use super::response::{ReadProgress, ReceivedResponse, ResponseReader};
use crate::io::Meter;
use crate::io::buffer_pool::PooledBuffer;
use crate::io::read_buffer::ReadBuffer;
use crate::io::stall_timer::StallTimer;
use bytes::Buf as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::unconstrained;

#[derive(Debug)]
pub(super) struct Http1Connection<S> {
    stream: S,
    incoming: ReadBuffer,
    meter: Meter,
    /// Whether an exchange has completed on it.
    is_used: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1Connection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, incoming: ReadBuffer::new(&[]), meter: Meter::default(), is_used: false }
    }

    /// Whether it can carry another exchange: it is open, and the server has sent nothing unasked.
    pub(super) async fn is_reusable(&mut self) -> bool {
        let look = poll_fn(|cx| {
            let mut byte = [0];
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte));
            Poll::Ready(read.is_pending())
        });
        // A read that the spent budget of the task refuses would look like an idle connection.
        unconstrained(look).await
    }

    /// Sends a request and reads the response; fails after `stall` without progress in either. Returns the
    /// response, and whether the connection can be used again. A request of which nothing could be sent is
    /// left in `request`.
    pub(super) async fn exchange(
        &mut self,
        request: &mut PooledBuffer,
        reader: ResponseReader,
        stall: Duration,
    ) -> Result<(ReceivedResponse, bool), ExchangeError> {
        let mut exchange = Http1Exchange {
            connection: self,
            request,
            sending: SendState::Writing { begun: false },
            reader,
            wanted: 0,
            stall,
            stall_timer: None,
        };
        poll_fn(|cx| exchange.poll(cx)).await
    }
}

struct Http1Exchange<'a, S> {
    connection: &'a mut Http1Connection<S>,
    /// The bytes of the request that are not sent yet.
    request: &'a mut PooledBuffer,
    sending: SendState,
    reader: ResponseReader,
    /// The number of bytes that the next read makes room for.
    wanted: usize,
    /// The longest time without progress in the request or the response.
    stall: Duration,
    stall_timer: Option<StallTimer>,
}

/// The progress of sending the request.
enum SendState {
    Writing {
        begun: bool,
    },
    Flushing,
    Sent,
    /// The server accepts no more bytes. It may have responded before.
    Broken(Option<io::Error>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1Exchange<'_, S> {
    /// Sends and reads at once: a server may respond before it has read the whole request, and stop
    /// reading. A request that cannot be sent completely may still have a response.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(ReceivedResponse, bool), ExchangeError>> {
        self.poll_send(cx)?;
        loop {
            let Http1Connection { stream, incoming, meter, .. } = &mut *self.connection;
            let ended = match incoming.poll_read(stream, cx, self.wanted, meter) {
                Poll::Pending => {
                    incoming.release();
                    return self.poll_stalled(cx).map(Err);
                }
                Poll::Ready(Ok(read)) => read == 0,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.read_error(error))),
            };
            match self.reader.read(&mut incoming.buf, ended) {
                Ok(ReadProgress::Partial(wanted)) => self.wanted = wanted,
                Ok(ReadProgress::Complete(response, keeps_alive)) => {
                    return Poll::Ready(Ok(self.finish(response, keeps_alive)));
                }
                Err(ExchangeError::Unanswered(None)) => {
                    return Poll::Ready(Err(self.unanswered(None)));
                }
                Err(fault) => return Poll::Ready(Err(fault)),
            }
        }
    }

    /// Sends as much as the stream accepts. Fails if a reused connection accepts nothing: the server has
    /// closed it, and will not respond to this request.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), ExchangeError> {
        while let SendState::Writing { begun } = self.sending {
            let Http1Connection { stream, meter, is_used, .. } = &mut *self.connection;
            let written = Pin::new(stream).poll_write(cx, self.request);
            meter.wrote(&written);
            let fault = match written {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => io::ErrorKind::WriteZero.into(),
                Poll::Ready(Ok(written)) => {
                    self.request.advance(written);
                    self.sending = SendState::Writing { begun: true };
                    if self.request.is_empty() {
                        self.request.release();
                        self.sending = SendState::Flushing;
                    }
                    continue;
                }
                Poll::Ready(Err(error)) => error,
            };
            if *is_used && !begun {
                return Err(ExchangeError::Unsent(fault));
            }
            self.sending = SendState::Broken(Some(fault));
        }
        if let SendState::Flushing = self.sending {
            match Pin::new(&mut self.connection.stream).poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.sending = SendState::Sent,
                Poll::Ready(Err(error)) => self.sending = SendState::Broken(Some(error)),
            }
        }
        Ok(())
    }

    /// Ready when a message that has begun, in or out, makes no progress for `stall`. Between the request
    /// and the first byte of the response no timer runs.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<ExchangeError> {
        let is_sent = matches!(self.sending, SendState::Sent | SendState::Broken(_));
        let is_answering = self.reader.is_in_body() || !self.connection.incoming.buf.is_empty();
        if is_sent && !is_answering {
            self.stall_timer = None;
            return Poll::Pending;
        }
        let (moved, stall) = (self.connection.meter.moved(), self.stall);
        let timer = self.stall_timer.get_or_insert_with(|| StallTimer::new(moved, stall));
        timer.poll(moved, cx).map(|()| ExchangeError::Stalled { stall, is_answering })
    }

    fn finish(
        &mut self,
        response: ReceivedResponse,
        keeps_alive: bool,
    ) -> (ReceivedResponse, bool) {
        let is_sent = matches!(self.sending, SendState::Sent);
        let buf = std::mem::take(&mut self.connection.incoming.buf);
        let is_reusable = keeps_alive && is_sent && buf.is_empty();
        self.connection.is_used = true;
        (response.in_buffer(buf), is_reusable)
    }

    /// The error of a failed read.
    fn read_error(&mut self, error: io::Error) -> ExchangeError {
        if self.reader.has_begun() || !self.connection.incoming.buf.is_empty() {
            return ExchangeError::BrokeOff(error.into());
        }
        self.unanswered(Some(error))
    }

    /// The error of an exchange without a response. A failure to send is the more specific cause.
    fn unanswered(&mut self, error: Option<io::Error>) -> ExchangeError {
        match &mut self.sending {
            SendState::Broken(first) => ExchangeError::Unanswered(first.take().or(error)),
            _ => ExchangeError::Unanswered(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::sleep;

    use super::*;

    const PLAIN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                           3;x\r\nhel\r\n2\r\nlo\r\n0\r\na: b\r\n\r\n";

    const STALL: Duration = Duration::from_secs(30);

    async fn exchange(
        connection: &mut Http1Connection<DuplexStream>,
        request: &str,
    ) -> Result<(Bytes, bool), ExchangeError> {
        let mut request = PooledBuffer::own(request.as_bytes());
        let (response, is_reusable) =
            connection.exchange(&mut request, ResponseReader::new(1_000), STALL).await?;
        Ok((response.body.clone(), is_reusable))
    }

    #[tokio::test]
    async fn a_request_leaves_and_a_response_comes_by_any_number_of_bytes() {
        for room in 1..=CHUNKED.len() {
            let (near, mut far) = duplex(room);
            let mut connection = Http1Connection::new(near);
            let server = tokio::spawn(async move {
                for response in [PLAIN, CHUNKED, PLAIN] {
                    far.read_exact(&mut [0; 7]).await.unwrap();
                    far.write_all(response.as_bytes()).await.unwrap();
                }
                far
            });
            for _ in 0..3 {
                let (body, is_reusable) = exchange(&mut connection, "request").await.unwrap();
                assert_eq!((&body[..], is_reusable), (&b"hello"[..], true), "{room} at a time");
                assert_eq!(
                    connection.incoming.buf.capacity(),
                    0,
                    "an idle connection holds no buffer"
                );
            }
            let far = server.await.unwrap();
            assert!(connection.is_reusable().await);
            drop(far);
            assert!(!connection.is_reusable().await);
        }
    }

    #[tokio::test]
    async fn unasked_bytes_end_the_reuse() {
        let (near, mut far) = duplex(1_000);
        let mut connection = Http1Connection::new(near);
        far.write_all(format!("{PLAIN}HTTP/1.1 408").as_bytes()).await.unwrap();
        assert_eq!(exchange(&mut connection, "request").await.unwrap(), ("hello".into(), false));
        let (near, mut far) = duplex(1_000);
        let mut connection = Http1Connection::new(near);
        far.write_all(PLAIN.as_bytes()).await.unwrap();
        assert_eq!(exchange(&mut connection, "request").await.unwrap(), ("hello".into(), true));
        far.write_all(b"H").await.unwrap();
        assert!(!connection.is_reusable().await);
    }

    #[tokio::test]
    async fn a_server_may_answer_before_it_has_read_all() {
        // It closes the connection, or keeps it and reads no more; the response is the same.
        for goes in [true, false] {
            let (near, mut far) = duplex(100);
            let mut connection = Http1Connection::new(near);
            far.write_all(PLAIN.as_bytes()).await.unwrap();
            let far = (!goes).then_some(far);
            let answer = exchange(&mut connection, &"x".repeat(1_000)).await.unwrap();
            assert_eq!(answer, ("hello".into(), false));
            drop(far);
        }
    }

    #[tokio::test]
    async fn a_request_of_which_nothing_was_sent_can_be_sent_again() {
        let (near, mut far) = duplex(1_000);
        let mut connection = Http1Connection::new(near);
        far.write_all(PLAIN.as_bytes()).await.unwrap();
        exchange(&mut connection, "first").await.unwrap();
        drop(far);
        let mut second = PooledBuffer::own(b"second");
        let fault =
            connection.exchange(&mut second, ResponseReader::new(1_000), STALL).await.unwrap_err();
        assert!(matches!(fault, ExchangeError::Unsent(_)), "{fault:?}");
        assert_eq!(*second, "second");
    }

    #[tokio::test]
    async fn a_request_that_may_have_been_read_is_unanswered() {
        // On a new connection, a failed first write does not prove that nothing was read.
        for room in [3, 1_000] {
            let (near, mut far) = duplex(room);
            let server = tokio::spawn(async move { far.read_u8().await.unwrap() });
            let fault = exchange(&mut Http1Connection::new(near), "request").await.unwrap_err();
            assert!(matches!(fault, ExchangeError::Unanswered(_)), "{fault:?}");
            server.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_response_that_ends_early_broke_off() {
        for text in [PLAIN, CHUNKED] {
            for at in 1..text.len() {
                let (near, mut far) = duplex(1_000);
                far.write_all(&text.as_bytes()[..at]).await.unwrap();
                drop(far);
                let fault = exchange(&mut Http1Connection::new(near), "request").await.unwrap_err();
                assert!(matches!(fault, ExchangeError::BrokeOff(_)), "{at}: {fault:?}");
            }
        }
    }

    /// The clock is paused, and advances when every task waits.
    #[tokio::test(start_paused = true)]
    async fn a_message_without_progress_fails() {
        for said in ["H", "HTTP/1.1 200 OK\r\n", &PLAIN[..PLAIN.len() - 1], &CHUNKED[..60]] {
            let (near, mut far) = duplex(1_000);
            far.write_all(said.as_bytes()).await.unwrap();
            let fault = exchange(&mut Http1Connection::new(near), "request").await.unwrap_err();
            assert!(
                matches!(fault, ExchangeError::Stalled { is_answering: true, .. }),
                "{fault:?}"
            );
            drop(far);
        }
        let (near, _far) = duplex(3);
        let fault = exchange(&mut Http1Connection::new(near), "request").await.unwrap_err();
        assert!(matches!(fault, ExchangeError::Stalled { is_answering: false, .. }), "{fault:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_progress_and_a_late_response_do_not_fail() {
        let (near, mut far) = duplex(1_000);
        let server = tokio::spawn(async move {
            for head in ["", "HTTP/1.1 102 Processing\r\n\r\n"] {
                far.write_all(head.as_bytes()).await.unwrap();
                sleep(100 * STALL).await;
            }
            for byte in CHUNKED.as_bytes() {
                far.write_all(&[*byte]).await.unwrap();
                sleep(STALL / 2).await;
            }
        });
        let answer = exchange(&mut Http1Connection::new(near), "request").await.unwrap();
        assert_eq!(answer, ("hello".into(), true));
        server.await.unwrap();
    }
}
