//! The language clients of other projects, each with a script in `interop/lsp`.

use std::process::Command;

use crate::scratch::{Scratch, interop};
use crate::support::example;

/// Runs a script, which must end with 0.
fn passes(command: &mut Command) {
    let program = command.get_program().to_owned();
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{program:?}: {error}: run interop/setup"));
    let texts =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}{}", output.status, texts[0], texts[1]);
}

#[test]
#[ignore = "needs interop/setup"]
fn neovim_checks_and_corrects_a_text() {
    let folder = Scratch::new();
    let mut neovim = Command::new("nvim");
    let script = format!("luafile {}", interop("lsp/neovim.lua"));
    neovim.args(["--headless", "--clean", "-c", &script, "-c", "cquit"]);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR"] {
        neovim.env(name, folder.folder());
    }
    passes(neovim.env("SERVER", example("typos_server")));
}

#[test]
#[ignore = "needs interop/setup"]
fn vscode_checks_and_corrects_a_text_over_each_channel() {
    interop("node_modules");
    passes(Command::new("node").arg(interop("lsp/vscode.mjs")).arg(example("typos_server")));
}

#[test]
#[ignore = "needs interop/setup"]
fn vscode_queues_two_thousand_changes_behind_a_question() {
    interop("node_modules");
    passes(Command::new("node").arg(interop("lsp/vscode_order.mjs")).arg(example("asking_server")));
}

#[test]
#[ignore = "needs interop/setup"]
fn pytest_lsp_is_satisfied_as_three_editors() {
    let mut pytest = Command::new(interop(".venv/bin/pytest"));
    pytest.args(["-p", "no:cacheprovider", &interop("lsp/test_typos_server.py")]);
    passes(pytest.env("SERVER", example("typos_server")).env("PYTHONDONTWRITEBYTECODE", "1"));
}
