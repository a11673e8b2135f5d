//! The functions of the client that return the clients of the extended contracts.

use std::collections::HashMap;
use syn::ext::IdentExt;
use syn::{Error, Ident, Path, Result};

use super::method::{ContractMethod, RESERVED};
use super::names;
use super::options::Options;
use super::supertraits::{is_same, written};
use crate::attribute::CompileErrors;

/// Keywords that cannot be raw identifiers.
const NEVER_RAW: [&str; 3] = ["crate", "self", "super"];

/// The name of the function for an extended contract: its last name, in snake case. A raw identifier,
/// because the name can be a keyword: `r#match` for `Match`.
pub(crate) fn accessor(extended: &Path) -> Option<Ident> {
    let last = &extended.segments.last()?.ident;
    Some(Ident::new_raw(&name(extended)?, last.span()))
}

fn name(extended: &Path) -> Option<String> {
    let last = &extended.segments.last()?.ident;
    Some(names::snake_case(&last.unraw().to_string()))
}

/// Rejects an extended contract whose function has a name that cannot be used, and a method that has the
/// name of such a function.
pub(super) fn check(methods: &[ContractMethod], options: &Options) -> Result<()> {
    let mut errors = CompileErrors::default();
    let mut taken: HashMap<String, &Path> = HashMap::new();
    for extended in options.extends.iter().filter(|_| options.client) {
        let Some(name) = name(extended) else { continue };
        let text = match taken.get(&name) {
            Some(first) => collision(&name, first, extended),
            None if RESERVED.contains(&&*name) || NEVER_RAW.contains(&&*name) => {
                reserved(&name, extended)
            }
            None => {
                errors.check(check_methods(&name, methods));
                taken.insert(name, extended);
                continue;
            }
        };
        errors.add(Error::new_spanned(extended, text));
    }
    errors.finish(Some(()))
}

fn collision(name: &str, first: &Path, second: &Path) -> String {
    if is_same(first, second) {
        return format!("`{}` is extended twice: remove one", written(second));
    }
    format!(
        "the client already has a function `{name}` for `{}`: {}",
        written(first),
        rename(second)
    )
}

fn reserved(name: &str, extended: &Path) -> String {
    format!("the client cannot have a function `{name}` for this contract: {}", rename(extended))
}

/// The remedy: the macro takes the names of the function and of the client from the path.
fn rename(extended: &Path) -> String {
    let path = written(extended);
    let last = extended.segments.last().map(|last| last.ident.unraw().to_string());
    let other = format!("Other{}", last.unwrap_or_default());
    format!(
        "import it under another name, as `use {path} as {other}` and `use {path}Client as \
         {other}Client`, and extend `{other}`"
    )
}

fn check_methods(name: &str, methods: &[ContractMethod]) -> Result<()> {
    match methods.iter().find(|method| method.ident.unraw() == *name) {
        None => Ok(()),
        Some(method) => {
            let text = format!(
                "`{name}` is the function of the client for the extended contract: \
                 rename the function and add `#[method(name = \"{name}\")]`"
            );
            Err(Error::new_spanned(&method.ident, text))
        }
    }
}
