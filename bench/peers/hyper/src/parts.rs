//! A body in pieces, without a copy into one buffer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

pub(crate) struct Parts(std::array::IntoIter<Bytes, 3>);

impl Parts {
    pub(crate) fn one(whole: Vec<u8>) -> Self {
        Self::three([Bytes::new(), Bytes::new(), whole.into()])
    }

    pub(crate) fn three(parts: [Bytes; 3]) -> Self {
        let mut parts = parts.into_iter();
        while parts.as_slice().first().is_some_and(Bytes::is_empty) {
            parts.next();
        }
        Self(parts)
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|part| part.len() as u64).sum())
    }
}
