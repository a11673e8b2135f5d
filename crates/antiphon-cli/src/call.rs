//! `antiphon call`: calls a method and prints its result on stdout.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon::core::{Message, Payload, Rules, Versions, decode};
use antiphon::openrpc::Document;
use antiphon::{CallError, Direction, Id, Invocation, RawJson};
use bytes::Bytes;
use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use crate::connect::ConnectArgs;
use crate::exit::{CommandError, Exit};
use crate::handshake::document::FilePosition;
use crate::open_connection::OpenConnection;
use crate::openrpc::discovery::{self, SchemaArgs};
use crate::openrpc::validate;
use crate::output;
use crate::params::ParamArgs;

/// Call a method and print its result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Method to call
    method: String,
    #[command(flatten)]
    params: ParamArgs,
    /// Open this file and send its document and position, with --dialect lsp; for example main.c:3:5
    #[arg(long, value_name = "FILE[:LINE[:COLUMN]]", value_parser = FilePosition::parse)]
    at: Option<FilePosition>,
    /// Use this request id: a JSON String, Number or null
    #[arg(long, value_name = "JSON", value_parser = id, allow_negative_numbers = true)]
    id: Option<Id>,
    /// Print the whole response as received, for a result or an error
    #[arg(long)]
    raw: bool,
    /// Validate the params against the server's OpenRPC document (rpc.discover) before the call
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

const EXAMPLES: &str = "\
Examples:
  antiphon call http://127.0.0.1:8650 subtract 42 23       # params [42,23]
  antiphon call http://127.0.0.1:8650 subtract minuend:=42 subtrahend:=23
  antiphon call http://127.0.0.1:8650 echo hello '[1,2]'   # String and Array
  antiphon call -v ws://127.0.0.1:8650 sum -d '[1,2,4]'    # all params as JSON
  antiphon call http://127.0.0.1:8650 whoami -H 'Authorization: Bearer TOKEN'
  antiphon call --check http://127.0.0.1:8650 subtract 42  # validate first
  antiphon call --schema openrpc.json http://127.0.0.1:8545 eth_chainId
  antiphon call --dialect lsp exec:clangd textDocument/hover --at main.c:3:5
  antiphon call --dialect mcp \\
      'exec:npx -y @modelcontextprotocol/server-everything' tools/list

Params:
  42 true null [1,2]   a PARAM that is valid JSON is that JSON value
  hello                any other PARAM is a String
  '\"42\"' '\"a=b\"'       quote a String that looks like JSON or like a name
  name=text            a param by name, with a String
  name:=json           a param by name, with a JSON value

Output:
  The result goes to stdout. On a terminal it is indented; elsewhere it is the
  JSON as received, for example for jq.";

pub(crate) async fn run(args: CallArgs) -> Result<Exit, CommandError> {
    // An invalid param is reported before the command connects.
    let params = match &args.at {
        None => args.params.read()?,
        Some(_) => Some(args.params.read_after(&[("textDocument", Value::Null)])?),
    };
    let known = args.schema.read()?;
    if let Some(document) = &known {
        validate::check_call(document, &args.method, params.as_ref())?;
    }
    // `--raw` needs a known id, to recognise the response among other messages.
    let id = args.id.or_else(|| args.raw.then(|| Id::from(1)));
    let call = Invocation { id: id.clone(), ..Invocation::new(&args.method, params) };
    let response = Arc::new(ResponseCapture::new(id.filter(|_| args.raw)));
    let capture = response.clone();
    let plan = CallPlan {
        method: &args.method,
        at: args.at.map(|at| (at, args.params)),
        fetches_document: args.check && known.is_none(),
        gives_hints: !args.raw,
        deadline: args.connect.deadline(),
        known,
    };
    args.connect
        .with_client(
            move |direction, message| capture.inspect(direction, message),
            async |connection| plan.run(connection, call).await,
            |outcome| match (response.take(), outcome) {
                (Some(whole), outcome) if is_response(&outcome.reply) => {
                    show_raw(&whole, &outcome.reply)
                }
                (_, outcome) => show(outcome),
            },
        )
        .await
}

/// The steps before and after the call.
struct CallPlan<'a> {
    method: &'a str,
    /// The position of `--at`, and the params beside it.
    at: Option<(FilePosition, ParamArgs)>,
    /// The document of `--schema`.
    known: Option<Document>,
    fetches_document: bool,
    /// Whether the document is used for a hint after an error.
    gives_hints: bool,
    /// The deadline of the call. The hint has the same one, so that waiting for it does not change the
    /// outcome.
    deadline: Option<Instant>,
}

struct CallOutcome {
    reply: Result<RawJson, CallError>,
    hint: Option<String>,
}

impl CallPlan<'_> {
    async fn run(
        mut self,
        connection: &mut OpenConnection,
        mut call: Invocation,
    ) -> Result<CallOutcome, CommandError> {
        if let Some((at, params)) = &self.at {
            call.params = Some(params.read_after(&connection.params_at(at).await?)?);
        }
        let client = &connection.client;
        if self.fetches_document {
            let document = discovery::fetch(client).await?;
            validate::check_call(&document, self.method, call.params.as_ref())?;
            self.known = Some(document);
        }
        let reply = connection.call(call).await;
        let hint = match &reply {
            Err(error) if self.gives_hints => {
                validate::hint(client, self.known.as_ref(), self.deadline, self.method, error).await
            }
            _ => None,
        };
        Ok(CallOutcome { reply, hint })
    }
}

fn show(CallOutcome { reply, hint }: CallOutcome) -> Result<Exit, CommandError> {
    let result = reply.map_err(|error| match hint {
        Some(hint) => CommandError::from(error).hint(hint),
        None => error.into(),
    })?;
    output::result(&result)?;
    Ok(Exit::Success)
}

fn show_raw(whole: &Bytes, reply: &Result<RawJson, CallError>) -> Result<Exit, CommandError> {
    output::exact(String::from_utf8_lossy(whole).trim_end())?;
    Ok(if reply.is_ok() { Exit::Success } else { Exit::PeerError })
}

fn is_response(reply: &Result<RawJson, CallError>) -> bool {
    matches!(reply, Ok(_) | Err(CallError::Rpc(_)))
}

/// Keeps the bytes of the response to one call, for `--raw`.
struct ResponseCapture {
    /// `None` without `--raw`.
    id: Option<Id>,
    kept: Mutex<Option<Bytes>>,
}

impl ResponseCapture {
    fn new(id: Option<Id>) -> Self {
        Self { id, kept: Mutex::new(None) }
    }

    fn inspect(&self, direction: Direction, message: &[u8]) {
        let Some(id) = self.id.as_ref().filter(|_| direction == Direction::Received) else {
            return;
        };
        let message = Bytes::copy_from_slice(message);
        let versions = Versions::V1AndV2;
        let rules = Rules { depth: usize::MAX, versions, ..Rules::default() };
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

/// Accepts the same id, the same number written as a float, or the null of a server that could not
/// read the id.
fn may_answer(ours: &Id, theirs: &Id) -> bool {
    let same_number = ours.as_u64().is_some() && ours.as_u64() == theirs.as_u64();
    ours == theirs || same_number || *theirs == Id::Null
}

fn id(text: &str) -> Result<Id, String> {
    let remedy = "an id is a Number such as 7, a String such as '\"seven\"', or null";
    let json = RawJson::parse(text.to_owned()).map_err(|_| remedy)?;
    Id::from_json(json).ok_or_else(|| remedy.to_owned())
}
