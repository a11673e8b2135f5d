//! Paths, and the cores that processes run on.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Fault;

/// The core of the servers.
pub(crate) const SERVER_CORE: usize = 0;
/// The core of the load.
pub(crate) const LOAD_CORE: usize = 1;

pub(crate) struct Place {
    /// The directory `bench`.
    pub(crate) bench: PathBuf,
    /// The build directory of the workspace.
    binaries: PathBuf,
    /// The command `antiphon`.
    pub(crate) antiphon: PathBuf,
    /// For temporary files.
    pub(crate) scratch: PathBuf,
}

impl Place {
    pub(crate) fn find() -> Result<Self, Fault> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no parent")?.to_owned();
        let root = bench.parent().ok_or("no parent")?;
        let scratch = std::env::temp_dir().join(format!("antiphon-bench-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        Ok(Self {
            binaries: target(&bench)?.join("release"),
            antiphon: target(root)?.join("release/antiphon"),
            bench,
            scratch,
        })
    }

    /// A command of this workspace on a given core.
    pub(crate) fn pinned(&self, core: usize, binary: &str) -> Command {
        on_core(core, &self.binary(binary))
    }

    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.scratch));
    }
}

pub(crate) fn on_core(core: usize, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

/// Returns the output of a command; fails if the command fails.
pub(crate) fn output(command: &mut Command) -> Result<String, Fault> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{stderr}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn target(workspace: &Path) -> Result<PathBuf, Fault> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let metadata = output(
        Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .current_dir(workspace),
    )?;
    Ok(serde_json::from_str::<Metadata>(&metadata)?.target_directory)
}
