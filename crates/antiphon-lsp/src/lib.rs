//! The Language Server Protocol on Antiphon, for servers and for clients.
//!
//! [`types`] holds the types of the protocol, generated from its meta model by the crate `gen-lsp-types`.

pub mod documents;

pub use gen_lsp_types as types;
