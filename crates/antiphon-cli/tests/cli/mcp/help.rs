//! `--help` of each command, and the completions.

use super::servers::mcp;
use crate::support::{antiphon, run};

const COMMANDS: [&str; 10] =
    ["list", "call", "read", "prompt", "complete", "listen", "login", "logout", "serve", "bridge"];

#[test]
fn help_fits_a_terminal() {
    for command in COMMANDS {
        let ended = mcp(&[command, "--help"]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("Usage: antiphon mcp"), "{}", ended.stdout);
        // The flags have the width of those of the other commands.
        let (flags, rest) = ended.stdout.split_once("Examples:").unwrap_or((&ended.stdout, ""));
        for (lines, width) in [(flags, 100), (rest, 80)] {
            let mut lines = lines.lines().filter(|line| !line.contains("Usage:"));
            let too_long = lines.find(|line| line.chars().count() > width);
            assert_eq!(too_long, None, "{command}");
        }
    }
}

/// Each example of the help is a command line that is understood: with `--help` it prints the help again.
#[test]
fn examples_can_be_pasted() {
    for command in COMMANDS {
        let help = mcp(&[command, "--help"]).stdout;
        let Some((_, examples)) = help.split_once("Examples:\n") else { continue };
        let examples = examples.replace("\\\n", " ");
        let lines = examples.lines().map(str::trim).filter(|line| line.starts_with("antiphon "));
        let lines: Vec<_> = lines.collect();
        assert!(!lines.is_empty(), "{command}");
        for line in lines {
            let line = line.split(" | ").next().unwrap().split("  #").next().unwrap();
            let words = shell_words::split(line).unwrap();
            let ended = run(antiphon().args(&words[1..]).arg("--help"), b"");
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{line}");
            assert!(words.iter().any(|word| word == command), "{line}");
        }
    }
}

#[test]
fn completions_have_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(antiphon().args(["completions", shell]), b"").stdout;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} {command}");
        }
        assert!(script.contains("per-session"), "{shell}");
    }
}
