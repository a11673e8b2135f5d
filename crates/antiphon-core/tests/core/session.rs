//! `Session` compared with a model of plain lists.

use std::collections::HashMap;

use antiphon_core::{Answered, Id, RawJson, Refused, Session, Ticket};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const MAX_PENDING: usize = 6;

/// Ids that a peer may use for its requests, with the value of each. Some collide.
const THEIRS: [(&str, &str); 7] = [
    ("0", "0"),
    ("1", "1"),
    ("1.0", "1.0"),
    (r#""1""#, "'1"),
    (r#""\u0031""#, "'1"),
    ("null", "null"),
    (r#""null""#, "'null"),
];

#[derive(Clone, Debug)]
enum Step {
    Call,
    Batch(usize),
    /// A response to the id that the index selects, in this spelling.
    Answer(Index, Spelling),
    Abandon(Index),
    AnswerOnlyExchange,
    Start(usize),
    /// Finishes the ticket that the index selects, under its own id or under another.
    Finish(Index, Option<usize>),
    Running(usize),
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Spelling {
    Plain,
    Float,
    Exponent,
    Fraction,
    Negative,
    Text,
    Null,
    Huge,
}

impl Spelling {
    fn id(self, number: u64) -> Id {
        let text = match self {
            Self::Plain => number.to_string(),
            Self::Float => format!("{number}.0"),
            Self::Exponent => format!("{number}.0E+0"),
            Self::Fraction => format!("{number}.5"),
            Self::Negative => format!("-{}", number + 1),
            Self::Text => format!("\"{number}\""),
            Self::Null => "null".to_owned(),
            Self::Huge => format!("1844674407370955161{number}6"),
        };
        Id::from_json(RawJson::parse(text).unwrap()).unwrap()
    }

    fn names_a_call(self) -> bool {
        matches!(self, Self::Plain | Self::Float | Self::Exponent)
    }
}

fn step() -> impl Strategy<Value = Step> {
    use Spelling::*;
    let spelling = || {
        prop_oneof![
            6 => Just(Plain),
            2 => select(vec![Float, Exponent]),
            2 => select(vec![Fraction, Negative, Text, Null, Huge]),
        ]
    };
    let their_id = || 0..THEIRS.len();
    prop_oneof![
        8 => Just(Step::Call),
        4 => (0..4_usize).prop_map(Step::Batch),
        10 => (any::<Index>(), spelling()).prop_map(|(at, how)| Step::Answer(at, how)),
        4 => any::<Index>().prop_map(Step::Abandon),
        2 => Just(Step::AnswerOnlyExchange),
        8 => their_id().prop_map(Step::Start),
        6 => (any::<Index>(), prop::option::weighted(0.2, their_id()))
            .prop_map(|(at, id)| Step::Finish(at, id)),
        3 => their_id().prop_map(Step::Running),
        1 => Just(Step::Close),
    ]
}

fn their_id(at: usize) -> Id {
    Id::from_json(RawJson::parse(THEIRS[at].0).unwrap()).unwrap()
}

/// The session under test, its expected content, and the waiters and tokens that it has returned.
struct Harness {
    session: Session<u32, u32>,
    next: u64,
    /// Id, exchange, waiter.
    pending: Vec<(u64, u64, u32)>,
    /// Every ticket so far: the index in `THEIRS`, the ticket, its token.
    tickets: Vec<(usize, Ticket, u32)>,
    running: Vec<u32>,
    closed: bool,
    made: u32,
    /// How often each waiter and token was returned.
    out: HashMap<u32, usize>,
}

impl Harness {
    fn new() -> Self {
        Self {
            session: Session::new(MAX_PENDING),
            next: 1,
            pending: Vec::new(),
            tickets: Vec::new(),
            running: Vec::new(),
            closed: false,
            made: 0,
            out: HashMap::new(),
        }
    }

    /// A unique waiter or token.
    fn make(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    fn came_out(&mut self, items: impl IntoIterator<Item = u32>) {
        for item in items {
            *self.out.entry(item).or_default() += 1;
        }
    }

    fn refusal(&self, calls: usize) -> Option<Refused> {
        let waiting = self.pending.len();
        match self.closed {
            true => Some(Refused::Closed),
            false => {
                (waiting + calls > MAX_PENDING).then_some(too_many(calls, waiting, MAX_PENDING))
            }
        }
    }

    /// Records that these waiters were admitted, with their expected ids.
    fn admit(&mut self, waiters: &[u32]) {
        let exchange = self.next;
        for waiter in waiters {
            self.pending.push((self.next, exchange, *waiter));
            self.next += 1;
        }
    }

    fn take_pending(&mut self, id: u64) -> Option<u32> {
        let at = self.pending.iter().position(|call| call.0 == id)?;
        Some(self.pending.remove(at).2)
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Call => self.call(),
            Step::Batch(calls) => self.batch(*calls),
            // Ids beyond those given out are picked too.
            Step::Answer(at, spelling) => self.answer(at.index(self.next as usize + 3), *spelling),
            Step::Abandon(at) => {
                let id = at.index(self.next as usize + 3) as u64;
                let expected = self.take_pending(id);
                assert_eq!(self.session.abandon(id), expected);
                self.came_out(expected);
            }
            Step::AnswerOnlyExchange => self.answer_only_exchange(),
            Step::Start(at) => {
                let token = self.make();
                let ticket = self.session.start(their_id(*at), token);
                assert!(self.tickets.iter().all(|given| given.1 != ticket), "a ticket came twice");
                self.tickets.push((*at, ticket, token));
                self.running.push(token);
            }
            Step::Finish(at, id) if !self.tickets.is_empty() => self.finish(*at, *id),
            Step::Finish(..) => {}
            Step::Running(at) => self.look_at_running(*at),
            Step::Close => self.close(),
        }
        assert_eq!(self.session.pending(), self.pending.len());
    }

    fn call(&mut self) {
        let waiter = self.make();
        let result = self.session.call(waiter);
        match self.refusal(1) {
            Some(refused) => assert_eq!(result, Err(refused)),
            None => {
                assert_eq!(result, Ok(self.next));
                self.admit(&[waiter]);
            }
        }
    }

    fn batch(&mut self, calls: usize) {
        let waiters: Vec<_> = (0..calls).map(|_| self.make()).collect();
        let result = self.session.batch(waiters.clone());
        match self.refusal(calls) {
            Some(refused) => assert_eq!(result, Err(refused)),
            None => {
                assert_eq!(result, Ok(self.next..self.next + calls as u64));
                self.admit(&waiters);
            }
        }
    }

    fn answer(&mut self, number: usize, spelling: Spelling) {
        let number = number as u64;
        let call = spelling.names_a_call().then_some(number);
        let expected = match call.and_then(|id| self.take_pending(id)) {
            Some(waiter) => Answered::Waiter(waiter),
            None if call.is_some_and(|id| (1..self.next).contains(&id)) => Answered::Late,
            None => Answered::Unknown,
        };
        assert_eq!(self.session.answer(&spelling.id(number)), expected);
        if let Answered::Waiter(waiter) = expected {
            self.came_out([waiter]);
        }
    }

    fn answer_only_exchange(&mut self) {
        let exchange = self.pending.first().map(|call| call.1);
        let mut expected = Vec::new();
        if self.pending.iter().all(|call| Some(call.1) == exchange) {
            expected.extend(self.pending.drain(..).map(|call| call.2));
        }
        let waiters = self.session.answer_only_exchange();
        assert_eq!(sorted(waiters.iter().copied()), sorted(expected));
        self.came_out(waiters);
    }

    fn finish(&mut self, at: Index, other: Option<usize>) {
        let (own, ticket, token) = self.tickets[at.index(self.tickets.len())];
        let under = other.unwrap_or(own);
        let found = THEIRS[own].1 == THEIRS[under].1 && self.running.contains(&token);
        let expected = found.then_some(token);
        assert_eq!(self.session.finish(&their_id(under), ticket), expected);
        self.running.retain(|running| Some(*running) != expected);
        self.came_out(expected);
    }

    fn look_at_running(&self, at: usize) {
        let same = |given: &&(usize, Ticket, u32)| THEIRS[given.0].1 == THEIRS[at].1;
        let tokens = self.tickets.iter().filter(same).map(|given| given.2);
        let expected = sorted(tokens.filter(|token| self.running.contains(token)));
        assert_eq!(sorted(self.session.running(&their_id(at)).copied()), expected);
    }

    fn close(&mut self) {
        self.closed = true;
        let (waiters, tokens) = self.session.close();
        let expected = self.pending.drain(..).map(|call| call.2);
        assert_eq!(sorted(waiters.iter().copied()), sorted(expected));
        assert_eq!(sorted(tokens.iter().copied()), sorted(self.running.drain(..)));
        self.came_out(waiters.into_iter().chain(tokens));
    }
}

fn too_many(calls: usize, pending: usize, limit: usize) -> Refused {
    Refused::TooMany { calls, pending, limit }
}

fn sorted(items: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut items: Vec<_> = items.into_iter().collect();
    items.sort_unstable();
    items
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_waiter_comes_out_exactly_once(steps in prop::collection::vec(step(), 1..80)) {
        let mut harness = Harness::new();
        let mut admitted = Vec::new();
        for step in steps.iter().chain([&Step::Close]) {
            harness.run(step);
            admitted.extend(harness.pending.iter().map(|call| call.2));
            admitted.extend(&harness.running);
        }
        admitted.sort_unstable();
        admitted.dedup();
        prop_assert_eq!(sorted(harness.out.keys().copied()), admitted);
        prop_assert!(harness.out.values().all(|times| *times == 1), "{:?}", harness.out);
        prop_assert_eq!(harness.session.call(0), Err(Refused::Closed));
        prop_assert_eq!(harness.session.batch(vec![]), Err(Refused::Closed));
    }
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut session = Session::<_, ()>::new(3);
    assert_eq!(session.batch(vec!['a', 'b']), Ok(1..3));
    assert_eq!(session.batch(vec!['c', 'd']), Err(too_many(2, 2, 3)));
    assert_eq!(session.call('e'), Ok(3));
    assert_eq!(session.call('f'), Err(too_many(1, 3, 3)));
    assert_eq!(session.answer(&Id::from(4)), Answered::Unknown);
    assert_eq!(session.answer(&Id::from(3)), Answered::Waiter('e'));
    assert_eq!(session.call('g'), Ok(4));
}

#[test]
fn a_session_with_limit_zero_refuses_calls() {
    let mut session = Session::<_, ()>::new(0);
    let refused = session.call(()).unwrap_err();
    assert_eq!(refused, too_many(1, 0, 0));
    assert!(refused.to_string().contains("limit of 0 pending calls"), "{refused}");
}

#[test]
fn a_chosen_id_that_is_refused_is_named() {
    let mut session = Session::<_, ()>::new(3);
    assert_eq!(session.call('a'), Ok(1));
    let seven = Id::from("seven");
    assert_eq!(session.call_as(seven.clone(), 'b'), Ok(()));
    assert_eq!(session.call_as(seven.clone(), 'c'), Err(Refused::IdInUse { id: seven }));
    let refused = session.call_as(Id::from(1), 'c').unwrap_err();
    assert_eq!(refused.to_string(), "a call with the id 1 is pending; choose another id");
    let refused = session.call_as(Id::from(1 << 63), 'c').unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the id 9223372036854775808 is 2^63 or more; choose a smaller one"
    );
    assert_eq!(session.pending(), 2);
}

/// Both sides choose ids freely; clangd calls with id 0 too.
#[test]
fn our_ids_and_the_peers_ids_do_not_collide() {
    let mut session = Session::new(8);
    let ours = Id::from(session.call("call").unwrap());
    let ticket = session.start(ours.clone(), "token");
    assert_eq!(session.answer(&ours), Answered::Waiter("call"));
    assert_eq!(session.running(&ours).collect::<Vec<_>>(), [&"token"]);
    assert_eq!(session.finish(&ours, ticket), Some("token"));
    assert_eq!(session.answer(&ours), Answered::Late);
}

/// Two running requests with one id: each finishes alone, and a cancellation reaches both.
#[test]
fn a_reused_id_keeps_both_requests() {
    let mut session = Session::<(), _>::new(8);
    let id = Id::from("again");
    let first = session.start(id.clone(), 1);
    let second = session.start(id.clone(), 2);
    assert_eq!(sorted(session.running(&id).copied()), [1, 2]);
    assert_eq!(session.finish(&id, first), Some(1));
    assert_eq!(session.finish(&id, first), None);
    assert_eq!(sorted(session.running(&id).copied()), [2]);
    assert_eq!(session.finish(&id, second), Some(2));
    assert_eq!(session.running(&id).count(), 0);
}
