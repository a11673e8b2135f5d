//! Where answers are written: one, or an Array of them, and never more than may be sent.

use antiphon_core::{ErrorObject, Id, Outcome, encode};
use bytes::{BufMut, Bytes, BytesMut};

use crate::context::{Context, Origin};
use crate::io::buffer_pool::{self, PooledBuffer};

/// The answers of one payload as they are written: one, or an Array of them; nothing where there is
/// none (section 6).
pub(super) struct ReplyWriter {
    out: BytesMut,
    batch: bool,
    limit: usize,
    /// A result did not fit, and an error went in its place.
    pub(super) was_cut: bool,
}

impl ReplyWriter {
    /// What an answer takes at least.
    const SMALL: usize = 64;
    /// Room that is made before anything is known of the answers.
    const MAX_ROOM: usize = 64 * 1024;

    pub(super) fn new(entries: usize, batch: bool, limit: usize) -> Self {
        let room = if batch { (entries * Self::SMALL).min(Self::MAX_ROOM) } else { 0 };
        Self { out: BytesMut::with_capacity(room), batch, limit, was_cut: false }
    }

    pub(super) fn push(&mut self, id: &Id, outcome: &Outcome) {
        if self.batch {
            self.out.put_u8(if self.out.is_empty() { b'[' } else { b',' });
        }
        self.was_cut |= write_answer(id, outcome, self.limit, &mut self.out);
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

/// Where single answers are written, to be cut off: in a buffer that the thread lends, or each in one
/// of its own.
///
/// A large one is written to a large buffer, and lent apart: small answers that nobody takes would
/// keep it.
#[derive(Default)]
pub(crate) struct ReplyBuffer {
    buffer: PooledBuffer,
    pub(super) lent: bool,
    in_pieces: bool,
    behind: Option<Box<ReplyTail>>,
    /// The context of a call that is over, for the next one.
    pub(super) context: Option<Context>,
}

impl ReplyBuffer {
    /// One that many answers share.
    pub(crate) fn lent() -> Self {
        Self { lent: true, ..Self::default() }
    }

    /// The same for who can send an answer in pieces: a large result is not copied then, and what is
    /// cut off is only what stands before it.
    pub(crate) fn in_pieces() -> Self {
        Self { in_pieces: true, ..Self::lent() }
    }

    /// What stands behind the answer that was cut off last, if that was not all of it.
    pub(crate) fn take_behind(&mut self) -> Option<Box<ReplyTail>> {
        self.behind.take()
    }

    /// One for a single answer.
    pub(crate) fn single() -> Self {
        Self::default()
    }

    /// The answer to the last call is on its way.
    pub(crate) fn replied(&self) {
        if let Some(context) = &self.context {
            context.replied();
        }
    }

    /// There is nothing to answer for now: the buffer goes back.
    pub(crate) fn release(&mut self) {
        self.buffer.release();
        // What it refers to is not kept by what is idle.
        if let Some(Origin::Request(_)) = self.context.as_ref().map(Context::origin) {
            self.context = None;
        }
    }

    pub(super) fn answer(&mut self, id: &Id, outcome: &Outcome, limit: usize) -> Bytes {
        let len = encode::response_len(id, outcome);
        if !self.lent {
            // As long as it is, and not cut off: it is shared by nobody.
            let mut out = BytesMut::with_capacity(len);
            write_answer(id, outcome, limit, &mut out);
            return out.freeze();
        }
        if len <= buffer_pool::SIZE {
            let buffer = self.buffer.small();
            if buffer.capacity() < len {
                buffer.reserve(buffer_pool::SIZE);
            }
        } else if let Ok(result) = outcome
            && self.in_pieces
            && len <= limit
        {
            return self.pieces(id, result.clone().into_bytes());
        } else {
            self.buffer.large(len);
        }
        write_answer(id, outcome, limit, &mut self.buffer);
        self.buffer.split().freeze()
    }

    fn pieces(&mut self, id: &Id, result: Bytes) -> Bytes {
        let out = self.buffer.small();
        encode::after_outcome(id, out);
        self.behind = Some(Box::new(ReplyTail { result, end: out.split().freeze() }));
        Bytes::from_static(encode::BEFORE_RESULT)
    }
}

/// What stands behind the beginning of a large answer.
pub(crate) struct ReplyTail {
    pub(crate) result: Bytes,
    pub(crate) end: Bytes,
}

impl ReplyTail {
    pub(crate) fn len(&self) -> usize {
        self.result.len() + self.end.len()
    }
}

/// An answer that does not fit is replaced by an error that does: each request keeps its answer. True
/// where that was so.
fn write_answer(id: &Id, outcome: &Outcome, limit: usize, out: &mut BytesMut) -> bool {
    let start = out.len();
    encode::response(id, outcome, out);
    if out.len() > limit {
        out.truncate(start);
        encode::response(id, &Err(ErrorObject::response_too_large(limit)), out);
        return true;
    }
    false
}
