//! Encodes replies: a single response, or an Array of them, within the size limit.

use antiphon_core::{ErrorObject, Id, Outcome, encode};
use bytes::{BufMut, Bytes, BytesMut};

use super::dispatcher::id_of;
use super::settings::Settings;
use crate::context::{Context, Origin};
use crate::dialect::ErrorStyle;
use crate::io::buffer_pool::{self, PooledBuffer};

/// Encodes the reply of one payload: a response, an Array of responses, or nothing if there are none
/// (section 6).
pub(super) struct ReplyWriter {
    out: BytesMut,
    batch: bool,
    limit: usize,
    errors: ErrorStyle,
    /// A result was too large and was replaced by an error.
    pub(super) was_cut: bool,
}

impl ReplyWriter {
    /// The expected size of a small response.
    const SMALL: usize = 64;
    /// The maximum capacity that is allocated before the responses are known.
    const MAX_CAPACITY: usize = 64 * 1024;

    pub(super) fn new(entries: usize, batch: bool, settings: &Settings) -> Self {
        let capacity = if batch { (entries * Self::SMALL).min(Self::MAX_CAPACITY) } else { 0 };
        let (limit, errors) = (settings.limits.response_bytes, settings.errors());
        let mut out = BytesMut::with_capacity(capacity);
        if batch && entries == 0 {
            // The decoder accepts an empty batch only if its reply is `[]`.
            out.put_u8(b'[');
        }
        Self { out, batch, limit, errors, was_cut: false }
    }

    pub(super) fn push(&mut self, id: &Id, outcome: &Outcome) {
        if self.batch {
            self.out.put_u8(if self.out.is_empty() { b'[' } else { b',' });
        }
        if !write_answer(id, outcome, self.limit, &mut self.out) {
            self.was_cut = true;
            write_too_large(id, self.limit, self.errors, &mut self.out);
        }
    }

    pub(super) fn is_batch(&self) -> bool {
        self.batch
    }

    pub(super) fn finish(&mut self) -> Option<Bytes> {
        let mut out = std::mem::take(&mut self.out);
        if self.batch && !out.is_empty() {
            out.put_u8(b']');
        }
        (!out.is_empty()).then(|| out.freeze())
    }
}

/// The buffer in which single responses are encoded. Each one is split off.
///
/// The buffer comes from the pool of the thread, or each response gets a buffer of its own. A large
/// response is encoded in a separate large buffer: small responses in the same buffer, while they wait to
/// be sent, would keep its memory.
#[derive(Default)]
pub(crate) struct ReplyBuffer {
    buffer: PooledBuffer,
    pub(super) is_pooled: bool,
    #[cfg(feature = "http")]
    splits_large: bool,
    #[cfg(feature = "http")]
    tail: Option<Box<ReplyTail>>,
    /// The context of a finished call, to be reused for the next one.
    pub(super) context: Option<Context>,
}

impl ReplyBuffer {
    /// A buffer from the pool, which many responses share.
    pub(crate) fn pooled() -> Self {
        Self { is_pooled: true, ..Self::default() }
    }

    /// Like [`pooled`](Self::pooled), for a transport that can send a response in pieces. A large result
    /// is not copied: the response is split, and [`take_tail`](Self::take_tail) returns the rest.
    #[cfg(feature = "http")]
    pub(crate) fn splitting_large() -> Self {
        Self { splits_large: true, ..Self::pooled() }
    }

    /// Takes the rest of the last response, if it was split.
    #[cfg(feature = "http")]
    pub(crate) fn take_tail(&mut self) -> Option<Box<ReplyTail>> {
        self.tail.take()
    }

    /// A buffer for a single response.
    pub(crate) fn single() -> Self {
        Self::default()
    }

    /// The response of the last call is queued: releases what must follow it.
    pub(crate) fn replied(&self) {
        if let Some(context) = &self.context
            && context.may_be_followed()
        {
            context.replied();
        }
    }

    /// Returns the buffer to the pool, because there is nothing to answer for now.
    pub(crate) fn release(&mut self) {
        self.buffer.release();
        // An idle connection does not keep the facts of its last HTTP request.
        if let Some(Origin::Request(_)) = self.context.as_ref().map(Context::origin) {
            self.context = None;
        }
    }

    /// Encodes the response of a call.
    pub(super) fn answer(
        &mut self,
        context: &Context,
        outcome: &Outcome,
        settings: &Settings,
    ) -> Bytes {
        let id = id_of(context);
        let len = encode::response_len(id, outcome);
        let limit = settings.limits.response_bytes;
        // The length of a result is exact, so a result needs no check after it is encoded.
        if outcome.is_err() || len > limit.min(buffer_pool::SIZE) {
            return self.answer_other(context, outcome, len, settings);
        }
        if !self.is_pooled {
            // The buffer has the exact size, because no other response shares it.
            let mut out = BytesMut::with_capacity(len);
            encode::response(id, outcome, &mut out);
            return out.freeze();
        }
        let buffer = self.buffer.small();
        if buffer.capacity() < len {
            buffer.reserve(buffer_pool::SIZE);
        }
        encode::response(id, outcome, buffer);
        buffer.split().freeze()
    }

    /// Encodes an error, or a long result.
    #[inline(never)]
    fn answer_other(
        &mut self,
        context: &Context,
        outcome: &Outcome,
        len: usize,
        settings: &Settings,
    ) -> Bytes {
        let (id, limit) = (id_of(context), settings.limits.response_bytes);
        if outcome.is_err() || len > limit {
            context.refused();
        }
        if !self.is_pooled {
            let mut out = BytesMut::with_capacity(len);
            if !write_answer(id, outcome, limit, &mut out) {
                write_too_large(id, limit, settings.errors(), &mut out);
            }
            return out.freeze();
        }
        #[cfg(feature = "http")]
        if let Ok(result) = outcome
            && self.splits_large
            && (buffer_pool::SIZE + 1..=limit).contains(&len)
            && !matches!(id, Id::Other(_))
        {
            return self.pieces(id, result.clone().into_bytes());
        }
        match len > buffer_pool::SIZE {
            true => self.buffer.large(len),
            false => self.buffer.small(),
        };
        if !write_answer(id, outcome, limit, &mut self.buffer) {
            write_too_large(id, limit, settings.errors(), &mut self.buffer);
        }
        self.buffer.split().freeze()
    }

    #[cfg(feature = "http")]
    fn pieces(&mut self, id: &Id, result: Bytes) -> Bytes {
        let out = self.buffer.small();
        encode::after_outcome(id, out);
        self.tail = Some(Box::new(ReplyTail { result, end: out.split().freeze() }));
        Bytes::from_static(encode::BEFORE_RESULT)
    }
}

/// The rest of a large response, after its first bytes.
#[cfg(feature = "http")]
pub(crate) struct ReplyTail {
    pub(crate) result: Bytes,
    pub(crate) end: Bytes,
}

#[cfg(feature = "http")]
impl ReplyTail {
    pub(crate) fn len(&self) -> usize {
        self.result.len() + self.end.len()
    }
}

/// Encodes a response if it is within the limit. Otherwise writes nothing and returns false; the caller writes an error
/// instead, so each request gets exactly one response.
#[inline]
fn write_answer(id: &Id, outcome: &Outcome, limit: usize, out: &mut BytesMut) -> bool {
    let start = out.len();
    encode::response(id, outcome, out);
    let fits = out.len() <= limit;
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Encodes the error that replaces a response.
#[cold]
fn write_too_large(id: &Id, limit: usize, errors: ErrorStyle, out: &mut BytesMut) {
    encode::response(id, &Err(errors.apply(ErrorObject::response_too_large(limit))), out);
}
