//! One line of a session: a call, or a command.

mod variable;
mod wait;
mod word;

use antiphon::{Invocation, RawJson};
use serde_json::Value;

use self::variable::identifier;
pub(crate) use self::variable::{LAST, Variables};
pub(super) use self::wait::WaitWords;
use self::word::Word;
use crate::answers::Rule;
use crate::exit::CommandError;
use crate::handshake::document::FilePosition;
use crate::open_connection::OpenConnection;
use crate::params::ParamArgs;

/// The commands of a session. Any other first word is a method.
pub(super) const COMMANDS: [&str; 10] =
    ["answer", "call", "clear", "exit", "help", "notify", "open", "reply", "vars", "wait"];

/// A parsed line.
#[derive(Debug)]
pub(crate) struct Line {
    /// The variable that gets the result.
    pub(super) variable: Option<String>,
    pub(super) step: Step,
}

/// The action of a line.
#[derive(Debug)]
pub(super) enum Step {
    Call(CallWords),
    Notify(CallWords),
    /// Opens a document.
    Open(Word),
    Wait(WaitWords),
    /// Adds a rule for answers.
    Answer(Vec<Word>),
    /// Prints a variable.
    Show(Word),
    /// Discards the messages from the server.
    Clear,
    /// Prints the names of the variables.
    Variables,
    Help,
    Exit,
}

/// The words of a call or of a notification.
#[derive(Debug)]
pub(super) struct CallWords {
    pub(super) method: String,
    params: Vec<Word>,
    data: Option<Word>,
    at: Option<Word>,
}

impl Line {
    /// Parses a line. Returns `None` for a blank line or a comment.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, CommandError> {
        let mut words = word::split(text)?;
        let mut variable = None;
        if let [name, equals, ..] = &*words
            && equals.bare().as_deref() == Some("=")
        {
            variable = Some(variable_name(name)?);
            words.drain(..2);
        }
        if words.is_empty() {
            return match variable {
                None => Ok(None),
                Some(name) => Err(CommandError::usage(format!("`{name} =` has no call"))
                    .hint(format!("write `{name} = METHOD PARAM...`"))),
            };
        }
        let step = Step::parse(words)?;
        match &variable {
            Some(name) if !step.has_result() => {
                Err(CommandError::usage(format!("there is no result to store in `{name}`"))
                    .hint("calls, `wait` and `open` have a result"))
            }
            _ => Ok(Some(Self { variable, step })),
        }
    }

    /// Returns whether the result is printed. A stored result is not printed. The identifier of a document is not
    /// printed either, because it does not come from the server.
    pub(super) fn prints(&self) -> bool {
        self.variable.is_none() && !matches!(self.step, Step::Open(_))
    }

    /// Returns whether the line ends the session.
    pub(super) fn ends(&self) -> bool {
        matches!(self.step, Step::Exit)
    }

    /// Returns the method of a call, a notification or a `wait`.
    pub(super) fn method(&self) -> Option<&str> {
        match &self.step {
            Step::Call(call) | Step::Notify(call) => Some(&call.method),
            Step::Wait(wait) => Some(&wait.method),
            _ => None,
        }
    }
}

fn variable_name(word: &Word) -> Result<String, CommandError> {
    match word.bare() {
        Some(name) if identifier(&name) == Some(&name) => Ok(name),
        name => Err(CommandError::usage(format!(
            "`{}` is not the name of a variable",
            name.unwrap_or_default()
        ))
        .hint(
            "use letters, digits and `_`, as in `tip = METHOD`; to send `=` as a param, write '='",
        )),
    }
}

impl Step {
    fn parse(mut words: Vec<Word>) -> Result<Self, CommandError> {
        let first = words.remove(0);
        if first.variable().is_some() && words.is_empty() {
            return Ok(Self::Show(first));
        }
        let command = first.bare().unwrap_or_default();
        let step = match &*command {
            "call" => Self::Call(CallWords::parse(&command, words)?),
            "notify" => Self::Notify(CallWords::parse(&command, words)?),
            "wait" => Self::Wait(WaitWords::parse(words)?),
            "open" => Self::Open(only(&command, words, "a file, such as `open main.c`")?),
            "answer" if words.is_empty() => {
                return Err(missing(&command, "a rule, such as `answer window/*=null`"));
            }
            "answer" => Self::Answer(words),
            // With `--ask`, the prompt handles `reply` itself, even while a call runs.
            "reply" => {
                return Err(CommandError::usage("`reply` works only at a prompt with --ask").hint(
                    "start the session with --ask; `call reply` calls a method of this name",
                ));
            }
            "clear" | "vars" | "help" | "exit" => Self::alone(&command, &words)?,
            _ => {
                words.insert(0, first);
                Self::Call(CallWords::parse("call", words)?)
            }
        };
        Ok(step)
    }

    /// Parses a command without arguments.
    fn alone(command: &str, words: &[Word]) -> Result<Self, CommandError> {
        if !words.is_empty() {
            let what = format!("`{command}` is a command of the session without arguments");
            return Err(CommandError::usage(what)
                .hint(format!("`call {command} ...` calls a method of this name")));
        }
        Ok(match command {
            "clear" => Self::Clear,
            "vars" => Self::Variables,
            "help" => Self::Help,
            _ => Self::Exit,
        })
    }

    fn has_result(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Open(_) | Self::Wait(_) | Self::Show(_))
    }
}

fn missing(command: &str, what: &str) -> CommandError {
    CommandError::usage(format!("`{command}` needs {what}"))
        .hint(format!("`call {command}` calls a method of this name"))
}

/// Returns the only word.
fn only(command: &str, words: Vec<Word>, what: &str) -> Result<Word, CommandError> {
    match <[Word; 1]>::try_from(words) {
        Ok([word]) => Ok(word),
        Err(_) => Err(missing(command, what)),
    }
}

fn method(command: &str, words: &mut std::vec::IntoIter<Word>) -> Result<String, CommandError> {
    let example = format!("a method, such as `{command} METHOD`");
    let word = words.next().ok_or_else(|| missing(command, &example))?;
    word.plain().filter(|method| !method.is_empty()).ok_or_else(|| {
        CommandError::usage("the method is not a plain word")
            .hint("write its name; a line with only `$name` prints a variable")
    })
}

impl CallWords {
    fn parse(command: &str, words: Vec<Word>) -> Result<Self, CommandError> {
        let mut words = words.into_iter();
        let method = method(command, &mut words)?;
        let mut call = Self { method, params: Vec::new(), data: None, at: None };
        while let Some(word) = words.next() {
            let flag = word.bare();
            let value = match flag.as_deref() {
                Some("--") => {
                    call.params.extend(words);
                    break;
                }
                Some("-d" | "--data") => &mut call.data,
                Some("--at") => &mut call.at,
                Some(flag) if is_flag(flag) => return Err(unknown_flag(flag)),
                _ => {
                    call.params.push(word);
                    continue;
                }
            };
            let usage =
                if flag.as_deref() == Some("--at") { "--at FILE:LINE:COLUMN" } else { "-d JSON" };
            let missing = || {
                CommandError::usage(format!("`{}` has no value", flag.unwrap_or_default()))
                    .hint(format!("write `{usage}`"))
            };
            *value = Some(words.next().ok_or_else(missing)?);
        }
        if call.data.is_some() && !call.params.is_empty() {
            return Err(CommandError::usage("-d and other params cannot be combined")
                .hint("-d has all params, as one Array or Object"));
        }
        Ok(call)
    }

    /// Returns the call with the values of its variables, and opens the document of `--at`.
    pub(super) async fn invocation(
        &self,
        connection: &mut OpenConnection,
    ) -> Result<Invocation, CommandError> {
        let variables = &connection.variables;
        let params = self.params.iter().map(|word| word.param(variables));
        let params = params.collect::<Result<Vec<_>, _>>()?;
        let data = self.data.as_ref().map(|word| word.json(variables)).transpose()?;
        if data.as_deref() == Some("-") {
            return Err(CommandError::usage("-d - cannot read stdin in a session")
                .hint("use -d JSON or -d @FILE"));
        }
        let params = ParamArgs::new(params, data);
        let params = match &self.at {
            None => params.read()?,
            Some(at) => {
                let at = FilePosition::parse(&at.text(variables)?).map_err(CommandError::usage)?;
                // An invalid param is reported before the document is opened.
                params.read_after(&[("textDocument", Value::Null)])?;
                Some(params.read_after(&connection.params_at(&at).await?)?)
            }
        };
        Ok(Invocation::new(&self.method, params))
    }
}

/// Returns whether a word is a flag and not a negative number.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| !c.is_ascii_digit()))
}

fn unknown_flag(flag: &str) -> CommandError {
    CommandError::usage(format!("`{flag}` is not a flag of a line")).hint(format!(
        "the flags are -d JSON and --at FILE:LINE:COLUMN; `-- {flag}` sends it as a param"
    ))
}

/// Returns the value of a line that consists of a variable.
pub(super) fn value(word: &Word, variables: &Variables) -> Result<RawJson, CommandError> {
    match word.variable() {
        Some(path) => variables.get(path),
        None => Ok(RawJson::NULL),
    }
}

/// Returns the rule of `answer` with the values of its variables.
pub(super) fn rule(words: &[Word], variables: &Variables) -> Result<Rule, CommandError> {
    let texts = words.iter().map(|word| word.json(variables));
    let text = texts.collect::<Result<Vec<_>, _>>()?.join(" ");
    Rule::parse(&text).map_err(CommandError::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_a_command_or_a_method() {
        let step = |text: &str| format!("{:?}", Line::parse(text).unwrap().unwrap());
        for (text, expected) in [
            ("sum 1 -2", "Call(CallWords { method: \"sum\""),
            ("call exit", "Call(CallWords { method: \"exit\""),
            ("'wait' 1", "Call(CallWords { method: \"wait\""),
            ("notify exit", "Notify(CallWords { method: \"exit\""),
            ("tip = sum 1", "variable: Some(\"tip\"), step: Call"),
            ("d = open a.c", "variable: Some(\"d\"), step: Open"),
            ("x = $tip.a", "variable: Some(\"x\"), step: Show"),
            ("$tip.a # it", "step: Show"),
            ("wait a 500ms", "timeout: Some(500ms)"),
            ("$/cancel id:=1", "method: \"$/cancel\""),
        ] {
            assert!(step(text).contains(expected), "{text}: {}", step(text));
        }
        for blank in ["", "  ", "# comment", "  # x = y"] {
            assert!(Line::parse(blank).unwrap().is_none(), "{blank}");
        }
    }

    #[test]
    fn a_wrong_line_names_the_remedy() {
        for (text, remedy) in [
            ("1 = sum", "use letters"),
            ("a-b = sum", "`a-b` is not the name"),
            ("x =", "x = METHOD PARAM"),
            ("x = notify a", "no result to store"),
            ("x = exit", "no result to store"),
            ("exit 1", "call exit"),
            ("open", "open main.c"),
            ("open a b", "open main.c"),
            ("answer", "answer window/*=null"),
            ("notify", "notify METHOD"),
            ("wait", "wait METHOD"),
            ("$x 1", "prints a variable"),
            ("sum --raw", "`-- --raw` sends it"),
            ("sum -d", "write `-d JSON`"),
            ("sum --data", "`--data` has no value"),
            ("sum --at", "write `--at FILE:LINE:COLUMN`"),
            ("a-b = sum", "to send `=` as a param, write '='"),
            ("sum 1 -d [2]", "cannot be combined"),
        ] {
            let fault = format!("{:?}", Line::parse(text).unwrap_err());
            assert!(fault.contains(remedy), "{text}: {fault}");
        }
    }
}
