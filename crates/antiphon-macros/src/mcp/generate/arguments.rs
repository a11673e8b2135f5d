//! Generates the struct of the arguments of a method. Its derives read the arguments and describe them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, LitStr};

use crate::contract::Fallback;
use crate::hygiene::{hidden, quote_hygienic};
use crate::mcp::Service;
use crate::mcp::method::{McpMethod, MethodKind, ValueArgument};

/// The struct, if the method has arguments of its own.
pub(super) fn write(method: &McpMethod, service: &Service) -> TokenStream {
    let values: Vec<&ValueArgument> = method.kind.values().collect();
    if values.is_empty() || values.iter().any(|value| value.whole) {
        return TokenStream::new();
    }
    let options = &service.options;
    let private = format!("{}::__private", options.krate_text);
    let serde = LitStr::new(&format!("{private}::serde"), proc_macro2::Span::call_site());
    let schemars = LitStr::new(&format!("{private}::schemars"), proc_macro2::Span::call_site());
    let krate = &options.krate;
    let described = is_described(&method.kind).then(|| {
        quote! {
            #[derive(#krate::__private::schemars::JsonSchema)]
            #[schemars(crate = #schemars)]
        }
    });
    let generics = generics(&values, &service.item.generics);
    let (parameters, clause) = (generics.map(parameters), generics.map(|it| &it.where_clause));
    // The bounds of the `impl` are those of the struct. A further `T: Deserialize<'de>` would be ambiguous.
    let bound = generics.map(|_| quote!(#[serde(bound(deserialize = ""))]));
    let marker = generics.map(|generics| marker(generics, described.is_some()));
    let fields = values.iter().enumerate().map(|(index, value)| field(index, value));
    let defaults = values.iter().enumerate().filter_map(|(index, value)| default(index, value));
    // The derive of `schemars` writes these names without their paths.
    let some = values.iter().any(|value| has_default(value)).then(|| {
        quote! {
            #[allow(unused_imports)]
            use ::core::option::Option::Some;
        }
    });
    quote_hygienic! {
        #[allow(unused_imports)]
        use ::core::{convert::Into as _, default::Default as _};
        #some
        #(#defaults)*
        #[derive(#krate::__private::serde::Deserialize)]
        #[serde(crate = #serde)]
        #bound
        #described
        #[allow(non_snake_case)]
        struct __Arguments #parameters #clause {
            #(#fields,)*
            #marker
        }
    }
}

/// The type of the arguments, for the handler.
pub(super) fn type_of(method: &McpMethod, service: &Service) -> TokenStream {
    let values: Vec<&ValueArgument> = method.kind.values().collect();
    match values.as_slice() {
        [] => quote!(()),
        [ValueArgument { whole: true, ty, .. }] => quote!(#ty),
        _ => match generics(&values, &service.item.generics) {
            None => quote_hygienic!(__Arguments),
            Some(generics) => {
                let names = names(generics);
                quote_hygienic!(__Arguments<#(#names),*>)
            }
        },
    }
}

/// Whether clients get a description of the arguments: not of the variables of a template.
fn is_described(kind: &MethodKind) -> bool {
    !matches!(kind, MethodKind::Resource(..))
}

fn field(index: usize, value: &ValueArgument) -> TokenStream {
    let ValueArgument { ident, ty, attributes, .. } = value;
    let name = value.is_renamed.then(|| {
        let name = &value.name;
        quote!(#[serde(rename = #name)])
    });
    let default = value.fallback.as_ref().map(|fallback| match fallback {
        Fallback::Default => quote!(#[serde(default)]),
        Fallback::Value(_) => {
            let function = default_function(index).to_string();
            quote!(#[serde(default = #function)])
        }
    });
    quote_spanned!(ty.span()=> #(#attributes)* #name #default #ident: #ty)
}

/// The function of `#[param(default = ..)]`.
fn default(index: usize, value: &ValueArgument) -> Option<TokenStream> {
    let Some(Fallback::Value(expression)) = &value.fallback else { return None };
    let (function, ty) = (default_function(index), &value.ty);
    Some(quote_spanned! {hidden(ty.span())=>
        fn #function() -> #ty { #expression }
    })
}

fn default_function(index: usize) -> Ident {
    format_ident!("__default_{index}")
}

fn has_default(value: &ValueArgument) -> bool {
    value.fallback.is_some()
        || value.attributes.iter().any(|attribute| attribute.path().is_ident("serde"))
}

/// The generics of the `impl`, if an argument mentions one of them.
fn generics<'a>(values: &[&ValueArgument], generics: &'a Generics) -> Option<&'a Generics> {
    let names: Vec<Ident> = names(generics).collect();
    let mentions = |value: &&ValueArgument| {
        let ty = &value.ty;
        mentions_any(quote!(#ty), &names)
    };
    values.iter().any(mentions).then_some(generics)
}

fn mentions_any(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident),
        TokenTree::Group(group) => mentions_any(group.stream(), names),
        _ => false,
    })
}

/// The names of the type and const parameters. Arguments are owned, so they have no lifetimes.
fn names(generics: &Generics) -> impl Iterator<Item = Ident> {
    generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(parameter.ident.clone()),
        GenericParam::Const(parameter) => Some(parameter.ident.clone()),
        GenericParam::Lifetime(_) => None,
    })
}

fn parameters(generics: &Generics) -> TokenStream {
    let parameters = generics.params.iter().filter(|it| !matches!(it, GenericParam::Lifetime(_)));
    quote!(<#(#parameters),*>)
}

/// A field that uses all type parameters.
fn marker(generics: &Generics, is_described: bool) -> TokenStream {
    let types = generics.type_params().map(|parameter| &parameter.ident);
    let skipped = is_described.then(|| quote!(#[schemars(skip)]));
    quote! {
        #[serde(skip)]
        #skipped
        __types: ::core::marker::PhantomData<fn() -> (#(#types,)*)>
    }
}
