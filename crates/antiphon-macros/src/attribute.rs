//! Reads the attributes of these macros, and removes them from the code.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result, Token};

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

/// The `cfg` attributes. Generated code for an item has them too.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}

/// The text of the doc comments, with its line breaks.
pub(crate) fn docs(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_line).collect();
    lines.join("\n").trim().to_owned()
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
