//! The macros of `antiphon`, which exports them: `#[antiphon::rpc]` and `#[derive(antiphon::RpcError)]`.
//!
//! A macro reads (`contract/`, `failure/`), and everything that can be wrong is told there, at the
//! user's line; then it writes, one file for each thing that is written. What the written code does
//! at run time stands in `antiphon`, and only the names and types of a contract stand in the code.

mod arguments;
mod attribute;
mod client;
mod contract;
mod describe;
mod rpc_error;
mod serialize;
mod server;

use proc_macro::TokenStream;
use quote::quote;

/// Makes a trait the contract of a service: its server side, its typed client, its description.
///
/// See `antiphon::rpc`, which is this, for what it understands.
#[proc_macro_attribute]
pub fn rpc(options: TokenStream, item: TokenStream) -> TokenStream {
    match contract::Contract::parse(options.into(), item.into()) {
        Ok(contract) => {
            let server = server::write(&contract);
            let client = client::write(&contract);
            quote!(#server #client).into()
        }
        Err(invalid) => invalid.into_tokens().into(),
    }
}

/// Maps an error to its code, message and data on the wire, and back.
///
/// See `antiphon::RpcError`, which is this, for what it understands.
#[proc_macro_derive(RpcError, attributes(rpc))]
pub fn rpc_error(item: TokenStream) -> TokenStream {
    rpc_error::derive(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
