//! `antiphon batch`: sends messages as one batch and prints their responses, one per line.
//!
//! An entry has one of two forms. With `jsonrpc` it is a complete message, and a notification if it has
//! no id. Without `jsonrpc` it is a call in short form, and its position is its id.

use std::collections::BTreeMap;

use antiphon::core::{Method, encode};
use antiphon::{BatchEntry, CallError, Id, Invocation, Outcome, Params, RawJson};
use bytes::BytesMut;
use clap::Args;

use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::output;
use crate::params::read_data;

/// Send calls and notifications as one batch
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BatchArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Messages, one per line or in one Array: JSON, @FILE, or - for stdin
    #[arg(short, long, value_name = "JSON", default_value = "-", allow_hyphen_values = true)]
    data: String,
}

const EXAMPLES: &str = r#"Examples:
  antiphon batch http://127.0.0.1:8650 < calls.ndjson
  antiphon batch ws://127.0.0.1:8650 -d @calls.json
  antiphon batch http://127.0.0.1:8650 -d '[{"method":"get_data"}]'
  printf '%s\n' '{"method":"sum","params":[1,2]}' '{"method":"get_data"}' |
      antiphon batch http://127.0.0.1:8650 | jq .result

Input: one message per line, or one Array of messages.
  {"method":"sum","params":[1,2]}            a call; its id is its position
  {"method":"sum","params":[1,2],"id":"s"}   a call with an id
  {"jsonrpc":"2.0","method":"update"}        a notification
A message without an id is a notification only if it has the member jsonrpc.

Output: one response per line, with your ids, in the order of the calls. On the
wire the batch uses other ids. The exit code is 1 if any response is an error."#;

pub(crate) async fn run(args: BatchArgs) -> Result<Exit, CommandError> {
    let (ids, entries) = read(&read_data(&args.data)?)?;
    args.connect
        .with_client(
            |_, _| {},
            async |connection| Ok(connection.client.caller().send_batch(entries).await?),
            |results| show(&ids, results),
        )
        .await
}

/// Prints each response and returns the worst exit code.
fn show(ids: &[Id], results: Vec<Result<RawJson, CallError>>) -> Result<Exit, CommandError> {
    let mut exit = Exit::Success;
    for (id, result) in ids.iter().zip(results) {
        let worst = match result {
            Ok(result) => show_response(id, &Ok(result)).map(|()| Exit::Success)?,
            Err(CallError::Rpc(error)) => {
                show_response(id, &Err(error)).map(|()| Exit::PeerError)?
            }
            Err(other) => CommandError::from(other).about(&format!("id {id}")).report(),
        };
        exit = exit.max(worst);
    }
    Ok(exit)
}

fn show_response(id: &Id, outcome: &Outcome) -> Result<(), CommandError> {
    let mut response = BytesMut::new();
    encode::response(id, outcome, &mut response);
    let text = String::from_utf8_lossy(&response);
    if text.contains(['\n', '\r']) {
        output::exact(&output::on_one_line(&text))
    } else {
        output::exact(&text)
    }
}

type Read = (Vec<Id>, Vec<BatchEntry>);

/// Parses the input into entries and the ids of the calls among them.
fn read(input: &[u8]) -> Result<Read, CommandError> {
    let text = std::str::from_utf8(input)
        .map_err(|error| CommandError::usage(format!("the input is not UTF-8: {error}")))?;
    let text = text.trim();
    if text.starts_with('[') { read_array(text) } else { read_lines(text) }
        .and_then(|read| if read.1.is_empty() { Err(empty()) } else { Ok(read) })
}

fn empty() -> CommandError {
    CommandError::usage("the input contains no messages")
        .hint(r#"write one per line, such as {"method":"sum","params":[1,2]}, or one Array"#)
}

fn read_array(text: &str) -> Result<Read, CommandError> {
    let values: Vec<RawJson> = serde_json::from_str(text).map_err(|error| {
        CommandError::usage(format!("the Array in the input is not valid JSON: {error}"))
    })?;
    let mut read = Read::default();
    for (index, value) in values.iter().enumerate() {
        let place = index + 1;
        add(&mut read, value.as_str(), place).map_err(|fault| wrong("entry", place, &fault))?;
    }
    Ok(read)
}

fn read_lines(text: &str) -> Result<Read, CommandError> {
    let mut read = Read::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = read.1.len() + 1;
        add(&mut read, line, place).map_err(|fault| wrong("line", index + 1, &fault))?;
    }
    Ok(read)
}

fn wrong(unit: &str, number: usize, fault: &str) -> CommandError {
    CommandError::usage(format!("{unit} {number}: {fault}"))
        .hint(r#"a message is an Object such as {"method":"sum","params":[1,2],"id":1}"#)
}

/// Parses a message and adds it. The error is a text.
fn add(read: &mut Read, text: &str, place: usize) -> Result<(), String> {
    let json = RawJson::parse(text.to_owned()).map_err(|fault| format!("invalid JSON: {fault}"))?;
    // A map: a derived struct would accept an Array for an Object, and a null id as absent.
    let mut members: BTreeMap<String, RawJson> =
        json.decode().map_err(|_| format!("{} is not a message", json.kind()))?;
    let is_complete = has_version(members.remove("jsonrpc"))?;
    let method = members.remove("method").ok_or("`method` is missing")?;
    let method = Method::from_json(method).ok_or("`method` must be a String")?;
    let params = members.remove("params").map(Params::from_json).transpose();
    let params = params.map_err(|_| "`params` must be an Array or an Object")?;
    let id = members.remove("id").map(|id| Id::from_json(id).ok_or(BAD_ID)).transpose()?;
    if let Some(name) = members.keys().next() {
        return Err(format!("`{name}` is not a member of a message"));
    }
    let call = Invocation::of(method, params);
    if is_complete && id.is_none() {
        read.1.push(BatchEntry::Notification(call));
    } else {
        read.0.push(id.unwrap_or_else(|| Id::from(place as u64)));
        read.1.push(BatchEntry::Call(call));
    }
    Ok(())
}

const BAD_ID: &str = "`id` must be a String, a Number or null";

/// Returns whether the entry has a version, and rejects any but 2.0.
fn has_version(member: Option<RawJson>) -> Result<bool, String> {
    match member {
        None => Ok(false),
        Some(version) if version.decode::<String>().is_ok_and(|version| version == "2.0") => {
            Ok(true)
        }
        Some(version) => Err(format!("`jsonrpc` must be \"2.0\", found {version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(input: &str) -> Vec<String> {
        read(input.as_bytes()).unwrap().0.iter().map(Id::to_string).collect()
    }

    fn fault(input: &str) -> String {
        format!("{:?}", read(input.as_bytes()).unwrap_err())
    }

    #[test]
    fn lines_and_an_array_give_equal_entries() {
        let lines =
            "{\"method\":\"a\"}\n\n{\"method\":\"b\",\"id\":1.50}\n{\"method\":\"c\",\"id\":null}";
        let array = format!(" [{}] ", lines.replace("\n\n", ",").replace('\n', ",\n"));
        assert_eq!(ids(lines), ["1", "1.50", "null"]);
        assert_eq!(ids(&array), ["1", "1.50", "null"]);
    }

    #[test]
    fn a_complete_message_without_an_id_is_a_notification() {
        let (ids, entries) = read(br#"[{"jsonrpc":"2.0","method":"a"},{"method":"b"}]"#).unwrap();
        assert!(matches!(entries[..], [BatchEntry::Notification(_), BatchEntry::Call(_)]));
        assert_eq!(ids, [Id::from(2)]);
    }

    #[test]
    fn an_error_names_its_line_or_entry() {
        for (input, expected) in [
            ("{\"method\":\"a\"}\n\n{\"method\":", "line 3: invalid JSON"),
            ("{\"method\":\"a\"}\n[]", "line 2: an Array is not a message"),
            ("[{\"method\":\"a\"},7]", "entry 2: a Number is not a message"),
            ("[{\"method\":\"a\"},{]", "Array in the input"),
            ("{\"params\":[]}", "`method` is missing"),
            ("{\"method\":1}", "`method` must be a String"),
            ("{\"method\":\"a\",\"params\":null}", "`params` must be"),
            ("{\"method\":\"a\",\"id\":[]}", "`id` must be"),
            ("{\"method\":\"a\",\"parms\":[]}", "`parms` is not a member"),
            ("{\"method\":\"a\",\"jsonrpc\":\"1.0\"}", "`jsonrpc` must be"),
            ("", "no messages"),
            (" [ ] ", "no messages"),
        ] {
            assert!(fault(input).contains(expected), "{input}: {}", fault(input));
        }
    }
}
