//! The supertraits of a contract: the contracts that it extends, and plain traits.
//!
//! A macro cannot see whether a trait is a contract, so the contracts are named by `extends`. A supertrait
//! that could be a contract is refused: its methods would silently not be served.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Error, Ident, ItemTrait, Path, Result, TypeParamBound};

use crate::attribute::CompileErrors;

/// Traits of the standard library, which are never contracts.
const PLAIN: [[&str; 2]; 12] = [
    ["any", "Any"],
    ["clone", "Clone"],
    ["default", "Default"],
    ["error", "Error"],
    ["fmt", "Debug"],
    ["fmt", "Display"],
    ["marker", "Send"],
    ["marker", "Sized"],
    ["marker", "Sync"],
    ["marker", "Unpin"],
    ["panic", "RefUnwindSafe"],
    ["panic", "UnwindSafe"],
];

/// The supertraits of the generated trait: those that are written, and the extended contracts.
pub(crate) fn all(item: &ItemTrait, extends: &[Path]) -> Vec<TokenStream> {
    let written = item.supertraits.iter().map(ToTokens::to_token_stream);
    written.chain(extends.iter().map(ToTokens::to_token_stream)).collect()
}

/// Rejects a supertrait that is neither extended nor known as a plain trait.
pub(super) fn check(item: &ItemTrait, extends: &[Path]) -> Result<()> {
    let mut errors = CompileErrors::default();
    for bound in &item.supertraits {
        let TypeParamBound::Trait(bound) = bound else { continue };
        let path = &bound.path;
        if is_plain(&names(path)) || extends.iter().any(|extended| is_same(extended, path)) {
            continue;
        }
        let namesake = extends.iter().find(|extended| names(extended).last() == names(path).last());
        errors.add(Error::new_spanned(bound, refusal(&bound.path, namesake)));
    }
    errors.finish(Some(()))
}

fn refusal(supertrait: &Path, namesake: Option<&Path>) -> String {
    let name = written(supertrait);
    match namesake.map(written) {
        Some(extended) => format!(
            "`extends` names `{extended}`, and a macro cannot see whether `{name}` is the same trait: \
             if it is, remove this supertrait, since `extends` adds it; if it is another contract, add \
             it to `extends`; if it is not a contract, write `where Self: {name}`"
        ),
        None => format!(
            "a supertrait is not served by itself: if `{name}` is a contract, add \
             `#[rpc(extends({name}))]`; if it is not, write `where Self: {name}`"
        ),
    }
}

/// Whether the path is the last part of the path of a plain trait: `Debug`, `fmt::Debug`,
/// `std::fmt::Debug`.
fn is_plain(path: &[Ident]) -> bool {
    PLAIN.iter().any(|[module, name]| match path {
        [last] => last == name,
        [parent, last] => parent == module && last == name,
        [root, parent, last] => {
            (root == "std" || root == "core") && parent == module && last == name
        }
        _ => false,
    })
}

/// Whether the paths are written alike. Only then a macro can see that they name one trait.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    one.leading_colon.is_some() == other.leading_colon.is_some() && names(one) == names(other)
}

/// The names of a path. `self::Cards` has the same names as `Cards`.
fn names(path: &Path) -> Vec<Ident> {
    let names = path.segments.iter().map(|segment| segment.ident.unraw());
    let is_absolute = path.leading_colon.is_some();
    names.skip_while(|name| !is_absolute && name == "self").collect()
}

/// The path as in the code, without spaces.
pub(super) fn written(path: &Path) -> String {
    quote!(#path).to_string().replace(' ', "")
}
