//! The programs that these tests start: the examples of this crate, and those that `interop/setup` has installed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A file of a foreign project that `interop/setup` has installed, or a script beside it.
pub(crate) fn interop(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop")).join(name);
    assert!(path.exists(), "{} is missing: run interop/setup", path.display());
    path.display().to_string()
}

/// The path of an example of this crate, which `cargo test` has built.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let path = folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: run cargo build --examples", path.display());
    path
}

/// Runs a program, which must end with 0.
pub(crate) fn passes(command: &mut Command) {
    let program = command.get_program().to_owned();
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{program:?}: {error}: run interop/setup"));
    let texts =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}{}", output.status, texts[0], texts[1]);
}

/// The example `everything_server` on a free port, stopped when dropped.
pub(crate) struct EverythingServer {
    process: Child,
    url: String,
}

impl EverythingServer {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(example("everything_server"))
            .arg("http://127.0.0.1:0/mcp")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
            .unwrap_or_else(|| panic!("everything_server ended before it listened"));
        // What it says later belongs to the output of the test; a full pipe would stop it.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
            }
        });
        Self { process, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for EverythingServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
