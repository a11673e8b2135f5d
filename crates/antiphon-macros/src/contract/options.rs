//! `#[rpc(..)]`: the options of a whole contract.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{LitStr, Path, Result, meta, parenthesized};

use super::names::NameCase;
use crate::attribute::{self, CompileErrors};

const KNOWN: &str = "`namespace`, `separator`, `rename_all`, `params`, `unknown_params`, \
                     `extends`, `server`, `client`, `crate`";

/// The options of a contract.
pub(crate) struct Options {
    pub(crate) namespace: Option<LitStr>,
    pub(crate) separator: Option<LitStr>,
    pub(crate) rename_all: NameCase,
    pub(crate) params_by: ParamsBy,
    /// Unknown params are ignored instead of refused.
    pub(crate) ignores_unknown: bool,
    /// The contracts that this contract includes.
    pub(crate) extends: Vec<Path>,
    pub(crate) server: bool,
    pub(crate) client: bool,
    /// The path of the library.
    pub(crate) krate: TokenStream,
}

/// The form in which the client sends params. A server accepts both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamsBy {
    Name,
    Position,
}

impl Options {
    /// Reads all options. A wrong one is skipped and reported, so the others are known in any case.
    pub(crate) fn parse(tokens: TokenStream) -> (Self, Result<()>) {
        let mut options = Self {
            namespace: None,
            separator: None,
            rename_all: NameCase::AsWritten,
            params_by: ParamsBy::Name,
            ignores_unknown: false,
            extends: Vec::new(),
            server: false,
            client: false,
            krate: quote!(::antiphon),
        };
        let mut errors = CompileErrors::default();
        let read = meta::parser(|meta| errors.read_option(&meta, |meta| options.read(meta)));
        let read = read.parse2(tokens);
        errors.check(read);
        // Without either option, both sides are generated.
        if !options.server && !options.client {
            (options.server, options.client) = (true, true);
        }
        (options, errors.finish(Some(())))
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("namespace") {
            self.namespace = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("separator") {
            self.separator = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("rename_all") {
            self.rename_all = NameCase::parse(&meta.value()?.parse()?)?;
        } else if meta.path.is_ident("params") {
            self.params_by = ParamsBy::parse(&meta.value()?.parse()?)?;
        } else if meta.path.is_ident("unknown_params") {
            self.ignores_unknown = ignores(&meta.value()?.parse()?)?;
        } else if meta.path.is_ident("extends") {
            let list;
            parenthesized!(list in meta.input);
            self.extends.extend(attribute::list(&list, Path::parse_mod_style)?);
        } else if meta.path.is_ident("server") {
            self.server = true;
        } else if meta.path.is_ident("client") {
            self.client = true;
        } else if meta.path.is_ident("crate") {
            let path: Path = meta.value()?.parse::<LitStr>()?.parse()?;
            self.krate = quote!(#path);
        } else {
            return Err(attribute::unknown(meta, KNOWN));
        }
        Ok(())
    }

    /// The name on the wire, with the namespace.
    pub(crate) fn full(&self, name: &LitStr) -> LitStr {
        let Some(namespace) = &self.namespace else { return name.clone() };
        let separator = self.separator.as_ref().map_or("_".to_owned(), LitStr::value);
        LitStr::new(&format!("{}{separator}{}", namespace.value(), name.value()), name.span())
    }
}

impl ParamsBy {
    fn parse(text: &LitStr) -> Result<Self> {
        match &*text.value() {
            "by_name" => Ok(Self::Name),
            "by_position" => Ok(Self::Position),
            _ => Err(syn::Error::new(text.span(), "expected `by_name` or `by_position`")),
        }
    }
}

fn ignores(text: &LitStr) -> Result<bool> {
    match &*text.value() {
        "ignore" => Ok(true),
        "refuse" => Ok(false),
        _ => Err(syn::Error::new(text.span(), "expected `ignore` or `refuse`")),
    }
}
