//! The document notifications that a server wants.

use crate::types::{
    Save, ServerCapabilities, TextDocumentSync, TextDocumentSyncKind, TextDocumentSyncOptions,
};

/// The document notifications that a server wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncOptions {
    /// `didOpen` and `didClose`.
    pub(super) open_close: bool,
    pub(super) change: Change,
    /// Whether to send `didSave`, and whether it includes the text.
    pub(super) save: Option<bool>,
}

/// The content of `didChange`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// `didChange` is not sent.
    None,
    /// The whole text.
    Full,
    /// The changed ranges.
    Incremental,
}

impl SyncOptions {
    pub(super) fn of(capabilities: &ServerCapabilities) -> Self {
        match &capabilities.text_document_sync {
            Some(TextDocumentSync::Options(options)) => Self::of_options(options),
            Some(TextDocumentSync::Kind(kind)) => {
                // In LSP 2, a server sends only the kind. Such a server also gets `didOpen`, `didClose` and `didSave`.
                let change = Change::of(Some(kind));
                let any = change != Change::None;
                Self { open_close: any, change, save: any.then_some(false) }
            }
            None => Self { open_close: false, change: Change::None, save: None },
        }
    }

    fn of_options(options: &TextDocumentSyncOptions) -> Self {
        Self {
            open_close: options.open_close.unwrap_or_default(),
            change: Change::of(options.change.as_ref()),
            save: match &options.save {
                None | Some(Save::Bool(false)) => None,
                Some(Save::Bool(true)) => Some(false),
                Some(Save::SaveOptions(save)) => Some(save.include_text.unwrap_or_default()),
            },
        }
    }
}

impl Change {
    fn of(kind: Option<&TextDocumentSyncKind>) -> Self {
        match kind {
            Some(TextDocumentSyncKind::Full) => Self::Full,
            Some(TextDocumentSyncKind::Incremental) => Self::Incremental,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_form_of_the_capability_is_read() {
        let of = |sync: Value| {
            let capabilities = json!({ "textDocumentSync": sync });
            let options = SyncOptions::of(&serde_json::from_value(capabilities).unwrap());
            (options.open_close, options.change, options.save)
        };
        assert_eq!(of(json!(0)), (false, Change::None, None));
        assert_eq!(of(json!(1)), (true, Change::Full, Some(false)));
        assert_eq!(of(json!(2)), (true, Change::Incremental, Some(false)));
        assert_eq!(of(json!(null)), (false, Change::None, None));
        assert_eq!(of(json!({})), (false, Change::None, None));
        assert_eq!(of(json!({"openClose": true, "change": 2})), (true, Change::Incremental, None));
        assert_eq!(of(json!({"save": true})), (false, Change::None, Some(false)));
        assert_eq!(of(json!({"save": false})), (false, Change::None, None));
        assert_eq!(of(json!({"save": {}})), (false, Change::None, Some(false)));
        assert_eq!(of(json!({"save": {"includeText": true}})), (false, Change::None, Some(true)));
    }
}
