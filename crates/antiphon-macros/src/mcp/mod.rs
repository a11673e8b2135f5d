//! `#[antiphon_mcp::server]`: makes an MCP server of a type.
//!
//! `method/` parses one method, `checks.rs` compares them, and `generate/` writes the implementation of
//! `McpService`. A refused `impl` keeps its methods, and gets a stand-in (`refused.rs`).

mod checks;
mod generate;
mod method;
mod options;
mod refused;
mod template;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ImplItem, ItemImpl, Result, Signature, parse_quote};

use crate::attribute::CompileErrors;
use method::McpMethod;
use options::ServerOptions;

/// A type that becomes a server.
struct Service {
    /// The `impl` without the attributes of this macro.
    item: ItemImpl,
    options: ServerOptions,
    methods: Vec<McpMethod>,
}

/// Expands the attribute.
pub(crate) fn server(options: TokenStream, item: &TokenStream) -> TokenStream {
    let mut parsed: ItemImpl = match syn::parse2(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let text =
                "`#[antiphon_mcp::server]` must be on an `impl` of the type that is the server";
            let error = Error::new(error.span(), text).into_compile_error();
            return quote!(#error #item);
        }
    };
    let (options, read) = ServerOptions::parse(options);
    let methods = both(read, methods(&parsed));
    clean(&mut parsed);
    match methods {
        Ok(methods) => generate::write(&Service { item: parsed, options, methods }),
        Err(error) => refused::write(error, &parsed, &options),
    }
}

/// The methods, if there is no error in either.
fn both(read: Result<()>, methods: Result<Vec<McpMethod>>) -> Result<Vec<McpMethod>> {
    let mut errors = CompileErrors::default();
    errors.check(read);
    let methods = errors.check(methods);
    errors.finish(Some(())).map(|()| methods.unwrap_or_default())
}

fn methods(item: &ItemImpl) -> Result<Vec<McpMethod>> {
    let mut errors = CompileErrors::default();
    let functions = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let parsed = functions.filter_map(|it| errors.check(McpMethod::parse(&it.attrs, &it.sig)));
    let methods: Vec<McpMethod> = parsed.flatten().collect();
    // A method that was refused may be what another one refers to.
    errors.finish(Some(methods)).and_then(|methods| {
        checks::check(&methods)?;
        Ok(methods)
    })
}

/// Removes the attributes of this macro, and relaxes the lint that its rules contradict.
fn clean(item: &mut ItemImpl) {
    for item in &mut item.items {
        let ImplItem::Fn(function) = item else { continue };
        if function.attrs.iter().any(method::is_own) {
            function.attrs.retain(|attribute| !method::is_own(attribute));
            // Arguments must be owned. In front of the user's attributes, so an `expect` of the user holds.
            function.attrs.insert(0, parse_quote!(#[allow(clippy::needless_pass_by_value)]));
            clean_arguments(&mut function.sig);
        }
    }
}

fn clean_arguments(signature: &mut Signature) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(argument) = input {
            argument.attrs.retain(method::is_lint);
        }
    }
}
