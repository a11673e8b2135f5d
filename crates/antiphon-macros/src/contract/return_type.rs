//! The parts of the return type of a method, found by name.
//!
//! This module does not resolve types: a macro only sees their names.

use syn::{Error, GenericArgument, PathArguments, Result, ReturnType, Type};

/// The `T` of a `Result<T, E>`, or of an alias of it whose name ends in `Result`.
pub(super) fn of_result<'a>(
    output: &'a ReturnType,
    whole: &impl quote::ToTokens,
) -> Result<&'a Type> {
    let text = "a method must return `Result<T, E>`; for one that cannot fail, \
                use `std::convert::Infallible`; for one without a response, use `#[notification]`";
    match output {
        ReturnType::Default => Err(Error::new_spanned(whole, text)),
        ReturnType::Type(_, ty) => {
            first_argument(ty, |name| name.ends_with("Result")).ok_or(Error::new_spanned(ty, text))
        }
    }
}

/// The `T` of an item of type `Result<T, E>`; `None` for any other item.
pub(super) fn of_fallible_item(item: &Type) -> Option<&Type> {
    first_argument(item, |name| name.ends_with("Result"))
}

/// Whether the type is named `Option`.
pub(super) fn is_option(ty: &Type) -> bool {
    first_argument(ty, |name| name == "Option").is_some()
}

fn first_argument(ty: &Type, fits: impl Fn(&str) -> bool) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    if !fits(&last.ident.to_string()) {
        return None;
    }
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The `E` of a `Result<T, E>`; `None` for an alias that hides it.
pub(crate) fn returned_error(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.skip(1).last()
}
