//! The requests and notifications of the protocol, as its meta model lists them.
//!
//! The repository contains a reduced copy of the meta model: names, directions and param types. It omits the
//! documentation and the structures, which are part of the type crate.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// The path of the reduced meta model in the crate.
pub const PATH: &str = "meta/methods-3.17.json";

/// The members of a request or notification that the reduced model keeps.
const KEPT: [&str; 4] = ["method", "messageDirection", "params", "proposed"];

/// One request or notification.
#[derive(Clone, Debug)]
pub struct Method {
    /// The name on the wire.
    pub name: String,
    pub is_request: bool,
    pub direction: Direction,
    /// The name of the type of its params; `None` without params.
    pub params: Option<String>,
    /// Whether the method is only proposed in this version.
    pub is_proposed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
    Both,
}

impl Direction {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "clientToServer" | "ClientToServer" => Some(Self::ToServer),
            "serverToClient" | "ServerToClient" => Some(Self::ToClient),
            "both" | "Both" => Some(Self::Both),
            _ => None,
        }
    }

    /// Returns whether messages also go in this direction.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::Both
    }
}

/// Reads the reduced meta model of the repository.
pub fn read(root: &Path) -> Result<Vec<Method>, Box<dyn Error>> {
    let model: Value = serde_json::from_str(&fs::read_to_string(root.join(PATH))?)?;
    let mut methods = Vec::new();
    for (list, is_request) in [("requests", true), ("notifications", false)] {
        for entry in model[list].as_array().ok_or("no list of methods")? {
            let text = |member: &str| entry[member].as_str();
            let direction = text("messageDirection").and_then(Direction::parse);
            methods.push(Method {
                name: text("method").ok_or("no name")?.to_owned(),
                is_request,
                direction: direction.ok_or_else(|| format!("no direction: {entry}"))?,
                params: entry["params"]["name"].as_str().map(str::to_owned),
                is_proposed: entry["proposed"] == true,
            });
        }
    }
    Ok(methods)
}

/// Reduces a meta model of the protocol to what [`read`] needs.
pub fn reduce(meta_model: &str) -> Result<String, Box<dyn Error>> {
    let model: Value = serde_json::from_str(meta_model)?;
    let mut reduced = Map::new();
    reduced.insert("version".to_owned(), model["metaData"]["version"].clone());
    for list in ["requests", "notifications"] {
        let entries = model[list].as_array().ok_or("no list of methods")?;
        reduced.insert(list.to_owned(), entries.iter().map(kept).collect());
    }
    Ok(serde_json::to_string_pretty(&reduced)? + "\n")
}

fn kept(entry: &Value) -> Value {
    let members = KEPT.iter().filter_map(|&name| Some((name.to_owned(), entry.get(name)?.clone())));
    Value::Object(members.filter(|(_, value)| *value != Value::Bool(false)).collect())
}
