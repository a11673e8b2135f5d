//! One argument of a method: the context of the request, or a value that the client sends.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Ident, LitStr, Pat, PatIdent, PatType, Result, Type};

use crate::attribute;
use crate::contract::{Fallback, is_named, path, reject_borrowed};

/// An argument, in the order of the function.
pub(crate) enum Argument {
    /// The `RequestContext`, by value or as a reference.
    Context {
        ident: Ident,
        ty: Box<Type>,
    },
    Value(Box<ValueArgument>),
}

/// An argument that the client sends.
pub(crate) struct ValueArgument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// Its name for clients.
    pub(crate) name: LitStr,
    /// Whether the name is not that of the Rust argument.
    pub(crate) is_renamed: bool,
    pub(crate) fallback: Option<Fallback>,
    /// `#[params]`: the argument takes all values.
    pub(crate) whole: bool,
    /// Doc comments, and attributes of `serde` and `schemars`.
    pub(crate) attributes: Vec<Attribute>,
}

impl Argument {
    pub(super) fn parse(argument: &PatType) -> Result<Self> {
        let ident = ident(&argument.pat, &argument.ty)?;
        let mut attributes = argument.attrs.clone();
        let settings = attribute::take(&mut attributes, "param")?;
        let whole = attribute::take(&mut attributes, "params")?.is_some();
        attributes.retain(|attribute| !is_lint(attribute));
        check_attributes(&attributes)?;
        // With an attribute, it is a value in any case: a type of the user may have the name of the context.
        if settings.is_none() && !whole && is_context(&argument.ty) {
            return Ok(Self::Context { ident, ty: argument.ty.clone() });
        }
        owned(&argument.ty)?;
        let mut value = ValueArgument {
            name: LitStr::new(&ident.unraw().to_string(), ident.span()),
            ident,
            ty: (*argument.ty).clone(),
            is_renamed: false,
            fallback: None,
            whole,
            attributes,
        };
        if let Some(settings) = settings {
            attribute::read(&settings, |meta| value.read(meta))?;
        }
        if whole && let Some(other) = value.attributes.iter().find(|it| !is_doc(it)) {
            let text = "`#[params]` takes all arguments: move this attribute to the type";
            return Err(Error::new_spanned(other, text));
        }
        Ok(Self::Value(Box::new(value)))
    }

    pub(crate) fn value(&self) -> Option<&ValueArgument> {
        match self {
            Self::Value(value) => Some(value),
            Self::Context { .. } => None,
        }
    }
}

impl ValueArgument {
    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            (self.name, self.is_renamed) = (meta.value()?.parse()?, true);
        } else if meta.path.is_ident("default") {
            self.fallback = Some(match meta.input.peek(syn::Token![=]) {
                true => Fallback::Value(Box::new(meta.value()?.parse()?)),
                false => Fallback::Default,
            });
        } else {
            return Err(attribute::unknown(meta, "`name`, `default`"));
        }
        Ok(())
    }
}

/// Whether the attribute is about a lint, so it stays at the argument of the function.
pub(in crate::mcp) fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny"].iter().any(|name| attribute.path().is_ident(name))
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn check_attributes(attributes: &[Attribute]) -> Result<()> {
    let is_known = |attribute: &&Attribute| {
        ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name))
    };
    match attributes.iter().find(|attribute| !is_known(attribute)) {
        None => Ok(()),
        Some(other) => {
            let text = "unknown attribute of an argument; expected `#[param(..)]`, `#[params]`, \
                        `#[schemars(..)]`, `#[serde(..)]` or a doc comment";
            Err(Error::new_spanned(other, text))
        }
    }
}

/// Whether the type is the context or a reference to it.
pub(super) fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) if reference.mutability.is_none() => {
            is_named(&reference.elem, "RequestContext")
        }
        Type::Group(group) => is_context(&group.elem),
        _ => is_named(ty, "RequestContext"),
    }
}

/// The name of an argument, which is also the name for clients.
fn ident(pattern: &Pat, ty: &Type) -> Result<Ident> {
    match pattern {
        Pat::Ident(PatIdent { ident, subpat: None, by_ref: None, .. }) => Ok(ident.clone()),
        // The way of other libraries: `Parameters(args): Parameters<Args>`.
        Pat::TupleStruct(pattern) if path(ty).is_some() => {
            let inner = pattern.path.segments.last().map(|last| last.ident.to_string());
            let text = format!(
                "an argument must be a plain name; for a struct that takes all arguments, write \
                 `#[params] args: Args` instead of `{}(args)`",
                inner.unwrap_or_default()
            );
            Err(Error::new_spanned(pattern, text))
        }
        other => Err(Error::new_spanned(
            other,
            "an argument must be a plain name: it is also the name for clients",
        )),
    }
}

fn owned(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) if is_named(&reference.elem, "RequestContext") => {
            let text = "the context is shared: take `&RequestContext` or `RequestContext`";
            Err(Error::new_spanned(ty, text))
        }
        Type::Reference(_) => Err(Error::new_spanned(
            ty,
            "an argument is read from a message, so it must be owned: use `String` for `&str`, \
             `Vec<T>` for `&[T]`",
        )),
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "an argument must have a concrete type: name the type that the method reads",
        )),
        _ => {
            reject_self(ty)?;
            let text = "an argument is read from a message, so it cannot borrow: use an owned type, \
                        such as `String`, `Vec<T>` or `Cow<'static, str>`";
            reject_borrowed(ty, text)
        }
    }
}

/// Rejects `Self`: the arguments become the fields of a struct of their own.
fn reject_self(ty: &Type) -> Result<()> {
    match find_self(quote::quote!(#ty)) {
        None => Ok(()),
        Some(found) => Err(Error::new(
            found.span(),
            "an argument cannot have `Self` in its type: name the type",
        )),
    }
}

fn find_self(tokens: TokenStream) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        proc_macro2::TokenTree::Ident(ident) if ident == "Self" => Some(ident),
        proc_macro2::TokenTree::Group(group) => find_self(group.stream()),
        _ => None,
    })
}
