//! `#[rpc(..)]` on an error type or on one of its variants.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Data, Error, LitStr, Path, Result};

use super::code::DeclaredCode;
use crate::attribute;

/// The options of an error type, or of a variant.
#[derive(Default)]
pub(super) struct ErrorOptions {
    pub(super) code: Option<DeclaredCode>,
    pub(super) message: Option<LitStr>,
    pub(super) no_data: bool,
    pub(super) transparent: bool,
    krate: Option<Path>,
}

/// The place of the options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionsOf {
    /// An enum: only the options of the whole type.
    Enum,
    /// A struct: one case is the whole type.
    Struct,
    /// A variant: only the options of a case.
    Variant,
}

impl OptionsOf {
    pub(super) fn item(data: &Data) -> Self {
        if matches!(data, Data::Enum(_)) { Self::Enum } else { Self::Struct }
    }

    fn known(self) -> &'static str {
        match self {
            Self::Enum => "`crate`; other options belong on the variants",
            Self::Struct => "`code`, `message`, `no_data`, `transparent`, `crate`",
            Self::Variant => "`code`, `message`, `no_data`, `transparent`",
        }
    }
}

impl ErrorOptions {
    /// Reads all options. A wrong one is skipped and reported, so the others are known in any case.
    pub(super) fn parse(attributes: &[Attribute], of: OptionsOf) -> (Self, Result<()>) {
        let mut options = Self::default();
        let read = match attribute::take(&mut attributes.to_vec(), "rpc") {
            Ok(Some(attribute)) => attribute::read(&attribute, |meta| options.read(meta, of)),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        (options, read)
    }

    /// The path of the library.
    pub(super) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::antiphon), |path| quote!(#path))
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>, of: OptionsOf) -> Result<()> {
        let (of_case, of_item) = (of != OptionsOf::Enum, of != OptionsOf::Variant);
        if meta.path.is_ident("code") && of_case {
            self.code = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("message") && of_case {
            self.message = Some(plain_message(&meta.value()?.parse()?)?);
        } else if meta.path.is_ident("no_data") && of_case {
            self.no_data = true;
        } else if meta.path.is_ident("transparent") && of_case {
            self.transparent = true;
        } else if meta.path.is_ident("crate") && of_item {
            self.krate = Some(meta.value()?.parse::<LitStr>()?.parse()?);
        } else {
            return Err(attribute::unknown(meta, of.known()));
        }
        Ok(())
    }
}

/// The message without escapes. Rejects a brace, because a message has no placeholders: users of `thiserror`
/// expect them.
fn plain_message(written: &LitStr) -> Result<LitStr> {
    let text = written.value();
    let unescaped = text.replace("{{", "").replace("}}", "");
    if unescaped.contains(['{', '}']) {
        let text = "a `message` is sent as it is written, without values: a field is sent in `data`. For \
                    a message with values, remove `message` and implement `Display`, as with \
                    `thiserror`. For a brace, write `{{` or `}}`";
        return Err(Error::new(written.span(), text));
    }
    Ok(LitStr::new(&text.replace("{{", "{").replace("}}", "}"), written.span()))
}
