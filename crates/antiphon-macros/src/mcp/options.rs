//! `#[antiphon_mcp::server(..)]`: the options of a whole server.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Expr, LitStr, Path, Result, meta};

use crate::attribute::{self, CompileErrors};

const KNOWN: &str =
    "`name`, `version`, `title`, `description`, `instructions`, `website`, `icon`, `crate`";

/// The options of a server.
pub(super) struct ServerOptions {
    /// The default is the name of the package.
    pub(super) name: Option<Expr>,
    /// The default is the version of the package.
    pub(super) version: Option<Expr>,
    pub(super) title: Option<Expr>,
    pub(super) description: Option<Expr>,
    pub(super) instructions: Option<Expr>,
    pub(super) website: Option<Expr>,
    pub(super) icons: Vec<Expr>,
    /// The path of the library, as text for the attributes of derives.
    pub(super) krate_text: String,
    pub(super) krate: TokenStream,
}

impl ServerOptions {
    /// Reads all options. A wrong one is skipped and reported, so the others are known in any case.
    pub(super) fn parse(tokens: TokenStream) -> (Self, Result<()>) {
        let mut options = Self {
            name: None,
            version: None,
            title: None,
            description: None,
            instructions: None,
            website: None,
            icons: Vec::new(),
            krate_text: "::antiphon_mcp".to_owned(),
            krate: quote!(::antiphon_mcp),
        };
        let mut errors = CompileErrors::default();
        let read = meta::parser(|meta| errors.read_option(&meta, |meta| options.read(meta)));
        let read = read.parse2(tokens);
        errors.check(read);
        (options, errors.finish(Some(())))
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let option = match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("name") => &mut self.name,
            Some("version") => &mut self.version,
            Some("title") => &mut self.title,
            Some("description") => &mut self.description,
            Some("instructions") => &mut self.instructions,
            Some("website") => &mut self.website,
            Some("icon") => {
                self.icons.push(meta.value()?.parse()?);
                return Ok(());
            }
            Some("crate") => {
                let text: LitStr = meta.value()?.parse()?;
                let path: Path = text.parse()?;
                (self.krate, self.krate_text) = (quote!(#path), text.value());
                return Ok(());
            }
            _ => return Err(attribute::unknown(meta, KNOWN)),
        };
        *option = Some(meta.value()?.parse()?);
        Ok(())
    }
}
