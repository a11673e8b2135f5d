//! Conversion of Rust names to names on the wire.

use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Result};

/// The case of the names of methods and params that have no explicit name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameCase {
    AsWritten,
    Camel,
    Pascal,
}

impl NameCase {
    pub(super) fn parse(text: &LitStr) -> Result<Self> {
        match &*text.value() {
            "snake_case" => Ok(Self::AsWritten),
            "camelCase" => Ok(Self::Camel),
            "PascalCase" => Ok(Self::Pascal),
            _ => Err(Error::new(text.span(), "expected `snake_case`, `camelCase` or `PascalCase`")),
        }
    }

    /// Converts a Rust name.
    pub(super) fn apply(self, ident: &Ident) -> LitStr {
        let name = ident.unraw().to_string();
        let name = match self {
            Self::AsWritten => name,
            Self::Camel => joined(&name, false),
            Self::Pascal => joined(&name, true),
        };
        LitStr::new(&name, ident.span())
    }
}

fn joined(name: &str, mut upper: bool) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '_' => upper = !out.is_empty() || upper,
            _ if upper => {
                out.extend(letter.to_uppercase());
                upper = false;
            }
            _ => out.push(letter),
        }
    }
    out
}

/// Converts the name of a type to the name of a function.
pub(super) fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Rejects an empty name, and names that the specification reserves (section 4).
pub(super) fn unreserved(name: &LitStr) -> Result<()> {
    if name.value().is_empty() {
        return Err(Error::new(
            name.span(),
            "the name of a method cannot be empty: remove the option, or write a name",
        ));
    }
    if name.value().starts_with("rpc.") {
        let text = "the specification reserves names that begin with `rpc.`: choose another";
        return Err(Error::new(name.span(), text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn words_are_joined() {
        assert_eq!(joined("get_block_by_hash", false), "getBlockByHash");
        assert_eq!(joined("get_block", true), "GetBlock");
        assert_eq!(joined("_private", false), "private");
        assert_eq!(joined("sum", false), "sum");
    }
}
