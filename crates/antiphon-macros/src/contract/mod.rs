//! What a trait says about a service: read, and found to be right.

mod argument;
mod feed;
mod method;
mod names;
mod options;
mod returned;
mod settings;

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashMap;
use syn::{Error, FnArg, ItemTrait, Pat, Result, TraitItem, parse_quote};

use crate::attribute::{self, Faults};

pub(crate) use argument::{Argument, Fallback, Param};
pub(crate) use feed::Feed;
pub(crate) use method::{Kind, Method};
pub(crate) use options::{Options, Shape};
pub(crate) use returned::returned_error;

/// A trait that is a contract.
pub(crate) struct Contract {
    /// The trait without our attributes; its methods stand in `methods`.
    pub(crate) item: ItemTrait,
    pub(crate) options: Options,
    pub(crate) methods: Vec<Method>,
}

/// Why a trait is no contract. The trait stays, so that no other error follows from this one.
pub(crate) struct Refusal {
    error: Error,
    item: Option<Box<ItemTrait>>,
}

impl Refusal {
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
    ) -> std::result::Result<Self, Refusal> {
        let mut item: ItemTrait = syn::parse2(item).map_err(|error| {
            let error =
                Error::new(error.span(), "`#[rpc]` stands on a trait, which is the contract");
            Refusal { error, item: None }
        })?;
        let read = Self::read(options, &mut item);
        let item = stripped(item);
        match read {
            Ok((options, methods)) => Ok(Self { item, options, methods }),
            Err(error) => Err(Refusal { error, item: Some(Box::new(item)) }),
        }
    }

    fn read(options: TokenStream, item: &mut ItemTrait) -> Result<(Options, Vec<Method>)> {
        let options = Options::parse(options)?;
        let mut faults = Faults::default();
        faults.check(plain(item));
        let methods: Vec<Method> = item
            .items
            .iter()
            .filter_map(|item| faults.check(Method::parse(item, &options)))
            .collect();
        faults.check(distinct(&methods));
        faults.finish(Some((options, methods)))
    }
}

/// A contract is one type to everybody, so it has no parameters.
fn plain(item: &ItemTrait) -> Result<()> {
    if item.generics.params.is_empty() {
        return Ok(());
    }
    let text = "a contract has no type parameters: its client would have them too";
    Err(Error::new_spanned(&item.generics, text))
}

/// No two methods answer to one name.
fn distinct(methods: &[Method]) -> Result<()> {
    let mut taken = HashMap::new();
    let mut faults = Faults::default();
    for (method, name) in
        methods.iter().flat_map(|method| method.claimed().map(move |n| (method, n)))
    {
        if let Some(first) = taken.insert(name.value(), &method.ident) {
            let text = format!("`{first}` has the name `{}` already", name.value());
            faults.add(Error::new(name.span(), text));
        }
    }
    faults.finish(Some(()))
}

/// The trait without our attributes.
fn stripped(mut item: ItemTrait) -> ItemTrait {
    for item in &mut item.items {
        let TraitItem::Fn(function) = item else { continue };
        function.attrs.retain(|attribute| !settings::is_ours(attribute));
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
