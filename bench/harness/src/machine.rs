//! The machine and the versions of a measurement.

use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::place::{Place, output};

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) rustc: String,
    pub(crate) node: String,
    /// The versions of the measured libraries.
    pub(crate) versions: Vec<(String, String)>,
}

/// The packages whose versions are reported.
const CRATES: [&str; 9] = [
    "antiphon",
    "jsonrpsee",
    "ajj",
    "axum",
    "hyper",
    "tokio",
    "serde_json",
    "sonic-rs",
    "simd-json",
];

impl Machine {
    pub(crate) fn look(place: &Place) -> Result<Self, Fault> {
        let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let first = |program: &str, arg: &str| -> Result<String, Fault> {
            Ok(output(Command::new(program).arg(arg))?.trim().to_owned())
        };
        Ok(Self {
            cpu: model.map_or("unknown", |(_, model)| model).to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            kernel: first("uname", "-r")?,
            rustc: first("rustc", "--version")?,
            node: first("node", "--version")?,
            versions: versions(place)?,
        })
    }
}

fn versions(place: &Place) -> Result<Vec<(String, String)>, Fault> {
    let lock = std::fs::read_to_string(place.bench.join("Cargo.lock"))?;
    let version = |name: &str| {
        let (_, entry) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
        Some((name.to_owned(), entry.split('"').next()?.to_owned()))
    };
    let mut versions: Vec<_> = CRATES.iter().filter_map(|name| version(name)).collect();
    let package = std::fs::read_to_string(place.bench.join("peers/jayson/package.json"))?;
    let package: serde_json::Value = serde_json::from_str(&package)?;
    let jayson = package["dependencies"]["jayson"].as_str().unwrap_or("unknown");
    versions.push(("jayson".to_owned(), jayson.to_owned()));
    Ok(versions)
}

/// Today, in UTC.
pub(crate) fn today() -> Result<String, Fault> {
    Ok(output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?.trim().to_owned())
}
