//! The content of results: on a terminal, and in files.

use std::path::Path;

use antiphon::RawJson;
use antiphon_mcp::types::{CallToolResult, ContentBlock, ResourceContents};

use crate::exit::{CommandError, Exit};
use crate::output;

/// Shows a result to people: texts as texts, and a structured value as JSON.
pub(super) fn show(result: &CallToolResult) -> Result<(), CommandError> {
    let structured = result.structured_content.as_ref().map(RawJson::encode);
    let structured = structured.transpose();
    let structured =
        structured.map_err(|error| CommandError::new(Exit::Protocol, error.to_string()))?;
    if let Some(value) = &structured {
        output::result(value)?;
    }
    for block in &result.content {
        // The text of a structured value repeats it.
        let repeats = structured.is_some() && block.as_text().is_some();
        if !repeats {
            output::line(&output::visible(&describe(block)))?;
        }
    }
    Ok(())
}

/// A block as text; binary content by its type and size.
pub(super) fn describe(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", &image.mime_type, image.bytes().ok()),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, audio.bytes().ok()),
        ContentBlock::Resource(resource) => describe_resource(&resource.resource),
        ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
        _ => "[content of an unknown type]".to_owned(),
    }
}

pub(super) fn describe_resource(contents: &ResourceContents) -> String {
    let mime_type = contents.mime_type.as_deref().unwrap_or("unknown type");
    match &contents.text {
        Some(text) => text.clone(),
        None => binary(&contents.uri, mime_type, contents.bytes().ok()),
    }
}

fn binary(what: &str, mime_type: &str, bytes: Option<Vec<u8>>) -> String {
    let size =
        bytes.map_or_else(|| "invalid base64".to_owned(), |it| format!("{} bytes", it.len()));
    format!("[{what}, {mime_type}, {size}]")
}

/// Whether a result has content that can be written to a folder.
pub(super) fn has_binary(content: &[ContentBlock]) -> bool {
    content.iter().any(|block| binary_of(block).is_some())
}

/// The type and the bytes of binary content.
fn binary_of(block: &ContentBlock) -> Option<(&str, Result<Vec<u8>, impl std::fmt::Display>)> {
    match block {
        ContentBlock::Image(image) => Some((image.mime_type.as_str(), image.bytes())),
        ContentBlock::Audio(audio) => Some((audio.mime_type.as_str(), audio.bytes())),
        ContentBlock::Resource(embedded) if embedded.resource.text.is_none() => {
            let mime_type = embedded.resource.mime_type.as_deref().unwrap_or_default();
            Some((mime_type, embedded.resource.bytes()))
        }
        _ => None,
    }
}

/// Writes the binary content of a result to a folder. An existing file is not replaced.
pub(super) fn save(content: &[ContentBlock], folder: &Path) -> Result<(), CommandError> {
    for (number, block) in content.iter().enumerate() {
        let Some((mime_type, bytes)) = binary_of(block) else { continue };
        let bytes = bytes.map_err(|error| {
            CommandError::new(Exit::Protocol, format!("content {number} is not base64: {error}"))
        })?;
        let path = folder.join(format!("{}.{}", number + 1, extension(mime_type)));
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::OpenOptions::new().write(true).create_new(true).open(&path))
            .and_then(|mut file| io_write(&mut file, &bytes));
        written.map_err(|error| {
            CommandError::usage(format!("cannot write {}: {error}", path.display()))
        })?;
        output::note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn io_write(file: &mut std::fs::File, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    file.write_all(bytes)
}

/// The extension of a file: the subtype, if it is a plain word.
fn extension(mime_type: &str) -> &str {
    let subtype = mime_type.split_once('/').map_or("", |(_, subtype)| subtype);
    let is_plain = !subtype.is_empty() && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { subtype } else { "bin" }
}
