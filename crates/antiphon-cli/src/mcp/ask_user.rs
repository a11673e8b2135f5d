//! The questions of a server, answered by the user on the terminal or by flags.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;

use antiphon::ErrorObject;
use antiphon_mcp::client::McpClientBuilder;
use antiphon_mcp::types::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, JsonObject, SamplingContent,
};
use clap::Args;
use serde_json::Value;

use super::form_field::{Answer, FormField};
use crate::exit::CommandError;
use crate::openrpc::table;
use crate::{output, waiting_line};

/// The flags that answer questions of the server.
#[derive(Clone, Debug, Args)]
pub(super) struct AnswerFlags {
    /// Fill in this field of the forms of the server, with a text or with a JSON value [repeatable]
    #[arg(long, value_name = "FIELD=TEXT|FIELD:=JSON")]
    answer: Vec<String>,
    /// Answer requests of the server to a language model with this text
    #[arg(long, value_name = "TEXT")]
    model_answer: Option<String>,
    /// Do not ask the user on the terminal
    #[arg(long)]
    no_ask: bool,
}

/// The answers given by flags, and whether the user can be asked on the terminal.
pub(super) struct AskUser {
    answers: BTreeMap<String, Answer>,
    model_answer: Option<String>,
    is_terminal: bool,
}

impl AskUser {
    pub(super) fn new(flags: &AnswerFlags) -> Result<Self, CommandError> {
        let answers =
            flags.answer.iter().map(|text| Answer::parse(text)).collect::<Result<_, _>>()?;
        // Questions go to stderr, so stdout may be a pipe.
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let model_answer = flags.model_answer.clone();
        Ok(Self { answers, model_answer, is_terminal: is_terminal && !flags.no_ask })
    }

    /// Declares what can be answered.
    pub(super) fn declare(self: Arc<Self>, mut builder: McpClientBuilder) -> McpClientBuilder {
        let user = self.clone();
        let elicit = move |params| {
            let user = user.clone();
            async move { on_blocking_thread(move || user.elicit(params)).await }
        };
        if self.is_terminal {
            builder = builder.on_elicit(elicit);
        } else if !self.answers.is_empty() {
            builder = builder.on_elicit_form(elicit);
        }
        if self.is_terminal || self.model_answer.is_some() {
            let user = self.clone();
            builder = builder.on_sample(move |params| {
                let user = user.clone();
                async move { on_blocking_thread(move || user.sample(&params)).await }
            });
        }
        builder
    }

    fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        match params {
            ElicitParams::Form(form) => self.fill_in(&form),
            ElicitParams::Url(url) => self.open(&url),
            _ => Err(ErrorObject::invalid_params()),
        }
    }

    /// Fills in a form, field by field.
    fn fill_in(&self, form: &ElicitFormParams) -> Result<ElicitResult, ErrorObject> {
        let schema = &form.requested_schema;
        output::note(&format!("The server asks: {}", indented(&form.message)));
        if self.is_terminal && !schema.properties.is_empty() {
            output::note(&output::dim("enter: the default; !decline, !cancel: no answer"));
        }
        let mut content = JsonObject::new();
        for (name, field) in &schema.properties {
            let field = serde_json::to_value(field).map_err(ErrorObject::internal)?;
            let is_required = schema.required.contains(name);
            match self.fill_in_field(&FormField { name, schema: &field, is_required }) {
                FieldAnswer::Value(value) => drop(content.insert(name.clone(), value)),
                FieldAnswer::Nothing => {}
                FieldAnswer::End(action) => return Ok(ElicitResult::new(action)),
            }
        }
        Ok(ElicitResult::accept(content))
    }

    fn fill_in_field(&self, field: &FormField<'_>) -> FieldAnswer {
        if let Some(answer) = self.answers.get(field.name) {
            match field.read_answer(answer) {
                Ok(value) => return FieldAnswer::Value(value),
                Err(reason) => {
                    output::note(&output::visible(&format!("--answer {}: {reason}", field.name)));
                    if !self.is_terminal {
                        return FieldAnswer::End(ElicitAction::Cancel);
                    }
                }
            }
        }
        if self.is_terminal { ask_field(field) } else { without_asking(field) }
    }

    /// Shows a URL. It is never opened by itself: the server chose it.
    fn open(&self, params: &ElicitUrlParams) -> Result<ElicitResult, ErrorObject> {
        output::note(&format!("The server asks: {}", indented(&params.message)));
        output::note(&format!("Open this page if you trust it: {}", output::visible(&params.url)));
        output::draw("done? [y]es, [d]ecline, [c]ancel: ");
        Ok(ElicitResult::new(match read_line().as_deref() {
            Some("y" | "yes") => ElicitAction::Accept,
            Some("d" | "decline") => ElicitAction::Decline,
            _ => ElicitAction::Cancel,
        }))
    }

    /// Answers in place of a model.
    fn sample(&self, params: &CreateMessageParams) -> Result<CreateMessageResult, ErrorObject> {
        let answer = match &self.model_answer {
            Some(answer) => answer.clone(),
            None => {
                output::note("The server asks a model. Answer in its place:");
                let texts = params.messages.iter().flat_map(|message| &message.content);
                for text in texts.filter_map(SamplingContent::as_text) {
                    output::note(&output::dim(&format!("  {}", indented(text))));
                }
                output::draw("answer: ");
                let refused = || ErrorObject::new(-1, "User rejected sampling request");
                read_line().filter(|line| !line.is_empty()).ok_or_else(refused)?
            }
        };
        Ok(CreateMessageResult::new("user", SamplingContent::text(answer)))
    }
}

enum FieldAnswer {
    Value(Value),
    /// An optional field stays empty.
    Nothing,
    End(ElicitAction),
}

/// Asks until the answer is valid.
fn ask_field(field: &FormField<'_>) -> FieldAnswer {
    loop {
        // On one line, so that a server cannot write lines that look like those of the command.
        output::draw(&format!("{} ", table::cell(&field.prompt())));
        let Some(line) = read_line() else { return FieldAnswer::End(ElicitAction::Cancel) };
        match (line.as_str(), field.default()) {
            ("!decline", _) => return FieldAnswer::End(ElicitAction::Decline),
            ("!cancel", _) => return FieldAnswer::End(ElicitAction::Cancel),
            ("", Some(default)) => return FieldAnswer::Value(default.clone()),
            ("", None) if !field.is_required => return FieldAnswer::Nothing,
            _ => {}
        }
        match field.read_line(&line) {
            Ok(value) => return FieldAnswer::Value(value),
            Err(reason) => output::note(&output::visible(&reason)),
        }
    }
}

/// The value of a field that neither a flag nor the user fills in.
fn without_asking(field: &FormField<'_>) -> FieldAnswer {
    match field.default() {
        Some(default) => FieldAnswer::Value(default.clone()),
        None if field.is_required => {
            let name = output::visible(field.name);
            output::note(&format!("the form is cancelled: --answer {name}=TEXT is missing"));
            FieldAnswer::End(ElicitAction::Cancel)
        }
        None => FieldAnswer::Nothing,
    }
}

/// A text of the server whose further lines do not look like those of the command.
fn indented(text: &str) -> String {
    output::visible(text).replace('\n', "\n  ")
}

/// Reads a line of stdin; `None` at its end.
fn read_line() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    matches!(read, Ok(1..)).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Runs code that waits for the user. Other messages of the connection go on.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    // One question after the other: they share the terminal.
    static TERMINAL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _terminal = TERMINAL.lock().await;
    let _alone = waiting_line::Hidden::new();
    let answered = tokio::task::spawn_blocking(work).await;
    answered.unwrap_or_else(|panic| Err(ErrorObject::internal(panic)))
}
