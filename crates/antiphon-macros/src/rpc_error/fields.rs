//! The fields of an error case, and their conversion to `data` and back.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Field, Fields, Ident, Index, LitStr, Result, Type};

use crate::attribute;
use crate::serialize::{self, Written};

/// The fields of one case.
pub(super) struct ErrorFields {
    fields: Vec<ErrorField>,
    shape: DataShape,
}

/// The JSON shape of `data`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataShape {
    /// No `data`: there are no fields.
    Nothing,
    /// No `data`: the fields are not sent.
    Kept,
    /// An object.
    Object,
    /// The value of the one field, or an array of several.
    Plain,
}

struct ErrorField {
    /// Its Rust name or index.
    place: TokenStream,
    ty: Type,
    name: LitStr,
    /// It is not sent.
    skip: bool,
}

impl ErrorFields {
    pub(super) fn parse(fields: Fields, no_data: bool) -> Result<Self> {
        let shape = match &fields {
            fields if fields.is_empty() => DataShape::Nothing,
            _ if no_data => DataShape::Kept,
            Fields::Named(_) => DataShape::Object,
            _ => DataShape::Plain,
        };
        let members =
            fields.into_iter().enumerate().map(|(place, field)| ErrorField::parse(place, field));
        let fields = members.collect::<Result<Vec<_>>>()?;
        match fields.iter().find(|field| field.skip && shape == DataShape::Plain) {
            Some(field) => {
                let text = "only a named field can be skipped: use `no_data`, or name the fields";
                Err(Error::new_spanned(&field.ty, text))
            }
            None => Ok(Self { fields, shape }),
        }
    }

    /// The pattern that binds each sent field as `value0`, `value1` and so on.
    pub(super) fn pattern(&self, by: &TokenStream) -> TokenStream {
        if self.shape == DataShape::Kept {
            return TokenStream::new();
        }
        let bound = self.sent().map(|(number, field)| {
            let (place, value) = (&field.place, value(number));
            quote!(#place: #by #value,)
        });
        bound.collect()
    }

    /// The call that adds the data to an error object.
    pub(super) fn data(&self, private: &TokenStream) -> TokenStream {
        match self.shape {
            DataShape::Nothing | DataShape::Kept => TokenStream::new(),
            DataShape::Plain => {
                let values = self.fields.iter().enumerate().map(|(number, field)| {
                    let mut value = value(number);
                    value.set_span(field.ty.span());
                    quote_spanned!(field.ty.span()=> #private::serializable(#value))
                });
                if self.fields.len() == 1 {
                    quote!(.with_data(#(#values)*))
                } else {
                    quote!(.with_data(&(#(#values,)*)))
                }
            }
            DataShape::Object => {
                let written: Vec<_> = self
                    .sent()
                    .map(|(_, field)| Written { name: &field.name, ty: &field.ty, optional: false })
                    .collect();
                let values = self.sent().map(|(number, _)| value(number));
                let items = serialize::by_name(&written, private);
                quote!(.with_data(&{ #items __Sent(#(#values),*) }))
            }
        }
    }

    /// The expressions that read all fields from `error`; `None` if a field is not sent.
    pub(super) fn read(&self, private: &TokenStream) -> Option<TokenStream> {
        match self.shape {
            DataShape::Nothing => Some(TokenStream::new()),
            DataShape::Kept => None,
            DataShape::Object if self.fields.iter().any(|field| field.skip) => None,
            DataShape::Object => {
                Some(self.fields.iter().map(|field| field.member(private)).collect())
            }
            DataShape::Plain => {
                Some(self.fields.iter().map(|field| self.element(field, private)).collect())
            }
        }
    }

    /// Reads a field of a tuple: all of `data`, or an element of an array.
    fn element(&self, field: &ErrorField, private: &TokenStream) -> TokenStream {
        let ErrorField { place, ty, .. } = field;
        let types = self.fields.iter().map(|field| &field.ty);
        match self.fields.len() {
            1 => quote!(#place: (&#private::Probe::<#ty>::new()).read(error.data.as_ref())?,),
            _ => quote! {
                #place: (&#private::Probe::<(#(#types,)*)>::new()).read(error.data.as_ref())?.#place,
            },
        }
    }

    /// The name or index of the first field.
    pub(super) fn first(&self) -> Option<&TokenStream> {
        self.fields.first().map(|field| &field.place)
    }

    fn sent(&self) -> impl Iterator<Item = (usize, &ErrorField)> {
        self.fields.iter().enumerate().filter(|(_, field)| !field.skip)
    }
}

impl ErrorField {
    fn parse(number: usize, mut field: Field) -> Result<Self> {
        let settings = attribute::take(&mut field.attrs, "rpc")?;
        let name = field.ident.as_ref().map_or_else(
            || LitStr::new(&number.to_string(), proc_macro2::Span::call_site()),
            |ident| LitStr::new(&ident.unraw().to_string(), ident.span()),
        );
        let place = field
            .ident
            .map_or_else(|| Index::from(number).to_token_stream(), ToTokens::into_token_stream);
        let mut member = Self { place, ty: field.ty, name, skip: false };
        if let Some(settings) = settings {
            attribute::read(&settings, |meta| {
                if meta.path.is_ident("name") {
                    member.name = meta.value()?.parse()?;
                } else if meta.path.is_ident("skip") {
                    member.skip = true;
                } else {
                    return Err(attribute::unknown(&meta, "`name`, `skip`"));
                }
                Ok(())
            })?;
        }
        Ok(member)
    }

    /// Reads a field of an object.
    fn member(&self, private: &TokenStream) -> TokenStream {
        let Self { place, ty, name, .. } = self;
        quote! {
            #place: (&#private::Probe::<#ty>::new()).read(#private::members(error)?.get(#name))?,
        }
    }
}

fn value(number: usize) -> Ident {
    format_ident!("value{number}")
}
