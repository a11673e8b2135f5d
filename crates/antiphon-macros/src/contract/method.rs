//! One method of a contract.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Block, Error, Ident, LitStr, Result, ReturnType, Signature, Token, TraitItem, Type,
    bracketed,
};

use super::argument::{self, Argument, Param};
use super::options::Options;
use super::{docs, names, returned};
use crate::attribute;

/// What the generated types need for themselves.
const TAKEN: [&str; 2] = ["new", "into_router"];
const OURS: [&str; 3] = ["method", "notification", "param"];
const KNOWN: &str = "`name`, `aliases`, `idempotent`";

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
}

/// Whether the attribute is for us alone.
pub(super) fn is_ours(attribute: &Attribute) -> bool {
    OURS.iter().any(|name| attribute.path().is_ident(name))
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
        let kind = settings.kind(signature)?;
        let arguments = argument::all(signature, options)?;
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
        method.every_name().try_for_each(names::unreserved)?;
        Ok(method)
    }

    /// Its name and its aliases.
    pub(crate) fn every_name(&self) -> impl Iterator<Item = &LitStr> {
        std::iter::once(&self.name).chain(&self.aliases)
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

/// `#[method(..)]` or `#[notification(..)]`.
#[derive(Default)]
struct Settings {
    notification: Option<Span>,
    name: Option<LitStr>,
    aliases: Vec<LitStr>,
    idempotent: bool,
}

impl Settings {
    fn take(attributes: &mut Vec<Attribute>) -> Result<Self> {
        let mut settings = Self::default();
        let method = attribute::take(attributes, "method")?;
        let notification = attribute::take(attributes, "notification")?;
        if let (Some(_), Some(second)) = (&method, &notification) {
            let text = "it is a method or a notification, not both";
            return Err(Error::new_spanned(second, text));
        }
        settings.notification = notification.as_ref().map(|it| it.path().segments[0].ident.span());
        if let Some(attribute) = method.or(notification) {
            attribute::read(&attribute, |meta| settings.read(&meta))?;
        }
        Ok(settings)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("aliases") {
            let list;
            let input = meta.value()?;
            bracketed!(list in input);
            self.aliases =
                Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?.into_iter().collect();
        } else if meta.path.is_ident("idempotent") && self.notification.is_none() {
            self.idempotent = true;
        } else {
            return Err(attribute::unknown(meta, KNOWN));
        }
        Ok(())
    }

    fn kind(&self, signature: &Signature) -> Result<Kind> {
        match (self.notification, &signature.output) {
            (Some(_), ReturnType::Default) => Ok(Kind::Notification),
            (Some(_), output) => Err(Error::new_spanned(
                output,
                "a notification gives nothing back: nobody waits for it (section 4.1)",
            )),
            (None, output) => returned::of_result(output, &signature.ident)
                .map(|ty| Kind::Method(Box::new(ty.clone()))),
        }
    }
}
