//! One case of an error type: its code, message and data.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Error, Fields, Ident, LitStr, Result, Type, Variant};

use super::code::DeclaredCode;
use super::fields::ErrorFields;
use super::options::{ErrorOptions, OptionsOf};
use crate::attribute::docs;
use crate::hygiene::{hidden, quote_hygienic};

pub(super) struct ErrorCase {
    pub(super) ident: Ident,
    /// Its Rust path: `Type` or `Type::Variant`.
    path: TokenStream,
    pub(super) form: WireForm,
    message: Option<LitStr>,
    docs: String,
    fields: ErrorFields,
}

/// The conversion of a case to an error object.
pub(super) enum WireForm {
    /// The case has a code of its own.
    Coded(DeclaredCode),
    /// Its only field provides the error object.
    Transparent(Box<Type>),
}

impl ErrorCase {
    pub(super) fn of_variant(item: &Ident, variant: &Variant) -> Result<Self> {
        let Variant { ident, attrs, fields, .. } = variant;
        let (options, read) = ErrorOptions::parse(attrs, OptionsOf::Variant);
        read.and_then(|()| Self::new(ident, quote!(#item::#ident), attrs, fields, options))
    }

    pub(super) fn of_struct(
        ident: &Ident,
        attributes: &[Attribute],
        fields: &Fields,
        options: ErrorOptions,
    ) -> Result<Self> {
        Self::new(ident, quote!(#ident), attributes, fields, options)
    }

    fn new(
        ident: &Ident,
        path: TokenStream,
        attributes: &[Attribute],
        fields: &Fields,
        options: ErrorOptions,
    ) -> Result<Self> {
        let form = match (options.code, options.transparent) {
            (Some(code), false) => WireForm::Coded(code),
            (None, true) => WireForm::Transparent(Box::new(only_field_type(fields, ident)?)),
            (Some(code), true) => {
                let text = "`transparent` takes the code of its field: remove `code`";
                return Err(Error::new_spanned(code.written, text));
            }
            (None, false) => {
                let text = format!("`{ident}` has no code: add `#[rpc(code = ..)]`");
                return Err(Error::new_spanned(ident, text));
            }
        };
        Ok(Self {
            ident: ident.clone(),
            path,
            form,
            message: options.message,
            docs: docs(attributes),
            fields: ErrorFields::parse(fields, options.no_data)?,
        })
    }
}

impl ErrorCase {
    /// The match arm that converts this case to an error object.
    pub(super) fn match_arm(&self, krate: &TokenStream) -> TokenStream {
        let path = &self.path;
        let private = quote!(#krate::__private);
        match &self.form {
            WireForm::Transparent(_) => {
                let pattern = self.fields.pattern(&quote!());
                quote_hygienic! {
                    #path { #pattern .. } => #krate::IntoErrorObject::into_error_object(value0),
                }
            }
            WireForm::Coded(DeclaredCode { value, .. }) => {
                let message = match &self.message {
                    Some(message) => quote!(#message),
                    None => quote_spanned! {hidden(self.ident.span())=>
                        #private::DefaultMessage::message(&error)
                    },
                };
                let pattern = self.fields.pattern(&quote!(ref));
                let error = quote_hygienic!(#private::ErrorObject::new(#value, #message));
                let error = self.fields.with_data(&error, &private);
                quote_hygienic!(#path { #pattern .. } => #error,)
            }
        }
    }

    /// The statement that returns this case if `error` matches it.
    pub(super) fn return_if_matching(&self, krate: &TokenStream) -> TokenStream {
        let path = &self.path;
        let private = quote!(#krate::__private);
        match &self.form {
            WireForm::Transparent(ty) => {
                let field = self.fields.first();
                quote_hygienic! {
                    if let ::core::option::Option::Some(value) =
                        <#ty as #krate::FromErrorObject>::from_error_object(error)
                    {
                        return ::core::option::Option::Some(#path { #field: value });
                    }
                }
            }
            WireForm::Coded(DeclaredCode { value, .. }) => {
                let Some(fields) = self.fields.read(&private) else { return TokenStream::new() };
                quote_hygienic! {
                    if error.code.0 == #value {
                        return ::core::option::Option::Some(#path { #fields });
                    }
                }
            }
        }
    }

    /// The statement that adds this case to the known errors.
    pub(super) fn known(&self, krate: &TokenStream) -> TokenStream {
        match &self.form {
            WireForm::Transparent(ty) => quote_hygienic! {
                ::core::iter::Extend::extend(
                    &mut known,
                    <#ty as #krate::IntoErrorObject>::known_errors(),
                );
            },
            WireForm::Coded(DeclaredCode { value, .. }) => {
                let message = self.described();
                quote_hygienic! {
                    known.push(#krate::KnownError {
                        code: #krate::__private::Code(#value),
                        message: ::std::borrow::Cow::Borrowed(#message),
                    });
                }
            }
        }
    }

    /// The message for a description. A message from `Display` is not known at compile time, so the
    /// first line of the docs or the name replaces it.
    fn described(&self) -> String {
        let first = self.docs.lines().next().unwrap_or_default();
        match &self.message {
            Some(message) => message.value(),
            None if !first.is_empty() => first.trim_end_matches('.').to_owned(),
            None => self.ident.unraw().to_string(),
        }
    }

    pub(super) fn is_transparent(&self) -> bool {
        matches!(self.form, WireForm::Transparent(_))
    }
}

/// The type of the only field. Fails for any other number of fields.
fn only_field_type(fields: &Fields, ident: &Ident) -> Result<Type> {
    let mut types = fields.iter().map(|field| field.ty.clone());
    match (types.next(), types.next()) {
        (Some(ty), None) => Ok(ty),
        _ => Err(Error::new_spanned(
            ident,
            "`transparent` requires exactly one field, which is the error",
        )),
    }
}
