//! The rules for the methods of one server together: distinct names, and completions of what exists.

use std::collections::HashMap;

use syn::{Error, Ident, LitStr, Result};

use super::method::{Address, CompletionMethod, CompletionTarget, McpMethod, MethodKind};
use crate::attribute::CompileErrors;

pub(super) fn check(methods: &[McpMethod]) -> Result<()> {
    let mut errors = CompileErrors::default();
    errors.check(check_distinct(methods));
    for method in methods {
        match &method.kind {
            MethodKind::Tool(..) => {
                if let Some(name) = method.name() {
                    errors.check(check_tool_name(&name));
                }
            }
            MethodKind::Completion(completion) => {
                errors.check(check_target(completion, methods));
            }
            _ => {}
        }
    }
    errors.finish(Some(()))
}

/// Rejects two methods that clients could not tell apart. Of methods with a `#[cfg(..)]`, perhaps only one exists.
fn check_distinct(methods: &[McpMethod]) -> Result<()> {
    let mut errors = CompileErrors::default();
    let mut taken: HashMap<(&str, String), &Ident> = HashMap::new();
    for method in methods.iter().filter(|method| method.conditions().is_empty()) {
        let (what, key, place) = identity(method);
        if let Some(first) = taken.insert((what, key.clone()), &method.ident) {
            let text = format!("`{first}` is already the {what} `{key}`: choose another");
            errors.add(Error::new(place.span(), text));
        }
    }
    errors.finish(Some(()))
}

/// The kind of a method, its name or URI, and the place of that in the source code.
fn identity(method: &McpMethod) -> (&'static str, String, LitStr) {
    let named = |what| {
        let name = method.name().unwrap_or_else(|| LitStr::new("", method.ident.span()));
        (what, name.value(), name)
    };
    match &method.kind {
        MethodKind::Tool(..) => named("tool"),
        MethodKind::Prompt(..) => named("prompt"),
        MethodKind::Resource(options, _) => match &options.address {
            Address::Uri(uri) => ("resource", uri.value(), uri.clone()),
            Address::Template(text, _) => ("template", text.value(), text.clone()),
        },
        MethodKind::Completion(completion) => {
            let (CompletionTarget::Prompt(of) | CompletionTarget::Template(of)) = &completion.of;
            let key = format!("{}` of `{}", completion.argument.value(), of.value());
            ("completion of", key, completion.argument.clone())
        }
    }
}

/// Rejects names that clients refuse (section "Tool Names").
fn check_tool_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let is_valid = (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    match is_valid {
        true => Ok(()),
        false => Err(Error::new(
            name.span(),
            format!(
                "`{text}` is not a name of a tool: it has 1 to 128 of the letters A-Z and a-z, \
                 digits, `_`, `-` and `.`; choose one with `name = \"..\"`"
            ),
        )),
    }
}

/// Rejects a completion of what no method has.
fn check_target(completion: &CompletionMethod, methods: &[McpMethod]) -> Result<()> {
    let (what, of) = match &completion.of {
        CompletionTarget::Prompt(name) => ("prompt", name),
        CompletionTarget::Template(text) => ("template", text),
    };
    let Some(method) = methods.iter().find(|method| completion.is_of(method)) else {
        let text = format!(
            "no method of this `impl` is the {what} `{}`: correct it, or add the {what}",
            of.value()
        );
        return Err(Error::new(of.span(), text));
    };
    let argument = completion.argument.value();
    let is_known = method.kind.values().any(|value| value.whole || value.name.value() == argument);
    match is_known {
        true => Ok(()),
        false => {
            let known: Vec<_> = method.kind.values().map(|value| value.name.value()).collect();
            let text = match known.as_slice() {
                [] => format!("`{}` has no arguments: add `{argument}: String`", method.ident),
                _ => format!(
                    "`{}` has no argument `{argument}`: write one of `{}`",
                    method.ident,
                    known.join("`, `")
                ),
            };
            Err(Error::new(completion.argument.span(), text))
        }
    }
}

impl CompletionMethod {
    /// Whether this method has the argument.
    pub(super) fn is_of(&self, method: &McpMethod) -> bool {
        match (&self.of, &method.kind) {
            (CompletionTarget::Prompt(name), MethodKind::Prompt(..)) => {
                method.name().is_some_and(|it| it.value() == name.value())
            }
            (CompletionTarget::Template(text), MethodKind::Resource(options, _)) => {
                matches!(&options.address, Address::Template(it, _) if it.value() == text.value())
            }
            _ => false,
        }
    }
}
