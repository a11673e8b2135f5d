//! The calls in flight on one connection, in both directions.
//!
//! Outgoing calls and requests of the peer are in two tables, because both sides choose their ids
//! independently and the same id may occur in both. For example, clangd also calls with id 0. The
//! session is a pure state machine: it never reads a clock, locks or wakes. Its owner does.
//!
//! Invariant: every waiter that is added is returned exactly once: by its response, by `abandon`, or by
//! the close.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::id::Id;

/// The upper bound of the ids that a caller may choose. Counted ids continue after a chosen id, and must
/// not run out.
const MAX_ID: u64 = 1 << 63;

/// The table of one connection: waiters `W` for outgoing calls, and tokens `T` for the peer's requests.
///
/// ```
/// use antiphon_core::{Answered, Session};
///
/// let mut session: Session<&str, ()> = Session::new(16);
/// let id = session.call("the waiter of a call")?;
/// assert_eq!(session.pending(), 1);
/// assert_eq!(session.answer(&id.into()), Answered::Waiter("the waiter of a call"));
/// assert_eq!(session.answer(&id.into()), Answered::Late);
/// # Ok::<(), antiphon_core::Refused>(())
/// ```
#[derive(Debug)]
pub struct Session<W, T> {
    next: u64,
    max_pending: usize,
    pending: HashMap<u64, PendingEntry<W>, BuildHasherDefault<SequentialHasher>>,
    /// Calls with an id of the caller's choice.
    named: HashMap<Id, W>,
    running: HashMap<Id, Vec<(Ticket, T)>>,
    tickets: u64,
    closed: bool,
}

/// Hashes counted ids. They are sequential and not chosen by a peer, so the hash needs no secret.
#[derive(Default)]
struct SequentialHasher(u64);

impl Hasher for SequentialHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
struct PendingEntry<W> {
    /// The ids that were sent in one frame. All calls of a batch have the same range.
    exchange: Range<u64>,
    waiter: W,
}

/// Identifies one running request. The id of a request is not sufficient, because a peer may use an id
/// twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// The reason why a call was refused before it was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
    /// The call, or the batch, would exceed the limit of pending calls.
    #[error(
        "{calls} more calls would exceed the limit of {limit} pending calls ({pending} are pending); raise \
         `Limits::pending_calls` or make fewer calls at once"
    )]
    TooMany {
        /// The number of calls that were refused.
        calls: usize,
        /// The number of calls that are pending.
        pending: usize,
        /// The limit of pending calls.
        limit: usize,
    },
    /// A call with this id is pending.
    #[error("a call with the id {id} is pending; choose another id")]
    IdInUse {
        /// The chosen id.
        id: Id,
    },
    /// The id is a number of 2^63 or more. Counted ids continue after a chosen id, and would run out.
    #[error("the id {id} is 2^63 or more; choose a smaller one")]
    IdTooLarge {
        /// The chosen id.
        id: Id,
    },
}

/// The call that a response belongs to.
#[derive(Debug, PartialEq, Eq)]
pub enum Answered<W> {
    /// The waiter of a pending call.
    Waiter(W),
    /// A call that already had its response, or was abandoned.
    Late,
    /// An id that was never sent. So is a chosen id that is not a whole number and no longer pending, because
    /// the session does not remember it.
    Unknown,
}

impl<W, T> Session<W, T> {
    /// Creates a session with this limit of pending calls.
    pub fn new(max_pending: usize) -> Self {
        Self {
            next: 1,
            max_pending,
            pending: HashMap::default(),
            named: HashMap::new(),
            running: HashMap::new(),
            tickets: 0,
            closed: false,
        }
    }

    /// Adds one call and returns its id.
    ///
    /// # Errors
    /// Fails if the calling side is closed, or at the limit of pending calls. The waiter is dropped.
    pub fn call(&mut self, waiter: W) -> Result<u64, Refused> {
        self.admit(1)?;
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, PendingEntry { exchange: id..self.next, waiter });
        Ok(id)
    }

    /// Adds one call with an id that the caller chose. Counted ids continue after it if it is a whole number.
    ///
    /// ```
    /// use antiphon_core::{Answered, Id, Refused, Session};
    ///
    /// let mut session: Session<&str, ()> = Session::new(16);
    /// session.call_as(Id::from("first"), "the waiter")?;
    /// let again = session.call_as(Id::from("first"), "another waiter");
    /// assert!(matches!(again, Err(Refused::IdInUse { .. })));
    /// assert_eq!(session.answer(&Id::from("first")), Answered::Waiter("the waiter"));
    /// # Ok::<(), Refused>(())
    /// ```
    ///
    /// # Errors
    /// Like [`call`](Self::call). Also fails if a call with this id is pending, or if the id is a number of
    /// 2^63 or more.
    pub fn call_as(&mut self, id: Id, waiter: W) -> Result<(), Refused> {
        self.admit(1)?;
        match id.as_u64() {
            Some(number) if self.pending.contains_key(&number) => {
                return Err(Refused::IdInUse { id });
            }
            Some(number) if number >= MAX_ID => return Err(Refused::IdTooLarge { id }),
            Some(number) => self.next = self.next.max(number + 1),
            None => {}
        }
        match self.named.entry(id) {
            Entry::Occupied(taken) => Err(Refused::IdInUse { id: taken.key().clone() }),
            Entry::Vacant(slot) => {
                slot.insert(waiter);
                Ok(())
            }
        }
    }

    /// Adds the calls of one batch, whose responses arrive together, and returns their ids.
    ///
    /// ```
    /// use antiphon_core::{Answered, Session};
    ///
    /// let mut session: Session<&str, ()> = Session::new(16);
    /// assert_eq!(session.batch(vec!["first", "second"])?, 1..3);
    /// assert_eq!(session.answer(&2.into()), Answered::Waiter("second"));
    /// # Ok::<(), antiphon_core::Refused>(())
    /// ```
    ///
    /// # Errors
    /// Like [`call`](Self::call). A batch is added completely or not at all.
    pub fn batch(&mut self, waiters: Vec<W>) -> Result<Range<u64>, Refused> {
        self.admit(waiters.len())?;
        let exchange = self.next..self.next + waiters.len() as u64;
        self.next = exchange.end;
        for (id, waiter) in exchange.clone().zip(waiters) {
            self.pending.insert(id, PendingEntry { exchange: exchange.clone(), waiter });
        }
        Ok(exchange)
    }

    fn admit(&self, calls: usize) -> Result<(), Refused> {
        if self.closed {
            Err(Refused::Closed)
        } else if self.pending() + calls > self.max_pending {
            Err(Refused::TooMany { calls, pending: self.pending(), limit: self.max_pending })
        } else {
            Ok(())
        }
    }

    /// Removes the call to which a response with this id belongs, and returns its waiter.
    pub fn answer(&mut self, id: &Id) -> Answered<W> {
        if !self.named.is_empty()
            && let Some(waiter) = self.named.remove(id)
        {
            return Answered::Waiter(waiter);
        }
        let Some(id) = id.as_u64() else { return Answered::Unknown };
        // A peer that stores numbers as floats may have written `7.0` for the chosen 7.
        if !self.named.is_empty()
            && let Some(waiter) = self.named.remove(&Id::from(id))
        {
            return Answered::Waiter(waiter);
        }
        match self.pending.remove(&id) {
            Some(pending) => Answered::Waiter(pending.waiter),
            None if (1..self.next).contains(&id) => Answered::Late,
            None => Answered::Unknown,
        }
    }

    /// Removes all pending calls if all were sent in one frame, and returns their waiters. An error
    /// response with a null id can then only belong to them.
    pub fn answer_only_exchange(&mut self) -> Vec<W> {
        let mut exchanges = self.pending.values().map(|pending| pending.exchange.start);
        let first = exchanges.next();
        let others = exchanges.any(|exchange| Some(exchange) != first);
        if others || self.named.len() + usize::from(first.is_some()) > 1 {
            return Vec::new();
        }
        self.take_waiters()
    }

    /// The ids that were sent in one frame with this one, if its call is pending.
    pub fn exchange(&self, id: &Id) -> Option<Range<u64>> {
        self.pending.get(&id.as_u64()?).map(|pending| pending.exchange.clone())
    }

    /// Removes a call that its caller has dropped. A response to it is [`Answered::Late`].
    pub fn abandon(&mut self, id: u64) -> Option<W> {
        self.pending.remove(&id).map(|pending| pending.waiter)
    }

    /// Like `abandon`, for a call with an id that the caller chose. If the id is not a whole number, a
    /// response to it is [`Answered::Unknown`].
    pub fn abandon_named(&mut self, id: &Id) -> Option<W> {
        self.named.remove(id)
    }

    /// The number of pending calls.
    pub fn pending(&self) -> usize {
        self.pending.len() + self.named.len()
    }

    /// Adds a request of the peer that did not finish at once.
    ///
    /// ```
    /// use antiphon_core::{Id, Session};
    ///
    /// let mut session: Session<(), &str> = Session::new(16);
    /// let id = Id::from(7);
    /// let ticket = session.start(id.clone(), "the token of a request");
    /// assert!(session.running(&id).eq([&"the token of a request"]));
    /// assert_eq!(session.finish(&id, ticket), Some("the token of a request"));
    /// assert!(session.is_idle());
    /// ```
    pub fn start(&mut self, id: Id, token: T) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.running.entry(id).or_default().push((ticket, token));
        ticket
    }

    /// Removes a request that has its response. `None` if it was removed before.
    pub fn finish(&mut self, id: &Id, ticket: Ticket) -> Option<T> {
        let tokens = self.running.get_mut(id)?;
        let at = tokens.iter().position(|(other, _)| *other == ticket)?;
        let (_, token) = tokens.swap_remove(at);
        if tokens.is_empty() {
            self.running.remove(id);
        }
        Some(token)
    }

    /// Whether no request of the peer is running.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The tokens of the running requests with this id.
    pub fn running(&self, id: &Id) -> impl Iterator<Item = &T> {
        self.running.get(id).into_iter().flatten().map(|(_, token)| token)
    }

    /// The tokens of all running requests.
    pub fn all_running(&self) -> impl Iterator<Item = &T> {
        self.running.values().flatten().map(|(_, token)| token)
    }

    /// Closes the calling side: returns every waiter, and refuses further calls.
    pub fn close_calls(&mut self) -> Vec<W> {
        self.closed = true;
        self.take_waiters()
    }

    /// Closes the serving side: returns every token.
    pub fn close_running(&mut self) -> Vec<T> {
        self.running.drain().flat_map(|(_, tokens)| tokens).map(|(_, token)| token).collect()
    }

    /// Closes both sides.
    pub fn close(&mut self) -> (Vec<W>, Vec<T>) {
        (self.close_calls(), self.close_running())
    }

    fn take_waiters(&mut self) -> Vec<W> {
        let named = self.named.drain().map(|(_, waiter)| waiter);
        self.pending.drain().map(|(_, pending)| pending.waiter).chain(named).collect()
    }
}
