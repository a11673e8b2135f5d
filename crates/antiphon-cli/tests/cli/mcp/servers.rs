//! MCP servers in the test process, and the ways to them.

use antiphon_mcp::McpServer;
use antiphon_mcp::http::StreamableHttp;
use tokio::runtime::Runtime;

use crate::support::{Ended, antiphon, run};

/// A server in this process, which ends with its owner.
pub(super) struct McpHttp {
    pub(super) url: String,
    pub(super) server: McpServer,
    /// Serves until it is dropped.
    _runtime: Runtime,
}

impl McpHttp {
    pub(super) fn start(server: McpServer) -> Self {
        let runtime = Runtime::new().unwrap();
        let bound = runtime.block_on(
            server.bind_with("http://127.0.0.1:0/mcp", StreamableHttp::new().http_sse(true)),
        );
        let bound = bound.unwrap();
        let url = bound.endpoint().to_string();
        runtime.spawn(bound.serve(server.clone()));
        Self { url, server, _runtime: runtime }
    }

    /// The server with everything that the protocol has.
    pub(super) fn everything() -> Self {
        Self::start(crate::everything::server().build())
    }

    /// The endpoint of the server, in both eras, over HTTP and as a process.
    pub(super) fn ways(&self) -> [Vec<String>; 4] {
        let process = format!("exec:{} mcp bridge --to {}", binary(), self.url);
        let way = |endpoint: &str, revision: &str| {
            vec![endpoint.to_owned(), "--revision".to_owned(), revision.to_owned()]
        };
        [
            way(&self.url, "2026-07-28"),
            way(&self.url, "2025-11-25"),
            way(&process, "2026-07-28"),
            way(&process, "2025-06-18"),
        ]
    }
}

pub(super) fn binary() -> String {
    antiphon().get_program().to_str().unwrap().to_owned()
}

/// Runs `antiphon mcp`.
pub(super) fn mcp<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Ended {
    run(antiphon().arg("mcp").args(words), b"")
}

/// Runs a command with the words of a way to a server after its name.
pub(super) fn mcp_at(command: &str, way: &[String], words: &[&str]) -> Ended {
    let mut all = vec![command];
    all.extend(way.iter().map(String::as_str));
    all.extend(words);
    mcp(&all)
}
