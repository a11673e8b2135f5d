//! Generates the code that adds one tool, resource, template or prompt to a server.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Expr;

use super::{arguments, call};
use crate::hygiene::{hidden, located, quote_hygienic};
use crate::mcp::Service;
use crate::mcp::method::{
    Address, CompletionMethod, Described, McpMethod, MethodKind, ResourceOptions, ToolOptions,
};

/// Replaces `builder` by one with the entry of this method.
pub(super) fn write(method: &McpMethod, service: &Service) -> TokenStream {
    let krate = &service.options.krate;
    let (conditions, lints) = (method.conditions(), method.lints());
    let arguments = arguments::write(method, service);
    let handler = call::handler(method, service);
    let (add, entry) = entry(method, service);
    let settings = settings(method, krate);
    quote_hygienic! {
        #(#conditions)*
        #(#lints)*
        let builder = {
            #arguments
            let handler = #handler;
            let entry = #entry;
            #krate::ServerBuilder::#add(builder, entry #settings)
        };
    }
}

/// The function of the builder that adds the entry, and the entry without its settings.
///
/// Compile errors about the result of the method point to its type.
fn entry(method: &McpMethod, service: &Service) -> (TokenStream, TokenStream) {
    let span = call::output_span(method);
    let krate = &located(&service.options.krate, span);
    let name = method.name();
    match &method.kind {
        MethodKind::Tool(options, _) => {
            let tool = quote_spanned!(span=> #krate::ServerTool::new(#name, handler));
            let task = options.task.as_ref().map(|case| {
                quote_hygienic! {
                    let entry = #krate::__private::with_tasks(entry, #krate::types::TaskSupport::#case);
                }
            });
            (quote!(tool), quote_hygienic!({ let entry = #tool; #task entry }))
        }
        MethodKind::Resource(options, _) => match &options.address {
            Address::Uri(uri) => {
                let new = quote_spanned!(span=> #krate::ServerResource::new(#uri, #name, handler));
                (quote!(resource), new)
            }
            Address::Template(template, _) => {
                let new =
                    quote_spanned!(span=> #krate::ServerTemplate::new(#template, #name, handler));
                let completed = completed(method, service);
                let checked = quote_hygienic! {{
                    let entry = #krate::__private::template(#new);
                    #completed
                    entry
                }};
                (quote!(template), checked)
            }
        },
        MethodKind::Prompt(..) => {
            let new = quote_spanned!(span=> #krate::ServerPrompt::new(#name, handler));
            let names = method.kind.values().map(|value| &value.name);
            let completed = completed(method, service);
            let ordered = quote_hygienic! {{
                let entry = #krate::__private::ordered(#new, &[#(#names),*]);
                #completed
                entry
            }};
            (quote!(prompt), ordered)
        }
        MethodKind::Completion(_) => (TokenStream::new(), TokenStream::new()),
    }
}

/// Adds the completions of the arguments of this method to `entry`.
fn completed(method: &McpMethod, service: &Service) -> TokenStream {
    let completions = service.methods.iter().filter_map(|completion| match &completion.kind {
        MethodKind::Completion(kind) if kind.is_of(method) => Some((completion, kind)),
        _ => None,
    });
    completions.map(|(completion, kind)| complete(completion, kind, service)).collect()
}

fn complete(method: &McpMethod, completion: &CompletionMethod, service: &Service) -> TokenStream {
    let conditions = method.conditions();
    let argument = &completion.argument;
    let closure = call::completer(method, completion, service);
    let span = hidden(method.ident.span());
    let complete = quote_spanned!(span=> entry.complete(#argument, completer));
    quote_hygienic! {
        #(#conditions)*
        let entry = {
            let completer = #closure;
            #complete
        };
    }
}

/// The calls that set what people and models read, and the hints.
fn settings(method: &McpMethod, krate: &TokenStream) -> TokenStream {
    match &method.kind {
        MethodKind::Tool(options, _) => {
            let described = described(&options.described, method.docs.as_ref(), krate);
            let hints = hints(options);
            quote!(#described #hints)
        }
        MethodKind::Resource(options, _) => {
            let described = described(&options.described, method.docs.as_ref(), krate);
            let ResourceOptions { mime_type, size, .. } = &**options;
            let (mime_type, size) = (mime_type.iter(), size.iter());
            quote!(#described #(.mime_type(#mime_type))* #(.size(#size))*)
        }
        MethodKind::Prompt(options, _) => described(options, method.docs.as_ref(), krate),
        MethodKind::Completion(_) => TokenStream::new(),
    }
}

fn described(
    described: &Described,
    docs: Option<&TokenStream>,
    krate: &TokenStream,
) -> TokenStream {
    let title = described.title.iter();
    let given = described.description.as_ref().map(|description| quote!(#description));
    let description = given.or_else(|| docs.cloned());
    let description = description.map(|text| quote!(.description(#text)));
    let icons = described.icons.iter().map(|it| icon(it, krate));
    quote!(#(.title(#title))* #description #(.icon(#icons))*)
}

/// An icon with this source.
pub(super) fn icon(source: &Expr, krate: &TokenStream) -> TokenStream {
    quote!(#krate::types::Icon::new(#source))
}

fn hints(options: &ToolOptions) -> TokenStream {
    let is_set = |hint: &Option<syn::LitBool>| hint.as_ref().is_some_and(|hint| hint.value);
    let read_only = is_set(&options.read_only).then(|| quote!(.read_only()));
    let idempotent = is_set(&options.idempotent).then(|| quote!(.idempotent()));
    let destructive = options.destructive.iter();
    let open_world = options.open_world.iter();
    let scopes = options.scopes.iter();
    quote! {
        #read_only
        #idempotent
        #(.destructive(#destructive))*
        #(.open_world(#open_world))*
        #(.scope(#scopes))*
    }
}
