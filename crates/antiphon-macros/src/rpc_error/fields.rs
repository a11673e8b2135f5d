//! The fields of an error case, and their conversion to `data` and back.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Field, Fields, Ident, Index, LitStr, Result, Type};

use crate::attribute;
use crate::hygiene::{hidden, quote_hygienic};
use crate::serialize::{self, SerializedField};

/// The fields of one case.
pub(super) struct ErrorFields {
    fields: Vec<ErrorField>,
    shape: DataShape,
}

/// The JSON shape of `data`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataShape {
    /// No `data`: there are no fields.
    NoFields,
    /// No `data`: the fields are not sent.
    NotSent,
    /// An object.
    Object,
    /// The value of the one field, or an array of several.
    Unnamed,
}

struct ErrorField {
    /// Its Rust name or index.
    key: TokenStream,
    ty: Type,
    name: LitStr,
    /// It is not sent.
    skip: bool,
}

impl ErrorFields {
    pub(super) fn parse(fields: &Fields, no_data: bool) -> Result<Self> {
        let shape = match fields {
            fields if fields.is_empty() => DataShape::NoFields,
            _ if no_data => DataShape::NotSent,
            Fields::Named(_) => DataShape::Object,
            _ => DataShape::Unnamed,
        };
        let members =
            fields.iter().enumerate().map(|(number, field)| ErrorField::parse(number, field));
        let fields = members.collect::<Result<Vec<_>>>()?;
        match fields.iter().find(|field| field.skip && shape == DataShape::Unnamed) {
            Some(field) => {
                let text = "only a named field can be skipped: use `no_data`, or name the fields";
                Err(Error::new_spanned(&field.ty, text))
            }
            None => Ok(Self { fields, shape }),
        }
    }

    /// The pattern that binds each sent field as `value0`, `value1` and so on.
    pub(super) fn pattern(&self, by: &TokenStream) -> TokenStream {
        if self.shape == DataShape::NotSent {
            return TokenStream::new();
        }
        let bound = self.sent().map(|(number, field)| {
            let (key, value) = (&field.key, value(number));
            quote!(#key: #by #value,)
        });
        bound.collect()
    }

    /// The error object with the data.
    pub(super) fn with_data(&self, error: &TokenStream, private: &TokenStream) -> TokenStream {
        match self.shape {
            DataShape::NoFields | DataShape::NotSent => error.clone(),
            DataShape::Unnamed if self.fields.len() == 1 => {
                let mut value = value(0);
                value.set_span(hidden(self.fields[0].ty.span()));
                quote_spanned!(value.span()=> #private::with_data(#error, #value))
            }
            DataShape::Unnamed | DataShape::Object => {
                let written: Vec<_> = self.sent().map(|(_, field)| field.serialized()).collect();
                let values = self.sent().map(|(number, _)| value(number));
                let items = match self.shape {
                    DataShape::Object => serialize::by_name(&written, private),
                    _ => serialize::by_position(&written, private),
                };
                quote!(#error.with_data(&{ #items __Fields(#(#values),*) }))
            }
        }
    }

    /// The expressions that read all fields from `error`; `None` if a field is not sent.
    pub(super) fn read(&self, private: &TokenStream) -> Option<TokenStream> {
        match self.shape {
            DataShape::NoFields => Some(TokenStream::new()),
            DataShape::NotSent => None,
            DataShape::Object if self.fields.iter().any(|field| field.skip) => None,
            DataShape::Object => {
                Some(self.fields.iter().map(|field| field.member(private)).collect())
            }
            DataShape::Unnamed => {
                Some(self.fields.iter().map(|field| self.element(field, private)).collect())
            }
        }
    }

    /// Reads a field of a tuple: all of `data`, or an element of an array.
    fn element(&self, field: &ErrorField, private: &TokenStream) -> TokenStream {
        let ErrorField { key, ty, .. } = field;
        let types = self.fields.iter().map(|field| &field.ty);
        match self.fields.len() {
            1 => {
                quote_hygienic!(#key: (&#private::Probe::<#ty>::new()).read(error.data.as_ref())?,)
            }
            _ => quote_hygienic! {
                #key: (&#private::Probe::<(#(#types,)*)>::new()).read(error.data.as_ref())?.#key,
            },
        }
    }

    /// The name or index of the first field.
    pub(super) fn first(&self) -> Option<&TokenStream> {
        self.fields.first().map(|field| &field.key)
    }

    fn sent(&self) -> impl Iterator<Item = (usize, &ErrorField)> {
        self.fields.iter().enumerate().filter(|(_, field)| !field.skip)
    }
}

impl ErrorField {
    fn parse(number: usize, field: &Field) -> Result<Self> {
        let settings = attribute::take(&mut field.attrs.clone(), "rpc")?;
        let name = field.ident.as_ref().map_or_else(
            || LitStr::new(&number.to_string(), Span::call_site()),
            |ident| LitStr::new(&ident.unraw().to_string(), ident.span()),
        );
        let key = field
            .ident
            .as_ref()
            .map_or_else(|| Index::from(number).to_token_stream(), ToTokens::to_token_stream);
        let mut member = Self { key, ty: field.ty.clone(), name, skip: false };
        if let Some(settings) = settings {
            attribute::read(&settings, |meta| {
                if meta.path.is_ident("name") {
                    member.name = meta.value()?.parse()?;
                } else if meta.path.is_ident("skip") {
                    member.skip = true;
                } else {
                    return Err(attribute::unknown(meta, "`name`, `skip`"));
                }
                Ok(())
            })?;
        }
        Ok(member)
    }

    fn serialized(&self) -> SerializedField<'_> {
        SerializedField { name: &self.name, ty: &self.ty, optional: false, is_error_data: true }
    }

    /// Reads a field of an object.
    fn member(&self, private: &TokenStream) -> TokenStream {
        let Self { key, ty, name, .. } = self;
        quote_hygienic! {
            #key: (&#private::Probe::<#ty>::new()).read(#private::data_members(error)?.get(#name))?,
        }
    }
}

fn value(number: usize) -> Ident {
    format_ident!("value{number}", span = Span::mixed_site())
}
