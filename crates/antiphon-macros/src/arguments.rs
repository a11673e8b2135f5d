//! Generates the code that reads the params of a method.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Index;
use syn::spanned::Spanned;

use crate::contract::{ContractMethod, ContractParam, Fallback, Options};

/// Returns the items that read the params, the type they are read as, and the expression that turns
/// `params` of that type into a tuple of values.
pub(crate) fn read(
    method: &ContractMethod,
    options: &Options,
) -> (TokenStream, TokenStream, TokenStream) {
    if let Some(ContractParam { ty, .. }) = method.whole() {
        return (TokenStream::new(), quote!(#ty), quote!((params,)));
    }
    let krate = &options.krate;
    let items = items(method, options.ignores_unknown, &quote!(#krate::__private));
    (items, quote!(#krate::__private::Given<__Places>), quote!(params.0))
}

fn items(method: &ContractMethod, ignores_unknown: bool, private: &TokenStream) -> TokenStream {
    let params: Vec<&ContractParam> = method.params().collect();
    let types: Vec<_> = params.iter().map(|param| &param.ty).collect();
    let names = params.iter().map(|param| &param.name);
    let places: Vec<_> = (0..params.len()).collect();
    let fields: Vec<_> = places.iter().map(|place| Index::from(*place)).collect();
    let kept = params.iter().map(|param| kept(param));
    let lacks = params.iter().zip(&fields).map(|(param, field)| match param.fallback {
        None => quote!(self.#field.is_none()),
        Some(_) => quote!(false),
    });
    let fill = params.iter().zip(&fields).map(|(param, field)| fill(param, field, private));
    let finish = params.iter().zip(&fields).map(|(param, field)| finish(param, field));
    quote! {
        #[derive(::core::default::Default)]
        struct __Places(#(::core::option::Option<#kept>),*);

        impl #private::Arguments for __Places {
            type Values = (#(#types,)*);
            const NAMES: &'static [&'static str] = &[#(#names),*];
            const IGNORES_UNKNOWN: bool = #ignores_unknown;

            fn has(&self, place: usize) -> bool {
                match place {
                    #(#places => self.#fields.is_some(),)*
                    _ => false,
                }
            }

            fn lacks(&self, place: usize) -> bool {
                match place {
                    #(#places => #lacks,)*
                    _ => false,
                }
            }

            fn fill<'de, __D: #private::serde::Deserializer<'de>>(
                &mut self,
                place: usize,
                from: __D,
            ) -> ::core::result::Result<(), __D::Error> {
                match place {
                    #(#places => #fill,)*
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
fn kept(param: &ContractParam) -> TokenStream {
    let ty = &param.ty;
    if takes_null(param) { quote!(::core::option::Option<#ty>) } else { quote!(#ty) }
}

/// Whether null selects the default.
fn takes_null(param: &ContractParam) -> bool {
    param.fallback.is_some() && !param.optional
}

/// Reads a param and stores it.
fn fill(param: &ContractParam, field: &Index, private: &TokenStream) -> TokenStream {
    let kept = kept(param);
    quote_spanned! {param.ty.span()=>
        self.#field = ::core::option::Option::Some(
            <#kept as #private::serde::Deserialize<'de>>::deserialize(from)?
        )
    }
}

fn finish(param: &ContractParam, field: &Index) -> TokenStream {
    let ty = &param.ty;
    let given = if takes_null(param) { quote!(self.#field.flatten()) } else { quote!(self.#field) };
    match &param.fallback {
        None => quote!(#given?),
        Some(Fallback::Value(value)) => quote! {
            match #given {
                ::core::option::Option::Some(value) => value,
                ::core::option::Option::None => #value,
            }
        },
        Some(Fallback::Default) => quote_spanned! {ty.span()=>
            ::core::option::Option::unwrap_or_default(#given)
        },
    }
}
