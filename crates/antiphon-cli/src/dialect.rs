//! The dialects that `--dialect` names, and the versions that `--jsonrpc` names.

use antiphon::{Dialect, Version};
use clap::ValueEnum;

/// A dialect of JSON-RPC, as `--dialect` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectName {
    /// Language Server Protocol
    Lsp,
    /// Model Context Protocol
    Mcp,
    /// Ethereum nodes
    Ethereum,
    /// Bitcoin nodes: JSON-RPC 1.0, 1.1 and 2.0; each message has its own version
    Bitcoin,
    /// JSON-RPC 1.0 and 2.0; each message has its own version
    V1,
}

impl DialectName {
    /// Returns the conventions that the library applies.
    pub(crate) fn to_dialect(self) -> Dialect {
        match self {
            Self::Lsp => Dialect::lsp(),
            Self::Mcp => Dialect::mcp(),
            Self::Ethereum => Dialect::ethereum(),
            Self::Bitcoin => Dialect::bitcoin(),
            Self::V1 => Dialect::v1(),
        }
    }
}

/// A version of JSON-RPC, as `--jsonrpc` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionName {
    /// JSON-RPC 1.0: calls have no `jsonrpc`; with --dialect bitcoin they have `"jsonrpc": "1.0"`
    #[value(name = "1.0")]
    V1,
    /// JSON-RPC 2.0: calls have `"jsonrpc": "2.0"`
    #[value(name = "2.0")]
    V2,
}

impl VersionName {
    pub(crate) fn to_version(self) -> Version {
        match self {
            Self::V1 => Version::V1,
            Self::V2 => Version::V2,
        }
    }
}
