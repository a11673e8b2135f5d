//! Generates the OpenRPC description of a method.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ReturnType;

use crate::contract::{ContractMethod, ContractParam, Fallback, MethodKind, returned_error};
use crate::hygiene::quote_hygienic;

/// Adds the description of a method to `router`, if the library has the feature `openrpc`.
pub(crate) fn write(method: &ContractMethod, krate: &TokenStream) -> TokenStream {
    let docs = &method.docs;
    let names = method.every_name();
    let called = match &method.kind {
        MethodKind::Subscription(subscription) => subscription.topic(krate),
        _ => quote!(&[#(#names),*][..]),
    };
    let private = quote!(#krate::__private);
    let params = method.params().map(|param| describe(param, &private));
    let result_and_errors = result_and_errors(method, &private);
    let deprecated = method.is_deprecated().then(|| quote_hygienic!(it.deprecated();));
    let idempotent = method.idempotent.then(|| quote_hygienic!(it.idempotent();));
    quote_hygienic! {
        #krate::__describe!(router, #called, #docs, |it| {
            #[allow(unused_imports)]
            use #private::describe_traits::{
                NeverOptional as _, Describable as _, WithKnownErrors as _, MaybeOptional as _, Writable as _,
                Undescribable as _, WithoutKnownErrors as _, Unwritable as _,
            };
            #(#params)*
            #result_and_errors
            #deprecated
            #idempotent
        })
    }
}

fn describe(param: &ContractParam, private: &TokenStream) -> TokenStream {
    let ContractParam { ty, name, docs, .. } = param;
    let probe = quote!((&#private::Probe::<#ty>::new()));
    if param.whole {
        return quote_hygienic! {
            let schema = #probe.inline(it.generator());
            it.whole(#name, &schema);
        };
    }
    let default = match &param.fallback {
        None => quote!(::core::option::Option::None),
        Some(Fallback::Default) => {
            quote!(::core::option::Option::Some(#probe.write(::core::default::Default::default())))
        }
        Some(Fallback::Value(value)) => quote!(::core::option::Option::Some(#probe.write(#value))),
    };
    quote_hygienic! {
        let schema = #probe.schema(it.generator());
        let is_optional = #probe.is_optional();
        it.param(#name, #docs, schema, is_optional, #default);
    }
}

fn result_and_errors(method: &ContractMethod, private: &TokenStream) -> Option<TokenStream> {
    match (&method.kind, &method.output) {
        (MethodKind::Method(result), ReturnType::Type(_, output)) => Some(quote_hygienic! {
            let schema = (&#private::Probe::<#result>::new()).schema(it.generator());
            it.result(schema);
            let errors = (&#private::Probe::<#output>::new()).errors();
            it.errors(errors);
        }),
        (MethodKind::Subscription(subscription), ReturnType::Type(_, output)) => {
            let item = &subscription.item;
            // The type of a stream cannot be named, so the error type is taken from the `Result`.
            let errors = returned_error(output).map(|error| quote_hygienic! {
                let errors = (&#private::Probe::<::core::result::Result<(), #error>>::new()).errors();
                it.errors(errors);
            });
            Some(quote_hygienic! {
                let schema = (&#private::Probe::<#item>::new()).schema(it.generator());
                it.items(&schema);
                #errors
            })
        }
        _ => None,
    }
}
