//! `antiphon call`: one call, and its result on stdout.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon::core::{Message, Payload, Rules, decode};
use antiphon::openrpc::Document;
use antiphon::{CallError, Client, Direction, Id, Invocation, RawJson};
use bytes::Bytes;
use clap::Args;
use tokio::time::Instant;

use crate::exit::{Exit, Failure};
use crate::openrpc::check;
use crate::openrpc::discovery::{self, Schema};
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
    /// Ask first what METHOD takes, by rpc.discover, and send nothing that does not fit
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    schema: Schema,
}

const EXAMPLES: &str = "\
Examples:
  antiphon call http://127.0.0.1:8650 subtract 42 23          by position: [42,23]
  antiphon call http://127.0.0.1:8650 subtract minuend:=42 subtrahend:=23    by name
  antiphon call http://127.0.0.1:8650 echo hello name '[1,2]'  Strings, and an Array
  antiphon call -v ws://127.0.0.1:8650 sum -d '[1,2,4]'        all params at once
  antiphon call http://node:8545 eth_getBlockByNumber latest false -H 'Authorization: Bearer ...'
  antiphon call exec+header:clangd initialize processId:=null rootUri:=null capabilities:={}
  antiphon call --check http://127.0.0.1:8650 subtract 42 many   says what is wrong, sends nothing
  antiphon call --schema openrpc.json http://node:8545 eth_call ...   checks by a file

On a terminal the result is indented; elsewhere it is the JSON that came, to be piped into jq.
What looks like JSON is JSON: '\"42\"' is a String, 42 a Number. '\"a=b\"' is a String, a=b a name.";

pub(crate) async fn run(args: CallArgs) -> Result<Exit, Failure> {
    let params = args.params.read()?;
    let known = args.schema.read()?;
    if let Some(document) = &known {
        check::hold(document, &args.method, params.as_ref())?;
    }
    // A fixed id, so that the Response can be told from others on the wire.
    let id = args.id.or_else(|| args.raw.then(|| Id::from(1)));
    let call = Invocation { id: id.clone(), ..Invocation::new(&args.method, params) };
    let response = Arc::new(Response::to(id.filter(|_| args.raw)));
    let seen = response.clone();
    let plan = Plan {
        method: &args.method,
        asks_first: args.check && known.is_none(),
        advises: !args.raw,
        deadline: args.remote.deadline(),
        known,
    };
    args.remote
        .talk(
            move |direction, message| seen.see(direction, message),
            async |client| Ok(plan.carry_out(client, call).await),
            |outcome| match (response.take(), outcome?) {
                (Some(whole), outcome) if is_answer(&outcome.answer) => {
                    show_raw(&whole, &outcome.answer)
                }
                (_, outcome) => show(outcome),
            },
        )
        .await
}

/// What is done around the call.
struct Plan<'a> {
    method: &'a str,
    /// What the method is, where a file says so.
    known: Option<Document>,
    asks_first: bool,
    /// Whether a refusal is looked into.
    advises: bool,
    /// No later than the call's own, so that advice that does not come changes nothing.
    deadline: Option<Instant>,
}

struct Outcome {
    answer: Result<RawJson, CallError>,
    advice: Option<String>,
}

impl Plan<'_> {
    async fn carry_out(mut self, client: &Client, call: Invocation) -> Result<Outcome, Failure> {
        if self.asks_first {
            let document = discovery::ask(client).await?;
            check::hold(&document, self.method, call.params.as_ref())?;
            self.known = Some(document);
        }
        let answer = client.caller().send(call).await;
        let advice = match &answer {
            Err(error) if self.advises => {
                check::advice(client, self.known.as_ref(), self.deadline, self.method, error).await
            }
            _ => None,
        };
        Ok(Outcome { answer, advice })
    }
}

fn show(Outcome { answer, advice }: Outcome) -> Result<Exit, Failure> {
    let result = answer.map_err(|error| match advice {
        Some(advice) => Failure::from(error).hint(advice),
        None => error.into(),
    })?;
    output::result(&result)?;
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
