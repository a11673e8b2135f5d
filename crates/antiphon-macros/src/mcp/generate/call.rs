//! Generates the handlers: closures that call the methods of the shared service.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ReturnType, Token, Type};

use super::arguments;
use crate::hygiene::{hidden, located, quote_hygienic};
use crate::mcp::Service;
use crate::mcp::method::{
    Address, Argument, CompletionArgument, CompletionMethod, McpMethod, MethodKind, PassedSelf,
};

/// The handler of a tool, a resource, a template or a prompt.
pub(super) fn handler(method: &McpMethod, service: &Service) -> TokenStream {
    let krate = &service.options.krate;
    let arguments = match &method.kind {
        MethodKind::Resource(options, _) if matches!(options.address, Address::Uri(_)) => None,
        _ => {
            let ty = arguments::type_of(method, service);
            Some(quote_hygienic!(arguments: #ty,))
        }
    };
    let passed = method.kind.arguments().iter().map(pass);
    let call = call(method, service, passed);
    let converted = converted(method, &call, krate);
    // The future that may not be `Send` is that of the method.
    let running = quote_spanned!(hidden(method.ident.span())=> async move { #converted });
    sharing(&quote_hygienic! {
        #[allow(unused_variables)]
        move |#arguments cx: #krate::RequestContext| {
            let service = ::core::clone::Clone::clone(&service);
            #running
        }
    })
}

/// A closure with its own handle to the service.
fn sharing(closure: &TokenStream) -> TokenStream {
    quote_hygienic! {{
        let service = ::core::clone::Clone::clone(&service);
        #closure
    }}
}

/// The value of an argument. The context is passed at the place of the type that the user wrote, so that a type of the
/// user with this name is an error there.
fn pass(argument: &Argument) -> TokenStream {
    match argument {
        Argument::Context { ty, .. } => {
            let referenced = referenced(ty);
            let span = hidden(referenced.unwrap_or(ty).span());
            let reference = referenced.map(|_| Token![&](span));
            quote_spanned!(span=> #reference cx)
        }
        Argument::Value(value) if value.whole => quote_hygienic!(arguments),
        Argument::Value(value) => {
            let ident = &value.ident;
            quote_hygienic!(arguments.#ident)
        }
    }
}

/// The type behind a reference. A type from a `macro_rules` macro is in a group.
fn referenced(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(reference) => Some(&reference.elem),
        Type::Group(group) => referenced(&group.elem),
        _ => None,
    }
}

/// The call of the user's method.
fn call(
    method: &McpMethod,
    service: &Service,
    arguments: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    let ident = &method.ident;
    let owner = match &service.item.trait_ {
        None => quote!(Self),
        Some((_, path, _)) => quote!(<Self as #path>),
    };
    let receiver = match method.passed_self {
        PassedSelf::Reference => Some(quote_hygienic!(&service,)),
        PassedSelf::Shared => Some(quote_hygienic!(service,)),
        PassedSelf::Nothing => None,
    };
    let wait = method.is_async.then(|| quote!(.await));
    quote_hygienic!(#owner::#ident(#receiver #(#arguments),*) #wait)
}

/// The result of the call as the library takes it.
fn converted(method: &McpMethod, call: &TokenStream, krate: &TokenStream) -> TokenStream {
    let traits = match &method.kind {
        MethodKind::Tool(..) => quote!(BoxedFailure as _, Failure as _, Plain as _),
        _ => quote!(BoxedRequestFailure as _, Infallible as _, RequestFailure as _),
    };
    let convert = match &method.kind {
        MethodKind::Tool(..) => quote!(tool),
        MethodKind::Resource(..) => quote!(resource),
        _ => quote!(prompt),
    };
    quote_hygienic! {
        #[allow(unused_imports)]
        use #krate::__private::{#traits};
        #[allow(clippy::let_unit_value)]
        let returned = #call;
        (&&&#krate::__private::Returned::of(&returned)).#convert(returned)
    }
}

/// The place of the type that the method returns.
pub(super) fn output_span(method: &McpMethod) -> Span {
    let span = match &method.output {
        ReturnType::Default => method.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    hidden(span)
}

/// The closure of a completion.
pub(super) fn completer(
    method: &McpMethod,
    completion: &CompletionMethod,
    service: &Service,
) -> TokenStream {
    let typed = pass_text(&completion.typed, "typed");
    let known = completion.known.as_ref().map(|argument| pass_text(argument, "known"));
    let call = call(method, service, std::iter::once(typed).chain(known));
    let span = output_span(method);
    let krate = located(&service.options.krate, span);
    let completed = quote_spanned!(span=> #krate::__private::completed(completed));
    let running = quote_spanned! {hidden(method.ident.span())=>
        async move {
            let completed = #call;
            #completed
        }
    };
    sharing(&quote_hygienic! {
        #[allow(unused_variables)]
        move |
            typed: ::std::string::String,
            known: ::std::collections::BTreeMap<::std::string::String, ::std::string::String>,
        | {
            let service = ::core::clone::Clone::clone(&service);
            #running
        }
    })
}

/// The variable for an argument of a completion, at the place of its type.
fn pass_text(argument: &CompletionArgument, variable: &str) -> TokenStream {
    let span = hidden(argument.ty.span());
    let variable = Ident::new(variable, span);
    let reference = argument.by_reference.then(|| Token![&](span));
    quote!(#reference #variable)
}
