//! Who waits for what.
//!
//! The calls this side has made and the requests it is working on, in two tables: the other side
//! chooses its ids as freely as we do, and clangd calls with id 0 too. A pure state machine: no
//! clock, no lock, no waking; the owner does those.
//!
//! Invariant: every waiter that goes in comes out exactly once, by its answer, by being abandoned,
//! or by the close.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::id::Id;

/// Numbers from here on are not to be chosen: our own are counted up and must not run out.
const MAX_ID: u64 = 1 << 63;

/// One connection's memory of what is open, with waiters `W` for our calls and tokens `T` for the
/// requests of the other side.
#[derive(Debug)]
pub struct Session<W, T> {
    next: u64,
    max_pending: usize,
    pending: HashMap<u64, PendingEntry<W>, BuildHasherDefault<SequentialHasher>>,
    /// Calls whose ids the caller chose.
    named: HashMap<Id, W>,
    running: HashMap<Id, Vec<(Ticket, T)>>,
    tickets: u64,
    closed: bool,
}

/// Our ids are counted, and no peer chooses them: they need no secret to be spread.
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
    /// The ids that went out in one frame: equal for the calls of one batch.
    exchange: Range<u64>,
    waiter: W,
}

/// Names one running request; its id cannot, since a peer may use an id twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Why no call can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
    /// As many calls wait as may.
    #[error(
        "{0} calls wait for an answer already; raise the limit of pending calls or call less at once"
    )]
    TooMany(usize),
    /// A call with this id waits already, or the id is too large to be told from ours.
    #[error("a call with this id waits for its answer, or it is 2^63 or more; choose another id")]
    IdInUse,
}

/// Whose answer has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Answered<W> {
    /// The waiter that it is for.
    Waiter(W),
    /// A call that nobody waits for any more.
    Late,
    /// No call of ours ever had this id.
    Unknown,
}

impl<W, T> Session<W, T> {
    /// A session that lets this many calls wait.
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

    /// Opens one call and names it.
    pub fn call(&mut self, waiter: W) -> Result<u64, Refused> {
        self.admit(1)?;
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, PendingEntry { exchange: id..self.next, waiter });
        Ok(id)
    }

    /// Opens one call under an id of the caller's choice. Ids of our own stay clear of it.
    pub fn call_as(&mut self, id: Id, waiter: W) -> Result<(), Refused> {
        self.admit(1)?;
        match id.as_u64() {
            Some(number) if self.pending.contains_key(&number) => return Err(Refused::IdInUse),
            Some(number) if number >= MAX_ID => return Err(Refused::IdInUse),
            Some(number) => self.next = self.next.max(number + 1),
            None => {}
        }
        match self.named.entry(id) {
            Entry::Occupied(_) => Err(Refused::IdInUse),
            Entry::Vacant(place) => {
                place.insert(waiter);
                Ok(())
            }
        }
    }

    /// Opens the calls of one batch, which answer together.
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
            Err(Refused::TooMany(self.pending()))
        } else {
            Ok(())
        }
    }

    /// Takes out whom this answer is for.
    pub fn answer(&mut self, id: &Id) -> Answered<W> {
        if !self.named.is_empty()
            && let Some(waiter) = self.named.remove(id)
        {
            return Answered::Waiter(waiter);
        }
        let Some(id) = id.as_u64() else { return Answered::Unknown };
        // A peer that keeps numbers as floats may have written `7.0` for the 7 that was chosen.
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

    /// Takes out all that wait, if all were sent in one frame: an error with a null id that comes
    /// now can be about nothing else.
    pub fn answer_only_exchange(&mut self) -> Vec<W> {
        let mut exchanges = self.pending.values().map(|pending| pending.exchange.start);
        let first = exchanges.next();
        let others = exchanges.any(|exchange| Some(exchange) != first);
        if others || self.named.len() + usize::from(first.is_some()) > 1 {
            return Vec::new();
        }
        self.take_waiters()
    }

    /// The ids that went out in one frame with this one, if it still waits.
    pub fn exchange(&self, id: &Id) -> Option<Range<u64>> {
        self.pending.get(&id.as_u64()?).map(|pending| pending.exchange.clone())
    }

    /// Forgets a call that nobody waits for any more; its answer will be `Late`.
    pub fn abandon(&mut self, id: u64) -> Option<W> {
        self.pending.remove(&id).map(|pending| pending.waiter)
    }

    /// The same for a call whose id the caller chose.
    pub fn abandon_named(&mut self, id: &Id) -> Option<W> {
        self.named.remove(id)
    }

    /// How many calls wait.
    pub fn pending(&self) -> usize {
        self.pending.len() + self.named.len()
    }

    /// Enters a request of the other side that has not finished at once.
    pub fn start(&mut self, id: Id, token: T) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.running.entry(id).or_default().push((ticket, token));
        ticket
    }

    /// Retires a request that has its answer.
    pub fn finish(&mut self, id: &Id, ticket: Ticket) -> Option<T> {
        let tokens = self.running.get_mut(id)?;
        let at = tokens.iter().position(|(other, _)| *other == ticket)?;
        let (_, token) = tokens.swap_remove(at);
        if tokens.is_empty() {
            self.running.remove(id);
        }
        Some(token)
    }

    /// Whether no request of the other side is under way.
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

    /// Ends the calling: gives back every waiter, and admits no more calls.
    pub fn close_calls(&mut self) -> Vec<W> {
        self.closed = true;
        self.take_waiters()
    }

    /// Ends the serving: gives back every token.
    pub fn close_running(&mut self) -> Vec<T> {
        self.running.drain().flat_map(|(_, tokens)| tokens).map(|(_, token)| token).collect()
    }

    /// Ends both.
    pub fn close(&mut self) -> (Vec<W>, Vec<T>) {
        (self.close_calls(), self.close_running())
    }

    fn take_waiters(&mut self) -> Vec<W> {
        let named = self.named.drain().map(|(_, waiter)| waiter);
        self.pending.drain().map(|(_, pending)| pending.waiter).chain(named).collect()
    }
}
