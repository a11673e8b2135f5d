//! Builds the servers, and measures clean builds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::place::{Place, output};

/// Each is built separately: together, they would share features that none of them requested.
const PACKAGES: [&str; 9] = [
    "bench-antiphon",
    "bench-jsonrpsee",
    "bench-ajj",
    "bench-axum",
    "bench-hyper",
    "bench-plain",
    "clients",
    "dispatch",
    "parse",
];

pub(crate) fn all(place: &Place) -> Result<(), Fault> {
    let root = place.bench.parent().ok_or("no parent")?;
    cargo(root, &["build", "--release", "--locked", "--package", "antiphon-cli"])?;
    for package in PACKAGES {
        eprintln!("building {package}");
        cargo(&place.bench, &["build", "--release", "--locked", "--package", package])?;
    }
    Ok(())
}

fn cargo(directory: &Path, args: &[&str]) -> Result<(), Fault> {
    let status = Command::new("cargo").args(args).current_dir(directory).status()?;
    if status.success() { Ok(()) } else { Err(format!("cargo {args:?} failed").into()) }
}

/// The cost of a clean build of a server.
#[derive(Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) seconds: f64,
    /// All crates that it depends on.
    pub(crate) dependencies: usize,
}

pub(crate) fn clean(place: &Place) -> Result<BTreeMap<String, Build>, Fault> {
    let servers = PACKAGES.iter().filter_map(|package| package.strip_prefix("bench-"));
    servers.map(|peer| Ok((peer.to_owned(), clean_one(place, peer)?))).collect()
}

fn clean_one(place: &Place, peer: &str) -> Result<Build, Fault> {
    eprintln!("building {peer} from nothing");
    let package = format!("bench-{peer}");
    let target = place.scratch.join(&package);
    let began = Instant::now();
    let to = target.to_str().ok_or("the temporary directory is not UTF-8")?;
    let mut args = vec!["build", "--release", "--locked", "--quiet", "--package", &package];
    args.extend(["--bin", &package, "--target-dir", to]);
    cargo(&place.bench, &args)?;
    let seconds = began.elapsed().as_secs_f64();
    std::fs::remove_dir_all(target)?;
    Ok(Build { seconds, dependencies: dependencies(place, &package)? })
}

fn dependencies(place: &Place, package: &str) -> Result<usize, Fault> {
    let tree = output(
        Command::new("cargo")
            .args(["tree", "--locked", "-e", "normal", "--prefix", "none", "--package", package])
            .current_dir(&place.bench),
    )?;
    let crates: BTreeSet<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    Ok(crates.len() - 1)
}
