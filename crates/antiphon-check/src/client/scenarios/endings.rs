//! Slow servers, and servers that close the connection.

use std::time::Duration;

use super::super::received::ReceivedCalls;
use super::super::scenario::{
    DUPLEX, ExpectedExit, GRACE, Precondition, Scenario, ServerAction, ServerScript,
};

const LATE: Duration = Duration::from_millis(1500);
/// The time that a call is held for a second one.
const VERY_LATE: Duration = Duration::from_millis(2000);

pub(super) fn all() -> Vec<Scenario> {
    [late(), gone()].concat()
}

fn late() -> Vec<Scenario> {
    vec![
        Scenario::survives(
            "answer-late",
            "a response after 1.5 seconds is accepted, or the call timed out",
        )
        .why("The client may accept it or give up. It must not crash or hang.")
        .acts(|received, _| vec![late_once(received), ServerAction::Message(received.ordinary())]),
        Scenario::survives(
            "answer-given-up",
            "the responses to a delayed call and to the next call may arrive together",
        )
        .over(DUPLEX)
        .needs(Precondition::TwoInFlight)
        .why("The server holds the first call until the second arrives, and then responds to both.")
        .script(ServerScript::HoldThenAct(VERY_LATE, |received, _| {
            received.iter().map(|received| ServerAction::Message(received.ordinary())).collect()
        })),
    ]
}

fn gone() -> Vec<Scenario> {
    let why = "A call without a response has failed, and must not hang.";
    vec![
        Scenario::rejects("closed-at-once", "a connection that closes at once does not give a result")
            .needs(Precondition::Nothing)
            .why("Load balancers without a backend do this. A client that retries forever hangs.")
            .script(ServerScript::CloseAtOnce),
        Scenario::rejects("closed-before-answer", "a connection that closes gives no result")
            .why(why)
            .acts(|_, _| vec![ServerAction::Close]),
        Scenario::rejects("reset-before-answer", "a connection that is reset gives no result")
            .why(why)
            .acts(|_, _| vec![ServerAction::Reset]),
        Scenario::rejects("closed-within-answer", "half a response is not a result")
            .why("The connection closes in the middle. The received part may even look like a response.")
            .acts(|received, _| vec![ServerAction::Truncated(received.ordinary())]),
        Scenario::rejects("silent-then-closed", "a connection that closes later gives no result")
            .why(why)
            .acts(|received, _| vec![late_once(received), ServerAction::Close]),
        Scenario::accepts("closed-after-answer", "a response counts although the connection then closes")
            .over(DUPLEX)
            .expect(ExpectedExit::ResultOfOne)
            .why("The response arrived before the close.")
            .script(ServerScript::HoldThenAct(GRACE, |received, _| {
                let answers = received.iter().map(|received| ServerAction::Message(received.ordinary()));
                // A further call fails to connect. The server must see that the client made it.
                answers.chain([ServerAction::Wait(GRACE), ServerAction::Close]).collect()
            })),
    ]
}

/// Delays only the first response, so that a client with many calls has the time for all of them.
fn late_once(received: &ReceivedCalls) -> ServerAction {
    ServerAction::Wait(if received.is_first { LATE } else { Duration::ZERO })
}
