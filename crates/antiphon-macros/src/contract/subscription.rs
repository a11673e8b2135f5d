//! One subscription of a contract: the type of its items and its names.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{
    Error, Expr, GenericArgument, Ident, LitStr, PathArguments, Result, Signature, Type,
    TypeImplTrait, TypeParamBound,
};

use super::argument::Argument;
use super::method_options::MethodOptions;
use super::options::Options;
use super::return_type;

/// A method with `#[subscription]`.
pub(crate) struct SubscriptionMethod {
    /// The type of an item.
    pub(crate) item: Type,
    /// The stream has items of type `Result`. An error ends the subscription.
    pub(crate) fallible: bool,
    topic: TopicSource,
    /// The method sends the items to a `Sink`, and returns no stream.
    pub(crate) by_sink: bool,
}

enum TopicSource {
    /// The full names of the subscribe, item and unsubscribe messages.
    Names(Box<[LitStr; 3]>),
    /// The expression of `topic = ..`.
    Given(Box<Expr>),
}

impl SubscriptionMethod {
    pub(super) fn parse(
        settings: &MethodOptions,
        signature: &Signature,
        arguments: &[Argument],
        options: &Options,
    ) -> Result<Self> {
        let returned = return_type::of_result(&signature.output, &signature.ident)?;
        let by_sink = arguments.iter().any(|argument| matches!(argument, Argument::Sink(..)));
        let item = match (&settings.item, by_sink) {
            (Some(item), _) => item.clone(),
            (None, false) => item_of(returned)?,
            (None, true) => {
                let text = "name the type of the items: `#[subscription(item = T)]`";
                return Err(Error::new_spanned(&signature.ident, text));
            }
        };
        let value = return_type::of_fallible_item(&item).cloned();
        if by_sink && value.is_some() {
            let text =
                "a `Sink` sends plain items: name the type of the value, and return the error";
            return Err(Error::new_spanned(&item, text));
        }
        let topic = TopicSource::parse(settings, &signature.ident, options)?;
        let fallible = value.is_some();
        Ok(Self { item: value.unwrap_or(item), fallible, topic, by_sink })
    }

    /// The names of its subscribe and unsubscribe methods, if they are known at compile time.
    pub(super) fn names(&self) -> impl Iterator<Item = &LitStr> {
        let names = match &self.topic {
            TopicSource::Names(names) => Some([&names[0], &names[2]]),
            TopicSource::Given(_) => None,
        };
        names.into_iter().flatten()
    }

    /// The code of the topic.
    pub(crate) fn topic(&self, krate: &TokenStream) -> TokenStream {
        match &self.topic {
            TopicSource::Names(names) => {
                let names = names.iter();
                quote!(#krate::Topic::with_names(#(#names),*))
            }
            TopicSource::Given(topic) => quote!(#krate::Topic::from(#topic)),
        }
    }

    /// Whether the user gave a topic. The kind of a topic may precede the params, so they are sent by
    /// position.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self.topic, TopicSource::Given(_))
    }
}

impl TopicSource {
    fn parse(settings: &MethodOptions, ident: &Ident, options: &Options) -> Result<Self> {
        let given =
            [&settings.name, &settings.subscribe, &settings.item_name, &settings.unsubscribe];
        if let Some(topic) = &settings.topic {
            return match given.into_iter().flatten().next() {
                None => Ok(Self::Given(Box::new(topic.clone()))),
                Some(name) => {
                    Err(Error::new(name.span(), "`topic` already has all names: remove this one"))
                }
            };
        }
        let whole = |given: &Option<LitStr>, prefix: &str| {
            let default = || match &settings.name {
                Some(name) => LitStr::new(&format!("{prefix}{}", name.value()), name.span()),
                None => options.rename_all.apply(&format_ident!("{prefix}{}", ident.unraw())),
            };
            options.full(&given.clone().unwrap_or_else(default))
        };
        Ok(Self::Names(Box::new([
            whole(&settings.subscribe, "subscribe_"),
            whole(&settings.item_name, ""),
            whole(&settings.unsubscribe, "unsubscribe_"),
        ])))
    }
}

/// The `T` of `impl Stream<Item = T> + Send + 'static`.
fn item_of(returned: &Type) -> Result<Type> {
    let Type::ImplTrait(stream) = returned else {
        let text = "a subscription must return `impl Stream<Item = T> + Send + 'static`; \
                    for another type, use `#[subscription(item = T)]`";
        return Err(Error::new_spanned(returned, text));
    };
    let item = stream.bounds.iter().find_map(item_in);
    match item {
        Some(item) if is_send_and_static(stream) => Ok(item),
        Some(_) => Err(Error::new_spanned(
            stream,
            "the stream outlives the call, on any thread: add `+ Send + 'static`",
        )),
        None => Err(Error::new_spanned(stream, "name the type of the items: `Stream<Item = T>`")),
    }
}

fn item_in(bound: &TypeParamBound) -> Option<Type> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let PathArguments::AngleBracketed(arguments) = &bound.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(binding) if binding.ident == "Item" => Some(binding.ty.clone()),
        _ => None,
    })
}

fn is_send_and_static(stream: &TypeImplTrait) -> bool {
    let has = |name: &str| {
        stream.bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => {
                bound.path.segments.last().is_some_and(|last| last.ident == name)
            }
            TypeParamBound::Lifetime(lifetime) => lifetime.ident == name,
            _ => false,
        })
    };
    has("Send") && has("static")
}
