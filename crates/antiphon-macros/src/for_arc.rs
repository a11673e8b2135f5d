//! Generates the contract of `Arc<T>`, which calls the service inside. So one service can serve several
//! contracts, and the application can keep a handle to it.

use proc_macro2::TokenStream;
use quote::quote;

use crate::contract::{Argument, Contract, ContractMethod};
use crate::server;

pub(crate) fn write(contract: &Contract) -> TokenStream {
    let krate = &contract.options.krate;
    let ident = &contract.item.ident;
    let (conditions, lints) = (contract.conditions(), contract.lints());
    let functions = contract.methods.iter().map(|method| function(method, contract));
    let supertraits = contract.supertraits();
    let clauses = contract.item.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    quote! {
        #(#conditions)*
        #(#lints)*
        #[automatically_derived]
        #[allow(deprecated)]
        impl<__Service: #ident> #ident for ::std::sync::Arc<__Service>
        where
            #(Self: #supertraits,)*
            #(#clauses,)*
        {
            #(#functions)*

            fn into_router(self) -> #krate::Router {
                <__Service as #ident>::__into_router(self)
            }
        }
    }
}

fn function(method: &ContractMethod, contract: &Contract) -> TokenStream {
    let (contract, ident) = (&contract.item.ident, &method.ident);
    let (conditions, lints) = (method.conditions(), method.lints());
    let signature = server::signature(method);
    let arguments = method.arguments.iter().map(Argument::ident);
    quote! {
        #(#conditions)*
        #(#lints)*
        #signature {
            <__Service as #contract>::#ident(self, #(#arguments),*)
        }
    }
}
