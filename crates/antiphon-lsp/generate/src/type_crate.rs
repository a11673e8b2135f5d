//! The types of each method, as the type crate `gen-lsp-types` names them.
//!
//! Result types have no names in the meta model. So the generator reads them from the source code of the type crate,
//! which is generated and therefore regular. A unit test compares these types with the traits of the type crate.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::model::Direction;

/// The types of a request or notification.
#[derive(Clone, Debug)]
pub struct MethodTypes {
    /// The type that implements `Request` or `Notification`.
    pub marker: String,
    /// The name on the wire.
    pub name: String,
    pub is_request: bool,
    pub direction: Direction,
    /// `()` without params.
    pub params: String,
    /// Empty for a notification.
    pub result: String,
    pub partial_result: Option<String>,
    /// Whether the params may hold a token for progress.
    pub has_work_done_token: bool,
}

/// Reads the types of all methods, by the name of the method.
pub fn read(root: &Path) -> Result<BTreeMap<String, MethodTypes>, Box<dyn Error>> {
    let folder = source_folder(root)?.join("src/generated");
    let names = wire_names(&fs::read_to_string(folder.join("common.rs"))?);
    let structures = fs::read_to_string(folder.join("structures.rs"))?;
    let mut found = BTreeMap::new();
    for (file, is_request) in [("requests.rs", true), ("notifications.rs", false)] {
        let text = fs::read_to_string(folder.join(file))?;
        let kind = if is_request { "Request" } else { "Notification" };
        for block in text.split(&format!("\nimpl {kind} for ")).skip(1) {
            let mut types = method_types(block, is_request, &names).ok_or_else(|| {
                format!("cannot read the types of {}", block.lines().next().unwrap_or_default())
            })?;
            // The params of three requests lack the token, though their results may arrive in parts.
            let has = |mixin| has_mixin(&structures, &types.params, mixin);
            let has_partial_result_token = has("partial_result_params: PartialResultParams");
            types.has_work_done_token = has("work_done_progress_params: WorkDoneProgressParams");
            types.partial_result.take_if(|_| !has_partial_result_token);
            found.insert(types.name.clone(), types);
        }
    }
    Ok(found)
}

/// Returns whether this structure has this field for a token.
fn has_mixin(structures: &str, name: &str, field: &str) -> bool {
    let fields = structures.split_once(&format!("\npub struct {name} {{")).map(|(_, rest)| rest);
    let fields = fields.and_then(|rest| rest.split_once("\n}")).map(|(fields, _)| fields);
    fields.is_some_and(|fields| fields.contains(field))
}

fn method_types(
    block: &str,
    is_request: bool,
    names: &BTreeMap<String, String>,
) -> Option<MethodTypes> {
    let after = |start: &str, end: char| {
        let (_, rest) = block.split_once(start)?;
        Some(rest.split_once(end)?.0.trim().to_owned())
    };
    let marker = block.split_once(' ')?.0.to_owned();
    let variant =
        after(if is_request { "= LspRequestMethod::" } else { "= LspNotificationMethod::" }, ';')?;
    let partial = after("type PartialResult =", ';');
    Some(MethodTypes {
        name: names.get(&variant)?.clone(),
        is_request,
        direction: Direction::parse(&after("= MessageDirection::", ';')?)?,
        params: after("type Params =", ';')?,
        result: if is_request { after("type Result =", ';')? } else { String::new() },
        partial_result: partial,
        has_work_done_token: false,
        marker,
    })
}

/// The names on the wire, by the variant of the enums of method names:
/// `Self::TextDocumentHover => "textDocument/hover",`.
fn wire_names(text: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for arm in text.split("Self::").skip(1) {
        let Some((variant, rest)) = arm.split_once(" => ") else { continue };
        if let Some(("" | "{", name)) =
            rest.split_once('"').map(|(before, name)| (before.trim(), name))
            && let Some((name, _)) = name.split_once('"')
        {
            names.insert(variant.to_owned(), name.to_owned());
        }
    }
    names
}

/// Returns the folder of the type crate's source code, which Cargo has downloaded.
fn source_folder(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let package = packages.iter().find(|package| package["name"] == "gen-lsp-types");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(folder.ok_or("gen-lsp-types is not a dependency")?.to_owned())
}
