//! `#[method(..)]`, `#[notification(..)]` and `#[subscription(..)]`: the options of one method.

use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{Attribute, Error, Expr, LitStr, Path, Result, Type, bracketed};

use crate::attribute;

/// The attribute that a method has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MethodAttribute {
    #[default]
    Method,
    Notification,
    Subscription,
}

const ATTRIBUTES: [(&str, MethodAttribute); 3] = [
    ("method", MethodAttribute::Method),
    ("notification", MethodAttribute::Notification),
    ("subscription", MethodAttribute::Subscription),
];

/// The options of a method. Without an attribute, all are unset.
#[derive(Default)]
pub(super) struct MethodOptions {
    pub(super) attribute: MethodAttribute,
    pub(super) name: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    pub(super) idempotent: bool,
    /// The word `blocking`, if it is among the options.
    pub(super) blocking: Option<Path>,
    pub(super) topic: Option<Expr>,
    pub(super) subscribe: Option<LitStr>,
    pub(super) item_name: Option<LitStr>,
    pub(super) unsubscribe: Option<LitStr>,
    pub(super) item: Option<Type>,
}

/// Whether the attribute belongs to this macro, or is a `cfg_attr` with such an attribute.
pub(crate) fn is_method_attribute(attribute: &Attribute) -> bool {
    let is_own = |(name, _): &(&str, _)| attribute.path().is_ident(name);
    ATTRIBUTES.iter().any(is_own) || own_in_condition(attribute).is_some()
}

/// The name of the attribute of this macro that the `cfg_attr` has.
fn own_in_condition(attribute: &Attribute) -> Option<&'static str> {
    let (_, inner) = attribute::conditional(&attribute.meta)?;
    let mut names = ATTRIBUTES.iter().map(|(name, _)| *name);
    names.find(|name| inner.iter().any(|meta| meta.path().is_ident(name)))
}

/// Rejects an attribute of this macro in a `cfg_attr`: a macro cannot see whether it applies.
fn reject_conditional(attributes: &[Attribute]) -> Result<()> {
    for attribute in attributes {
        if let Some(name) = own_in_condition(attribute) {
            let text = format!(
                "a macro cannot see whether `{name}` applies: write two methods, each with `#[cfg(..)]`"
            );
            return Err(Error::new_spanned(attribute, text));
        }
    }
    Ok(())
}

impl MethodOptions {
    pub(super) fn take(attributes: &mut Vec<Attribute>) -> Result<Self> {
        reject_conditional(attributes)?;
        let mut found = None;
        for (name, kind) in ATTRIBUTES {
            let Some(attribute) = attribute::take(attributes, name)? else { continue };
            if found.replace((attribute.clone(), kind)).is_some() {
                let text = "use one of `#[method]`, `#[notification]` and `#[subscription]`";
                return Err(Error::new_spanned(attribute, text));
            }
        }
        let mut settings = Self::default();
        if let Some((attribute, kind)) = found {
            settings.attribute = kind;
            attribute::read(&attribute, |meta| settings.read(meta))?;
        }
        Ok(settings)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let of_subscription = self.attribute == MethodAttribute::Subscription;
        if meta.path.is_ident("name") {
            self.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("aliases") && !of_subscription {
            let list;
            let input = meta.value()?;
            bracketed!(list in input);
            self.aliases = attribute::list(&list, Parse::parse)?;
        } else if meta.path.is_ident("idempotent") && self.attribute == MethodAttribute::Method {
            self.idempotent = true;
        } else if meta.path.is_ident("blocking") && !of_subscription {
            self.blocking = Some(meta.path.clone());
        } else if of_subscription {
            self.read_topic(meta)?;
        } else {
            return Err(attribute::unknown(meta, self.known()));
        }
        Ok(())
    }

    fn read_topic(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("topic") {
            self.topic = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("subscribe") {
            self.subscribe = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("item_name") {
            self.item_name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("unsubscribe") {
            self.unsubscribe = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("item") {
            self.item = Some(meta.value()?.parse()?);
        } else {
            return Err(attribute::unknown(meta, self.known()));
        }
        Ok(())
    }

    fn known(&self) -> &'static str {
        match self.attribute {
            MethodAttribute::Method => "`name`, `aliases`, `idempotent`, `blocking`",
            MethodAttribute::Notification => "`name`, `aliases`, `blocking`",
            MethodAttribute::Subscription => {
                "`name`, `subscribe`, `item_name`, `unsubscribe`, `topic`, `item`"
            }
        }
    }
}
