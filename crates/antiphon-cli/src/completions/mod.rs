//! `antiphon completions`: what a shell needs to complete the command line.
//!
//! clap writes what can be known beforehand. The rest, which is what the endpoint on the line has to
//! say, is asked of `antiphon completions SHELL LINE` by a few lines of each shell. clap's own engine for that is
//! marked unstable, and tells a completer nothing of the other words on the line.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::openrpc::suggest::suggestions;
use crate::output;

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
    /// A command line up to the cursor: print what its endpoint would complete it with
    #[arg(hide = true, allow_hyphen_values = true)]
    line: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon completions bash > ~/.local/share/bash-completion/completions/antiphon
  antiphon completions zsh > ~/.zfunc/_antiphon
  antiphon completions fish > ~/.config/fish/completions/antiphon.fish
  source <(antiphon completions bash)                for this shell only

In bash, zsh and fish METHOD and the names of params are completed too, where the ENDPOINT on the line
describes itself by rpc.discover. It is asked for a second at most. exec: is not, since completing
should start nothing.";

pub(crate) async fn run(args: CompletionsArgs) -> Result<Exit, Failure> {
    let text = match &args.line {
        Some(line) => suggestions(line).await.join("\n"),
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
    live(shell, &String::from_utf8_lossy(&script)).trim_end().to_owned()
}

/// The script with what asks the endpoint.
fn live(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let registered =
                script.replace("complete -F _antiphon ", "complete -F _antiphon_live ");
            registered + include_str!("live.bash")
        }
        Shell::Zsh => {
            let begin = "\n_antiphon() {\n";
            script.replacen(begin, &format!("{begin}{}", include_str!("live.zsh")), 1)
        }
        Shell::Fish => script.to_owned() + include_str!("live.fish"),
        _ => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap may write its scripts otherwise one day.
    #[test]
    fn each_script_asks_the_endpoint() {
        for (shell, asked_by) in [
            (Shell::Bash, "complete -F _antiphon_live -o"),
            (Shell::Zsh, "_antiphon() {\n    # What the endpoint"),
            (Shell::Fish, "(__antiphon_live)"),
        ] {
            let script = script(shell);
            assert!(script.contains(asked_by), "{shell}");
            assert!(script.contains(&format!(" completions {shell} ")), "{shell}");
        }
    }
}
