//! Generates a stand-in for a refused server, so that the compiler reports the reason and nothing else.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemImpl};

use super::generate;
use super::options::ServerOptions;

pub(super) fn write(error: Error, item: &ItemImpl, options: &ServerOptions) -> TokenStream {
    let error = error.into_compile_error();
    let krate = &options.krate;
    let body = quote!({ ::core::unreachable!() });
    let implementation = generate::implementation(item, krate, &body, &body);
    quote! {
        #error
        #[allow(unused)]
        #item
        #implementation
    }
}
