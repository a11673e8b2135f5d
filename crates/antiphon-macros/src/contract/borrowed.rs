//! Finds borrowed data in a type: a reference, or a lifetime other than `'static`.
//!
//! This module does not resolve types: a lifetime that is not written is found for `Cow` only.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, Result, Type};

/// Fails with this text at the first borrow in the type.
pub(crate) fn reject(ty: &Type, text: &str) -> Result<()> {
    match find(ty.to_token_stream()) {
        Some(span) => Err(Error::new(span, text)),
        None => Ok(()),
    }
}

fn find(tokens: TokenStream) -> Option<Span> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().find_map(|(index, token)| {
        let next = |offset| tokens.get(index + offset);
        let borrows = match token {
            TokenTree::Group(group) => return find(group.stream()),
            TokenTree::Punct(mark) if mark.as_char() == '&' => !is_static(next(1), next(2)),
            TokenTree::Punct(mark) if mark.as_char() == '\'' => !is_static(Some(token), next(1)),
            TokenTree::Ident(name) if name == "Cow" => {
                is_mark(next(1), '<') && !is_mark(next(2), '\'')
            }
            _ => false,
        };
        borrows.then(|| {
            match (token, next(1)) {
                (TokenTree::Punct(_), Some(next)) => token.span().join(next.span()),
                _ => None,
            }
            .unwrap_or(token.span())
        })
    })
}

/// Whether these two tokens are `'static`.
fn is_static(first: Option<&TokenTree>, second: Option<&TokenTree>) -> bool {
    let named = |token: &TokenTree| matches!(token, TokenTree::Ident(name) if name == "static");
    is_mark(first, '\'') && second.is_some_and(named)
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == mark)
}
