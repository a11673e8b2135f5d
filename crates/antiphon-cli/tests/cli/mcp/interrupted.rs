//! Ctrl-C in the middle of a command.

use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use rustix::process::Signal;

use super::servers::McpHttp;
use crate::support::{Process, antiphon};

/// Reports when a call begins, and when it is cancelled.
struct Running(Sender<&'static str>);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.send("cancelled");
    }
}

/// A server with a tool that never ends.
fn endless() -> (McpHttp, Receiver<&'static str>) {
    let (events, seen) = channel();
    let tool = ServerTool::new("endless", move |(): (), _cx: RequestContext| {
        let running = Running(events.clone());
        async move {
            let _ = running.0.send("running");
            std::future::pending::<&str>().await
        }
    });
    (McpHttp::start(McpServer::builder("endless", "1").tool(tool).build()), seen)
}

fn start(way: &[String], words: &[&str]) -> Child {
    let mut command = antiphon();
    command.args(["mcp", "call"]).args(way).args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The server would go on with the call of a legacy session.
#[test]
fn the_call_is_cancelled_on_the_server() {
    let (server, events) = endless();
    for way in &server.ways() {
        let child = start(way, &["endless"]);
        assert_eq!(events.recv().unwrap(), "running", "{way:?}");
        Process::of(&child).signal(Signal::INT);
        assert_eq!(events.recv().unwrap(), "cancelled", "{way:?}");
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{way:?}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "", "{way:?}");
    }
}
