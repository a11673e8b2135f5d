//! What the demonstration service says about itself.

use antiphon::openrpc::{Description, Failure, Info, Method};
use antiphon::{Router, Topic};
use serde_json::{Value, json};

use super::number::Number;
use super::{CallMeBack, Fail, Sleep, Subtract, Ticks};

/// The service with the description of each method, served as `rpc.discover`.
pub(super) fn described(router: Router) -> Router {
    let about = "The methods of the specification's examples, and some to try a client with.";
    let info = Info::new("Antiphon's demonstration", env!("CARGO_PKG_VERSION")).description(about);
    router
        .describe("subtract", subtract())
        .describe("sum", sum())
        .describe("get_data", get_data())
        .describe("notify_hello", told_anything())
        .describe("notify_sum", notify_sum())
        .describe("update", told_anything())
        .describe("echo", echo())
        .describe("whoami", whoami())
        .describe("sleep", sleep())
        .describe("fail", fail())
        .describe("panic", panic())
        .describe("call_me_back", call_me_back())
        .describe(Topic::of("ticks"), ticks())
        .discoverable(info)
}

fn subtract() -> Description {
    Description::method::<Subtract, Number>()
        .docs("Subtracts one number from another.")
        .in_order(["minuend", "subtrahend"])
        .with(|method| {
            method.errors.push(out_of_range());
            let given = json!([
                {"name": "minuend", "value": 42},
                {"name": "subtrahend", "value": 23},
            ]);
            let example = json!({
                "name": "as in the specification",
                "params": given,
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
    Description::method::<(), (String, u8)>().docs("Gives a greeting and a number.")
}

fn told_anything() -> Description {
    Description::notification::<Value>().docs("Is told anything, and does nothing.")
}

fn notify_sum() -> Description {
    Description::notification::<Vec<Number>>()
        .docs("Is told numbers, and does nothing.")
        .with(|method| rename(method, "number"))
}

fn echo() -> Description {
    Description::method::<Value, Value>().docs("Gives its params back as they came, or null.")
}

fn whoami() -> Description {
    Description::method::<(), Option<String>>()
        .docs("Gives the name that it is called under, or null.")
}

fn sleep() -> Description {
    Description::method::<Sleep, u64>().docs("Gives a time back, after that time.").in_order(["ms"])
}

fn fail() -> Description {
    Description::method::<Fail, Value>()
        .docs("Answers with the error that it is asked for.")
        .in_order(["code", "message", "data"])
}

fn panic() -> Description {
    Description::method::<Value, Value>()
        .docs("Crashes.\n\nThe server answers for it, and goes on.")
        .with(|method| method.errors.push(Failure::new(-32603, "Internal error")))
}

fn call_me_back() -> Description {
    Description::method::<CallMeBack, Value>()
        .docs(
            "Calls its caller, and gives back what the caller answers.\n\n\
             Over HTTP nobody can be called back.",
        )
        .in_order(["method", "params"])
}

fn ticks() -> Description {
    Description::subscription::<Ticks, u64>().docs("Counts from 0 on.").in_order(["ms", "count"])
}

/// Names the one param that stands for all of them.
fn rename(method: &mut Method, name: &str) {
    if let Some(param) = method.params.first_mut() {
        name.clone_into(&mut param.name);
    }
}

fn out_of_range() -> Failure {
    let error = super::out_of_range();
    Failure::new(error.code.0, error.message)
}
