//! Generates the server side: the trait to implement, and its `into_router`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, ReturnType, Type};

use crate::client;
use crate::contract::{
    Argument, Contract, ContractMethod, MethodKind, Options, Runs, SubscriptionMethod,
};
use crate::describe;
use crate::deserialize;
use crate::for_arc;
use crate::hygiene::{hidden, quote_hygienic};

pub(crate) fn write(contract: &Contract) -> TokenStream {
    if !contract.options.server {
        return TokenStream::new();
    }
    let krate = &contract.options.krate;
    let item = &contract.item;
    let (attributes, visibility, ident) = (&item.attrs, &item.vis, &item.ident);
    let (supertraits, conditions) = (contract.supertraits(), &item.generics.where_clause);
    let functions = contract.methods.iter().map(function);
    let served = contract.methods.iter().map(|method| serve(method, ident, &contract.options));
    let extended = contract.options.extends.iter().map(|extended| {
        let span = hidden(extended.span());
        let serve = if contract.options.client {
            let client = client::of_extended(extended);
            quote_spanned!(span=> <#client as #krate::__private::ServedContract<Self>>::serve)
        } else {
            quote_spanned!(span=> <Self as #extended>::__serve)
        };
        quote_spanned! {span=>
            let router = #serve(::core::clone::Clone::clone(&service), router, contracts);
        }
    });
    let for_arc = for_arc::write(contract);
    quote_hygienic! {
        #(#attributes)*
        #visibility trait #ident:
            #(#supertraits +)* ::core::marker::Send + ::core::marker::Sync + 'static
        #conditions
        {
            #(#functions)*

            /// Converts the service to a router with the methods of this contract.
            fn into_router(self) -> #krate::Router
            where
                Self: ::core::marker::Sized,
            {
                <Self as #ident>::__into_router(::std::sync::Arc::new(self))
            }

            #[doc(hidden)]
            fn __into_router(service: ::std::sync::Arc<Self>) -> #krate::Router
            where
                Self: ::core::marker::Sized,
            {
                let contracts = &mut ::std::vec::Vec::new();
                <Self as #ident>::__serve(service, #krate::Router::new(), contracts)
            }

            // Two contracts that this one extends may extend the same contract, which is served once.
            #[doc(hidden)]
            #[allow(deprecated)]
            fn __serve(
                service: ::std::sync::Arc<Self>,
                router: #krate::Router,
                contracts: &mut ::std::vec::Vec<&'static ::core::primitive::str>,
            ) -> #krate::Router
            where
                Self: ::core::marker::Sized,
            {
                let contract = ::core::concat!(
                    ::core::module_path!(), "::", ::core::stringify!(#ident),
                    ":", ::core::line!(), ":", ::core::column!()
                );
                if contracts.contains(&contract) {
                    return router;
                }
                contracts.push(contract);
                #(#extended)*
                #(#served)*
                router
            }
        }

        #for_arc
    }
}

/// The method of the trait. Users implement it with `async fn`; its future is `Send`.
fn function(method: &ContractMethod) -> TokenStream {
    let (attributes, signature) = (&method.attributes, signature(method));
    let body = match (&method.body, method.runs) {
        (Some(body), Runs::Async) => quote!({ async move #body }),
        (Some(body), Runs::InPlace | Runs::Blocking) => quote!(#body),
        (None, _) => quote!(;),
    };
    quote!(#(#attributes)* #signature #body)
}

/// The signature of the method in the trait.
pub(crate) fn signature(method: &ContractMethod) -> TokenStream {
    let ident = &method.ident;
    let arguments = method.arguments.iter().map(Argument::typed);
    let output = match &method.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let output = match method.runs {
        Runs::Async => quote_spanned! {ident.span()=>
            impl ::core::future::Future<Output = #output> + ::core::marker::Send
        },
        Runs::InPlace | Runs::Blocking => output,
    };
    // Compile errors about the function point to its name.
    quote_spanned!(ident.span()=> fn #ident(&self, #(#arguments),*) -> #output)
}

/// Registers one method under all its names.
fn serve(method: &ContractMethod, contract: &Ident, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let conditions = method.conditions();
    let (read, params, values) = deserialize::read(method, options);
    let (register, sink, response) = registration(method, contract, krate);
    let names: Vec<TokenStream> = match &method.kind {
        MethodKind::Subscription(subscription) => vec![subscription.topic(krate)],
        _ => method.every_name().map(|name| quote!(#name)).collect(),
    };
    let described = describe::write(method, krate);
    let response = match method.runs {
        Runs::Async | Runs::InPlace => quote!(async move { #response }),
        Runs::Blocking => response,
    };
    quote_hygienic! {
        #(#conditions)*
        let router = {
            #read
            let service = ::core::clone::Clone::clone(&service);
            let serve = move |params: #params, #sink _cx: #krate::Context| {
                let service = ::core::clone::Clone::clone(&service);
                let values = #values;
                #response
            };
            let router = router #(.#register(#names, ::core::clone::Clone::clone(&serve)))*;
            #described
        };
    }
}

/// Returns the router's method that registers this method, the sink argument if it takes one, and the
/// expression of its response.
fn registration(
    method: &ContractMethod,
    contract: &Ident,
    krate: &TokenStream,
) -> (TokenStream, Option<TokenStream>, TokenStream) {
    let call = call(method, contract, krate);
    let blocks = method.runs == Runs::Blocking;
    match &method.kind {
        MethodKind::Method(result) => {
            let register = if blocks { quote!(blocking) } else { quote!(method) };
            (register, None, response(&call, result, &method.output, krate))
        }
        MethodKind::Notification if blocks => {
            (quote!(blocking), None, quote!({ #call; ::core::result::Result::Ok(()) }))
        }
        MethodKind::Notification => (quote!(notification), None, call),
        MethodKind::Subscription(subscription) => {
            subscribe(subscription, &call, &method.output, krate)
        }
    }
}

/// Returns the router's method that registers a subscription, the sink argument if it takes one, and
/// the expression of its response.
fn subscribe(
    subscription: &SubscriptionMethod,
    call: &TokenStream,
    output: &ReturnType,
    krate: &TokenStream,
) -> (TokenStream, Option<TokenStream>, TokenStream) {
    let error_object = error_object(output, krate);
    if subscription.by_sink {
        let response = quote_hygienic! {
            ::core::result::Result::map_err(#call, |error| #error_object)
        };
        return (quote!(subscription_with), Some(quote_hygienic!(_sink: #krate::Sink,)), response);
    }
    // Boxed, because the type of the stream captures the borrow of the service, even if the stream does
    // not use it.
    let item = &subscription.item;
    let span = hidden(item.span());
    let (register, boxed) = if subscription.fallible {
        let boxed = quote_spanned!(span=> #krate::__private::boxed_try_stream::<#item, _>(stream));
        (quote!(try_subscription), boxed)
    } else {
        let boxed = quote_spanned!(span=> #krate::__private::boxed_stream::<#item>(stream));
        (quote!(subscription), boxed)
    };
    let response = quote_hygienic! {
        match #call {
            ::core::result::Result::Ok(stream) => ::core::result::Result::Ok(#boxed),
            ::core::result::Result::Err(error) => ::core::result::Result::Err(#error_object),
        }
    };
    (register, None, response)
}

/// Converts `error` to an error object. The bound is checked at the span of the error's type.
fn error_object(output: &ReturnType, krate: &TokenStream) -> TokenStream {
    quote_spanned!(hidden(output.span())=> #krate::IntoErrorObject::into_error_object(error))
}

/// Calls the method and encodes its outcome. Each bound is checked at the span of its type.
fn response(
    call: &TokenStream,
    result: &Type,
    output: &ReturnType,
    krate: &TokenStream,
) -> TokenStream {
    let encoded =
        quote_spanned!(hidden(result.span())=> #krate::__private::answer::<#result>(value));
    let error_object = error_object(output, krate);
    quote_hygienic! {
        match #call {
            ::core::result::Result::Ok(value) => #encoded,
            ::core::result::Result::Err(error) => ::core::result::Result::Err(#error_object),
        }
    }
}

/// The call of the user's function.
///
/// A context or a sink is passed with the type that the user wrote, so that a type of the user with this
/// name is an error at its span.
fn call(method: &ContractMethod, contract: &Ident, krate: &TokenStream) -> TokenStream {
    let ident = &method.ident;
    let mut index = 0..;
    let arguments = method.arguments.iter().map(|argument| match argument {
        Argument::Context(_, ty) => quote_spanned! {hidden(ty.span())=>
            #krate::__private::context::<#ty>(_cx)
        },
        Argument::Sink(_, ty) => quote_spanned! {hidden(ty.span())=>
            #krate::__private::sink::<#ty>(_sink)
        },
        Argument::Param(_) => {
            let index = Index::from(index.next().unwrap_or_default());
            quote_hygienic!(values.#index)
        }
    });
    let call = quote_hygienic!(<Self as #contract>::#ident(&service, #(#arguments),*));
    match method.runs {
        Runs::Async => quote!(#call.await),
        Runs::InPlace | Runs::Blocking => call,
    }
}
