//! The server side: the trait to implement, and its `into_router`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, ReturnType, Type};

use crate::arguments;
use crate::contract::{Argument, Contract, Kind, Method};
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
    let served = contract.methods.iter().map(|method| serve(method, ident, krate));
    quote! {
        #(#attributes)*
        #visibility trait #ident:
            #(#supertraits +)* ::core::marker::Send + ::core::marker::Sync + 'static
        {
            #(#functions)*

            /// Serves this contract: its methods, as a router.
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

/// The method as it is implemented: with `async fn`, in a future that any thread may drive.
fn function(method: &Method) -> TokenStream {
    let Method { ident, attributes, .. } = method;
    let arguments = method.arguments.iter().map(Argument::typed);
    let output = match &method.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let body = match &method.body {
        Some(body) => quote!({ async move #body }),
        None => quote!(;),
    };
    // What the compiler says of the function, it says of its name.
    let function = quote_spanned! {ident.span()=>
        fn #ident(
            &self,
            #(#arguments),*
        ) -> impl ::core::future::Future<Output = #output> + ::core::marker::Send #body
    };
    quote!(#(#attributes)* #function)
}

/// Registers one method under all its names.
fn serve(method: &Method, contract: &Ident, krate: &TokenStream) -> TokenStream {
    let conditions = method.conditions();
    let (read, params, values) = arguments::read(method, krate);
    let call = call(method, contract);
    let (register, answer) = match &method.kind {
        Kind::Method(result) => (quote!(method), answer(&call, result, &method.output, krate)),
        Kind::Notification => (quote!(notification), quote!(#call.await)),
    };
    let names = method.every_name();
    let described = describe::write(method, krate);
    quote! {
        #(#conditions)*
        let router = {
            #read
            let service = ::std::sync::Arc::clone(&service);
            let serve = move |params: #params, _cx: #krate::Context| {
                let service = ::std::sync::Arc::clone(&service);
                let values = #values;
                async move { #answer }
            };
            let router = router #(.#register(#names, ::core::clone::Clone::clone(&serve)))*;
            #described
        };
    }
}

/// Calls, and encodes what came of it. Each bound is asked for where its type stands.
fn answer(
    call: &TokenStream,
    result: &Type,
    output: &ReturnType,
    krate: &TokenStream,
) -> TokenStream {
    let encoded = quote_spanned!(result.span()=> #krate::__private::answer::<#result>(value));
    let refused = quote_spanned! {output.span()=>
        ::core::result::Result::Err(#krate::IntoErrorObject::into_error_object(error))
    };
    quote! {
        match #call.await {
            ::core::result::Result::Ok(value) => #encoded,
            ::core::result::Result::Err(error) => #refused,
        }
    }
}

/// The call of the user's function, with the values in their places.
fn call(method: &Method, contract: &Ident) -> TokenStream {
    let ident = &method.ident;
    let mut place = 0..;
    let arguments = method.arguments.iter().map(|argument| match argument {
        Argument::Context(..) => quote!(_cx),
        Argument::Param(_) => {
            let place = Index::from(place.next().unwrap_or_default());
            quote!(values.#place)
        }
    });
    quote!(<Self as #contract>::#ident(&service, #(#arguments),*))
}
