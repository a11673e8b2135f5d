//! Generates `Serialize` implementations for named or ordered values, without a derive.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Index, LitStr, Type};

use crate::hygiene::{hidden, quote_hygienic};

/// One value to serialize.
pub(crate) struct SerializedField<'a> {
    pub(crate) name: &'a LitStr,
    pub(crate) ty: &'a Type,
    /// An `Option` that is left out if it is `None`.
    pub(crate) optional: bool,
    /// A field of an error, which has a compile error of its own.
    pub(crate) is_error_data: bool,
}

/// Generates a struct `__Fields<'a>(&'a A, &'a B)` that serializes as an object.
pub(crate) fn by_name(values: &[SerializedField<'_>], private: &TokenStream) -> TokenStream {
    let fields: Vec<_> = (0..values.len()).map(Index::from).collect();
    let entries = values.iter().zip(&fields).map(|(value, field)| {
        let name = value.name;
        let serialize = if value.is_error_data {
            quote!(#private::serialize_error_entry)
        } else {
            quote!(#private::serde::ser::SerializeMap::serialize_entry)
        };
        let entry = quote_spanned! {hidden(value.ty.span())=>
            #serialize(&mut map, #name, self.#field)?;
        };
        if value.optional { quote_hygienic!(if self.#field.is_some() { #entry }) } else { entry }
    });
    let body = quote_hygienic! {
        let mut map = serializer.serialize_map(::core::option::Option::None)?;
        #(#entries)*
        #private::serde::ser::SerializeMap::end(map)
    };
    fields_struct(values, &body, private)
}

/// Like `by_name`, for an array. Trailing `None`s are left out.
pub(crate) fn by_position(values: &[SerializedField<'_>], private: &TokenStream) -> TokenStream {
    let fields: Vec<_> = (0..values.len()).map(Index::from).collect();
    let needed = values.iter().rposition(|value| !value.optional).map_or(0, |last| last + 1);
    let length = (needed..values.len()).fold(quote!(#needed), |shorter, index| {
        let (field, length) = (&fields[index], index + 1);
        quote_hygienic!(if self.#field.is_some() { #length } else { #shorter })
    });
    let indices = 0..values.len();
    let elements = values.iter().zip(&fields).map(|(value, field)| {
        let serialize = if value.is_error_data {
            quote!(#private::serialize_error_element)
        } else {
            quote!(#private::serde::ser::SerializeSeq::serialize_element)
        };
        quote_spanned! {hidden(value.ty.span())=>
            #serialize(&mut list, self.#field)?;
        }
    });
    let body = quote_hygienic! {
        let length: ::core::primitive::usize = #length;
        let mut list = serializer.serialize_seq(::core::option::Option::Some(length))?;
        #(if #indices < length { #elements })*
        #private::serde::ser::SerializeSeq::end(list)
    };
    fields_struct(values, &body, private)
}

fn fields_struct(
    values: &[SerializedField<'_>],
    body: &TokenStream,
    private: &TokenStream,
) -> TokenStream {
    let types = values.iter().map(|value| value.ty);
    let lifetime = if values.is_empty() { quote!() } else { quote!(<'a>) };
    let anonymous = if values.is_empty() { quote!() } else { quote!(<'_>) };
    quote_hygienic! {
        struct __Fields #lifetime (#(&'a #types),*);

        impl #private::serde::Serialize for __Fields #anonymous {
            fn serialize<__S: #private::serde::Serializer>(
                &self,
                serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                #[allow(unused_mut)]
                #body
            }
        }
    }
}
