//! Generates the typed client: a plain struct around any caller.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Path;

use crate::attribute;
use crate::contract::{Contract, ContractMethod, ContractParam, MethodKind, ParamsBy, accessor};
use crate::hygiene::local;
use crate::serialize::{self, SerializedField};

pub(crate) fn write(contract: &Contract) -> TokenStream {
    if !contract.options.client {
        return TokenStream::new();
    }
    let krate = &contract.options.krate;
    let (visibility, item) = (&contract.item.vis, &contract.item.ident);
    let ident = format_ident!("{item}Client");
    let (conditions, lints) = (contract.conditions(), contract.lints());
    let text = format!("A typed client of the contract `{item}`.");
    let methods = contract.methods.iter().map(|method| call(method, contract));
    let idempotent = idempotent(contract);
    let (in_process, for_extending) = (in_process(contract), for_extending(contract));
    let extended = contract.options.extends.iter().map(|path| extended(path, krate));
    quote! {
        #(#conditions)*
        #(#lints)*
        #[doc = #text]
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        #visibility struct #ident {
            client: #krate::Client,
        }

        #(#conditions)*
        #(#lints)*
        #[allow(deprecated)]
        impl #ident {
            #idempotent

            /// Creates a typed client over a client, a peer, or any other caller.
            pub fn new(over: impl ::core::convert::Into<#krate::Client>) -> Self {
                Self { client: ::core::convert::Into::into(over) }
            }

            #in_process
            #(#extended)*
            #(#methods)*
        }

        #for_extending
    }
}

/// The function that turns a service of the contract into a client.
fn in_process(contract: &Contract) -> Option<TokenStream> {
    let (krate, ident) = (&contract.options.krate, &contract.item.ident);
    contract.options.server.then(|| {
        quote! {
            #krate::__if_memory! {
                /// Creates a typed client of a service in this process. In a test, the service is a mock.
                pub fn in_process(service: impl #ident) -> Self {
                    Self::new(#krate::Client::in_process(#ident::into_router(service)))
                }
            }
        }
    })
}

/// What the contracts that extend this one use of its client. They use nothing else, so a trait that is no
/// contract is one compile error: it has no client.
fn for_extending(contract: &Contract) -> TokenStream {
    let (krate, item) = (&contract.options.krate, &contract.item.ident);
    let (conditions, ident) = (contract.conditions(), format_ident!("{item}Client"));
    let private = quote!(#krate::__private);
    let served = contract.options.server.then(|| {
        quote! {
            #(#conditions)*
            #[automatically_derived]
            #[allow(deprecated)]
            impl<__Service: #item> #private::ServedContract<__Service> for #ident {
                fn serve(
                    service: ::std::sync::Arc<__Service>,
                    router: #krate::Router,
                    contracts: &mut ::std::vec::Vec<&'static ::core::primitive::str>,
                ) -> #krate::Router {
                    <__Service as #item>::__serve(service, router, contracts)
                }
            }
        }
    });
    quote! {
        #(#conditions)*
        #[automatically_derived]
        impl #private::TypedClient for #ident {
            fn over(client: &#krate::Client) -> Self {
                Self::new(client)
            }
        }

        #served
    }
}

/// The path of the client of an extended contract.
pub(crate) fn of_extended(extended: &Path) -> Path {
    let mut client = extended.clone();
    if let Some(last) = client.segments.last_mut() {
        last.ident = format_ident!("{}Client", last.ident);
    }
    client
}

/// The function that returns the client of an extended contract.
fn extended(extended: &Path, krate: &TokenStream) -> Option<TokenStream> {
    let (accessor, client) = (accessor(extended)?, of_extended(extended));
    let text =
        format!("The client of the contract `{}`, which this contract extends.", quote!(#extended));
    Some(quote! {
        #[doc = #text]
        pub fn #accessor(&self) -> #client {
            #krate::__private::TypedClient::over(&self.client)
        }
    })
}

/// The constant with the names of the idempotent methods.
fn idempotent(contract: &Contract) -> TokenStream {
    let names = contract.methods.iter().filter(|method| method.idempotent).map(|method| {
        let (conditions, name) = (method.conditions(), &method.name);
        quote!(#(#conditions)* #name)
    });
    quote! {
        /// The methods that the contract declares idempotent: calling one twice has the effect of one
        /// call, so a call whose response was lost may be sent again.
        pub const IDEMPOTENT: &'static [&'static ::core::primitive::str] = &[#(#names),*];
    }
}

fn call(method: &ContractMethod, contract: &Contract) -> TokenStream {
    let krate = &contract.options.krate;
    let ContractMethod { ident, name, .. } = method;
    let attributes = attribute::for_copy(&method.attributes);
    // A given topic is an expression of the user, which does not see the params.
    let arguments = method.params().map(|ContractParam { ident, ty, .. }| {
        let ident = local(ident);
        quote!(#ident: #ty)
    });
    let (items, params) = params(method, contract);
    match &method.kind {
        MethodKind::Method(result) => quote! {
            #(#attributes)*
            pub fn #ident(&self, #(#arguments),*) -> #krate::Call<#result> {
                #items
                #krate::Client::call(&self.client, #name, #params)
            }
        },
        MethodKind::Subscription(subscription) => {
            let (topic, item) = (subscription.topic(krate), &subscription.item);
            quote! {
                #(#attributes)*
                pub fn #ident(&self, #(#arguments),*) -> #krate::Subscribe<#item> {
                    #items
                    #krate::Client::subscribe(&self.client, #topic, #params)
                }
            }
        }
        MethodKind::Notification => quote! {
            #(#attributes)*
            pub async fn #ident(
                &self,
                #(#arguments),*
            ) -> ::core::result::Result<(), #krate::CallError> {
                #items
                let sent = #krate::__private::notify(&self.client, #name, &#params);
                sent.await
            }
        },
    }
}

/// Returns the items that serialize the params, and the expression that is sent.
fn params(method: &ContractMethod, contract: &Contract) -> (TokenStream, TokenStream) {
    let params: Vec<&ContractParam> = method.params().collect();
    if params.is_empty() {
        return (TokenStream::new(), quote!(()));
    }
    let idents: Vec<_> = params.iter().map(|param| local(&param.ident)).collect();
    if method.whole().is_some() {
        return (TokenStream::new(), quote!(#(#idents),*));
    }
    let krate = &contract.options.krate;
    let private = quote!(#krate::__private);
    let written: Vec<_> = params
        .iter()
        .map(|param| SerializedField {
            name: &param.name,
            ty: &param.ty,
            // With a default, `None` is a value like any other.
            optional: param.optional && param.fallback.is_none(),
            is_error_data: false,
        })
        .collect();
    let items = match params_by(method, contract) {
        ParamsBy::Name => serialize::by_name(&written, &private),
        ParamsBy::Position => serialize::by_position(&written, &private),
    };
    (items, quote!(__Fields(#(&#idents),*)))
}

/// The form in which the client sends the params of a method.
fn params_by(method: &ContractMethod, contract: &Contract) -> ParamsBy {
    match &method.kind {
        MethodKind::Subscription(subscription) if subscription.is_given() => ParamsBy::Position,
        _ => contract.options.params_by,
    }
}
