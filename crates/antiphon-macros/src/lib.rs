//! The macros of `antiphon` and of `antiphon-mcp`, which export them: `#[antiphon::rpc]`,
//! `#[derive(antiphon::RpcError)]` and `#[antiphon_mcp::server]`.
//!
//! Each macro has two phases. Parsing (`contract/`, `rpc_error/`, `mcp/`) checks the input, and reports every
//! compile error at the user's code. Generation never fails; each generated item has a file of its own.
//! For a refused input, `refused.rs` generates what the rest of the code uses.
//! The run-time behaviour is in `antiphon`: the generated code only contains the names and types of a
//! contract.

mod attribute;
mod client;
mod contract;
mod describe;
mod deserialize;
mod for_arc;
mod hygiene;
mod mcp;
mod refused;
mod rpc_error;
mod serialize;
mod server;

use proc_macro::TokenStream;
use quote::quote;

/// Turns a trait into the contract of a service: server side, typed client and description.
///
/// `antiphon::rpc` documents the options.
#[proc_macro_attribute]
pub fn rpc(options: TokenStream, item: TokenStream) -> TokenStream {
    match contract::Contract::parse(options.into(), &item.into()) {
        Ok(contract) => {
            let server = server::write(&contract);
            let client = client::write(&contract);
            quote!(#server #client).into()
        }
        Err(refused) => refused.into(),
    }
}

/// Makes an MCP server of a type: its methods are the tools, resources and prompts.
///
/// `antiphon_mcp::server` documents the options.
#[proc_macro_attribute]
pub fn mcp_server(options: TokenStream, item: TokenStream) -> TokenStream {
    mcp::server(options.into(), &item.into()).into()
}

/// Maps an error to its code, message and data on the wire, and back.
///
/// `antiphon::RpcError` documents the options.
#[proc_macro_derive(RpcError, attributes(rpc))]
pub fn rpc_error(item: TokenStream) -> TokenStream {
    rpc_error::derive(item.into()).into()
}
