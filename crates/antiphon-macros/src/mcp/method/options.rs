//! `#[tool(..)]`, `#[resource(..)]`, `#[prompt(..)]` and `#[complete(..)]`: the options of one method.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, Ident, LitBool, LitInt, LitStr, Result, Token};

use super::described::Described;
use crate::attribute;
use crate::mcp::template::UriTemplate;

/// The options of a tool.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) described: Described,
    pub(crate) read_only: Option<LitBool>,
    pub(crate) destructive: Option<LitBool>,
    pub(crate) idempotent: Option<LitBool>,
    pub(crate) open_world: Option<LitBool>,
    pub(crate) scopes: Vec<Expr>,
    /// The case of `TaskSupport`.
    pub(crate) task: Option<Ident>,
}

impl ToolOptions {
    pub(super) fn parse(attribute: &Attribute) -> Result<Self> {
        let mut options = Self::default();
        attribute::read(attribute, |meta| options.read(meta))?;
        options.check_hints()?;
        Ok(options)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.described.read(meta)? {
            return Ok(());
        }
        let hint = match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("read_only") => &mut self.read_only,
            Some("destructive") => &mut self.destructive,
            Some("idempotent") => &mut self.idempotent,
            Some("open_world") => &mut self.open_world,
            Some("scope") => {
                self.scopes.push(meta.value()?.parse()?);
                return Ok(());
            }
            Some("task") => {
                self.task = Some(task_support(&meta.value()?.parse()?)?);
                return Ok(());
            }
            _ => {
                let known = format!(
                    "{}, `read_only`, `destructive`, `idempotent`, `open_world`, `scope`, `task`",
                    Described::KNOWN
                );
                return Err(attribute::unknown(meta, &known));
            }
        };
        *hint = Some(flag(meta)?);
        Ok(())
    }

    fn check_hints(&self) -> Result<()> {
        match (&self.read_only, &self.destructive) {
            (Some(read_only), Some(destructive)) if read_only.value && destructive.value => {
                let text = "a `read_only` tool destroys nothing: remove one of the two hints";
                Err(Error::new(destructive.span, text))
            }
            _ => Ok(()),
        }
    }
}

/// A flag: `name` or `name = true`.
fn flag(meta: &ParseNestedMeta<'_>) -> Result<LitBool> {
    use syn::spanned::Spanned as _;
    match meta.input.peek(Token![=]) {
        true => meta.value()?.parse(),
        false => Ok(LitBool::new(true, meta.path.span())),
    }
}

fn task_support(text: &LitStr) -> Result<Ident> {
    let case = match &*text.value() {
        "forbidden" => "Forbidden",
        "optional" => "Optional",
        "required" => "Required",
        _ => {
            return Err(Error::new(text.span(), "expected `forbidden`, `optional` or `required`"));
        }
    };
    Ok(Ident::new(case, proc_macro2::Span::mixed_site()))
}

/// The options of a resource or of a template.
pub(crate) struct ResourceOptions {
    pub(crate) described: Described,
    pub(crate) address: Address,
    pub(crate) mime_type: Option<Expr>,
    pub(crate) size: Option<LitInt>,
}

/// Which resources a method reads.
pub(crate) enum Address {
    /// One, with this URI.
    Uri(LitStr),
    /// All that match a template.
    Template(LitStr, UriTemplate),
}

impl ResourceOptions {
    pub(super) fn parse(attribute: &Attribute) -> Result<Self> {
        let (mut described, mut mime_type) = (Described::default(), None);
        let mut size = None::<LitInt>;
        let (mut uri, mut template) = (None::<LitStr>, None::<LitStr>);
        attribute::read(attribute, |meta| {
            if described.read(meta)? {
                return Ok(());
            }
            match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("uri") => uri = Some(meta.value()?.parse()?),
                Some("template") => template = Some(meta.value()?.parse()?),
                Some("mime_type") => mime_type = Some(meta.value()?.parse()?),
                Some("size") => size = Some(meta.value()?.parse()?),
                _ => {
                    let known =
                        format!("`uri`, `template`, {}, `mime_type`, `size`", Described::KNOWN);
                    return Err(attribute::unknown(meta, &known));
                }
            }
            Ok(())
        })?;
        let address = Address::parse(uri, template, attribute)?;
        if let (Address::Template(..), Some(size)) = (&address, &size) {
            let text = "a template stands for many resources: remove `size`";
            return Err(Error::new(size.span(), text));
        }
        Ok(Self { described, address, mime_type, size })
    }
}

impl Address {
    fn parse(uri: Option<LitStr>, template: Option<LitStr>, attribute: &Attribute) -> Result<Self> {
        match (uri, template) {
            (Some(uri), None) if uri.value().is_empty() => {
                Err(Error::new(uri.span(), "the URI is empty: write one, such as `app://status`"))
            }
            (Some(uri), None) if uri.value().contains('{') => {
                let text = "a URI with variables is a template: write `template = \"..\"`";
                Err(Error::new(uri.span(), text))
            }
            (Some(uri), None) => Ok(Self::Uri(uri)),
            (None, Some(text)) => {
                let template = UriTemplate::parse(&text)?;
                Ok(Self::Template(text, template))
            }
            (Some(_), Some(template)) => {
                Err(Error::new(template.span(), "a resource has `uri` or `template`: remove one"))
            }
            (None, None) => {
                let text = "a resource needs `uri = \"..\"`, or `template = \"..\"` for a family of resources";
                Err(Error::new_spanned(attribute, text))
            }
        }
    }
}

/// The options of a prompt.
pub(crate) fn prompt(attribute: &Attribute) -> Result<Described> {
    let mut described = Described::default();
    attribute::read(attribute, |meta| match described.read(meta)? {
        true => Ok(()),
        false => Err(attribute::unknown(meta, Described::KNOWN)),
    })?;
    Ok(described)
}

/// The argument that a completion method completes.
pub(crate) struct CompletionOptions {
    pub(crate) of: CompletionTarget,
    /// The argument of the prompt, or the variable of the template.
    pub(crate) argument: LitStr,
}

/// The prompt or resource template that has the argument.
pub(crate) enum CompletionTarget {
    Prompt(LitStr),
    Template(LitStr),
}

impl CompletionOptions {
    pub(super) fn parse(attribute: &Attribute) -> Result<Self> {
        let (mut prompt, mut argument) = (None, None);
        let (mut template, mut variable) = (None, None);
        attribute::read(attribute, |meta| {
            let option = match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("prompt") => &mut prompt,
                Some("argument") => &mut argument,
                Some("template") => &mut template,
                Some("variable") => &mut variable,
                _ => {
                    let known = "`prompt` and `argument`, or `template` and `variable`";
                    return Err(attribute::unknown(meta, known));
                }
            };
            *option = Some(meta.value()?.parse()?);
            Ok(())
        })?;
        let (of, argument) = match (prompt, argument, template, variable) {
            (Some(prompt), Some(argument), None, None) => {
                (CompletionTarget::Prompt(prompt), argument)
            }
            (None, None, Some(template), Some(variable)) => {
                (CompletionTarget::Template(template), variable)
            }
            _ => {
                let text = "a completion needs `prompt = \"..\", argument = \"..\"`, or \
                            `template = \"..\", variable = \"..\"`";
                return Err(Error::new_spanned(attribute, text));
            }
        };
        Ok(Self { of, argument })
    }
}
