//! The demonstration service: the methods of the specification's examples, and some to try a client
//! with. It is what `testdata/wire` talks to.

use std::fmt;
use std::time::Duration;

use antiphon::{Caller as _, Context, ErrorObject, Invocation, Params, RawJson, Router};
use futures_util::stream::{self, Stream};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

/// The methods, as `antiphon serve --help` tells them.
pub(crate) const HELP: &str = "\
Methods:
  subtract [minuend, subtrahend]       by position or by name
  sum [number...]
  get_data                             gives [\"hello\",5]
  notify_hello, notify_sum, update     for notifications; called, they give null
  echo                                 gives its params back as they came, or null
  whoami                               gives the name that it is called under, or null
  sleep [ms]                           gives ms back after that time
  fail [code, message, data?]          answers with that error
  panic                                crashes, and answers -32603
  call_me_back [method, params?]       calls its caller, and gives back what the caller answers
  subscribe_ticks [ms, count?]         sends `ticks`, a number each ms, so many or until unsubscribe_ticks";

/// The service.
pub(crate) fn router() -> Router {
    Router::new()
        .method("subtract", |p: Subtract, _: Context| async move {
            p.minuend.minus(p.subtrahend).ok_or_else(out_of_range)
        })
        .method("sum", |numbers: Vec<Number>, _: Context| async move { sum(numbers) })
        .method("get_data", |(): (), _: Context| async { Ok(("hello", 5)) })
        .notification("notify_hello", hear)
        .notification("update", hear)
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
        .method("fail", |fail: Fail, _: Context| async move { Err::<(), _>(fail.into_error()) })
        .method("panic", panic)
        .method("call_me_back", call_me_back)
        .subscription("ticks", ticks)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subtract {
    minuend: Number,
    subtrahend: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    code: i64,
    message: String,
    #[serde(default, deserialize_with = "present")]
    data: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallMeBack {
    method: String,
    #[serde(default, deserialize_with = "present")]
    params: Option<RawJson>,
}

/// A null that is there is not absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

fn sum(numbers: Vec<Number>) -> Result<Number, ErrorObject> {
    numbers.into_iter().try_fold(Number::Integer(0), Number::plus).ok_or_else(out_of_range)
}

async fn hear(params: Option<RawJson>, _: Context) {
    tracing::debug!(?params, "notified");
}

async fn sleep(sleep: Sleep, _: Context) -> Result<u64, ErrorObject> {
    tokio::time::sleep(Duration::from_millis(sleep.ms)).await;
    Ok(sleep.ms)
}

#[expect(clippy::panic, reason = "it is what was asked for")]
async fn panic(_: Option<RawJson>, _: Context) -> Result<(), ErrorObject> {
    panic!("the method `panic` was called")
}

async fn call_me_back(back: CallMeBack, cx: Context) -> Result<RawJson, ErrorObject> {
    let params = back.params.map(Params::from_json).transpose();
    let params =
        params.map_err(|error| ErrorObject::invalid_params().with_data(&error.to_string()))?;
    Ok(cx.peer()?.send(Invocation::new(&back.method, params)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticks {
    ms: u64,
    #[serde(default)]
    count: Option<u64>,
}

/// Numbers from 0 on, one each time that the span has passed.
async fn ticks(ticks: Ticks, _: Context) -> Result<impl Stream<Item = u64>, ErrorObject> {
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

impl Fail {
    fn into_error(self) -> ErrorObject {
        ErrorObject { data: self.data, ..ErrorObject::new(self.code, self.message) }
    }
}

fn out_of_range() -> ErrorObject {
    ErrorObject::new(-32000, "the result is out of range")
}

/// A JSON Number to calculate with: exact where it is a whole one of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn plus(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_add, |a, b| a + b)
    }

    fn minus(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_sub, |a, b| a - b)
    }

    /// None where the result is out of range: never a panic, a wrapped number or an infinity.
    fn combine(
        self,
        other: Self,
        whole: fn(i64, i64) -> Option<i64>,
        real: fn(f64, f64) -> f64,
    ) -> Option<Self> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => whole(a, b).map(Self::Integer),
            (a, b) => Some(real(a.as_f64(), b.as_f64())).filter(|r| r.is_finite()).map(Self::Real),
        }
    }

    /// Beside a real number there is no exactness to keep.
    fn as_f64(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }
}

/// Written by hand: an untagged enum would say that nothing matched, and not what was expected.
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Number")
            }

            fn visit_i64<E>(self, integer: i64) -> Result<Number, E> {
                Ok(Number::Integer(integer))
            }

            /// Over 63 bits it is a real number.
            fn visit_u64<E>(self, integer: u64) -> Result<Number, E> {
                let whole = i64::try_from(integer).map(Number::Integer);
                Ok(whole.unwrap_or(Number::Real(integer as f64)))
            }

            fn visit_f64<E>(self, real: f64) -> Result<Number, E> {
                Ok(Number::Real(real))
            }
        }
        deserializer.deserialize_any(Reader)
    }
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
    fn what_does_not_fit_is_an_error() {
        assert_eq!(summed("[9223372036854775807,1]"), None);
        assert_eq!(summed("[1e308,1e308]"), None);
        let [low, one] = numbers("[-9223372036854775808,1]")[..] else { panic!("two numbers") };
        assert_eq!(low.minus(one), None);
    }

    #[test]
    fn only_numbers_are_numbers() {
        for text in ["true", "\"1\"", "null", "[1]"] {
            let error = serde_json::from_str::<Number>(text).unwrap_err().to_string();
            assert!(error.contains("expected a Number"), "{text}: {error}");
        }
    }

    #[test]
    fn null_data_is_data_and_no_data_is_none() {
        let data = |text| serde_json::from_str::<Fail>(text).unwrap().into_error().data;
        assert_eq!(data("[1,\"m\"]"), None);
        assert_eq!(data("[1,\"m\",null]"), Some(RawJson::NULL));
        assert_eq!(data("[1,\"m\",1.50]").unwrap().as_str(), "1.50");
    }
}
