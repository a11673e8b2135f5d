//! Servers that are slow, and servers that go away.

use std::time::Duration;

use super::super::received::ReceivedCalls;
use super::super::scenario::{
    DUPLEX, ExpectedExit, GRACE, Precondition, Scenario, ServerAction, ServerScript,
};

const LATE: Duration = Duration::from_millis(1500);
/// How long a call waits for another one behind it.
const VERY_LATE: Duration = Duration::from_millis(2000);

pub(super) fn all() -> Vec<Scenario> {
    [late(), gone()].concat()
}

fn late() -> Vec<Scenario> {
    vec![
        Scenario::survives("answer-late", "an answer after 1.5 seconds is taken, or was given up")
            .why("Either is fine; to crash, or never to end, is not.")
            .acts(|received, _| {
                vec![late_once(received), ServerAction::Message(received.ordinary())]
            }),
        Scenario::survives(
            "answer-given-up",
            "a late answer may come before that of the next call",
        )
        .over(DUPLEX)
        .needs(Precondition::TwoInFlight)
        .why("The first call waits until there is a second one; then both are answered.")
        .script(ServerScript::HoldThenAct(VERY_LATE, |received, _| {
            received.iter().map(|received| ServerAction::Message(received.ordinary())).collect()
        })),
    ]
}

fn gone() -> Vec<Scenario> {
    let why = "A call that was never answered has failed, and nobody must wait for it.";
    vec![
        Scenario::rejects("closed-at-once", "a server that closes at once has given no result")
            .needs(Precondition::Nothing)
            .why("Balancers without a server behind them do it. A client that tries again for ever hangs.")
            .script(ServerScript::CloseAtOnce),
        Scenario::rejects("closed-before-answer", "a server that goes away has given no result")
            .why(why)
            .acts(|_, _| vec![ServerAction::Close]),
        Scenario::rejects("reset-before-answer", "a reset connection has given no result")
            .why(why)
            .acts(|_, _| vec![ServerAction::Reset]),
        Scenario::rejects("closed-within-answer", "half an answer is no result")
            .why("The connection ends in the middle: what has come may even look like an answer.")
            .acts(|received, _| vec![ServerAction::Truncated(received.ordinary())]),
        Scenario::rejects("silent-then-closed", "a server that goes away later has given no result")
            .why(why)
            .acts(|received, _| vec![late_once(received), ServerAction::Close]),
        Scenario::accepts("closed-after-answer", "an answer counts though the server then goes away")
            .over(DUPLEX)
            .expect(ExpectedExit::ResultOfOne)
            .why("What came before the end was said.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| {
                let answers = received.iter().map(|received| ServerAction::Message(received.ordinary()));
                // A call that comes now finds nobody: that it was made has to be seen.
                answers.chain([ServerAction::Wait(GRACE), ServerAction::Close]).collect()
            })),
    ]
}

/// A client with many calls waits once: it must have the time to make them all.
fn late_once(received: &ReceivedCalls) -> ServerAction {
    ServerAction::Wait(if received.is_first { LATE } else { Duration::ZERO })
}
