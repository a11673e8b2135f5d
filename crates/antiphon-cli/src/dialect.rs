//! The dialects that `--dialect` names.

use antiphon::Dialect;
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
    /// Bitcoin nodes: JSON-RPC 1.0, 1.1 and 2.0 by message
    Bitcoin,
    /// JSON-RPC 1.0, beside 2.0
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
