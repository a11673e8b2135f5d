//! The demonstration service: the methods of the specification's examples, and some for testing
//! clients. The transcripts in `testdata/wire` call it.

mod number;
mod openrpc;

use std::time::Duration;

use antiphon::schemars::{self, JsonSchema};
use antiphon::{Caller as _, Context, ErrorObject, Invocation, Params, RawJson, Router};
use futures_util::stream::{self, Stream};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use self::number::Number;

/// The methods, for `antiphon serve --help`.
pub(crate) const HELP: &str = "\
Methods:
  subtract [minuend, subtrahend]   by position or by name
  sum [number...]                  the sum of all params
  get_data                         returns [\"hello\",5]
  notify_hello, notify_sum, update   notifications; a call returns null
  echo                             returns its params, or null without params
  whoami                           returns the authenticated user, or null
  sleep [ms]                       returns ms after that time
  fail [code, message, data?]      returns this error
  panic                            panics, which returns error -32603
  call_me_back [method, params?]   calls the client and returns its result
  subscribe_ticks [ms, count?]     counts up, one item every ms milliseconds
  rpc.discover                     the OpenRPC document of these methods";

/// Returns the service with its OpenRPC document.
pub(crate) fn router() -> Router {
    openrpc::describe(methods())
}

fn methods() -> Router {
    Router::new()
        .method("subtract", |p: Subtraction, _: Context| async move {
            p.minuend.minus(p.subtrahend).ok_or_else(out_of_range)
        })
        .method("sum", |numbers: Vec<Number>, _: Context| async move { sum(numbers) })
        .method("get_data", |(): (), _: Context| async { Ok(("hello", 5)) })
        .notification("notify_hello", log_notification)
        .notification("update", log_notification)
        .notification("notify_sum", |numbers: Vec<Number>, _: Context| async move {
            tracing::debug!(?numbers, "notified");
        })
        .method("echo", |params: Option<RawJson>, _: Context| async move {
            Ok(params.unwrap_or(RawJson::NULL))
        })
        .method("whoami", |(): (), cx: Context| async move {
            Ok(cx.identity().map(|identity| identity.name().to_owned()))
        })
        .method("sleep", sleep)
        .method(
            "fail",
            |fail: FailParams, _: Context| async move { Err::<(), _>(fail.into_error()) },
        )
        .method("panic", panic)
        .method("call_me_back", call_me_back)
        .subscription("ticks", ticks)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Subtraction {
    /// The number to subtract from.
    minuend: Number,
    /// The number to subtract.
    subtrahend: Number,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SleepParams {
    /// The time to sleep, in milliseconds.
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FailParams {
    /// The error code.
    code: i64,
    /// The error message.
    message: String,
    /// The error data.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    data: Option<RawJson>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallMeBackParams {
    /// The method to call.
    method: String,
    /// Its params: an Array or an Object.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    params: Option<RawJson>,
}

/// Keeps a null apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

fn sum(numbers: Vec<Number>) -> Result<Number, ErrorObject> {
    numbers.into_iter().try_fold(Number::Integer(0), Number::plus).ok_or_else(out_of_range)
}

async fn log_notification(params: Option<RawJson>, _: Context) {
    tracing::debug!(?params, "notified");
}

async fn sleep(sleep: SleepParams, _: Context) -> Result<u64, ErrorObject> {
    tokio::time::sleep(Duration::from_millis(sleep.ms)).await;
    Ok(sleep.ms)
}

#[expect(clippy::panic, reason = "the method exists to panic")]
async fn panic(_: Option<RawJson>, _: Context) -> Result<(), ErrorObject> {
    panic!("the method `panic` was called")
}

async fn call_me_back(back: CallMeBackParams, cx: Context) -> Result<RawJson, ErrorObject> {
    let params = back.params.map(Params::from_json).transpose();
    let params =
        params.map_err(|error| ErrorObject::invalid_params().with_data(&error.to_string()))?;
    Ok(cx.peer()?.send(Invocation::new(&back.method, params)).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TicksParams {
    /// The time between two items, in milliseconds.
    ms: u64,
    /// The number of items; without it, the subscription has no end.
    #[serde(default)]
    count: Option<u64>,
}

/// Counts from 0, one number per span of time.
async fn ticks(ticks: TicksParams, _: Context) -> Result<impl Stream<Item = u64>, ErrorObject> {
    let span = Duration::from_millis(ticks.ms);
    let count = ticks.count.unwrap_or(u64::MAX);
    Ok(stream::unfold(0, move |next| async move {
        if next == count {
            return None;
        }
        tokio::time::sleep(span).await;
        Some((next, next + 1))
    }))
}

impl FailParams {
    fn into_error(self) -> ErrorObject {
        ErrorObject { data: self.data, ..ErrorObject::new(self.code, self.message) }
    }
}

fn out_of_range() -> ErrorObject {
    ErrorObject::new(-32000, "the result is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<Number> {
        serde_json::from_str(text).unwrap()
    }

    fn summed(text: &str) -> Option<String> {
        sum(numbers(text)).ok().map(|sum| serde_json::to_string(&sum).unwrap())
    }

    #[test]
    fn whole_numbers_stay_exact() {
        assert_eq!(summed("[]").unwrap(), "0");
        assert_eq!(summed("[9007199254740993,-1,1]").unwrap(), "9007199254740993");
        assert_eq!(summed("[1,0.5]").unwrap(), "1.5");
        assert_eq!(numbers("[18446744073709551615]"), [Number::Real(u64::MAX as f64)]);
    }

    #[test]
    fn a_result_out_of_range_is_an_error() {
        assert_eq!(summed("[9223372036854775807,1]"), None);
        assert_eq!(summed("[1e308,1e308]"), None);
        let [low, one] = numbers("[-9223372036854775808,1]")[..] else { panic!("two numbers") };
        assert_eq!(low.minus(one), None);
    }

    #[test]
    fn null_data_differs_from_absent_data() {
        let data = |text| serde_json::from_str::<FailParams>(text).unwrap().into_error().data;
        assert_eq!(data("[1,\"m\"]"), None);
        assert_eq!(data("[1,\"m\",null]"), Some(RawJson::NULL));
        assert_eq!(data("[1,\"m\",1.50]").unwrap().as_str(), "1.50");
    }
}
