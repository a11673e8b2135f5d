//! One argument of a method: the context, the sink of a subscription, or a param.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{
    Error, Expr, FnArg, Ident, LitStr, Pat, PatIdent, PatType, Receiver, Result, Signature, Type,
};

use super::options::Options;
use super::{borrowed, return_type};
use crate::attribute;

const KNOWN: &str = "`name`, `default`";

/// An argument, in the order of the function.
pub(crate) enum Argument {
    Context(Ident, Box<Type>),
    Sink(Ident, Box<Type>),
    Param(Box<ContractParam>),
}

/// An argument that is read from the wire.
pub(crate) struct ContractParam {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// Its name on the wire.
    pub(crate) name: LitStr,
    pub(crate) fallback: Option<Fallback>,
    /// An `Option`, which a client leaves out if it is `None`.
    pub(crate) optional: bool,
    /// `#[params]`: the argument receives all params.
    pub(crate) whole: bool,
    pub(crate) docs: String,
}

/// The value of an argument whose param is absent.
pub(crate) enum Fallback {
    Default,
    Value(Box<Expr>),
}

/// The arguments after `&self`.
pub(super) fn all(signature: &Signature, options: &Options) -> Result<Vec<Argument>> {
    let mut inputs = signature.inputs.iter();
    check_receiver(inputs.next(), signature)?;
    let arguments: Vec<Argument> = inputs
        .filter_map(|input| match input {
            FnArg::Typed(argument) => Some(Argument::parse(argument, options)),
            FnArg::Receiver(_) => None,
        })
        .collect::<Result<_>>()?;
    check_at_most_one(&arguments)?;
    check_only_if_whole(&arguments)?;
    check_distinct_names(&arguments)?;
    Ok(arguments)
}

fn check_receiver(first: Option<&FnArg>, signature: &Signature) -> Result<()> {
    match first {
        Some(FnArg::Receiver(Receiver {
            reference: Some(_),
            mutability: None,
            colon_token: None,
            ..
        })) => Ok(()),
        Some(FnArg::Receiver(other)) => Err(Error::new_spanned(
            other,
            "a method must take `&self`: calls run concurrently; put mutable state behind a lock",
        )),
        _ => Err(Error::new_spanned(&signature.ident, "a method must take `&self` first")),
    }
}

fn check_at_most_one(arguments: &[Argument]) -> Result<()> {
    let (mut context, mut sink) = (false, false);
    for argument in arguments {
        let (seen, ident, text) = match argument {
            Argument::Context(ident, _) => {
                let text = "a call has one `Context`: take it once; for a param of a type of your own \
                            with this name, add `#[param]`";
                (&mut context, ident, text)
            }
            Argument::Sink(ident, _) => {
                let text = "a subscription has one `Sink`: take it once; for a param of a type of your \
                            own with this name, add `#[param]`";
                (&mut sink, ident, text)
            }
            Argument::Param(_) => continue,
        };
        if std::mem::replace(seen, true) {
            return Err(Error::new_spanned(ident, text));
        }
    }
    Ok(())
}

fn check_only_if_whole(arguments: &[Argument]) -> Result<()> {
    let params: Vec<_> = arguments.iter().filter_map(Argument::param).collect();
    match params.iter().find(|param| param.whole) {
        Some(whole) if params.len() > 1 => Err(Error::new_spanned(
            &whole.ident,
            "`#[params]` takes all params, so it must be the only one",
        )),
        _ => Ok(()),
    }
}

fn check_distinct_names(arguments: &[Argument]) -> Result<()> {
    let params: Vec<_> = arguments.iter().filter_map(Argument::param).collect();
    for (index, param) in params.iter().enumerate() {
        if params[..index].iter().any(|other| other.name.value() == param.name.value()) {
            let text = format!(
                "another param is already named `{}`: choose another name",
                param.name.value()
            );
            return Err(Error::new(param.name.span(), text));
        }
    }
    Ok(())
}

impl Argument {
    fn parse(argument: &PatType, options: &Options) -> Result<Self> {
        let ident = ident(&argument.pat)?;
        let mut attributes = argument.attrs.clone();
        let settings = attribute::take(&mut attributes, "param")?;
        let whole = attribute::take(&mut attributes, "params")?.is_some();
        if let Some(other) = attributes.iter().find(|other| !other.path().is_ident("doc")) {
            let text = "unknown attribute of a param; expected `#[param(..)]`, `#[params]`";
            return Err(Error::new_spanned(other, text));
        }
        // With an attribute, it is a param in any case: a type of the user may have one of these names.
        let is_param = settings.is_some() || whole;
        if !is_param && is_named(&argument.ty, "Context") {
            return Ok(Self::Context(ident, argument.ty.clone()));
        }
        if !is_param && is_named(&argument.ty, "Sink") {
            return Ok(Self::Sink(ident, argument.ty.clone()));
        }
        owned(&argument.ty)?;
        let mut param = ContractParam {
            name: options.rename_all.apply(&ident),
            ty: (*argument.ty).clone(),
            fallback: None,
            optional: return_type::is_option(&argument.ty),
            whole,
            docs: attribute::docs(&attributes),
            ident,
        };
        if let Some(settings) = settings {
            attribute::read(&settings, |meta| param.read(meta))?;
        }
        Ok(Self::Param(Box::new(param)))
    }

    pub(crate) fn param(&self) -> Option<&ContractParam> {
        match self {
            Self::Param(param) => Some(param),
            Self::Context(..) | Self::Sink(..) => None,
        }
    }

    pub(crate) fn ident(&self) -> &Ident {
        match self {
            Self::Param(param) => &param.ident,
            Self::Context(ident, _) | Self::Sink(ident, _) => ident,
        }
    }

    /// The argument in a signature.
    pub(crate) fn typed(&self) -> TokenStream {
        match self {
            Self::Param(param) => {
                let ContractParam { ident, ty, .. } = &**param;
                quote!(#ident: #ty)
            }
            Self::Context(ident, ty) | Self::Sink(ident, ty) => quote!(#ident: #ty),
        }
    }
}

impl ContractParam {
    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = meta.value()?.parse()?;
        } else if meta.path.is_ident("default") {
            self.fallback = Some(if meta.input.peek(syn::Token![=]) {
                Fallback::Value(Box::new(meta.value()?.parse()?))
            } else {
                Fallback::Default
            });
        } else {
            return Err(attribute::unknown(meta, KNOWN));
        }
        Ok(())
    }
}

/// The name of an argument, which is also the name of its param.
fn ident(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(PatIdent { ident, mutability: Some(mutability), .. }) => {
            let text = format!(
                "a param of a contract cannot be `mut`: write `let mut {ident} = {ident};` in the body"
            );
            Err(Error::new_spanned(mutability, text))
        }
        Pat::Ident(pattern) if pattern.subpat.is_none() && pattern.by_ref.is_none() => {
            Ok(pattern.ident.clone())
        }
        other => Err(Error::new_spanned(
            other,
            "a param must be a plain name: it is also the name on the wire",
        )),
    }
}

/// Whether the last segment of the type has this name.
pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    let last = return_type::path(ty).and_then(|path| path.segments.last());
    last.is_some_and(|last| last.ident == name && last.arguments.is_none())
}

fn owned(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) if is_named(&reference.elem, "Context") => {
            Err(Error::new_spanned(ty, "take the `Context` by value: it is cheap to clone"))
        }
        Type::Reference(_) => Err(Error::new_spanned(
            ty,
            "a param is read from the wire, so it must be owned: use `String` for `&str`, `Vec<T>` for `&[T]`",
        )),
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a param must have a concrete type: name the type that the method reads",
        )),
        _ => borrowed::reject(
            ty,
            "a param is read from the wire, so it cannot borrow: use an owned type, such as \
             `String`, `Vec<T>` or `Cow<'static, str>`",
        ),
    }
}
