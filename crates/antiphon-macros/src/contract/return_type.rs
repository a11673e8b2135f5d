//! The parts of the return type of a method, found by name.
//!
//! This module does not resolve types: a macro only sees their names.

use syn::{Error, GenericArgument, Path, PathArguments, Result, ReturnType, Type, TypeParamBound};

/// The `T` of a `Result<T, E>`, or of an alias of it whose name ends in `Result`.
pub(super) fn of_result<'a>(
    output: &'a ReturnType,
    whole: &impl quote::ToTokens,
) -> Result<&'a Type> {
    let text = "a method must return `Result<T, E>`, or an alias with a name that ends in `Result` and \
                with the argument `T`, such as `io::Result<T>`; for one that cannot fail, use `std::convert::Infallible`; for one without a response, use `#[notification]`";
    match output {
        ReturnType::Default => Err(Error::new_spanned(whole, text)),
        ReturnType::Type(_, ty) => {
            first_argument(ty, |name| name.ends_with("Result")).ok_or(Error::new_spanned(ty, text))
        }
    }
}

/// The `T` of an item of type `Result<T, E>`, or of an alias with the name `Result`; `None` for any other
/// item. Unlike the type of a method, an item may be a type of the user whose name ends in `Result`.
pub(super) fn of_fallible_item(item: &Type) -> Option<&Type> {
    first_argument(item, |name| name == "Result")
}

/// Whether the type is a future: `impl Future`, `BoxFuture` or `Pin<Box<dyn Future>>`.
pub(super) fn is_future(ty: &Type) -> bool {
    let bounds = match ty {
        Type::ImplTrait(ty) => &ty.bounds,
        Type::TraitObject(ty) => &ty.bounds,
        Type::Group(group) => return is_future(&group.elem),
        _ => {
            return first_argument(ty, |name| name == "Pin" || name == "Box")
                .is_some_and(is_future)
                || path(ty).and_then(|path| path.segments.last()).is_some_and(|last| {
                    last.ident == "BoxFuture" || last.ident == "LocalBoxFuture"
                });
        }
    };
    bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().is_some_and(|last| last.ident == "Future")
        }
        _ => false,
    })
}

/// Whether the type is named `Option`.
pub(super) fn is_option(ty: &Type) -> bool {
    first_argument(ty, |name| name == "Option").is_some()
}

/// The path that the type is. A type from a `macro_rules` macro is in a group.
pub(crate) fn path(ty: &Type) -> Option<&Path> {
    match ty {
        Type::Path(ty) => Some(&ty.path),
        Type::Group(group) => path(&group.elem),
        _ => None,
    }
}

fn first_argument(ty: &Type, fits: impl Fn(&str) -> bool) -> Option<&Type> {
    let last = path(ty)?.segments.last()?;
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
    let PathArguments::AngleBracketed(arguments) = &path(ty)?.segments.last()?.arguments else {
        return None;
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.skip(1).last()
}
