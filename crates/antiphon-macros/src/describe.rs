//! Generates the OpenRPC description of a method.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ReturnType;

use crate::contract::{ContractMethod, ContractParam, Fallback, MethodKind, returned_error};

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
    let answer = answer(method, &private);
    let deprecated = method.is_deprecated().then(|| quote!(it.deprecated();));
    let idempotent = method.idempotent.then(|| quote!(it.idempotent();));
    quote! {
        #krate::__describe!(router, #called, #docs, |it| {
            #[allow(unused_imports)]
            use #private::ask::{
                Certain as _, Describable as _, Fallible as _, Omissible as _, Showable as _,
                Undescribable as _, Unfallible as _, Unshowable as _,
            };
            #(#params)*
            #answer
            #deprecated
            #idempotent
        })
    }
}

fn describe(param: &ContractParam, private: &TokenStream) -> TokenStream {
    let ContractParam { ty, name, docs, .. } = param;
    let probe = quote!((&#private::Probe::<#ty>::new()));
    if param.whole {
        return quote! {
            let schema = #probe.inline(it.generator());
            it.whole(#name, &schema);
        };
    }
    let default = match &param.fallback {
        None => quote!(::core::option::Option::None),
        Some(Fallback::Default) => {
            quote!(::core::option::Option::Some(#probe.show(::core::default::Default::default())))
        }
        Some(Fallback::Value(value)) => quote!(::core::option::Option::Some(#probe.show(#value))),
    };
    quote! {
        let schema = #probe.schema(it.generator());
        let is_optional = #probe.is_optional();
        it.param(#name, #docs, schema, is_optional, #default);
    }
}

fn answer(method: &ContractMethod, private: &TokenStream) -> Option<TokenStream> {
    match (&method.kind, &method.output) {
        (MethodKind::Method(result), ReturnType::Type(_, output)) => Some(quote! {
            let schema = (&#private::Probe::<#result>::new()).schema(it.generator());
            it.result(schema);
            let errors = (&#private::Probe::<#output>::new()).errors();
            it.errors(errors);
        }),
        (MethodKind::Subscription(subscription), ReturnType::Type(_, output)) => {
            let item = &subscription.item;
            // The type of a stream cannot be named, so the error type is taken from the `Result`.
            let errors = returned_error(output).map(|error| quote! {
                let errors = (&#private::Probe::<::core::result::Result<(), #error>>::new()).errors();
                it.errors(errors);
            });
            Some(quote! {
                let schema = (&#private::Probe::<#item>::new()).schema(it.generator());
                it.items(&schema);
                #errors
            })
        }
        _ => None,
    }
}
