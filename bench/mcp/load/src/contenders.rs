//! The servers, and what each is measured with.

use std::path::Path;

/// A way to measure a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    HttpLegacy,
    HttpModern,
    StdioLegacy,
    StdioModern,
    IdleSessions,
}

impl Load {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HttpLegacy => "http-legacy",
            Self::HttpModern => "http-modern",
            Self::StdioLegacy => "stdio-legacy",
            Self::StdioModern => "stdio-modern",
            Self::IdleSessions => "idle-sessions",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::HttpLegacy => {
                "Calls per second over HTTP, 2025-11-25: 64 connections, each with its session"
            }
            Self::HttpModern => "Calls per second over HTTP, 2026-07-28: 64 connections",
            Self::StdioLegacy => "Calls per second over stdio, 2025-11-25: 16 in flight",
            Self::StdioModern => "Calls per second over stdio, 2026-07-28: 16 in flight",
            Self::IdleSessions => "Bytes of private memory per idle session over HTTP, 2025-11-25",
        }
    }

    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::HttpModern | Self::StdioModern)
    }

    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::HttpLegacy | Self::HttpModern | Self::IdleSessions)
    }
}

/// A server and its variant of HTTP.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    program: Vec<String>,
    /// The argument for HTTP.
    http: &'static str,
    loads: &'static [Load],
}

impl Contender {
    /// The command that starts the server for a load.
    pub(crate) fn command(&self, load: Load) -> Vec<String> {
        let argument = if load.is_http() { self.http } else { "stdio" };
        self.program.iter().cloned().chain([argument.to_owned()]).collect()
    }

    pub(crate) fn can(&self, load: Load) -> bool {
        self.loads.contains(&load)
    }
}

const ALL: &[Load] =
    &[Load::HttpLegacy, Load::HttpModern, Load::StdioLegacy, Load::StdioModern, Load::IdleSessions];
const BINARIES: [(&str, &str, &str, &[Load]); 3] = [
    ("antiphon", "bench-mcp-antiphon", "http", ALL),
    ("rmcp", "bench-mcp-rmcp", "http", ALL),
    // The modern era has no sessions, so the variant without sessions differs only in the legacy era.
    ("rmcp, no sessions", "bench-mcp-rmcp", "http-stateless", &[Load::HttpLegacy]),
];

/// The servers whose programs exist.
pub(crate) fn contenders(binaries: &str, python: &str, script: &str) -> Vec<Contender> {
    let built = BINARIES.into_iter().map(|(name, binary, http, loads)| {
        let program = vec![Path::new(binaries).join(binary).display().to_string()];
        Contender { name, program, http, loads }
    });
    let script = vec![python.to_owned(), "-B".to_owned(), script.to_owned()];
    let python = Contender { name: "Python SDK", program: script, http: "http", loads: ALL };
    built.chain([python]).filter(|one| Path::new(&one.program[0]).exists()).collect()
}
