//! Parses a transcript to its cases.
//!
//! Invariant: an unknown line is an error with its file and number, never skipped, so that a misspelled
//! expectation cannot pass as a comment.

use super::line::{self, HeadLine};
use super::{
    Alternative, CaseFacts, CaseStep, ExpectedMessage, McpRule, Pattern, StatusSet, TranscriptCase,
    TranscriptText,
};

/// Parses the cases of one file. `group` is its name without the extension.
pub(crate) fn parse(group: &str, text: &str) -> Result<Vec<TranscriptCase>, String> {
    let mut transcript = Transcript { group, defaults: CaseFacts::default(), cases: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        let fault = |fault| format!("{group}.wire:{}: {fault}", index + 1);
        transcript.line(line).map_err(fault)?;
    }
    transcript.check().map_err(|fault| format!("{group}.wire: {fault}"))?;
    Ok(transcript.cases)
}

/// A partly parsed file.
struct Transcript<'a> {
    group: &'a str,
    /// The `@` lines before the first case: defaults of every case.
    defaults: CaseFacts,
    cases: Vec<TranscriptCase>,
}

impl Transcript<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            "==" => self.begin(rest),
            "@" => self.fact(rest.trim()),
            "-->" => self.step(CaseStep::Send(TranscriptText::new(rest)?)),
            "-->x" => self.step(CaseStep::Send(TranscriptText::hex(rest)?)),
            "<--" => self.step(CaseStep::Expect(ExpectedMessage {
                any_of: vec![line::expectation(rest)?],
                or: Alternative::default(),
            })),
            "<||" => self.or(rest),
            "<|!" => self.alternative().map(|or| or.silence = true),
            "<|x" => self.alternative().map(|or| or.closed = true),
            "<~~" => self.unordered(line::expectation(rest)?),
            "<-!" => self.step(CaseStep::Nothing),
            ">>" | ">>." | ">>x" => self.step(CaseStep::Raw(line::raw(mark, rest)?)),
            ">f" => {
                line::frame(rest).and_then(|(first, load)| self.step(CaseStep::Frame(first, load)))
            }
            ">h" => line::post_header(rest)
                .and_then(|(name, value)| self.step(CaseStep::Header(name, value))),
            "<<" => self.head(rest),
            "<f" => self
                .step(CaseStep::ExpectFrame(line::expected_frame(rest)?, Alternative::default())),
            "<-x" => self.step(CaseStep::Closed),
            "~~" => self.step(CaseStep::Wait(line::wait(rest)?)),
            ">+" => self.step(CaseStep::Connect(line::crowd(rest, true)?)),
            ">-" => self.step(CaseStep::Connect(line::crowd(rest, false)?)),
            _ => Err(format!("unknown mark {mark:?}; a line starts with one of {MARKS}")),
        }
    }

    fn begin(&mut self, rest: &str) -> Result<(), String> {
        let (name, title) =
            rest.split_once(": ").ok_or("write `== case-name: required behaviour`")?;
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(kebab) {
            return Err(format!("case name {name:?} must be kebab-case: a-z, 0-9 and -"));
        }
        if self.cases.iter().any(|case| case.name == name) {
            return Err(format!("the case name {name:?} is used twice"));
        }
        self.cases.push(TranscriptCase {
            group: self.group.to_owned(),
            name: name.to_owned(),
            title: title.trim().to_owned(),
            why: None,
            facts: self.defaults.clone(),
            steps: Vec::new(),
        });
        Ok(())
    }

    fn fact(&mut self, rest: &str) -> Result<(), String> {
        let (name, text) = rest.split_once(' ').ok_or("write `@ name value`")?;
        let text = text.trim();
        let Some(case) = self.cases.last_mut() else {
            return self.defaults.set(name, text);
        };
        if !case.steps.is_empty() {
            return Err(format!("`@ {name}` must be before the first step of its case"));
        }
        if name == "why" {
            case.why = Some(text.to_owned());
            return Ok(());
        }
        case.facts.set(name, text)
    }

    fn step(&mut self, step: CaseStep) -> Result<(), String> {
        let case =
            self.cases.last_mut().ok_or("a step needs a case: start one with `== name: title`")?;
        let acts = matches!(
            step,
            CaseStep::Send(_)
                | CaseStep::Raw(_)
                | CaseStep::Frame(..)
                | CaseStep::Connect(_)
                | CaseStep::Wait(_)
                | CaseStep::Header(..)
        );
        if case.steps.is_empty() && !acts {
            return Err("a case starts with a message to send: `-->`".to_owned());
        }
        case.steps.push(step);
        Ok(())
    }

    fn last(&mut self) -> Option<&mut CaseStep> {
        self.cases.last_mut().and_then(|case| case.steps.last_mut())
    }

    fn alternative(&mut self) -> Result<&mut Alternative, String> {
        match self.last() {
            Some(CaseStep::Expect(expected)) => Ok(&mut expected.or),
            Some(CaseStep::Response(answer)) => Ok(&mut answer.or),
            Some(CaseStep::ExpectFrame(_, or)) => Ok(or),
            _ => Err("an alternative follows an expectation: `<--`, `<<` or `<f`".to_owned()),
        }
    }

    fn or(&mut self, rest: &str) -> Result<(), String> {
        match self.last() {
            Some(CaseStep::Expect(expected)) => expected.any_of.push(line::expectation(rest)?),
            Some(CaseStep::Response(answer)) => {
                answer.or_statuses.push(StatusSet::parse(rest.trim())?);
            }
            _ => return Err("an alternative follows an expectation: `<--` or `<<`".to_owned()),
        }
        Ok(())
    }

    fn unordered(&mut self, pattern: Pattern) -> Result<(), String> {
        if let Some(CaseStep::Unordered(patterns)) = self.last() {
            patterns.push(pattern);
            return Ok(());
        }
        self.step(CaseStep::Unordered(vec![pattern]))
    }

    fn head(&mut self, rest: &str) -> Result<(), String> {
        match (line::head(rest)?, self.last()) {
            (HeadLine::Begins(answer), _) => self.step(CaseStep::Response(answer)),
            (HeadLine::Header(name, is), Some(CaseStep::Response(answer))) => {
                answer.headers.push((name, is));
                Ok(())
            }
            _ => Err("a header follows the status of its response: `<< 200`".to_owned()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let fault = |case: &TranscriptCase, fault| Err(format!("case {:?} {fault}", case.name));
        for case in &self.cases {
            if case.facts.section.is_empty() {
                return fault(case, "has no section: add `@ section TEXT`");
            }
            if case.facts.watch.is_some() {
                if !case.steps.is_empty() {
                    return fault(case, "has `@ watch`, so it cannot have steps");
                }
                continue;
            }
            if !case.steps.iter().any(is_expectation) {
                return fault(case, "must have an expectation, such as `<--` or `<-!`");
            }
            if matches!(case.steps.last(), Some(CaseStep::Send(_))) {
                return fault(case, "must end with an expectation, such as `<--` or `<-!`");
            }
        }
        Ok(())
    }
}

/// Reports whether a server can fail the step.
fn is_expectation(step: &CaseStep) -> bool {
    use CaseStep::{Closed, Connect, Expect, ExpectFrame, Nothing, Response, Unordered};
    // The probe after the case decides about extra connections.
    matches!(
        step,
        Expect(_) | Unordered(_) | Nothing | Response(_) | ExpectFrame(..) | Closed | Connect(_)
    )
}

impl CaseFacts {
    fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "section" => text.clone_into(&mut self.section),
            "level" => self.level = line::level(text)?,
            "only" => self.only = line::classes(text)?,
            "skip" => self.skip = line::classes(text)?,
            "needs" if text == "nothing" => self.needs = Some(Vec::new()),
            "needs" => self.needs = Some(text.split_whitespace().map(str::to_owned).collect()),
            "unless" => self.unless = line::profiles(text)?,
            "profile" => self.profiles = line::profiles(text)?,
            "order" => self.is_ordered = line::yes(text, "kept")?,
            "alone" => self.is_alone = line::yes(text, "yes")?,
            "handshake" => self.is_without_handshake = line::yes(text, "none")?,
            "era" => self.era = Some(line::era(text)?),
            "watch" => self.watch = Some(McpRule::parse(text)?),
            "hostile" => self.is_hostile = line::yes(text, "yes")?,
            "why" => return Err("`@ why` is for one case, not for a whole file".to_owned()),
            _ => return Err(format!("unknown fact {name:?}; choose one of {FACTS}")),
        }
        Ok(())
    }
}

const MARKS: &str = "#, ==, @, -->, -->x, <--, <||, <|!, <|x, <~~, <-!, <-x, >>, >>., >>x, <<, >h, >f, <f, >+, >- or ~~";
const FACTS: &str = "section, level, why, only, skip, needs, unless, profile, order, alone, handshake, era, watch or hostile";
