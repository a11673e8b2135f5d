//! The rules for the signature of a method.

use quote::quote;
use std::collections::HashSet;
use syn::{Error, FnArg, LitStr, Receiver, Result, Signature, Type};

use super::argument::{Argument, ValueArgument};
use super::options::Address;
use crate::attribute::CompileErrors;
use crate::contract::path;

/// How a method takes the service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassedSelf {
    /// `&self` or `self: &Arc<Self>`.
    Reference,
    /// `self: Arc<Self>`.
    Shared,
    /// Not at all.
    Nothing,
}

impl PassedSelf {
    pub(super) fn parse(signature: &Signature) -> Result<Self> {
        let Some(FnArg::Receiver(receiver)) = signature.inputs.first() else {
            return Ok(Self::Nothing);
        };
        match receiver {
            Receiver { reference: Some(_), mutability: None, .. } => Ok(Self::Reference),
            Receiver { colon_token: Some(_), ty, .. } if is_arc(ty) => Ok(Self::Shared),
            Receiver { colon_token: Some(_), ty, .. } if matches!(&**ty, Type::Reference(ty) if is_arc(&ty.elem) && ty.mutability.is_none()) => {
                Ok(Self::Reference)
            }
            other => Err(Error::new_spanned(
                other,
                "a method must take `&self`: calls run concurrently; put mutable state behind a lock",
            )),
        }
    }
}

/// Whether the type is `Arc<Self>`, found by name.
fn is_arc(ty: &Type) -> bool {
    let last = path(ty).and_then(|path| path.segments.last());
    last.is_some_and(|last| last.ident == "Arc")
}

/// Checks the rules that all methods share.
pub(super) fn check(signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        let text = "a method cannot be generic: values of messages have one type and are owned; use \
                    concrete types, or `serde_json::Value` for any value";
        return Err(Error::new_spanned(generics, text));
    }
    if let Some(clause) = &generics.where_clause {
        let text = "a server offers all methods, so a method cannot have conditions: move the `where` \
                    clause to the `impl`";
        return Err(Error::new_spanned(clause, text));
    }
    let Signature { unsafety, abi, .. } = signature;
    let modifiers = quote!(#unsafety #abi);
    if !modifiers.is_empty() {
        let text = "a method is called for a message, so it is a safe function of Rust: remove \
                    `unsafe` and `extern`";
        return Err(Error::new_spanned(modifiers, text));
    }
    Ok(())
}

/// Checks the arguments of one method against each other.
pub(super) fn check_arguments(arguments: &[Argument]) -> Result<()> {
    let mut errors = CompileErrors::default();
    let contexts = arguments.iter().filter_map(|argument| match argument {
        Argument::Context { ident, .. } => Some(ident),
        Argument::Value(_) => None,
    });
    for second in contexts.skip(1) {
        let text = "a call has one `RequestContext`: take it once; for an argument of a type of your \
                    own with this name, add `#[param]`";
        errors.add(Error::new_spanned(second, text));
    }
    let values: Vec<&ValueArgument> = arguments.iter().filter_map(Argument::value).collect();
    if let Some(whole) = values.iter().find(|value| value.whole)
        && values.len() > 1
    {
        let text = "`#[params]` takes all arguments, so it must be the only one";
        errors.add(Error::new_spanned(&whole.ident, text));
    }
    let mut names = HashSet::new();
    for value in values {
        let name = value.name.value();
        if !names.insert(name.clone()) {
            let text = format!("another argument is already named `{name}`: choose another name");
            errors.add(Error::new(value.name.span(), text));
        }
    }
    errors.finish(Some(()))
}

impl Address {
    /// Checks that the arguments are the variables.
    pub(super) fn check(&self, arguments: &[Argument]) -> Result<()> {
        let mut values = arguments.iter().filter_map(Argument::value);
        match self {
            Self::Uri(_) => match values.next() {
                None => Ok(()),
                Some(value) => {
                    let text = "a resource with one URI has no arguments except the `RequestContext`; \
                                for variables, write `template = \"..\"`";
                    Err(Error::new_spanned(&value.ident, text))
                }
            },
            Self::Template(text, template) => {
                let values: Vec<_> = values.collect();
                match values.iter().any(|value| value.whole) {
                    true => Ok(()),
                    false => check_variables(text, &template.variables, &values),
                }
            }
        }
    }
}

fn check_variables(
    template: &LitStr,
    variables: &[String],
    values: &[&ValueArgument],
) -> Result<()> {
    let mut errors = CompileErrors::default();
    for variable in variables {
        if !values.iter().any(|value| value.name.value() == *variable) {
            errors.add(Error::new(template.span(), missing_argument(variable)));
        }
    }
    for value in values {
        if !variables.contains(&value.name.value()) {
            let (name, known) = (value.name.value(), variables.join("`, `"));
            let text = format!(
                "the template has no variable `{name}`; its variables are `{known}`: rename the \
                 argument, or add `{{{name}}}` to the template"
            );
            errors.add(Error::new(value.name.span(), text));
        }
    }
    errors.finish(Some(()))
}

fn missing_argument(variable: &str) -> String {
    match syn::parse_str::<syn::Ident>(variable) {
        Ok(_) => format!("no argument takes the variable `{variable}`: add `{variable}: String`"),
        Err(_) => format!(
            "no argument takes the variable `{variable}`: add one with `#[param(name = \"{variable}\")]`"
        ),
    }
}
