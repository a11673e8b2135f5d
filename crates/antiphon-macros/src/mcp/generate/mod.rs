//! Generates the implementation of `McpService`.

mod arguments;
mod call;
mod entries;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ItemImpl, parse_quote_spanned};

use super::Service;
use super::method::MethodKind;
use super::options::ServerOptions;
use crate::attribute;
use crate::hygiene::{hidden, quote_hygienic};

pub(super) fn write(service: &Service) -> TokenStream {
    let Service { item, options, methods } = service;
    let entries = methods
        .iter()
        .filter(|method| !matches!(method.kind, MethodKind::Completion(_)))
        .map(|method| entries::write(method, service));
    let add = quote_hygienic! {{
        let service = self;
        #(#entries)*
        ::core::mem::drop(service);
        builder
    }};
    let implementation = implementation(item, &options.krate, &begin(item, options), &add);
    quote!(#item #implementation)
}

/// The implementation of the trait with these bodies.
pub(super) fn implementation(
    item: &ItemImpl,
    krate: &TokenStream,
    begin: &TokenStream,
    add: &TokenStream,
) -> TokenStream {
    let (conditions, lints) = (attribute::conditions(&item.attrs), attribute::lints(&item.attrs));
    let ty = &item.self_ty;
    let mut generics = item.generics.clone();
    // The handlers share the value. For a generic type, nothing else says that they can.
    generics.make_where_clause().predicates.push(parse_quote_spanned! {hidden(ty.span())=>
        Self: ::core::marker::Send + ::core::marker::Sync + 'static
    });
    let (parameters, _, clause) = generics.split_for_impl();
    quote_hygienic! {
        #(#conditions)*
        #(#lints)*
        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #krate::McpService for #ty #clause {
            fn builder(self: ::std::sync::Arc<Self>) -> #krate::ServerBuilder #begin

            #[allow(unused_variables)]
            fn add_to(
                self: ::std::sync::Arc<Self>,
                builder: #krate::ServerBuilder,
            ) -> #krate::ServerBuilder #add
        }
    }
}

/// Begins a server with its name and its settings.
fn begin(item: &ItemImpl, options: &ServerOptions) -> TokenStream {
    let krate = &options.krate;
    let or_package = |value: &Option<Expr>, variable: &str| match value {
        Some(value) => quote!(#value),
        None => quote!(::core::env!(#variable)),
    };
    let name = or_package(&options.name, "CARGO_PKG_NAME");
    let version = or_package(&options.version, "CARGO_PKG_VERSION");
    let given = options.description.as_ref().map(|description| quote!(#description));
    let description = given.or_else(|| attribute::docs_expression(&item.attrs));
    let description = description.map(|text| quote!(.description(#text)));
    let title = options.title.iter();
    let instructions = options.instructions.iter();
    let website = options.website.iter();
    let icons = options.icons.iter().map(|icon| entries::icon(icon, krate));
    quote_spanned! {hidden(item.self_ty.span())=> {
        let builder = #krate::McpServer::builder(#name, #version)
            #(.title(#title))*
            #description
            #(.instructions(#instructions))*
            #(.website(#website))*
            #(.icon(#icons))*;
        <Self as #krate::McpService>::add_to(self, builder)
    }}
}
