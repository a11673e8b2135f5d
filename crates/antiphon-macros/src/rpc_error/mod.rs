//! `#[derive(RpcError)]`: conversion of a Rust error to an error object, and back.

mod code;
mod error_case;
mod fields;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::collections::HashMap;
use syn::punctuated::Punctuated;
use syn::{Data, DeriveInput, Error, Ident, LitStr, Meta, Path, Result, Token};

use crate::attribute::{self, CompileErrors};
use crate::refused;
use error_case::{ErrorCase, WireForm};

/// An error type: a struct is one case, an enum has one case per variant.
struct DerivedError {
    ident: Ident,
    krate: TokenStream,
    cases: Vec<ErrorCase>,
}

pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    match DerivedError::parse(item.clone()) {
        Ok(error) => write(&error),
        Err(error) => write_refused(error, &item),
    }
}

fn write(error: &DerivedError) -> TokenStream {
    let (ident, krate) = (&error.ident, &error.krate);
    let private = quote!(#krate::__private);
    let into = error.cases.iter().map(|case| case.match_arm(krate));
    // Cases with a code of their own are tried first, because a transparent case may match the same
    // code.
    let (rest, own): (Vec<_>, Vec<_>) = error.cases.iter().partition(|case| case.is_transparent());
    let from = own.iter().chain(&rest).map(|case| case.return_if_matching(krate));
    let known = error.cases.iter().map(|case| case.known(krate));
    quote! {
        #[automatically_derived]
        impl ::core::convert::From<#ident> for #private::ErrorObject {
            fn from(error: #ident) -> Self {
                match error { #(#into)* }
            }
        }

        #[automatically_derived]
        impl #krate::IntoErrorObject for #ident {
            fn into_error_object(self) -> #private::ErrorObject {
                ::core::convert::Into::into(self)
            }

            fn known_errors() -> ::std::vec::Vec<#krate::KnownError> {
                let mut known = ::std::vec::Vec::new();
                #(#known)*
                known
            }
        }

        #[automatically_derived]
        impl #krate::FromErrorObject for #ident {
            fn from_error_object(
                error: &#private::ErrorObject,
            ) -> ::core::option::Option<Self> {
                #[allow(unused_imports)]
                use #private::{Readable as _, Unreadable as _};
                #(#from)*
                ::core::option::Option::None
            }
        }
    }
}

/// Implements the traits of a refused error without a body, so that its use is not an error too.
fn write_refused(error: Error, item: &DeriveInput) -> TokenStream {
    let (array, errors) = refused::array_of(error);
    let krate = chosen_crate(&item.attrs);
    let ident = &item.ident;
    let (parameters, arguments, clause) = item.generics.split_for_impl();
    let object = quote!(#krate::__private::ErrorObject);
    quote! {
        #errors

        #[automatically_derived]
        impl #parameters ::core::convert::From<#ident #arguments> for #object #clause {
            fn from(_: #ident #arguments) -> Self {
                <#array>::body()
            }
        }

        #[automatically_derived]
        impl #parameters #krate::IntoErrorObject for #ident #arguments #clause {
            fn into_error_object(self) -> #object {
                ::core::convert::Into::into(self)
            }
        }

        #[automatically_derived]
        impl #parameters #krate::FromErrorObject for #ident #arguments #clause {
            fn from_error_object(_: &#object) -> ::core::option::Option<Self> {
                ::core::option::Option::None
            }
        }
    }
}

/// The library that `#[rpc(crate = "..")]` names, if the attribute can be read.
fn chosen_crate(attributes: &[syn::Attribute]) -> TokenStream {
    let options = attributes.iter().filter(|attribute| attribute.path().is_ident("rpc"));
    let options = options.filter_map(|attribute| {
        attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()
    });
    let chosen = options.flatten().find_map(|option| match option {
        Meta::NameValue(option) if option.path.is_ident("crate") => {
            let name: LitStr = syn::parse2(option.value.to_token_stream()).ok()?;
            name.parse::<Path>().ok()
        }
        _ => None,
    });
    chosen.map_or_else(|| quote!(::antiphon), ToTokens::into_token_stream)
}

impl DerivedError {
    fn parse(mut item: DeriveInput) -> Result<Self> {
        if !item.generics.params.is_empty() {
            let text =
                "`RpcError` cannot be derived for a generic type: name the types of the fields";
            return Err(Error::new_spanned(&item.generics, text));
        }
        let mut krate = quote!(::antiphon);
        let mut errors = CompileErrors::default();
        let cases: Vec<ErrorCase> = match item.data {
            Data::Enum(data) => {
                errors.check(whole_enum(&mut item.attrs, &mut krate));
                let cases = data.variants.into_iter();
                let case = |variant| errors.check(ErrorCase::of_variant(&item.ident, variant));
                cases.filter_map(case).collect()
            }
            Data::Struct(data) => {
                vec![ErrorCase::of_struct(&item.ident, item.attrs, data.fields, &mut krate)?]
            }
            Data::Union(_) => {
                return Err(Error::new_spanned(
                    &item.ident,
                    "`RpcError` cannot be derived for a union: use an enum or a struct",
                ));
            }
        };
        errors.check(check_distinct_codes(&cases));
        errors.finish(Some(Self { ident: item.ident, krate, cases }))
    }
}

/// Reads `#[rpc(crate = "..")]` on an enum. All other options belong on its variants.
fn whole_enum(attributes: &mut Vec<syn::Attribute>, krate: &mut TokenStream) -> Result<()> {
    let Some(settings) = attribute::take(attributes, "rpc")? else { return Ok(()) };
    attribute::read(&settings, |meta| {
        if !meta.path.is_ident("crate") {
            return Err(attribute::unknown(&meta, "`crate`; other options belong on the variants"));
        }
        let path: Path = meta.value()?.parse::<LitStr>()?.parse()?;
        *krate = quote!(#path);
        Ok(())
    })
}

/// Rejects two cases with one code.
fn check_distinct_codes(cases: &[ErrorCase]) -> Result<()> {
    let mut taken = HashMap::new();
    let mut errors = CompileErrors::default();
    for case in cases {
        let WireForm::Coded(code) = &case.form else { continue };
        if let Some(first) = taken.insert(code.value, &case.ident) {
            let text = format!("`{first}` already has the code {}: choose another", code.value);
            errors.add(Error::new_spanned(&code.written, text));
        }
    }
    errors.finish(Some(()))
}
