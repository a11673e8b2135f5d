//! Reads the attributes of these macros, and removes them from the code.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, MetaList, Result, Token};

/// Removes and returns the attribute of this name. Fails if it occurs twice.
pub(crate) fn take(attributes: &mut Vec<Attribute>, name: &str) -> Result<Option<Attribute>> {
    let mut taken = attributes.extract_if(.., |attribute| attribute.path().is_ident(name));
    let first = taken.next();
    match taken.next() {
        Some(second) => {
            Err(Error::new_spanned(second, format!("`#[{name}]` occurs twice; merge the two")))
        }
        None => Ok(first),
    }
}

/// Reads `#[name(key = value, ..)]`. A bare `#[name]` has no options. A wrong option is skipped and
/// reported, so the others are read in any case.
pub(crate) fn read(
    attribute: &Attribute,
    mut known: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let mut errors = CompileErrors::default();
    let read = match &attribute.meta {
        Meta::Path(_) => Ok(()),
        _ => attribute.parse_nested_meta(|meta| errors.read_option(&meta, &mut known)),
    };
    errors.check(read);
    errors.finish(Some(()))
}

/// The error for an unknown option.
pub(crate) fn unknown(meta: &ParseNestedMeta<'_>, known: &str) -> Error {
    meta.error(format!("unknown option; expected one of {known}"))
}

/// The `cfg` attributes, also those in a `cfg_attr`. Generated code for an item has them too.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<Attribute> {
    select(attributes, &|meta| meta.path().is_ident("cfg").then(|| meta.clone()))
}

/// The attributes that relax a lint. Generated code for an item has them too.
pub(crate) fn lints(attributes: &[Attribute]) -> Vec<Attribute> {
    select(attributes, &relaxed_lint)
}

/// All attributes, for a generated copy of the item.
pub(crate) fn for_copy(attributes: &[Attribute]) -> Vec<Attribute> {
    select(attributes, &|meta| Some(relaxed_lint(meta).unwrap_or_else(|| meta.clone())))
}

/// The lint that the attribute relaxes. `expect` becomes `allow`, because generated code may not have what
/// the user expects in the code of the contract.
fn relaxed_lint(meta: &Meta) -> Option<Meta> {
    let path = meta.path();
    if path.is_ident("allow") || path.is_ident("warn") {
        return Some(meta.clone());
    }
    match meta {
        Meta::List(list) if path.is_ident("expect") => {
            let path = Ident::new("allow", path.span()).into();
            Some(Meta::List(MetaList { path, ..list.clone() }))
        }
        _ => None,
    }
}

/// Applies `wanted` to each attribute. A `cfg_attr` yields its condition with the wanted attributes in it.
fn select(attributes: &[Attribute], wanted: &dyn Fn(&Meta) -> Option<Meta>) -> Vec<Attribute> {
    let selected = attributes.iter().filter_map(|attribute| {
        let meta = select_meta(&attribute.meta, wanted)?;
        Some(Attribute { meta, ..attribute.clone() })
    });
    selected.collect()
}

fn select_meta(meta: &Meta, wanted: &dyn Fn(&Meta) -> Option<Meta>) -> Option<Meta> {
    let Some((condition, inner)) = conditional(meta) else { return wanted(meta) };
    let inner: Vec<Meta> = inner.iter().filter_map(|meta| select_meta(meta, wanted)).collect();
    match meta {
        Meta::List(list) if !inner.is_empty() => {
            let tokens = quote!(#condition, #(#inner),*);
            Some(Meta::List(MetaList { tokens, ..list.clone() }))
        }
        _ => None,
    }
}

/// The condition and the attributes of a `cfg_attr`.
pub(crate) fn conditional(meta: &Meta) -> Option<(TokenStream, Vec<Meta>)> {
    let Meta::List(list) = meta else { return None };
    let read = |input: ParseStream<'_>| {
        let mut condition = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) {
            condition.extend([input.parse::<TokenTree>()?]);
        }
        input.parse::<Option<Token![,]>>()?;
        let inner = Punctuated::<Meta, Token![,]>::parse_terminated(input)?;
        Ok((condition, inner.into_iter().collect()))
    };
    list.path.is_ident("cfg_attr").then(|| list.parse_args_with(read).ok())?
}

/// The text of the doc comments, with its line breaks.
pub(crate) fn docs(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_line).collect();
    lines.join("\n").trim().to_owned()
}

/// The text of the doc comments as an expression; `None` if it is empty. The compiler expands a macro in it, such as
/// `#[doc = include_str!("tool.md")]`.
pub(crate) fn docs_expression(attributes: &[Attribute]) -> Option<TokenStream> {
    let expanded = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") && doc_line(attribute).is_none() => {
            let value = &meta.value;
            Some(quote!(#value))
        }
        _ => None,
    };
    if !attributes.iter().any(|attribute| expanded(attribute).is_some()) {
        let docs = docs(attributes);
        return (!docs.is_empty()).then(|| quote!(#docs));
    }
    let lines = attributes.iter().filter_map(|attribute| {
        expanded(attribute).or_else(|| doc_line(attribute).map(|line| quote!(#line)))
    });
    Some(quote!(::core::primitive::str::trim(::core::concat!(#(#lines, "\n"),*))))
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if meta.path.is_ident("doc") => {
            let text = text.value();
            Some(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned())
        }
        _ => None,
    }
}

/// Reads a list in brackets or parentheses. Skips what is left of a wrong one, which would be an error too.
pub(crate) fn list<'a, T>(
    inside: ParseStream<'a>,
    item: fn(ParseStream<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let read = Punctuated::<T, Token![,]>::parse_terminated_with(inside, item);
    if read.is_err() {
        inside.parse::<TokenStream>()?;
    }
    Ok(read?.into_iter().collect())
}

/// Collects compile errors, so that all are reported at once.
#[derive(Default)]
pub(crate) struct CompileErrors(Option<Error>);

impl CompileErrors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value, or keeps the error and returns `None`.
    pub(crate) fn check<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Reads an option. If it is wrong, keeps the error and skips what is left of the option.
    pub(crate) fn read_option(
        &mut self,
        meta: &ParseNestedMeta<'_>,
        known: impl FnOnce(&ParseNestedMeta<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.check(known(meta)).is_none() {
            while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
                meta.input.parse::<TokenTree>()?;
            }
        }
        Ok(())
    }

    /// Returns the value if there was no error.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T> {
        match (self.0, value) {
            (Some(error), _) => Err(error),
            (None, Some(value)) => Ok(value),
            (None, None) => Err(Error::new(Span::call_site(), "there is nothing to expand")),
        }
    }
}
