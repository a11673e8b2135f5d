//! One method of a server: a tool, a resource, a prompt or a completion.
//!
//! This module does not look at other methods; `checks.rs` does.

mod argument;
mod completion;
mod described;
mod options;
mod signature;

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::{Attribute, Error, FnArg, Ident, LitStr, Result, ReturnType, Signature};

use crate::attribute;

pub(crate) use argument::{Argument, ValueArgument};
pub(crate) use completion::{CompletionArgument, CompletionMethod};
pub(crate) use described::Described;
pub(crate) use options::{Address, CompletionTarget, ResourceOptions, ToolOptions};
pub(crate) use signature::PassedSelf;

pub(in crate::mcp) use argument::is_lint;

/// The attributes of methods.
const ATTRIBUTES: [&str; 4] = ["tool", "resource", "prompt", "complete"];

/// A method that clients can reach.
pub(crate) struct McpMethod {
    pub(crate) ident: Ident,
    /// The attributes of the user: documentation, `cfg` and so on.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) docs: Option<TokenStream>,
    pub(crate) passed_self: PassedSelf,
    pub(crate) is_async: bool,
    pub(crate) output: ReturnType,
    pub(crate) kind: MethodKind,
}

/// The kind of a method, with its options and arguments.
pub(crate) enum MethodKind {
    Tool(Box<ToolOptions>, Vec<Argument>),
    Resource(Box<ResourceOptions>, Vec<Argument>),
    Prompt(Box<Described>, Vec<Argument>),
    Completion(Box<CompletionMethod>),
}

impl McpMethod {
    /// Parses a method. Returns `None` if it has no attribute of this macro.
    pub(in crate::mcp) fn parse(
        attributes: &[Attribute],
        signature: &Signature,
    ) -> Result<Option<Self>> {
        reject_conditional(attributes)?;
        let mut attributes = attributes.to_vec();
        let Some((name, found)) = take(&mut attributes)? else { return Ok(None) };
        let kind = MethodKind::parse(name, &found, signature);
        let passed_self = PassedSelf::parse(signature);
        let checked = signature::check(signature);
        // The options do not depend on the signature, so the errors of both are reported.
        let mut errors = attribute::CompileErrors::default();
        errors.check(checked);
        let (kind, passed_self) = (errors.check(kind), errors.check(passed_self));
        let method = kind.zip(passed_self).map(|(kind, passed_self)| Self {
            ident: signature.ident.clone(),
            docs: attribute::docs_expression(&attributes),
            attributes,
            passed_self,
            is_async: signature.asyncness.is_some(),
            output: signature.output.clone(),
            kind,
        });
        errors.finish(Some(())).map(|()| method)
    }

    /// The name for clients. Completions have none.
    pub(crate) fn name(&self) -> Option<LitStr> {
        let described = match &self.kind {
            MethodKind::Tool(options, _) => &options.described,
            MethodKind::Resource(options, _) => &options.described,
            MethodKind::Prompt(described, _) => described,
            MethodKind::Completion(_) => return None,
        };
        let default = || LitStr::new(&self.ident.unraw().to_string(), self.ident.span());
        Some(described.name.clone().unwrap_or_else(default))
    }

    /// Its `cfg` attributes.
    pub(crate) fn conditions(&self) -> Vec<Attribute> {
        attribute::conditions(&self.attributes)
    }

    /// Its attributes that relax lints.
    pub(crate) fn lints(&self) -> Vec<Attribute> {
        attribute::lints(&self.attributes)
    }
}

impl MethodKind {
    fn parse(name: &str, attribute: &Attribute, signature: &Signature) -> Result<Self> {
        if name == "complete" {
            let completion = CompletionMethod::parse(attribute, signature)?;
            return Ok(Self::Completion(Box::new(completion)));
        }
        let arguments = arguments(signature);
        Ok(match name {
            "tool" => {
                let options = ToolOptions::parse(attribute);
                let (options, arguments) = both(options, arguments)?;
                Self::Tool(Box::new(options), arguments)
            }
            "resource" => {
                let options = ResourceOptions::parse(attribute);
                let (options, arguments) = both(options, arguments)?;
                options.address.check(&arguments)?;
                Self::Resource(Box::new(options), arguments)
            }
            _ => {
                let (described, arguments) = both(options::prompt(attribute), arguments)?;
                Self::Prompt(Box::new(described), arguments)
            }
        })
    }

    pub(crate) fn arguments(&self) -> &[Argument] {
        match self {
            Self::Tool(_, arguments)
            | Self::Resource(_, arguments)
            | Self::Prompt(_, arguments) => arguments,
            Self::Completion(_) => &[],
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &ValueArgument> {
        self.arguments().iter().filter_map(Argument::value)
    }
}

/// Both values, or the errors of both.
fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(mut error), Err(other)) => {
            error.combine(other);
            Err(error)
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The arguments after `self`.
fn arguments(signature: &Signature) -> Result<Vec<Argument>> {
    let mut errors = attribute::CompileErrors::default();
    let typed = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    let arguments: Vec<Argument> =
        typed.filter_map(|argument| errors.check(Argument::parse(argument))).collect();
    errors.check(signature::check_arguments(&arguments));
    errors.finish(Some(arguments))
}

/// Whether the method has an attribute of this macro.
pub(in crate::mcp) fn is_own(attribute: &Attribute) -> bool {
    ATTRIBUTES.iter().any(|name| attribute.path().is_ident(name))
}

/// Removes and returns the attribute of this macro.
fn take(attributes: &mut Vec<Attribute>) -> Result<Option<(&'static str, Attribute)>> {
    let mut found = None;
    for name in ATTRIBUTES {
        let Some(attribute) = attribute::take(attributes, name)? else { continue };
        if found.replace((name, attribute.clone())).is_some() {
            let text = "use one of `#[tool]`, `#[resource]`, `#[prompt]` and `#[complete]`";
            return Err(Error::new_spanned(attribute, text));
        }
    }
    Ok(found)
}

/// Rejects an attribute of this macro in a `cfg_attr`: a macro cannot see whether it applies.
fn reject_conditional(attributes: &[Attribute]) -> Result<()> {
    for attribute in attributes {
        let Some((_, inner)) = attribute::conditional(&attribute.meta) else { continue };
        let own = ATTRIBUTES.iter().find(|name| inner.iter().any(|it| it.path().is_ident(name)));
        if let Some(name) = own {
            let text = format!(
                "a macro cannot see whether `{name}` applies: write two methods, each with `#[cfg(..)]`"
            );
            return Err(Error::new_spanned(attribute, text));
        }
    }
    Ok(())
}
