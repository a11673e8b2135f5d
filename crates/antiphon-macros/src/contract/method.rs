//! One method of a contract.

use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Block, Error, Ident, LitStr, Result, ReturnType, Signature, TraitItem, Type};

use super::argument::{self, Argument, ContractParam};
use super::method_options::{MethodAttribute, MethodOptions};
use super::options::Options;
use super::subscription::SubscriptionMethod;
use super::{borrowed, names, return_type};
use crate::attribute;

/// Function names that the generated code uses.
pub(super) const RESERVED: [&str; 6] =
    ["new", "in_process", "IDEMPOTENT", "into_router", "__into_router", "__serve"];

/// A method, a notification or a subscription.
pub(crate) struct ContractMethod {
    pub(crate) ident: Ident,
    /// The attributes of the user: documentation, `deprecated`, `cfg` and so on.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) docs: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) output: ReturnType,
    pub(crate) kind: MethodKind,
    /// Its full name on the wire.
    pub(crate) name: LitStr,
    pub(crate) aliases: Vec<LitStr>,
    /// Calling it twice has the effect of one call.
    pub(crate) idempotent: bool,
    /// Where its function runs.
    pub(crate) runs: Runs,
    /// Its default body.
    pub(crate) body: Option<Block>,
}

/// Whether it is a method, a notification or a subscription.
pub(crate) enum MethodKind {
    /// Responds with this type.
    Method(Box<Type>),
    /// Does not respond.
    Notification,
    /// Sends items after its response.
    Subscription(Box<SubscriptionMethod>),
}

/// Where the function of a method runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// An `async fn`: in place until it first awaits.
    Async,
    /// A plain `fn`: in place.
    InPlace,
    /// A plain `fn` on the blocking pool.
    Blocking,
}

impl Runs {
    fn parse(settings: &MethodOptions, signature: &Signature) -> Result<Self> {
        match (&settings.blocking, signature.asyncness) {
            (None, Some(_)) => Ok(Self::Async),
            (None, None) => Ok(Self::InPlace),
            (Some(_), None) => Ok(Self::Blocking),
            (Some(option), Some(_)) => Err(Error::new_spanned(
                option,
                "a `blocking` method runs on a thread of its own: remove `async` from the function",
            )),
        }
    }
}

impl ContractMethod {
    pub(super) fn parse(item: &TraitItem, options: &Options) -> Result<Self> {
        let TraitItem::Fn(function) = item else {
            let text = "a contract can only have methods: move associated types and constants out \
                        of the trait";
            return Err(Error::new_spanned(item, text));
        };
        let signature = &function.sig;
        check_signature(signature)?;
        let mut attributes = function.attrs.clone();
        let settings = MethodOptions::take(&mut attributes)?;
        let runs = Runs::parse(&settings, signature)?;
        let arguments = argument::all(signature, options)?;
        check_output(&signature.output)?;
        let kind = MethodKind::parse(&settings, signature, &arguments, options)?;
        let name = settings.name.unwrap_or_else(|| options.rename_all.apply(&signature.ident));
        let method = Self {
            ident: signature.ident.clone(),
            docs: attribute::docs(&attributes),
            attributes,
            arguments,
            output: signature.output.clone(),
            kind,
            name: options.full(&name),
            aliases: settings.aliases,
            idempotent: settings.idempotent,
            runs,
            body: function.default.clone(),
        };
        method.unique_names().try_for_each(names::unreserved)?;
        Ok(method)
    }

    /// Its name and its aliases.
    pub(crate) fn every_name(&self) -> impl Iterator<Item = &LitStr> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    /// The names that no other method may have.
    pub(super) fn unique_names(&self) -> impl Iterator<Item = &LitStr> {
        let (own, subscription) = match &self.kind {
            MethodKind::Subscription(subscription) => (None, Some(subscription.names())),
            _ => (Some(self.every_name()), None),
        };
        own.into_iter().flatten().chain(subscription.into_iter().flatten())
    }

    pub(crate) fn params(&self) -> impl Iterator<Item = &ContractParam> {
        self.arguments.iter().filter_map(Argument::param)
    }

    /// The argument with `#[params]`, if there is one.
    pub(crate) fn whole(&self) -> Option<&ContractParam> {
        self.params().find(|param| param.whole)
    }

    /// Its `cfg` attributes.
    pub(crate) fn conditions(&self) -> Vec<Attribute> {
        attribute::conditions(&self.attributes)
    }

    /// Its attributes that relax lints.
    pub(crate) fn lints(&self) -> Vec<Attribute> {
        attribute::lints(&self.attributes)
    }

    pub(crate) fn is_deprecated(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute.path().is_ident("deprecated"))
    }
}

impl MethodKind {
    fn parse(
        settings: &MethodOptions,
        signature: &Signature,
        arguments: &[Argument],
        options: &Options,
    ) -> Result<Self> {
        let sink = arguments.iter().find_map(|argument| match argument {
            Argument::Sink(ident, _) => Some(ident),
            _ => None,
        });
        match (settings.attribute, &signature.output, sink) {
            (MethodAttribute::Subscription, ..) => {
                let subscription =
                    SubscriptionMethod::parse(settings, signature, arguments, options)?;
                Ok(Self::Subscription(Box::new(subscription)))
            }
            (_, _, Some(sink)) => {
                let text = "only a `#[subscription]` can take a `Sink`; for a param of a type of your \
                            own with this name, add `#[param]`";
                Err(Error::new_spanned(sink, text))
            }
            (MethodAttribute::Notification, ReturnType::Default, _) => Ok(Self::Notification),
            (MethodAttribute::Notification, output, _) => Err(Error::new_spanned(
                output,
                "a notification cannot return a value: it has no response (section 4.1)",
            )),
            (MethodAttribute::Method, output, _) => {
                let result = return_type::of_result(output, &signature.ident)?;
                if let Type::ImplTrait(stream) = result {
                    let text = "a method returns one value; for a stream, use `#[subscription]`";
                    return Err(Error::new_spanned(stream, text));
                }
                Ok(Self::Method(Box::new(result.clone())))
            }
        }
    }
}

/// Rejects a future, and a result that borrows, since it is encoded after the call of the function.
fn check_output(output: &ReturnType) -> Result<()> {
    let ReturnType::Type(_, ty) = output else { return Ok(()) };
    if return_type::is_future(ty) {
        let text = "a method cannot return a future: write `async fn`, which returns the value";
        return Err(Error::new_spanned(ty, text));
    }
    let text = "a result is read by the client, so it cannot borrow: use an owned type, such as \
                `String` for `&str`, `Vec<T>` for `&[T]`";
    borrowed::reject(ty, text)
}

/// Checks the rules that all methods share.
fn check_signature(signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        let has_types = generics.lifetimes().count() < generics.params.len();
        let text = if has_types {
            "a method cannot be generic: a value on the wire has one type; use a concrete type, or \
             `serde_json::Value` for any value"
        } else {
            "a method cannot have lifetimes: values on the wire are owned; use an owned type, such as \
             `String`, `Vec<T>` or `Cow<'static, str>`"
        };
        return Err(Error::new_spanned(generics, text));
    }
    reject_modifiers(signature)?;
    let name = signature.ident.unraw().to_string();
    if RESERVED.contains(&&*name) {
        let text = format!(
            "`{name}` is reserved for the generated code: \
             rename the function and add `#[method(name = \"{name}\")]`"
        );
        return Err(Error::new_spanned(&signature.ident, text));
    }
    Ok(())
}

/// Rejects what the generated trait could not keep.
fn reject_modifiers(signature: &Signature) -> Result<()> {
    let Signature { constness, unsafety, abi, .. } = signature;
    let modifiers = quote!(#constness #unsafety #abi);
    if !modifiers.is_empty() {
        let text = "a method is called for a message, so it is a safe function of Rust: remove \
                    `const`, `unsafe` and `extern`";
        return Err(Error::new_spanned(modifiers, text));
    }
    if let Some(clause) = &signature.generics.where_clause {
        let text = "a service serves all methods, so a method cannot have conditions: move the \
                    `where` clause to the trait";
        return Err(Error::new_spanned(clause, text));
    }
    Ok(())
}
