//! Where answers are written: one, or an Array of them, and never more than may be sent.

use antiphon_core::{ErrorObject, Id, Outcome, encode};
use bytes::{BufMut, Bytes, BytesMut};

use crate::context::{Context, Origin};
use crate::transport::spare;

/// The answers of one payload as they are written: one, or an Array of them; nothing where there is
/// none (section 6).
pub(super) struct Answers {
    out: BytesMut,
    batch: bool,
    limit: usize,
}

impl Answers {
    /// What an answer takes at least.
    const SMALL: usize = 64;
    /// Room that is made before anything is known of the answers.
    const MAX_ROOM: usize = 64 * 1024;

    pub(super) fn new(entries: usize, batch: bool, limit: usize) -> Self {
        let room = if batch { (entries * Self::SMALL).min(Self::MAX_ROOM) } else { 0 };
        Self { out: BytesMut::with_capacity(room), batch, limit }
    }

    pub(super) fn push(&mut self, id: &Id, outcome: &Outcome) {
        if self.batch {
            self.out.put_u8(if self.out.is_empty() { b'[' } else { b',' });
        }
        write_answer(id, outcome, self.limit, &mut self.out);
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
#[derive(Default)]
pub(crate) struct Scratch {
    buffer: BytesMut,
    pub(super) lent: bool,
    /// The context of a call that is over, for the next one.
    pub(super) context: Option<Context>,
}

impl Scratch {
    /// One that many answers share.
    pub(crate) fn lent() -> Self {
        Self { lent: true, ..Self::default() }
    }

    /// One for a single answer.
    pub(crate) fn single() -> Self {
        Self::default()
    }

    /// There is nothing to answer for now: the buffer goes back.
    pub(crate) fn rest(&mut self) {
        if self.buffer.capacity() > 0 {
            spare::give(std::mem::take(&mut self.buffer));
        }
        // What it refers to is not kept by what is idle.
        if let Some(Origin::Request(_)) = self.context.as_ref().map(Context::origin) {
            self.context = None;
        }
    }

    pub(super) fn answer(&mut self, id: &Id, outcome: &Outcome, limit: usize) -> Bytes {
        let len = encode::response_len(id, outcome);
        if self.lent && self.buffer.capacity() == 0 {
            self.buffer = spare::take();
        }
        if self.buffer.capacity() < len {
            self.buffer.reserve(if self.lent { len.max(spare::SIZE) } else { len });
        }
        write_answer(id, outcome, limit, &mut self.buffer);
        self.buffer.split().freeze()
    }
}

/// An answer that does not fit is replaced by an error that does: each request keeps its answer.
fn write_answer(id: &Id, outcome: &Outcome, limit: usize, out: &mut BytesMut) {
    let start = out.len();
    encode::response(id, outcome, out);
    if out.len() > limit {
        out.truncate(start);
        encode::response(id, &Err(ErrorObject::response_too_large(limit)), out);
    }
}
