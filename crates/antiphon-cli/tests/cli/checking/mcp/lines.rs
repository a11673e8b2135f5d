//! The MCP server over lines: requests run at once, and can be cancelled.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::fault::Fault;
use super::reference::{Era, Reference, Session, Surroundings, error};

/// The end of a connection.
pub(super) enum LinesEnd {
    Connection,
    /// A message has killed the server.
    Server,
}

/// The flags of the requests that run, by the text of their id.
type Running = Arc<Mutex<HashMap<String, Arc<AtomicBool>>>>;

/// One request on a connection.
struct Call {
    output: Arc<Mutex<TcpStream>>,
    is_cancelled: Arc<AtomicBool>,
    is_pretty: bool,
}

impl Surroundings for Call {
    fn send(&mut self, message: Value) {
        let is_pretty = self.is_pretty && message.get("method").is_some();
        let text = if is_pretty { format!("{message:#}\n") } else { format!("{message}\n") };
        let _ = self.output.lock().unwrap().write_all(text.as_bytes());
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }
}

/// Serves one connection.
pub(super) fn serve(socket: &TcpStream, reference: Reference) -> LinesEnd {
    let output = Arc::new(Mutex::new(socket.try_clone().unwrap()));
    let (running, session) = (Running::default(), Arc::new(Mutex::new(Session::default())));
    if reference.has(Fault::BannerOnStdout) {
        let _ = output.lock().unwrap().write_all(b"Server started\n");
    }
    let call = || Call {
        output: Arc::clone(&output),
        is_cancelled: Arc::default(),
        is_pretty: reference.has(Fault::MessagesHaveNewlines),
    };
    let mut end = LinesEnd::Connection;
    for line in BufReader::new(socket).lines() {
        let Ok(line) = line else { break };
        if line.len() > 1 << 20 && reference.has(Fault::LongLineKills) {
            end = LinesEnd::Server;
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            call().send(error(&Value::Null, -32700));
            continue;
        };
        if let Some(entries) = message.as_array() {
            call().send(batch(reference, entries));
            continue;
        }
        if message["method"] == "notifications/cancelled" {
            let id = message["params"]["requestId"].to_string();
            if let Some(flag) = running.lock().unwrap().get(&id) {
                flag.store(true, Ordering::SeqCst);
            }
            continue;
        }
        let mut call = call();
        let id = message["id"].to_string();
        running.lock().unwrap().insert(id.clone(), Arc::clone(&call.is_cancelled));
        let (running, session) = (Arc::clone(&running), Arc::clone(&session));
        let mut run = move || {
            // A slow call has its own copy of the state, so that others do not wait for it.
            let mut own = *session.lock().unwrap();
            let response = reference.answer(&message, &mut own, &mut call);
            if matches!(message["method"].as_str(), Some("logging/setLevel" | "initialize")) {
                *session.lock().unwrap() = own;
            }
            running.lock().unwrap().remove(&id);
            if let Some(response) = response {
                // The client would stop at a handshake with two responses.
                if reference.has(Fault::ResponsesRepeat) && message["method"] != "initialize" {
                    call.send(response.clone());
                }
                call.send(response);
            }
            if reference.has(Fault::ProgressFollowsResponse) {
                let token = &message["params"]["_meta"]["progressToken"];
                if !token.is_null() {
                    call.send(reference.progress(token, 9));
                }
            }
        };
        if is_long(&line) { drop(thread::spawn(run)) } else { run() }
    }
    for flag in running.lock().unwrap().values() {
        flag.store(true, Ordering::SeqCst);
    }
    end
}

fn is_long(line: &str) -> bool {
    line.contains("tools/call") || line.contains("subscriptions/listen")
}

fn batch(reference: Reference, entries: &[Value]) -> Value {
    if !reference.has(Fault::BatchesAreAnswered) {
        return error(&Value::Null, -32600);
    }
    let results = entries.iter().map(|entry| match reference.era {
        Era::Legacy => json!({"jsonrpc": "2.0", "id": entry["id"], "result": {}}),
        Era::Modern => {
            json!({"jsonrpc": "2.0", "id": entry["id"], "result": {"resultType": "complete"}})
        }
    });
    Value::Array(results.collect())
}
