//! `#[derive(RpcError)]`: conversion of a Rust error to an error object, and back.

mod code;
mod error_case;
mod fields;
mod options;

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashMap;
use syn::{Data, DeriveInput, Error, Ident, Result};

use crate::attribute::CompileErrors;
use crate::hygiene::quote_hygienic;
use crate::refused;
use error_case::{ErrorCase, WireForm};
use options::{ErrorOptions, OptionsOf};

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
    let (options, read) = ErrorOptions::parse(&item.attrs, OptionsOf::item(&item.data));
    let krate = options.krate();
    match read.and_then(|()| cases(&item, options)) {
        Ok(cases) => write(&DerivedError { ident: item.ident, krate, cases }),
        Err(error) => write_refused(error, &item, &krate),
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
    quote_hygienic! {
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
fn write_refused(error: Error, item: &DeriveInput, krate: &TokenStream) -> TokenStream {
    let (unknown, errors) = refused::unknown_type(error);
    let ident = &item.ident;
    let (parameters, arguments, clause) = item.generics.split_for_impl();
    let object = quote!(#krate::__private::ErrorObject);
    quote_hygienic! {
        #errors

        #[automatically_derived]
        impl #parameters ::core::convert::From<#ident #arguments> for #object #clause {
            fn from(_: #ident #arguments) -> Self {
                <#unknown>::body()
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

/// Parses the cases of an error type.
fn cases(item: &DeriveInput, options: ErrorOptions) -> Result<Vec<ErrorCase>> {
    if !item.generics.params.is_empty() {
        let text = "`RpcError` cannot be derived for a generic type: name the types of the fields";
        return Err(Error::new_spanned(&item.generics, text));
    }
    let mut errors = CompileErrors::default();
    let cases: Vec<ErrorCase> = match &item.data {
        Data::Enum(data) => {
            let case = |variant| errors.check(ErrorCase::of_variant(&item.ident, variant));
            data.variants.iter().filter_map(case).collect()
        }
        Data::Struct(data) => {
            vec![ErrorCase::of_struct(&item.ident, &item.attrs, &data.fields, options)?]
        }
        Data::Union(_) => {
            return Err(Error::new_spanned(
                &item.ident,
                "`RpcError` cannot be derived for a union: use an enum or a struct",
            ));
        }
    };
    errors.check(check_distinct_codes(&cases));
    errors.finish(Some(cases))
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
