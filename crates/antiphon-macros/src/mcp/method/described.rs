//! The options that tools, resources and prompts share: what people and models read about them.

use syn::meta::ParseNestedMeta;
use syn::{Expr, LitStr, Result};

/// The options about the name and the description.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<Expr>,
    /// The default is the doc comment.
    pub(crate) description: Option<Expr>,
    pub(crate) icons: Vec<Expr>,
}

impl Described {
    /// The names of the options, for compile errors.
    pub(super) const KNOWN: &'static str = "`name`, `title`, `description`, `icon`";

    /// Reads an option. Returns whether it is one of these.
    pub(super) fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        if meta.path.is_ident("name") {
            self.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("title") {
            self.title = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("description") {
            self.description = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("icon") {
            self.icons.push(meta.value()?.parse()?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}
