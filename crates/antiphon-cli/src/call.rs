//! `antiphon call`: one call, and its result on stdout.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon::core::{Message, Payload, Rules, decode};
use antiphon::{CallError, Direction, Id, Invocation, RawJson};
use bytes::Bytes;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::params::ParamArgs;
use crate::remote::Remote;

/// Call a method and print its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    remote: Remote,
    /// The method to call
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// The id to call with: a String, Number or null, in JSON
    #[arg(long, value_name = "JSON", value_parser = id, allow_negative_numbers = true)]
    id: Option<Id>,
    /// Print the whole Response as it came, be it a result or an error
    #[arg(long)]
    raw: bool,
}

const EXAMPLES: &str = "\
Examples:
  antiphon call http://127.0.0.1:8650 subtract 42 23          by position: [42,23]
  antiphon call http://127.0.0.1:8650 subtract minuend:=42 subtrahend:=23    by name
  antiphon call http://127.0.0.1:8650 echo hello name '[1,2]'  Strings, and an Array
  antiphon call -v ws://127.0.0.1:8650 sum -d '[1,2,4]'        all params at once
  antiphon call http://node:8545 eth_getBlockByNumber latest false -H 'Authorization: Bearer ...'
  antiphon call exec+header:clangd initialize processId:=null rootUri:=null capabilities:={}

On a terminal the result is indented; elsewhere it is the JSON that came, to be piped into jq.
What looks like JSON is JSON: '\"42\"' is a String, 42 a Number. '\"a=b\"' is a String, a=b a name.";

pub(crate) async fn run(args: CallArgs) -> Result<Exit, Failure> {
    let params = args.params.read()?;
    // A fixed id, so that the Response can be told from others on the wire.
    let id = args.id.or_else(|| args.raw.then(|| Id::from(1)));
    let call = Invocation { id: id.clone(), ..Invocation::new(&args.method, params) };
    let response = Arc::new(Response::to(id.filter(|_| args.raw)));
    let seen = response.clone();
    args.remote
        .talk(
            move |direction, message| seen.see(direction, message),
            async |client| Ok(client.caller().send(call).await),
            |outcome| match response.take() {
                Some(whole) if is_answer(&outcome) => show_raw(&whole, &outcome),
                _ => show(outcome),
            },
        )
        .await
}

fn show(outcome: Result<RawJson, CallError>) -> Result<Exit, Failure> {
    output::result(&outcome?)?;
    Ok(Exit::Success)
}

fn show_raw(whole: &Bytes, outcome: &Result<RawJson, CallError>) -> Result<Exit, Failure> {
    output::line(String::from_utf8_lossy(whole).trim_end())?;
    Ok(if outcome.is_ok() { Exit::Success } else { Exit::PeerError })
}

fn is_answer(outcome: &Result<RawJson, CallError>) -> bool {
    matches!(outcome, Ok(_) | Err(CallError::Rpc(_)))
}

/// Keeps the Response of one call as it is on the wire.
struct Response {
    /// None where nobody wants to see it.
    id: Option<Id>,
    kept: Mutex<Option<Bytes>>,
}

impl Response {
    fn to(id: Option<Id>) -> Self {
        Self { id, kept: Mutex::new(None) }
    }

    fn see(&self, direction: Direction, message: &[u8]) {
        let Some(id) = self.id.as_ref().filter(|_| direction == Direction::Received) else {
            return;
        };
        let message = Bytes::copy_from_slice(message);
        let rules = Rules { depth: usize::MAX, ..Rules::default() };
        if let Payload::One(Ok(Message::Response(response))) = decode(&message, &rules)
            && may_answer(id, &response.id)
        {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        }
    }

    fn take(&self) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The same id, one that a float has passed through, or the null of a server that read none.
fn may_answer(ours: &Id, theirs: &Id) -> bool {
    let same_number = ours.as_u64().is_some() && ours.as_u64() == theirs.as_u64();
    ours == theirs || same_number || *theirs == Id::Null
}

fn id(text: &str) -> Result<Id, String> {
    let remedy = "an id is a Number as 7, a String as '\"seven\"', or null";
    let json = RawJson::parse(text.to_owned()).map_err(|_| remedy)?;
    Id::from_json(json).ok_or_else(|| remedy.to_owned())
}
