//! The supertraits of a contract: the contracts that it extends, and plain traits.
//!
//! A macro cannot see whether a trait is a contract, so the contracts are named by `extends`. A supertrait
//! that could be a contract is refused: its methods would silently not be served.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Error, Ident, ItemTrait, Path, Result, TypeParamBound};

use super::method::ContractMethod;
use super::names;
use crate::attribute::CompileErrors;

/// Traits of the standard library, which are never contracts.
const PLAIN: [&str; 12] = [
    "Any",
    "Clone",
    "Debug",
    "Default",
    "Display",
    "Error",
    "RefUnwindSafe",
    "Send",
    "Sized",
    "Sync",
    "Unpin",
    "UnwindSafe",
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
        let Some(last) = bound.path.segments.last() else { continue };
        let is_extended = |extended: &Path| {
            extended.segments.last().is_some_and(|other| other.ident == last.ident)
        };
        let is_plain = PLAIN.iter().any(|name| last.ident == name);
        if !is_plain && !extends.iter().any(is_extended) {
            let name = &last.ident;
            let text = format!(
                "a supertrait is not served by itself: if `{name}` is a contract, add \
                 `#[rpc(extends({name}))]`; if it is not, write `where Self: {name}`"
            );
            errors.add(Error::new_spanned(bound, text));
        }
    }
    errors.finish(Some(()))
}

/// Rejects a method with the name of the accessor of an extended contract.
pub(super) fn check_accessors(methods: &[ContractMethod], extends: &[Path]) -> Result<()> {
    for accessor in extends.iter().filter_map(accessor) {
        if let Some(method) = methods.iter().find(|method| method.ident == accessor) {
            let text = format!(
                "`{accessor}` is the function of the client for the extended contract: \
                 rename the function and add `#[method(name = \"{accessor}\")]`"
            );
            return Err(Error::new_spanned(&method.ident, text));
        }
    }
    Ok(())
}

/// The function of the client that returns the client of an extended contract.
pub(crate) fn accessor(extended: &Path) -> Option<Ident> {
    let last = &extended.segments.last()?.ident;
    Some(Ident::new(&names::snake_case(&last.to_string()), last.span()))
}
