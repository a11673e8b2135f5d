//! A model of Bitcoin Core, and what `antiphon check --profile bitcoin` reports about it.
//!
//! The model follows the sources of Bitcoin Core, with their oddities. Its JSON-RPC is written by hand, so that it
//! shares no decision with the library; only the bytes of HTTP are read by the library.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use antiphon::http::{Method, Response, StatusCode};
use antiphon::transport::http::{HeadDecision, HttpBody, HttpMessage, HttpPolicy, MessageDecision};
use antiphon::{Connection, Dialect, Router, Server};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::judged;
use crate::support::PATIENCE;

#[allow(dead_code, reason = "the model does not differ from the table")]
#[path = "../../../../antiphon/tests/contracts/bitcoin_core.rs"]
mod table;

/// A running model. It stops when it is dropped.
struct Core {
    url: String,
    _runtime: Runtime,
}

impl Core {
    fn start(policy: CorePolicy) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::bind("http://127.0.0.1:0")).unwrap();
        // The dialect accepts every content type. The policy decides everything else.
        let server = server.dialect(Dialect::bitcoin()).http_policy(policy);
        let url = server.endpoint().to_string();
        runtime.spawn(server.serve(Router::new()));
        Self { url, _runtime: runtime }
    }
}

struct CorePolicy {
    requires_password: bool,
}

impl HttpPolicy for CorePolicy {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        match request.http_method() {
            Some(&Method::POST) => {}
            Some(&(Method::GET | Method::HEAD | Method::PUT)) => {
                return HeadDecision::Respond(response(
                    405,
                    "JSONRPC server handles only POST requests",
                ));
            }
            _ => return HeadDecision::Respond(response(405, "")),
        }
        let path = request.path().unwrap_or_default();
        if path != "/" && !path.starts_with("/wallet/") {
            return HeadDecision::Respond(response(404, ""));
        }
        let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        if self.requires_password && header != Some("Basic YWxpY2U6aHVzaA==") {
            let mut refused = response(401, "");
            let challenge = "Basic realm=\"jsonrpc\"".parse().unwrap();
            refused.headers_mut().insert("www-authenticate", challenge);
            return HeadDecision::Respond(refused);
        }
        HeadDecision::ReadBody
    }

    fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
        let wallet = request.path().and_then(|path| path.strip_prefix("/wallet/"));
        let (status, body) = Call::new(wallet).execute(message.body());
        let Some(body) = body else { return MessageDecision::Respond(response(status, "")) };
        let mut reply = response(status, &format!("{body}\n"));
        reply.headers_mut().insert("content-type", "application/json".parse().unwrap());
        MessageDecision::Respond(reply)
    }
}

fn response(status: u16, body: &str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(body.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

type Failure = (i32, String);

/// `JSONRPCRequest`. One is used for all entries of a batch, so an entry that is no Object has the id and the version
/// of the entry before it.
struct Call<'w> {
    id: Option<String>,
    is_v2: bool,
    wallet: Option<&'w str>,
}

impl<'w> Call<'w> {
    fn new(wallet: Option<&'w str>) -> Self {
        Self { id: Some("null".to_owned()), is_v2: false, wallet }
    }

    /// `HTTPReq_JSONRPC` and `ExecuteHTTPRPC`.
    fn execute(&mut self, body: &[u8]) -> (u16, Option<String>) {
        let Some(text) = read(body) else {
            return self.failed((-32700, "Parse error".to_owned()));
        };
        match text.as_bytes()[0] {
            b'{' => self.execute_one(text),
            b'[' => self.execute_batch(text),
            _ => self.failed((-32700, "Top-level object parse error".to_owned())),
        }
    }

    fn execute_one(&mut self, text: &str) -> (u16, Option<String>) {
        let (method, params) = match self.parse(text) {
            Ok(parsed) => parsed,
            Err(failure) => return self.failed(failure),
        };
        match self.call(&method, &params) {
            Err(failure) if !self.is_v2 => self.failed(failure),
            _ if self.is_notification() => (204, None),
            outcome => (200, Some(self.reply(outcome))),
        }
    }

    fn execute_batch(&mut self, text: &str) -> (u16, Option<String>) {
        let entries: Vec<&RawValue> = serde_json::from_str(text).unwrap();
        let mut replies = Vec::new();
        for entry in &entries {
            let parsed = self.parse(entry.get());
            let outcome = parsed.and_then(|(method, params)| self.call(&method, &params));
            if !self.is_notification() {
                replies.push(self.reply(outcome));
            }
        }
        match replies.is_empty() && !entries.is_empty() {
            true => (204, None),
            false => (200, Some(format!("[{}]", replies.join(",")))),
        }
    }

    /// `JSONErrorReply`.
    fn failed(&self, failure: Failure) -> (u16, Option<String>) {
        let status = match failure.0 {
            -32600 => 400,
            -32601 => 404,
            _ => 500,
        };
        (status, Some(self.reply(Err(failure))))
    }

    fn is_notification(&self) -> bool {
        self.is_v2 && self.id.is_none()
    }

    /// `JSONRPCRequest::parse`.
    fn parse(&mut self, text: &str) -> Result<(String, String), Failure> {
        let invalid = |message: &str| Err((-32600, message.to_owned()));
        if !text.starts_with('{') {
            return invalid("Invalid Request object");
        }
        let members = members(text);
        let find = |wanted: &str| {
            members.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.get())
        };
        self.id = find("id").map(written);
        self.is_v2 = false;
        match find("jsonrpc").unwrap_or("null") {
            "null" => {}
            text if !text.starts_with('"') => return invalid("jsonrpc field must be a string"),
            text => match &*string(text) {
                "1.0" => {}
                "2.0" => self.is_v2 = true,
                _ => return invalid("JSON-RPC version not supported"),
            },
        }
        let method = match find("method").unwrap_or("null") {
            "null" => return invalid("Missing method"),
            text if !text.starts_with('"') => return invalid("Method must be a string"),
            text => string(text),
        };
        match find("params").unwrap_or("null") {
            "null" => Ok((method, "[]".to_owned())),
            text if text.starts_with(['[', '{']) => Ok((method, written(text))),
            _ => invalid("Params must be an array or object"),
        }
    }

    /// `CRPCTable::execute`.
    fn call(&self, method: &str, params: &str) -> Result<String, Failure> {
        match method {
            "getblockcount" | "uptime" => Ok("0".to_owned()),
            "getblockhash" if ["[0]", "{\"height\":0}"].contains(&params) => {
                Ok(format!("\"{GENESIS}\""))
            }
            "getblockhash" => Err((-8, "Block height out of range".to_owned())),
            "getbalance" => match self.wallet {
                None => Ok("20999999.97690000".to_owned()),
                Some("savings") => Ok("1.50000000".to_owned()),
                Some(_) => {
                    Err((-18, "Requested wallet does not exist or is not loaded".to_owned()))
                }
            },
            "echo" if params == "{}" => Ok("[]".to_owned()),
            "echo" if params.starts_with('{') => Err((-8, "Unknown named parameter".to_owned())),
            "echo" => Ok(params.to_owned()),
            _ => Err((-32601, "Method not found".to_owned())),
        }
    }

    /// `JSONRPCReplyObj`.
    fn reply(&self, outcome: Result<String, Failure>) -> String {
        let error = |(code, message)| {
            let message = serde_json::to_string(&message).unwrap();
            format!("\"error\":{{\"code\":{code},\"message\":{message}}}")
        };
        let members = match (self.is_v2, outcome) {
            (true, Ok(result)) => format!("\"jsonrpc\":\"2.0\",\"result\":{result}"),
            (true, Err(failure)) => format!("\"jsonrpc\":\"2.0\",{}", error(failure)),
            (false, Ok(result)) => format!("\"result\":{result},\"error\":null"),
            (false, Err(failure)) => format!("\"result\":null,{}", error(failure)),
        };
        let id = self.id.as_ref().map(|id| format!(",\"id\":{id}")).unwrap_or_default();
        format!("{{{members}{id}}}")
    }
}

const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";

/// `UniValue::read`: at most 512 levels, and no half of a pair of surrogates.
fn read(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let json: &RawValue = serde_json::from_str(text).ok()?;
    let mut depth = 0_usize;
    for token in Tokens(json.get()) {
        match token.as_bytes()[0] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'"' => drop(serde_json::from_str::<String>(token).ok()?),
            _ => {}
        }
        if depth > 512 {
            return None;
        }
    }
    Some(json.get())
}

/// `UniValue::write`: without spaces, and with the usual escapes. Numbers keep their text.
fn written(text: &str) -> String {
    let tokens = Tokens(text).filter(|token| !token.trim().is_empty());
    let rewritten = tokens.map(|token| match token.as_bytes()[0] {
        b'"' => serde_json::to_string(&string(token)).unwrap(),
        _ => token.to_owned(),
    });
    rewritten.collect()
}

fn string(text: &str) -> String {
    serde_json::from_str(text).unwrap()
}

/// The Strings and the single other characters of a valid JSON text.
struct Tokens<'t>(&'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let first = self.0.chars().next()?;
        let mut len = first.len_utf8();
        if first == '"' {
            let mut is_escaped = false;
            let is_end = |byte: u8| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            };
            len += self.0.bytes().skip(1).position(is_end)? + 1;
        }
        let (token, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(token)
    }
}

/// The members of an Object in their order.
fn members(text: &str) -> Vec<(String, &RawValue)> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an Object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| map.next_entry().transpose()).collect()
        }
    }

    serde_json::Deserializer::from_str(text).deserialize_map(Members).unwrap()
}

/// The model is Bitcoin Core, as far as the table of its responses goes.
#[test]
fn the_model_answers_as_the_table_says() {
    let core = Core::start(CorePolicy { requires_password: true });
    let address = core.url.trim_start_matches("http://").trim_end_matches('/');
    for case in table::cases() {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(case.request.replace("{host}", address).as_bytes()).unwrap();
        let mut found = String::new();
        socket.read_to_string(&mut found).unwrap();
        case.core.compare(&found).unwrap_or_else(|wrong| panic!("{}: {wrong}", case.name));
    }
}

/// The cases in which the specification leaves a choice, and Bitcoin Core makes another one than Antiphon: members that
/// occur twice, halves of surrogate pairs, Responses that a client sends, the limit of nesting, and the Allow header.
const CHOICES: [&str; 26] = [
    "id-lone-surrogate",
    "id-twice",
    "version-twice",
    "method-twice",
    "method-twice-escaped",
    "method-lone-surrogate",
    "batch-of-responses",
    "batch-response-among-requests",
    "params-twice",
    "response-unasked",
    "response-unasked-error",
    "response-null-id-error",
    "response-without-id",
    "response-both-unasked",
    "response-bad-version",
    "response-bad-error",
    "response-bad-id",
    "response-large-id",
    "http-get",
    "depth-over-limit",
    "depth-objects-over-limit",
    "depth-in-batch-over-limit",
    "depth-in-ignored-member",
    "depth-of-id",
    "depth-of-response",
    "depth-bare-over-limit",
];

#[test]
fn the_check_agrees_with_bitcoin_core() {
    let core = Core::start(CorePolicy { requires_password: false });
    let judged = judged(&[&core.url, "--profile", "bitcoin"]);
    let wrong = ["failed", "warned", "crashed"].map(|verdict| judged.names(verdict));
    assert!(wrong.concat().is_empty(), "{}", judged.findings());
    assert_eq!(judged.names("differs"), CHOICES, "{}", judged.findings());
    assert_eq!(judged.code, Some(0));
    assert!(judged.count("passed") > 200, "only {} cases are run", judged.count("passed"));
}
