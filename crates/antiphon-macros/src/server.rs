//! Generates the server side: the trait to implement, and its `into_router`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, ReturnType, Type};

use crate::arguments;
use crate::contract::{
    Argument, Contract, ContractMethod, MethodKind, Options, SubscriptionMethod,
};
use crate::describe;

pub(crate) fn write(contract: &Contract) -> TokenStream {
    if !contract.options.server {
        return TokenStream::new();
    }
    let krate = &contract.options.krate;
    let item = &contract.item;
    let (attributes, visibility, ident) = (&item.attrs, &item.vis, &item.ident);
    let supertraits = item.supertraits.iter();
    let functions = contract.methods.iter().map(function);
    let served = contract.methods.iter().map(|method| serve(method, ident, &contract.options));
    quote! {
        #(#attributes)*
        #visibility trait #ident:
            #(#supertraits +)* ::core::marker::Send + ::core::marker::Sync + 'static
        {
            #(#functions)*

            /// Converts the service to a router with the methods of this contract.
            #[allow(deprecated)]
            fn into_router(self) -> #krate::Router
            where
                Self: ::core::marker::Sized,
            {
                let router = #krate::Router::new();
                let service = ::std::sync::Arc::new(self);
                #(#served)*
                router
            }
        }
    }
}

/// The method of the trait. Users implement it with `async fn`; its future is `Send`.
fn function(method: &ContractMethod) -> TokenStream {
    let ContractMethod { ident, attributes, .. } = method;
    let arguments = method.arguments.iter().map(Argument::typed);
    let output = match &method.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let body = match &method.body {
        Some(body) => quote!({ async move #body }),
        None => quote!(;),
    };
    // Compile errors about the function point to its name.
    let function = quote_spanned! {ident.span()=>
        fn #ident(
            &self,
            #(#arguments),*
        ) -> impl ::core::future::Future<Output = #output> + ::core::marker::Send #body
    };
    quote!(#(#attributes)* #function)
}

/// Registers one method under all its names.
fn serve(method: &ContractMethod, contract: &Ident, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let conditions = method.conditions();
    let (read, params, values) = arguments::read(method, options);
    let call = call(method, contract);
    let (register, sink, response) = match &method.kind {
        MethodKind::Method(result) => {
            (quote!(method), None, response(&call, result, &method.output, krate))
        }
        MethodKind::Notification => (quote!(notification), None, quote!(#call.await)),
        MethodKind::Subscription(subscription) => {
            subscribe(subscription, &call, &method.output, krate)
        }
    };
    let names: Vec<TokenStream> = match &method.kind {
        MethodKind::Subscription(subscription) => vec![subscription.topic(krate)],
        _ => method.every_name().map(|name| quote!(#name)).collect(),
    };
    let described = describe::write(method, krate);
    quote! {
        #(#conditions)*
        let router = {
            #read
            let service = ::std::sync::Arc::clone(&service);
            let serve = move |params: #params, #sink _cx: #krate::Context| {
                let service = ::std::sync::Arc::clone(&service);
                let values = #values;
                async move { #response }
            };
            let router = router #(.#register(#names, ::core::clone::Clone::clone(&serve)))*;
            #described
        };
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
        let response = quote!(#call.await.map_err(|error| #error_object));
        return (quote!(subscription_with), Some(quote!(_sink: #krate::Sink,)), response);
    }
    // Boxed, because the type of the stream captures the borrow of the service, even if the stream does
    // not use it.
    let item = &subscription.item;
    let boxed = quote_spanned!(item.span()=> #krate::__private::boxed_stream::<#item>(stream));
    let response = quote! {
        match #call.await {
            ::core::result::Result::Ok(stream) => ::core::result::Result::Ok(#boxed),
            ::core::result::Result::Err(error) => ::core::result::Result::Err(#error_object),
        }
    };
    (quote!(subscription), None, response)
}

/// Converts `error` to an error object. The bound is checked at the span of the error's type.
fn error_object(output: &ReturnType, krate: &TokenStream) -> TokenStream {
    quote_spanned!(output.span()=> #krate::IntoErrorObject::into_error_object(error))
}

/// Calls the method and encodes its outcome. Each bound is checked at the span of its type.
fn response(
    call: &TokenStream,
    result: &Type,
    output: &ReturnType,
    krate: &TokenStream,
) -> TokenStream {
    let encoded = quote_spanned!(result.span()=> #krate::__private::answer::<#result>(value));
    let error_object = error_object(output, krate);
    quote! {
        match #call.await {
            ::core::result::Result::Ok(value) => #encoded,
            ::core::result::Result::Err(error) => ::core::result::Result::Err(#error_object),
        }
    }
}

/// The call of the user's function.
fn call(method: &ContractMethod, contract: &Ident) -> TokenStream {
    let ident = &method.ident;
    let mut index = 0..;
    let arguments = method.arguments.iter().map(|argument| match argument {
        Argument::Context(..) => quote!(_cx),
        Argument::Sink(..) => quote!(_sink),
        Argument::Param(_) => {
            let index = Index::from(index.next().unwrap_or_default());
            quote!(values.#index)
        }
    });
    quote!(<Self as #contract>::#ident(&service, #(#arguments),*))
}
