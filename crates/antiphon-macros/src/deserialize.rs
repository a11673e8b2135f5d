//! Generates the code that reads the params of a method.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Index;
use syn::spanned::Spanned;

use crate::contract::{ContractMethod, ContractParam, Fallback, Options};
use crate::hygiene::{hidden, quote_hygienic};

/// Returns the items that read the params, the type they are read as, and the expression that turns
/// `params` of that type into a tuple of values.
pub(crate) fn read(
    method: &ContractMethod,
    options: &Options,
) -> (TokenStream, TokenStream, TokenStream) {
    if let Some(ContractParam { ty, .. }) = method.whole() {
        return (TokenStream::new(), quote!(#ty), quote_hygienic!((params,)));
    }
    let krate = &options.krate;
    let items = items(method, options.ignores_unknown, &quote!(#krate::__private));
    (items, quote!(#krate::__private::MethodParams<__Arguments>), quote_hygienic!(params.0))
}

fn items(method: &ContractMethod, ignores_unknown: bool, private: &TokenStream) -> TokenStream {
    let params: Vec<&ContractParam> = method.params().collect();
    let types: Vec<_> = params.iter().map(|param| &param.ty).collect();
    let names = params.iter().map(|param| &param.name);
    let indices: Vec<_> = (0..params.len()).collect();
    let fields: Vec<_> = indices.iter().map(|index| Index::from(*index)).collect();
    let stored = params.iter().map(|param| stored_type(param));
    let lacks = params.iter().zip(&fields).map(|(param, field)| match param.fallback {
        None => quote_hygienic!(self.#field.is_none()),
        Some(_) => quote!(false),
    });
    let fill = params.iter().zip(&fields).map(|(param, field)| fill(param, field, private));
    let finish = params.iter().zip(&fields).map(|(param, field)| finish(param, field));
    quote_hygienic! {
        #[derive(::core::default::Default)]
        struct __Arguments(#(::core::option::Option<#stored>),*);

        impl #private::Arguments for __Arguments {
            type Values = (#(#types,)*);
            const NAMES: &'static [&'static ::core::primitive::str] = &[#(#names),*];
            const IGNORES_UNKNOWN: ::core::primitive::bool = #ignores_unknown;

            fn has(&self, index: ::core::primitive::usize) -> ::core::primitive::bool {
                match index {
                    #(#indices => self.#fields.is_some(),)*
                    _ => false,
                }
            }

            fn lacks(&self, index: ::core::primitive::usize) -> ::core::primitive::bool {
                match index {
                    #(#indices => #lacks,)*
                    _ => false,
                }
            }

            fn fill<'de, __D: #private::serde::Deserializer<'de>>(
                &mut self,
                index: ::core::primitive::usize,
                from: __D,
            ) -> ::core::result::Result<(), __D::Error> {
                match index {
                    #(#indices => #fill,)*
                    _ => ::core::mem::drop(from),
                }
                ::core::result::Result::Ok(())
            }

            fn finish(self) -> ::core::option::Option<Self::Values> {
                ::core::option::Option::Some((#(#finish,)*))
            }
        }
    }
}

/// The type that holds a param until all params are read. For a param with a default, null means that it
/// is absent, except for an `Option`, where null is a value. The outer `Option` is `Some` if the param
/// occurred.
fn stored_type(param: &ContractParam) -> TokenStream {
    let ty = &param.ty;
    if null_is_absent(param) { quote!(::core::option::Option<#ty>) } else { quote!(#ty) }
}

/// Whether null selects the default.
fn null_is_absent(param: &ContractParam) -> bool {
    param.fallback.is_some() && !param.optional
}

/// Reads a param and stores it.
fn fill(param: &ContractParam, field: &Index, private: &TokenStream) -> TokenStream {
    let stored = stored_type(param);
    quote_spanned! {hidden(param.ty.span())=>
        self.#field = ::core::option::Option::Some(
            <#stored as #private::serde::Deserialize<'de>>::deserialize(from)?
        )
    }
}

fn finish(param: &ContractParam, field: &Index) -> TokenStream {
    let ty = &param.ty;
    let given = if null_is_absent(param) {
        quote_hygienic!(self.#field.flatten())
    } else {
        quote_hygienic!(self.#field)
    };
    match &param.fallback {
        None => quote!(#given?),
        Some(Fallback::Value(value)) => quote_hygienic! {
            match #given {
                ::core::option::Option::Some(value) => value,
                ::core::option::Option::None => #value,
            }
        },
        Some(Fallback::Default) => quote_spanned! {hidden(ty.span())=>
            ::core::option::Option::unwrap_or_default(#given)
        },
    }
}
