//! `antiphon completions`: shell completion scripts.
//!
//! clap generates the static part. For methods and params, a few lines of each script run
//! `antiphon completions SHELL LINE`, which queries the endpoint on that line. clap's own engine for
//! dynamic completion is marked unstable, and does not pass the other words of the line.

mod candidates;

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use self::candidates::candidates;
pub(crate) use self::candidates::{is_plain, params};
use crate::cli::Cli;
use crate::exit::{CommandError, Exit};
use crate::output;

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Print the script for this shell
    shell: Shell,
    /// A command line up to the cursor: print the completions that its endpoint offers
    #[arg(hide = true, allow_hyphen_values = true)]
    line: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon completions zsh > ~/.zfunc/_antiphon
  antiphon completions fish > ~/.config/fish/completions/antiphon.fish
  antiphon completions bash > \\
      ~/.local/share/bash-completion/completions/antiphon
  source <(antiphon completions bash)     # for this shell only

bash, zsh and fish also complete METHOD and param names if the server at
ENDPOINT supports rpc.discover. The query takes at most one second. An exec:
endpoint is not queried, since completion must not start a process.";

pub(crate) async fn run(args: CompletionsArgs) -> Result<Exit, CommandError> {
    let text = match &args.line {
        Some(line) => candidates(line).await.join("\n"),
        None => script(args.shell),
    };
    if !text.is_empty() {
        output::line(&text)?;
    }
    Ok(Exit::Success)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "antiphon", &mut script);
    with_dynamic(shell, &String::from_utf8_lossy(&script)).trim_end().to_owned()
}

/// Adds the part that queries the endpoint.
fn with_dynamic(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let registered =
                script.replace("complete -F _antiphon ", "complete -F _antiphon_dynamic ");
            registered + include_str!("dynamic.bash")
        }
        Shell::Zsh => {
            let begin = "\n_antiphon() {\n";
            script.replacen(begin, &format!("{begin}{}", include_str!("dynamic.zsh")), 1)
        }
        Shell::Fish => script.to_owned() + include_str!("dynamic.fish"),
        _ => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a new version of clap changes its scripts, so that the replacements no longer apply.
    #[test]
    fn each_script_queries_the_endpoint() {
        for (shell, query) in [
            (Shell::Bash, "complete -F _antiphon_dynamic -o"),
            (Shell::Zsh, "_antiphon() {\n    # Candidates of the endpoint"),
            (Shell::Fish, "(__antiphon_dynamic)"),
        ] {
            let script = script(shell);
            assert!(script.contains(query), "{shell}");
            assert!(script.contains(&format!(" completions {shell} ")), "{shell}");
        }
    }
}
