//! Keeps the local variables of the generated code apart from the user's names.
//!
//! An expression of the user, such as `default = router()`, names items only. So it must not see a variable
//! `router` of the code around it.

use proc_macro2::{Span, TokenStream};
use syn::Ident;

/// Like `quote!`, but the user's code does not see its local variables.
macro_rules! quote_hygienic {
    ($($code:tt)*) => {
        quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($code)*)
    };
}

pub(crate) use quote_hygienic;

/// The name at the same place, as a variable that the user's expressions do not see.
pub(crate) fn local(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(hidden(ident.span()));
    ident
}

/// The place of this span, for variables that the user's expressions do not see.
pub(crate) fn hidden(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

/// The tokens at another place, so that a compile error about them points there.
pub(crate) fn located(tokens: &TokenStream, span: Span) -> TokenStream {
    let located = tokens.clone().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(span));
        token
    });
    located.collect()
}
