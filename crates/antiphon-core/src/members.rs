//! Known members of one JSON Object, and the spans of their values.
//!
//! This module does not decode values and does not classify messages: [`envelope`](crate::envelope) does.
//!
//! Invariant: the Object is scanned once, and only the [`ValueSpan`] of each value is kept.

use std::ops::Range;

use bytes::Bytes;

use crate::escape::unescape;
use crate::json::RawJson;
use crate::scan::{JsonKind, Scanner};

/// Position of a value in its frame. A value is never empty, so the empty span means "absent".
///
/// Spans are written and read often, so one is a single word: the start in the upper half, the end in
/// the lower half. That limits a frame to [`ValueSpan::MAX`] bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ValueSpan(u64);

impl ValueSpan {
    /// The longest frame that spans can address.
    pub(crate) const MAX: usize = u32::MAX as usize;
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self((start as u64) << 32 | end as u64)
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn range(self) -> Range<usize> {
        (self.0 >> 32) as usize..self.0 as u32 as usize
    }

    #[inline(always)]
    pub(crate) fn of(self, frame: &[u8]) -> &[u8] {
        &frame[self.range()]
    }

    #[inline(always)]
    pub(crate) fn kind(self, frame: &[u8]) -> JsonKind {
        JsonKind::of(frame.get(self.range().start))
    }

    #[inline(always)]
    pub(crate) fn json(self, frame: &Bytes) -> RawJson {
        RawJson::sliced(frame, self.range())
    }
}

/// Names of members to look for. Each has at most seven bytes, so that the name and its closing quote
/// fit into a word.
pub(crate) struct MemberNames<const N: usize> {
    pub(crate) names: [&'static str; N],
    /// Each name as the low bytes of a word, and the mask of these bytes.
    words: [(u64, u64); N],
}

impl<const N: usize> MemberNames<N> {
    pub(crate) const fn new(names: [&'static str; N]) -> Self {
        let mut words = [(0, 0); N];
        let mut n = 0;
        while n < N {
            let (name, mut at) = (names[n].as_bytes(), 0);
            while at <= name.len() {
                let byte = if at < name.len() { name[at] } else { b'"' };
                words[n].0 |= (byte as u64) << (8 * at);
                words[n].1 |= 0xFF << (8 * at);
                at += 1;
            }
            n += 1;
        }
        Self { names, words }
    }

    /// Matches a quoted name without escapes; returns its index and its length with the quotes.
    #[inline(always)]
    fn match_plain(&self, quoted: &[u8]) -> Option<(usize, usize)> {
        let [quote, word @ ..] = quoted.first_chunk::<9>()?;
        let word = u64::from_le_bytes(*word);
        let known = (0..N).find(|&n| word & self.words[n].1 == self.words[n].0)?;
        (*quote == b'"').then(|| (known, self.names[known].len() + 2))
    }

    /// Matches an unescaped name. The indices from `N` on are the names of [`TRACE`].
    fn match_unescaped(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().chain(&TRACE).position(|known| known.as_bytes() == name)
    }
}

/// The members that carry a trace context. These names do not fit into a word. They are compared
/// separately, so that they add no cost to the lookup of the other names.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// The spans of the known members of one Object.
pub(crate) struct KnownMembers<const N: usize> {
    pub(crate) spans: [ValueSpan; N],
    /// The lowest index of a name that occurs twice.
    pub(crate) duplicate: Option<usize>,
    /// The first `traceparent` and the first `tracestate`.
    pub(crate) trace: [ValueSpan; 2],
}

impl<const N: usize> KnownMembers<N> {
    pub(crate) const NONE: Self =
        Self { spans: [ValueSpan::NONE; N], duplicate: None, trace: [ValueSpan::NONE; 2] };

    /// Reads from the name of the first member to the end of the Object, and returns that end. `depth`
    /// counts the open brackets.
    ///
    /// Unknown members are ignored. A known member may occur once: RFC 8259 leaves duplicates open, and
    /// a proxy that reads the first would disagree with a server that reads the last.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
        frame: &[u8],
        names: &MemberNames<N>,
    ) -> Option<usize> {
        let mut at = scanner.space(at);
        loop {
            let (name, end) = match names.match_plain(&frame[at..]) {
                Some((name, len)) => (Some(name), at + len),
                None => {
                    let end = scanner.name(at)?;
                    (names.match_unescaped(&unescape(&frame[at..end])), end)
                }
            };
            let start = scanner.colon(end)?;
            let end = scanner.value(start, depth)?;
            if let Some(name) = name {
                self.keep(name, ValueSpan::new(start, end));
            }
            at = scanner.space(end);
            if scanner.peek(at) == Some(b'}') {
                return Some(at + 1);
            }
            at = scanner.expect(at, b',', "expected ',' or '}'")?;
            at = scanner.space(at);
        }
    }

    #[inline]
    fn keep(&mut self, name: usize, value: ValueSpan) {
        let Some(span) = self.spans.get_mut(name) else { return self.keep_trace(name, value) };
        let before = std::mem::replace(span, value);
        if !before.is_none() {
            self.duplicate = Some(self.duplicate.map_or(name, |other| other.min(name)));
        }
    }

    /// Keeps the first of each trace member. Their indices follow the `N` names.
    #[cold]
    fn keep_trace(&mut self, name: usize, value: ValueSpan) {
        if let Some(span) = self.trace.get_mut(name - N)
            && span.is_none()
        {
            *span = value;
        }
    }
}
