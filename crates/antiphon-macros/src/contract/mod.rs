//! Parses a trait as a contract, and checks it.
//!
//! This module does not generate code. Invariant: a [`Contract`] is valid, so the generators cannot fail.

mod accessors;
mod argument;
mod borrowed;
mod method;
mod method_options;
mod names;
mod options;
mod return_type;
mod subscription;
mod supertraits;

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashMap;
use syn::{Attribute, Error, ItemTrait, Result, TraitItem};

use crate::attribute::{self, CompileErrors};
use crate::refused::RefusedContract;

pub(crate) use accessors::accessor;
pub(crate) use argument::{Argument, ContractParam, Fallback, is_named};
pub(crate) use borrowed::reject as reject_borrowed;
pub(crate) use method::{ContractMethod, MethodKind, Runs};
pub(crate) use method_options::is_method_attribute;
pub(crate) use options::{Options, ParamsBy};
pub(crate) use return_type::{path, returned_error};
pub(crate) use subscription::SubscriptionMethod;
pub(crate) use supertraits::all as all_supertraits;

/// A trait that is a contract.
pub(crate) struct Contract {
    /// The trait as written. Its methods are in `methods`.
    pub(crate) item: ItemTrait,
    pub(crate) options: Options,
    pub(crate) methods: Vec<ContractMethod>,
}

impl Contract {
    /// Parses the trait. If it is refused, returns the code of the refusal.
    pub(crate) fn parse(
        options: TokenStream,
        item: &TokenStream,
    ) -> std::result::Result<Self, TokenStream> {
        let item: ItemTrait = syn::parse2(item.clone()).map_err(|error| {
            let text = "`#[rpc]` must be on a trait: the service implements that trait";
            let error = Error::new(error.span(), text).into_compile_error();
            quote!(#error #item)
        })?;
        let (options, read) = Options::parse(options);
        match read.and_then(|()| Self::read(&options, &item)) {
            Ok(methods) => Ok(Self { item, options, methods }),
            Err(error) => Err(RefusedContract { error, item, options }.into_tokens()),
        }
    }

    fn read(options: &Options, item: &ItemTrait) -> Result<Vec<ContractMethod>> {
        // The methods use the parameters, so their errors would have the same reason.
        reject_async_trait(item)?;
        reject_generics(item)?;
        reject_unsafe(item)?;
        let mut errors = CompileErrors::default();
        errors.check(supertraits::check(item, &options.extends));
        let methods: Vec<ContractMethod> = item
            .items
            .iter()
            .filter_map(|item| errors.check(ContractMethod::parse(item, options)))
            .collect();
        errors.check(check_distinct_names(&methods));
        errors.check(accessors::check(&methods, options));
        errors.finish(Some(methods))
    }

    /// The traits that a service of this contract implements too.
    pub(crate) fn supertraits(&self) -> Vec<TokenStream> {
        supertraits::all(&self.item, &self.options.extends)
    }

    /// Its `cfg` attributes.
    pub(crate) fn conditions(&self) -> Vec<Attribute> {
        attribute::conditions(&self.item.attrs)
    }

    /// Its attributes that relax lints.
    pub(crate) fn lints(&self) -> Vec<Attribute> {
        attribute::lints(&self.item.attrs)
    }
}

/// Rejects `#[async_trait]`, before or after this macro. If it is before, it has already replaced each
/// `async fn`.
fn reject_async_trait(item: &ItemTrait) -> Result<()> {
    let text = "remove `#[async_trait]`, here and on the services: a contract needs no attribute for \
                `async fn`";
    if let Some(attribute) = item.attrs.iter().find(|attribute| is_async_trait(attribute)) {
        return Err(Error::new_spanned(attribute, text));
    }
    let is_expanded = |item: &TraitItem| match item {
        TraitItem::Fn(function) => {
            let mut lifetimes = function.sig.generics.lifetimes();
            lifetimes.any(|parameter| parameter.lifetime.ident == "async_trait")
        }
        _ => false,
    };
    match item.items.iter().any(is_expanded) {
        true => Err(Error::new_spanned(&item.ident, text)),
        false => Ok(()),
    }
}

/// Whether the attribute is `#[async_trait]` of the crate of this name.
pub(crate) fn is_async_trait(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "async_trait")
}

/// Rejects a generic trait, because a contract is one type for both sides.
fn reject_generics(item: &ItemTrait) -> Result<()> {
    if item.generics.params.is_empty() {
        return Ok(());
    }
    let text = "a contract cannot be generic: its client would be generic too; use concrete types, \
                or `serde_json::Value` for any value";
    Err(Error::new_spanned(&item.generics, text))
}

/// Rejects an `unsafe` trait, because no generated code relies on its promise.
fn reject_unsafe(item: &ItemTrait) -> Result<()> {
    match &item.unsafety {
        None => Ok(()),
        Some(unsafety) => Err(Error::new_spanned(
            unsafety,
            "a contract cannot be `unsafe`: peers cannot keep its promise; remove `unsafe`",
        )),
    }
}

/// Rejects two methods with one name.
fn check_distinct_names(methods: &[ContractMethod]) -> Result<()> {
    let mut taken = HashMap::new();
    let mut errors = CompileErrors::default();
    for (method, name) in
        methods.iter().flat_map(|method| method.unique_names().map(move |n| (method, n)))
    {
        if let Some(first) = taken.insert(name.value(), &method.ident) {
            let text = format!("`{first}` already has the name `{}`: choose another", name.value());
            errors.add(Error::new(name.span(), text));
        }
    }
    errors.finish(Some(()))
}
