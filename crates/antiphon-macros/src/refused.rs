//! Generates a stand-in for a refused contract or error, so that the compiler reports the reason and nothing
//! else.
//!
//! The reason is the length of an array in the path of a type. So the compiler cannot know the type, and does
//! not report further errors about it. It is the type of the client and of every body.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, ConstParam, Error, FnArg, GenericParam, Generics, ItemTrait, ReturnType, Signature,
    TraitItem, TraitItemConst, TraitItemFn, TraitItemType, TypeParam, parse_quote,
};

use crate::attribute;
use crate::contract::{Options, all_supertraits, is_async_trait, is_method_attribute};

/// A trait that cannot be a contract.
pub(crate) struct RefusedContract {
    pub(crate) error: Error,
    pub(crate) item: ItemTrait,
    pub(crate) options: Options,
}

/// Writes each error at its own span. The first one is in the path of the returned type.
pub(crate) fn unknown_type(error: Error) -> (TokenStream, TokenStream) {
    let mut errors = error.into_iter().map(Error::into_compile_error);
    let first = errors.next();
    // An array itself would be known: it has the methods of a slice, such as `get`.
    (quote!(<[(); #first] as ::core::iter::IntoIterator>::Item), errors.collect())
}

impl RefusedContract {
    pub(crate) fn into_tokens(self) -> TokenStream {
        let Self { error, item, options } = self;
        let (unknown, errors) = unknown_type(error);
        let (visibility, placeholder) = (&item.vis, format_ident!("__{}Refused", item.ident));
        let conditions = attribute::conditions(&item.attrs);
        let client = options.client.then(|| {
            let client = format_ident!("{}Client", item.ident);
            quote!(#(#conditions)* #[allow(dead_code)] #visibility type #client = #placeholder;)
        });
        let service = ServiceStub { item: &item, options: &options, placeholder: &placeholder };
        let (contract, for_arc) = (service.contract(), service.for_arc());
        quote! {
            #(#conditions)*
            #[doc(hidden)]
            #[allow(dead_code)]
            #visibility type #placeholder = #unknown;
            #errors
            #client
            #contract
            #(#conditions)*
            #for_arc
        }
    }
}

/// The trait as the user wrote it, and its implementation for `Arc`.
struct ServiceStub<'a> {
    item: &'a ItemTrait,
    options: &'a Options,
    placeholder: &'a Ident,
}

impl ServiceStub<'_> {
    fn contract(&self) -> TokenStream {
        let ItemTrait { attrs, vis, unsafety, ident, .. } = self.item;
        let generics = self.generics_with_defaults();
        let (supertraits, clause) = (self.supertraits(), &generics.where_clause);
        let functions = self.distinct_items().map(|item| match item {
            TraitItem::Fn(function) => {
                let (attributes, signature) =
                    (own_attributes(function), self.signature(&function.sig));
                let body = match function.default {
                    Some(_) => self.body(),
                    None => quote!(;),
                };
                quote!(#(#attributes)* #signature #body)
            }
            other => other.to_token_stream(),
        });
        let routers = self.routers();
        quote! {
            #(#attrs)*
            #[allow(dead_code, async_fn_in_trait)]
            #vis #unsafety trait #ident #generics:
                #(#supertraits +)* ::core::marker::Send + ::core::marker::Sync + 'static
            #clause
            {
                #(#functions)*
                #routers
            }
        }
    }

    fn for_arc(&self) -> TokenStream {
        let ItemTrait { unsafety, ident, .. } = self.item;
        let placeholder = self.placeholder;
        let (_, arguments, _) = self.item.generics.split_for_impl();
        let mut generics = self.item.generics.clone();
        generics.params.push(parse_quote!(__Service: #ident #arguments));
        let (parameters, _, _) = generics.split_for_impl();
        let (async_trait, supertraits) = (self.async_trait(), self.supertraits());
        let clauses = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let items = self.distinct_items().map(|item| match item {
            TraitItem::Fn(function) => {
                let (signature, body) = (self.signature(&function.sig), self.body());
                quote!(#signature #body)
            }
            TraitItem::Const(TraitItemConst { ident, ty, .. }) => {
                quote!(const #ident: #ty = #placeholder::VALUE;)
            }
            TraitItem::Type(TraitItemType { ident, generics, .. }) => {
                let (parameters, _, clause) = generics.split_for_impl();
                quote!(type #ident #parameters = #placeholder #clause;)
            }
            _ => TokenStream::new(),
        });
        quote! {
            #[automatically_derived]
            #(#async_trait)*
            #unsafety impl #parameters #ident #arguments for ::std::sync::Arc<__Service>
            where
                #(Self: #supertraits,)*
                #(#clauses,)*
            {
                #(#items)*
            }
        }
    }

    /// The functions that every contract has.
    fn routers(&self) -> TokenStream {
        let (krate, body) = (&self.options.krate, self.body());
        let bound = quote!(where Self: ::core::marker::Sized);
        let functions = [
            ("into_router", quote!((self))),
            ("__into_router", quote!((_: ::std::sync::Arc<Self>))),
            (
                "__serve",
                quote!((
                    _: ::std::sync::Arc<Self>,
                    _: #krate::Router,
                    _: &mut ::std::vec::Vec<&'static ::core::primitive::str>,
                )),
            ),
        ];
        let is_taken =
            |name: &str| self.item.items.iter().filter_map(name_of).any(|taken| taken == name);
        let missing = functions.into_iter().filter(|(name, _)| !is_taken(name));
        missing
            .map(|(name, inputs)| {
                let name = format_ident!("{name}");
                quote!(#[doc(hidden)] fn #name #inputs -> #krate::Router #bound #body)
            })
            .collect()
    }

    /// The parameters of the trait, each with a default, because `extends` names a contract without them.
    fn generics_with_defaults(&self) -> Generics {
        let placeholder = self.placeholder;
        let mut generics = self.item.generics.clone();
        for parameter in &mut generics.params {
            match parameter {
                GenericParam::Type(TypeParam { default, .. }) => {
                    default.get_or_insert(parse_quote!(#placeholder));
                }
                GenericParam::Const(ConstParam { default, .. }) => {
                    default.get_or_insert(parse_quote!({ #placeholder::VALUE }));
                }
                GenericParam::Lifetime(_) => {}
            }
        }
        generics
    }

    fn supertraits(&self) -> Vec<TokenStream> {
        all_supertraits(self.item, &self.options.extends)
    }

    /// The items without those that repeat a name.
    fn distinct_items(&self) -> impl Iterator<Item = &TraitItem> {
        let items = &self.item.items;
        items.iter().enumerate().filter_map(|(index, item)| {
            let name = name_of(item);
            let repeats = name.is_some() && items[..index].iter().any(|e| name_of(e) == name);
            (!repeats).then_some(item)
        })
    }

    /// A body of any type.
    fn body(&self) -> TokenStream {
        let placeholder = self.placeholder;
        quote!({ #placeholder::body() })
    }

    /// A refused `#[async_trait]`. The implementations of the user probably have it too.
    fn async_trait(&self) -> impl Iterator<Item = &Attribute> {
        self.item.attrs.iter().filter(|attribute| is_async_trait(attribute))
    }

    /// The signature as written, where a lifetime that nothing declares is `'_`. The future of an
    /// `async fn` is `Send` if no type parameter can prevent it.
    fn signature(&self, signature: &Signature) -> TokenStream {
        let Signature { unsafety, abi, ident, generics, inputs, output, .. } = signature;
        let elide = |tokens| elide(tokens, &[&self.item.generics, generics]);
        let clause = &generics.where_clause;
        let inputs = inputs.iter().map(|input| match input {
            FnArg::Receiver(receiver) => elide(quote!(#receiver)),
            FnArg::Typed(argument) => {
                let ty = elide(argument.ty.to_token_stream());
                quote!(_: #ty)
            }
        });
        let inputs: Vec<_> = inputs.collect();
        let output = match output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => elide(ty.to_token_stream()),
        };
        let is_concrete = [&self.item.generics, generics].iter().all(|g| g.params.is_empty())
            && !inputs.iter().any(mentions_impl);
        let (asyncness, output) = match signature.asyncness {
            Some(_) if is_concrete && self.async_trait().next().is_none() => {
                let send = quote!(::core::marker::Send);
                (None, quote!(impl ::core::future::Future<Output = #output> + #send))
            }
            asyncness => (asyncness, output),
        };
        quote!(#asyncness #unsafety #abi fn #ident #generics (#(#inputs),*) -> #output #clause)
    }
}

/// The attributes that are not of this macro.
fn own_attributes(function: &TraitItemFn) -> impl Iterator<Item = &syn::Attribute> {
    function.attrs.iter().filter(|attribute| !is_method_attribute(attribute))
}

fn name_of(item: &TraitItem) -> Option<&Ident> {
    match item {
        TraitItem::Fn(function) => Some(&function.sig.ident),
        TraitItem::Const(constant) => Some(&constant.ident),
        TraitItem::Type(ty) => Some(&ty.ident),
        _ => None,
    }
}

fn mentions_impl(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => mentions_impl(&group.stream()),
        _ => false,
    })
}

/// Replaces each lifetime that none of these generics declares by `'_`.
fn elide(tokens: TokenStream, generics: &[&Generics]) -> TokenStream {
    let is_declared = |name: &Ident| {
        let mut declared = generics.iter().flat_map(|generics| generics.lifetimes());
        name == "static" || declared.any(|declared| declared.lifetime.ident == *name)
    };
    let mut after_quote = false;
    let replaced = tokens.into_iter().map(|token| {
        let is_name = std::mem::take(&mut after_quote);
        match token {
            TokenTree::Ident(name) if is_name && !is_declared(&name) => {
                TokenTree::Ident(Ident::new("_", name.span()))
            }
            TokenTree::Group(group) => {
                let inner = elide(group.stream(), generics);
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            TokenTree::Punct(mark) => {
                after_quote = mark.as_char() == '\'';
                TokenTree::Punct(mark)
            }
            other => other,
        }
    });
    replaced.collect()
}
