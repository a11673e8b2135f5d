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
}

impl DialectName {
    /// Returns the conventions that the library applies.
    pub(crate) fn to_dialect(self) -> Dialect {
        match self {
            Self::Lsp => Dialect::lsp(),
            Self::Mcp => Dialect::mcp(),
            Self::Ethereum => Dialect::ethereum(),
        }
    }
}
