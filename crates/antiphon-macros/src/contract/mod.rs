//! Parses a trait as a contract, and checks it.
//!
//! This module does not generate code. Invariant: a [`Contract`] is valid, so the generators cannot fail.

mod argument;
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
use syn::{Attribute, Error, FnArg, ItemTrait, Pat, Result, TraitItem, parse_quote};

use crate::attribute::{self, CompileErrors};

pub(crate) use argument::{Argument, ContractParam, Fallback};
pub(crate) use method::{ContractMethod, MethodKind, Runs};
pub(crate) use options::{Options, ParamsBy};
pub(crate) use return_type::returned_error;
pub(crate) use subscription::SubscriptionMethod;
pub(crate) use supertraits::accessor;

/// A trait that is a contract.
pub(crate) struct Contract {
    /// The trait without our attributes. Its methods are in `methods`.
    pub(crate) item: ItemTrait,
    pub(crate) options: Options,
    pub(crate) methods: Vec<ContractMethod>,
}

/// The errors of a trait that is not a contract. The trait is emitted too, so that the compiler does not
/// report further errors about its absence.
pub(crate) struct InvalidContract {
    error: Error,
    item: Option<Box<ItemTrait>>,
}

impl InvalidContract {
    pub(crate) fn into_tokens(self) -> TokenStream {
        let error = self.error.into_compile_error();
        let item = self.item.map(|item| quote!(#[allow(async_fn_in_trait)] #item));
        quote!(#error #item)
    }
}

impl Contract {
    pub(crate) fn parse(
        options: TokenStream,
        item: TokenStream,
    ) -> std::result::Result<Self, InvalidContract> {
        let mut item: ItemTrait = syn::parse2(item).map_err(|error| {
            let error = Error::new(error.span(), "`#[rpc]` must be on a trait");
            InvalidContract { error, item: None }
        })?;
        let read = Self::read(options, &mut item);
        let item = stripped(item);
        match read {
            Ok((options, methods)) => Ok(Self { item, options, methods }),
            Err(error) => Err(InvalidContract { error, item: Some(Box::new(item)) }),
        }
    }

    fn read(options: TokenStream, item: &mut ItemTrait) -> Result<(Options, Vec<ContractMethod>)> {
        let options = Options::parse(options)?;
        let mut errors = CompileErrors::default();
        errors.check(reject_generics(item));
        errors.check(supertraits::check(item, &options.extends));
        let methods: Vec<ContractMethod> = item
            .items
            .iter()
            .filter_map(|item| errors.check(ContractMethod::parse(item, &options)))
            .collect();
        errors.check(check_distinct_names(&methods));
        errors.check(supertraits::check_accessors(&methods, &options.extends));
        errors.finish(Some((options, methods)))
    }
}

impl Contract {
    /// The traits that a service of this contract implements too.
    pub(crate) fn supertraits(&self) -> Vec<TokenStream> {
        let plain = self.item.supertraits.iter().map(|supertrait| quote!(#supertrait));
        plain.chain(self.options.extends.iter().map(|extended| quote!(#extended))).collect()
    }

    /// Its `cfg` attributes.
    pub(crate) fn conditions(&self) -> Vec<&Attribute> {
        self.item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
    }
}

/// Rejects a generic trait, because a contract is one type for both sides.
fn reject_generics(item: &ItemTrait) -> Result<()> {
    if item.generics.params.is_empty() {
        return Ok(());
    }
    let text = "a contract cannot be generic: its client would be generic too";
    Err(Error::new_spanned(&item.generics, text))
}

/// Rejects two methods with one name.
fn check_distinct_names(methods: &[ContractMethod]) -> Result<()> {
    let mut taken = HashMap::new();
    let mut errors = CompileErrors::default();
    for (method, name) in
        methods.iter().flat_map(|method| method.unique_names().map(move |n| (method, n)))
    {
        if let Some(first) = taken.insert(name.value(), &method.ident) {
            let text = format!("`{first}` already has the name `{}`", name.value());
            errors.add(Error::new(name.span(), text));
        }
    }
    errors.finish(Some(()))
}

/// The trait without our attributes.
fn stripped(mut item: ItemTrait) -> ItemTrait {
    for item in &mut item.items {
        let TraitItem::Fn(function) = item else { continue };
        function.attrs.retain(|attribute| !method_options::is_ours(attribute));
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(argument) = input {
                argument.attrs.clear();
                if !matches!(*argument.pat, Pat::Ident(_)) {
                    *argument.pat = parse_quote!(_);
                }
            }
        }
    }
    item
}

pub(crate) use attribute::docs;
