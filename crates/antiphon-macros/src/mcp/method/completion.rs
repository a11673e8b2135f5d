//! A method that completes an argument of a prompt, or a variable of a template.

use syn::{Attribute, Error, FnArg, LitStr, PatType, Result, Signature, Type};

use super::argument;
use super::options::{CompletionOptions, CompletionTarget};

/// A completion: what it completes, and how it takes what the user has typed.
pub(crate) struct CompletionMethod {
    pub(crate) of: CompletionTarget,
    pub(crate) argument: LitStr,
    pub(crate) typed: CompletionArgument,
    /// The values that are known already.
    pub(crate) known: Option<CompletionArgument>,
}

/// An argument of a completion.
pub(crate) struct CompletionArgument {
    pub(crate) ty: Type,
    pub(crate) by_reference: bool,
}

impl CompletionMethod {
    pub(super) fn parse(attribute: &Attribute, signature: &Signature) -> Result<Self> {
        let options = CompletionOptions::parse(attribute)?;
        let mut arguments = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        });
        let text = "a completion takes what the user has typed, and optionally the values that are \
                    known: `(&self, typed: &str, known: &BTreeMap<String, String>)`";
        let Some(typed) = arguments.next() else {
            return Err(Error::new_spanned(&signature.ident, text));
        };
        let (known, further) = (arguments.next(), arguments.next());
        if let Some(further) = further {
            return Err(Error::new_spanned(further, text));
        }
        let parse = |argument: &PatType| match argument::is_context(&argument.ty) {
            true => Err(Error::new_spanned(argument, text)),
            false => Ok(CompletionArgument::of(argument)),
        };
        Ok(Self {
            of: options.of,
            argument: options.argument,
            typed: parse(typed)?,
            known: known.map(parse).transpose()?,
        })
    }
}

impl CompletionArgument {
    fn of(argument: &PatType) -> Self {
        let by_reference = matches!(&*argument.ty, Type::Reference(_));
        Self { ty: (*argument.ty).clone(), by_reference }
    }
}
