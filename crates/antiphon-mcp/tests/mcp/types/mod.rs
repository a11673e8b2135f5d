//! The types write what they have read.

mod examples;
mod legacy;
mod samples;
mod schema;
mod traps;
mod wire;

use antiphon_mcp::types::from_object;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the text as a type and returns what the type writes.
fn rewritten<T: DeserializeOwned + Serialize>(json: &str) -> Result<Value, serde_json::Error> {
    let value: T = from_object(json)?;
    // Through text, because a `RawJson` is text.
    serde_json::from_str(&serde_json::to_string(&value)?)
}

#[track_caller]
fn round_trips<T: DeserializeOwned + Serialize>(json: &str) {
    let expected: Value = serde_json::from_str(json).unwrap();
    let value: T = from_object(json).unwrap_or_else(|error| panic!("{error} in {json}"));
    assert_eq!(rewritten::<T>(json).unwrap(), expected);
    // Also from a tree, as members of other types are read.
    let tree: T = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(serde_json::to_value(&tree).unwrap(), expected);
    drop(value);
}

/// Reads the text as a type that is not an Object, and returns what the type writes.
#[track_caller]
fn reread<T: DeserializeOwned + Serialize>(json: &str) -> Value {
    let value: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"));
    serde_json::to_value(&value).unwrap()
}
