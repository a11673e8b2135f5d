//! The command line: invalid arguments, and `--help`.

use super::{bench, refuses};
use crate::support::{antiphon, run};

#[test]
fn a_remote_endpoint_requires_a_flag() {
    for endpoint in ["http://example.org", "ws://10.0.0.1:80/x", "tcp://0.0.0.0:1", "tcp://[::2]:1"]
    {
        refuses(&[endpoint, "m"], 2, "--allow-remote");
        refuses(&["tcp://127.0.0.1:1", "m", "--vs", endpoint], 2, "--allow-remote");
    }
}

#[test]
fn an_invalid_command_line_is_rejected() {
    let tcp = "tcp://127.0.0.1:1";
    for (words, remedy) in [
        (&[][..], "Usage:"),
        (&[tcp], "<METHOD>"),
        (&["stdio:", "m"], "exec:command"),
        (&["memory:x", "m"], "unix:/path"),
        (&[tcp, "m", "--vs", "a=stdio:"], "exec:command"),
        (&[tcp, "m", "--vs", "localhost:80"], "http://host:port"),
        (&[tcp, "m", "-n", "10", "-t", "1s"], "cannot be used with"),
        (&[tcp, "m", "-n", "10", "-b", "3"], "a multiple of --batch"),
        (&[tcp, "m", "-c", "0"], "at least 1"),
        (&[tcp, "m", "-t", "soon"], "500ms"),
        (&[tcp, "m", "--rate", "fast"], "not a count"),
        (&[tcp, "m", "--format", "xml"], "json"),
        (&[tcp, "m", "--expect", "{"], "--expect is not JSON"),
        (&[tcp, "m", "--expect", "@/no/such/file"], "/no/such/file"),
        (&[tcp, "m", "1", "a=b"], "name all params or none"),
        (&[tcp, "m", "-H", "a: b"], "-H is for http:// and ws://"),
    ] {
        refuses(words, 2, remedy);
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = bench(&["--help"]);
    assert_eq!((help.code, &*help.stderr), (Some(0), ""));
    for part in ["Examples:\n  antiphon bench", "--rate", "exit code 5", "Ctrl-C"] {
        assert!(help.stdout.contains(part), "{part} is missing: {}", help.stdout);
    }
    let script = run(antiphon().args(["completions", "bash"]), b"");
    assert!(script.stdout.contains("--in-flight"));
}
