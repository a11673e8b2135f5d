//! One method of a contract.

use syn::ext::IdentExt;
use syn::{Attribute, Block, Error, Ident, LitStr, Result, ReturnType, Signature, TraitItem, Type};

use super::argument::{self, Argument, Param};
use super::feed::Feed;
use super::options::Options;
use super::settings::{Settings, Sort};
use super::{docs, names, returned};

/// What the generated types need for themselves.
const TAKEN: [&str; 2] = ["new", "into_router"];

/// A method, a notification or a subscription.
pub(crate) struct Method {
    pub(crate) ident: Ident,
    /// What is not ours: documentation, `deprecated`, `cfg` and the like.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) docs: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) output: ReturnType,
    pub(crate) kind: Kind,
    /// Its name on the wire, whole.
    pub(crate) name: LitStr,
    pub(crate) aliases: Vec<LitStr>,
    /// Calling it twice is as good as once.
    pub(crate) idempotent: bool,
    /// What it does where an implementation says nothing.
    pub(crate) body: Option<Block>,
}

/// How it is called.
pub(crate) enum Kind {
    /// It answers with this type.
    Method(Box<Type>),
    /// It does not answer.
    Notification,
    /// It goes on answering.
    Subscription(Box<Feed>),
}

impl Method {
    pub(super) fn parse(item: &TraitItem, options: &Options) -> Result<Self> {
        let TraitItem::Fn(function) = item else {
            return Err(Error::new_spanned(item, "a contract has methods and nothing else"));
        };
        let signature = &function.sig;
        shaped(signature)?;
        let mut attributes = function.attrs.clone();
        let settings = Settings::take(&mut attributes)?;
        let arguments = argument::all(signature, options)?;
        let kind = Kind::parse(&settings, signature, &arguments, options)?;
        let name = settings.name.unwrap_or_else(|| options.rename_all.apply(&signature.ident));
        let method = Self {
            ident: signature.ident.clone(),
            docs: docs(&attributes),
            attributes,
            arguments,
            output: signature.output.clone(),
            kind,
            name: options.full(&name),
            aliases: settings.aliases,
            idempotent: settings.idempotent,
            body: function.default.clone(),
        };
        method.claimed().try_for_each(names::unreserved)?;
        Ok(method)
    }

    /// Its name and its aliases.
    pub(crate) fn every_name(&self) -> impl Iterator<Item = &LitStr> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    /// The names that no other method may have.
    pub(super) fn claimed(&self) -> impl Iterator<Item = &LitStr> {
        let (own, feed) = match &self.kind {
            Kind::Subscription(feed) => (None, Some(feed.names())),
            _ => (Some(self.every_name()), None),
        };
        own.into_iter().flatten().chain(feed.into_iter().flatten())
    }

    pub(crate) fn params(&self) -> impl Iterator<Item = &Param> {
        self.arguments.iter().filter_map(Argument::param)
    }

    /// The one argument that is all the params, if it has one.
    pub(crate) fn whole(&self) -> Option<&Param> {
        self.params().find(|param| param.whole)
    }

    /// The conditions under which it exists.
    pub(crate) fn conditions(&self) -> Vec<&Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
    }

    pub(crate) fn is_deprecated(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute.path().is_ident("deprecated"))
    }
}

impl Kind {
    fn parse(
        settings: &Settings,
        signature: &Signature,
        arguments: &[Argument],
        options: &Options,
    ) -> Result<Self> {
        let sink = arguments.iter().find_map(|argument| match argument {
            Argument::Sink(ident, _) => Some(ident),
            _ => None,
        });
        match (settings.sort, &signature.output, sink) {
            (Sort::Subscription, ..) => {
                let feed = Feed::parse(settings, signature, arguments, options)?;
                Ok(Self::Subscription(Box::new(feed)))
            }
            (_, _, Some(sink)) => {
                Err(Error::new_spanned(sink, "only a `#[subscription]` has a `Sink`"))
            }
            (Sort::Notification, ReturnType::Default, _) => Ok(Self::Notification),
            (Sort::Notification, output, _) => Err(Error::new_spanned(
                output,
                "a notification gives nothing back: nobody waits for it (section 4.1)",
            )),
            (Sort::Method, output, _) => {
                let result = returned::of_result(output, &signature.ident)?;
                if let Type::ImplTrait(stream) = result {
                    let text =
                        "a method gives one value; for a stream of them, say `#[subscription]`";
                    return Err(Error::new_spanned(stream, text));
                }
                Ok(Self::Method(Box::new(result.clone())))
            }
        }
    }
}

/// The form that every method has.
fn shaped(signature: &Signature) -> Result<()> {
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(signature.fn_token, "a method is an `async fn`"));
    }
    if !signature.generics.params.is_empty() {
        let text = "a method has no type parameters: what comes over the wire has one type";
        return Err(Error::new_spanned(&signature.generics, text));
    }
    let name = signature.ident.unraw().to_string();
    if TAKEN.contains(&&*name) {
        let text = format!(
            "`{name}` is what the generated code calls something of its own: \
             choose another and say `#[method(name = \"{name}\")]`"
        );
        return Err(Error::new_spanned(&signature.ident, text));
    }
    Ok(())
}
