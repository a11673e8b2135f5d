//! The OpenRPC document of the demonstration service.

use antiphon::openrpc::{Description, Failure, Info, Method};
use antiphon::{Router, Topic};
use serde_json::{Value, json};

use super::number::Number;
use super::{CallMeBackParams, FailParams, SleepParams, Subtraction, TicksParams};

/// Adds a description of each method and serves the document as `rpc.discover`.
pub(super) fn describe(router: Router) -> Router {
    let about = "The methods of the specification's examples, and some for testing clients.";
    let info = Info::new("Antiphon's demonstration", env!("CARGO_PKG_VERSION")).description(about);
    router
        .describe("subtract", subtract())
        .describe("sum", sum())
        .describe("get_data", get_data())
        .describe("notify_hello", any_notification())
        .describe("notify_sum", notify_sum())
        .describe("update", any_notification())
        .describe("echo", echo())
        .describe("whoami", whoami())
        .describe("sleep", sleep())
        .describe("fail", fail())
        .describe("panic", panic())
        .describe("call_me_back", call_me_back())
        .describe(Topic::new("ticks"), ticks())
        .discoverable(info)
}

fn subtract() -> Description {
    Description::method::<Subtraction, Number>()
        .docs("Subtracts one number from another.")
        .in_order(["minuend", "subtrahend"])
        .with(|method| {
            method.errors.push(out_of_range());
            let params = json!([
                {"name": "minuend", "value": 42},
                {"name": "subtrahend", "value": 23},
            ]);
            let example = json!({
                "name": "from the specification",
                "params": params,
                "result": {"name": "difference", "value": 19},
            });
            method.rest.insert("examples".to_owned(), json!([example]));
        })
}

fn sum() -> Description {
    Description::method::<Vec<Number>, Number>()
        .docs("Adds any number of numbers.\n\nThe sum of none is 0.")
        .with(|method| {
            rename(method, "number");
            method.errors.push(out_of_range());
        })
}

fn get_data() -> Description {
    Description::method::<(), (String, u8)>().docs("Returns a greeting and a number.")
}

fn any_notification() -> Description {
    Description::notification::<Value>().docs("Accepts any params and does nothing.")
}

fn notify_sum() -> Description {
    Description::notification::<Vec<Number>>()
        .docs("Accepts numbers and does nothing.")
        .with(|method| rename(method, "number"))
}

fn echo() -> Description {
    Description::method::<Value, Value>().docs("Returns its params unchanged, or null.")
}

fn whoami() -> Description {
    Description::method::<(), Option<String>>()
        .docs("Returns the name of the authenticated user, or null.")
}

fn sleep() -> Description {
    Description::method::<SleepParams, u64>()
        .docs("Waits for some time and returns that time.")
        .in_order(["ms"])
}

fn fail() -> Description {
    Description::method::<FailParams, Value>()
        .docs("Fails with the given error.")
        .in_order(["code", "message", "data"])
}

fn panic() -> Description {
    Description::method::<Value, Value>()
        .docs("Panics.\n\nThe server returns an internal error and keeps running.")
        .with(|method| method.errors.push(Failure::new(-32603, "Internal error")))
}

fn call_me_back() -> Description {
    Description::method::<CallMeBackParams, Value>()
        .docs(
            "Calls a method of the client and returns its result.\n\n\
             HTTP does not support calls from the server to the client.",
        )
        .in_order(["method", "params"])
}

fn ticks() -> Description {
    Description::subscription::<TicksParams, u64>()
        .docs("Counts up from 0.")
        .in_order(["ms", "count"])
}

/// Renames the repeated param.
fn rename(method: &mut Method, name: &str) {
    if let Some(param) = method.params.first_mut() {
        name.clone_into(&mut param.name);
    }
}

fn out_of_range() -> Failure {
    let error = super::out_of_range();
    Failure::new(error.code.0, error.message)
}
