//! What do the transcripts of `testdata/wire` say?
//!
//! Text becomes cases, and cases are steps: what is sent, and what must come. It never talks to a
//! server; that is the runner's. The format is described in `testdata/wire/README.md`.
//!
//! Invariant: a line that is not understood is an error with its file and number, never skipped, so
//! that a misspelled expectation cannot pass as a comment.

mod json;
mod pattern;

use std::fmt;

pub(crate) use self::pattern::{Bindings, Pattern};

/// The most bytes that one line may stand for once its repetitions are written out.
const MAX_MESSAGE: usize = 64 << 20;

/// One thing that a server must do.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file's name without its ending.
    pub(crate) group: String,
    /// Stable, and unique across all files.
    pub(crate) name: String,
    /// What must happen, in one sentence.
    pub(crate) title: String,
    /// The section of the specification.
    pub(crate) section: String,
    /// How binding the specification is here.
    pub(crate) level: Level,
    /// Why it matters.
    pub(crate) why: Option<String>,
    /// It needs a wire of one of these classes; of any, if there is none.
    pub(crate) only: Vec<Class>,
    /// It cannot be expressed on a wire of one of these classes.
    pub(crate) skip: Vec<Class>,
    /// What is sent and what must come, in order.
    pub(crate) steps: Vec<Step>,
}

impl Case {
    /// Whether it can be run over this wire.
    pub(crate) fn runs_over(&self, wire: Wire) -> bool {
        let on_one_of = |classes: &[Class]| classes.iter().any(|class| class.has(wire));
        (self.only.is_empty() || on_one_of(&self.only)) && !on_one_of(&self.skip)
    }
}

/// Names the case and what it asks for, to stand above what went wrong.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, name, title, section, level, why, .. } = self;
        write!(f, "{group}/{name}: {title} ({level}, section {section})")?;
        why.as_ref().map_or(Ok(()), |why| write!(f, "\n  why: {why}"))
    }
}

/// How binding the specification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Must,
    Should,
    /// The specification leaves it open; this is what Antiphon does.
    Choice,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Choice => "choice",
        })
    }
}

/// The wires that a case can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Http,
    Ws,
    Line,
    Header,
}

/// A set of wires that a case can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Both sides can send at any time.
    Duplex,
    /// A raw stream of bytes: TCP, a Unix socket, stdio.
    Stream,
    /// One wire alone.
    One(Wire),
}

impl Class {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "duplex" => Ok(Self::Duplex),
            "stream" => Ok(Self::Stream),
            "http" => Ok(Self::One(Wire::Http)),
            "ws" => Ok(Self::One(Wire::Ws)),
            "line" => Ok(Self::One(Wire::Line)),
            "header" => Ok(Self::One(Wire::Header)),
            _ => Err(format!(
                "unknown wire {name:?}; choose duplex, stream, http, ws, line or header"
            )),
        }
    }

    fn has(self, wire: Wire) -> bool {
        match self {
            Self::Duplex => wire != Wire::Http,
            Self::Stream => matches!(wire, Wire::Line | Wire::Header),
            Self::One(one) => one == wire,
        }
    }
}

/// One line of a transcript; adjacent `<~~` lines are one step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send these bytes as one message, after [`Bindings::fill`].
    Send(Vec<u8>),
    /// This message comes next.
    Expect(Pattern),
    /// These come next, in any order.
    ExpectUnordered(Vec<Pattern>),
    /// Nothing comes.
    Nothing,
}

/// Reads the cases of one file, whose name without its ending is `group`.
pub(crate) fn parse(group: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut transcript = Transcript { group, defaults: Facts::default(), cases: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        let fault = |fault| format!("{group}.wire:{}: {fault}", index + 1);
        transcript.line(line).map_err(fault)?;
    }
    transcript.check().map_err(|fault| format!("{group}.wire: {fault}"))?;
    Ok(transcript.cases)
}

/// A file as far as it has been read.
struct Transcript<'a> {
    group: &'a str,
    /// What the `@` lines before the first case say: it holds for every case that says nothing else.
    defaults: Facts,
    cases: Vec<Case>,
}

#[derive(Default)]
struct Facts {
    section: String,
    level: Option<Level>,
    only: Vec<Class>,
    skip: Vec<Class>,
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
            "-->" => self.step(Step::Send(expand(rest)?)),
            "-->x" => self.step(Step::Send(hex(rest)?)),
            "<--" => self.step(Step::Expect(expectation(rest)?)),
            "<~~" => self.unordered(expectation(rest)?),
            "<-!" => self.step(Step::Nothing),
            _ => Err(format!(
                "unknown mark {mark:?}; a line starts with #, ==, @, -->, -->x, <--, <~~ or <-!"
            )),
        }
    }

    fn begin(&mut self, rest: &str) -> Result<(), String> {
        let (name, title) =
            rest.split_once(": ").ok_or("write `== case-name: what must happen`")?;
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(kebab) {
            return Err(format!("case name {name:?} must be kebab-case: a-z, 0-9 and -"));
        }
        if self.cases.iter().any(|case| case.name == name) {
            return Err(format!("case {name:?} is there twice"));
        }
        self.cases.push(Case {
            group: self.group.to_owned(),
            name: name.to_owned(),
            title: title.trim().to_owned(),
            section: self.defaults.section.clone(),
            level: self.defaults.level.unwrap_or(Level::Must),
            why: None,
            only: self.defaults.only.clone(),
            skip: self.defaults.skip.clone(),
            steps: Vec::new(),
        });
        Ok(())
    }

    fn fact(&mut self, rest: &str) -> Result<(), String> {
        let (name, text) = rest.split_once(' ').ok_or("write `@ name value`")?;
        let Some(case) = self.cases.last_mut() else {
            return self.defaults.set(name, text);
        };
        if !case.steps.is_empty() {
            return Err(format!("`@ {name}` must stand before the first step of its case"));
        }
        match name {
            "section" => case.section = text.to_owned(),
            "level" => case.level = level(text)?,
            "why" => case.why = Some(text.to_owned()),
            "only" => case.only = classes(text)?,
            "skip" => case.skip = classes(text)?,
            _ => {
                return Err(format!(
                    "unknown fact {name:?}; choose section, level, why, only or skip"
                ));
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let case =
            self.cases.last_mut().ok_or("a step needs a case: start one with `== name: title`")?;
        if case.steps.is_empty() && !matches!(step, Step::Send(_)) {
            return Err("a case starts with what is sent: `-->`".to_owned());
        }
        case.steps.push(step);
        Ok(())
    }

    fn unordered(&mut self, pattern: Pattern) -> Result<(), String> {
        let last = self.cases.last_mut().and_then(|case| case.steps.last_mut());
        if let Some(Step::ExpectUnordered(patterns)) = last {
            patterns.push(pattern);
            return Ok(());
        }
        self.step(Step::ExpectUnordered(vec![pattern]))
    }

    fn check(&self) -> Result<(), String> {
        let fault = |case: &Case, fault| Err(format!("case {:?} {fault}", case.name));
        for case in &self.cases {
            if case.section.is_empty() {
                return fault(case, "names no section: add `@ section`");
            }
            if matches!(case.steps.last(), None | Some(Step::Send(_))) {
                return fault(case, "must end with what comes, or with `<-!`");
            }
        }
        Ok(())
    }
}

impl Facts {
    fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "section" => self.section = text.to_owned(),
            "level" => self.level = Some(level(text)?),
            "only" => self.only = classes(text)?,
            "skip" => self.skip = classes(text)?,
            _ => {
                return Err(format!(
                    "fact {name:?} cannot hold for a whole file; choose section, level, only or skip"
                ));
            }
        }
        Ok(())
    }
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "MUST" => Ok(Level::Must),
        "SHOULD" => Ok(Level::Should),
        "choice" => Ok(Level::Choice),
        _ => Err(format!("unknown level {text:?}; choose MUST, SHOULD or choice")),
    }
}

fn classes(text: &str) -> Result<Vec<Class>, String> {
    text.split_whitespace().map(Class::parse).collect()
}

fn expectation(text: &str) -> Result<Pattern, String> {
    let text = String::from_utf8(expand(text)?).map_err(|_| "an expectation must be UTF-8")?;
    Pattern::parse(&text)
}

/// Writes out `<<TEXT x N>>` (TEXT, N times) and `<<C3 A9>>` (these bytes).
fn expand(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("<<") {
        let (inner, after) = from.split_once(">>").ok_or("`<<` without `>>`")?;
        bytes.extend_from_slice(before.as_bytes());
        match repetition(inner) {
            Some((text, times)) if text.len().saturating_mul(times) > MAX_MESSAGE => {
                return Err(format!("`<<{inner}>>` is longer than {MAX_MESSAGE} bytes"));
            }
            Some((text, times)) => bytes.extend(text.repeat(times).bytes()),
            None => bytes.extend(hex(inner)?),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn repetition(inner: &str) -> Option<(&str, usize)> {
    let (text, times) = inner.rsplit_once(" x ")?;
    Some((text, times.parse().ok()?))
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let fault = || format!("{text:?} is neither bytes in hex (`7B FF`) nor a repetition (`[ x 9`)");
    let byte = |pair: &str| match pair.len() {
        2 => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    };
    text.split_whitespace().map(|pair| byte(pair).ok_or_else(fault)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const CASE: &str = "@ section 4\n== a: it works\n--> 1\n<-! nothing\n";

    fn one(text: &str) -> Case {
        parse("group", text).unwrap().pop().unwrap()
    }

    fn sent(line: &str) -> Vec<u8> {
        let case = one(&format!("@ section 4\n== a: it works\n{line}\n<-!\n"));
        match &case.steps[0] {
            Step::Send(bytes) => bytes.clone(),
            other => panic!("{other:?} is no send"),
        }
    }

    #[test]
    fn a_case_has_its_facts_and_steps() {
        let case = one(
            "# what it is about\n@ section 4\n@ level SHOULD\n\n== a-1: it works: always\n@ section 4.1\n\
             @ level choice\n@ why it matters\n@ only duplex\n@ skip line ws\n--> {}\n<-- 1\n<~~ 2\n<~~ 3\n<-!\n",
        );
        assert_eq!((&*case.group, &*case.name, &*case.title), ("group", "a-1", "it works: always"));
        assert_eq!((&*case.section, case.level), ("4.1", Level::Choice));
        assert_eq!(
            case.to_string(),
            "group/a-1: it works: always (choice, section 4.1)\n  why: it matters"
        );
        assert!(matches!(
            &case.steps[..],
            [Step::Send(_), Step::Expect(_), Step::ExpectUnordered(two), Step::Nothing] if two.len() == 2
        ));
    }

    #[test]
    fn facts_of_the_file_hold_until_a_case_says_otherwise() {
        let text = "@ section 6\n@ level SHOULD\n@ only duplex\n== a: x\n--> 1\n<-!\n== b: y\n@ level MUST\n@ only http\n--> 1\n<-!\n";
        let cases = parse("group", text).unwrap();
        assert_eq!((cases[0].level, cases[0].runs_over(Wire::Http)), (Level::Should, false));
        assert_eq!((cases[1].level, cases[1].runs_over(Wire::Http)), (Level::Must, true));
        assert_eq!(one(CASE).level, Level::Must);
    }

    #[test]
    fn wires_are_chosen() {
        let over = |facts: &str| {
            let case = one(&CASE.replace("--> ", &format!("{facts}\n--> ")));
            [Wire::Http, Wire::Ws, Wire::Line, Wire::Header].map(|wire| case.runs_over(wire))
        };
        assert_eq!(over(""), [true, true, true, true]);
        assert_eq!(over("@ only duplex"), [false, true, true, true]);
        assert_eq!(over("@ only stream"), [false, false, true, true]);
        assert_eq!(over("@ only http ws"), [true, true, false, false]);
        assert_eq!(over("@ skip line"), [true, true, false, true]);
        assert_eq!(over("@ only duplex\n@ skip line"), [false, true, false, true]);
    }

    #[test]
    fn messages_are_sent_as_written() {
        assert_eq!(sent("-->  a  "), b" a  ");
        assert_eq!(sent("-->"), b"");
        assert_eq!(sent("--> "), b"");
        assert_eq!(sent("-->x 7B 22 ff"), b"{\"\xFF");
        assert_eq!(sent("--> [<<1, x 3>>4]<<0A C3>>"), b"[1,1,1,4]\n\xC3");
        assert_eq!(sent("--> <<a x  x 2>>"), b"a x a x ");
    }

    #[test]
    fn faults_name_the_file_and_the_line() {
        for (text, line, part) in [
            ("--> 1", 1, "needs a case"),
            ("== a", 1, "case-name"),
            ("== A b: c", 1, "kebab-case"),
            ("\n<- 1", 2, "unknown mark"),
            ("== a: b\n<-- 1", 2, "starts with what is sent"),
            ("== a: b\n--> 1\n@ level MUST", 3, "before the first step"),
            ("== a: b\n--> 1\n<-- {", 3, "not JSON"),
            ("== a: b\n--> <<x", 2, "without `>>`"),
            ("== a: b\n--> <<xyz>>", 2, "hex"),
            ("== a: b\n--> <<xx x 999999999>>", 2, "longer than"),
            ("== a: b\n-->x 7B2", 2, "hex"),
            ("== a: b\n@ level must", 2, "MUST, SHOULD or choice"),
            ("== a: b\n@ only tcp", 2, "choose duplex"),
            ("== a: b\n@ colour red", 2, "unknown fact"),
            ("@ why not", 1, "whole file"),
            ("== a: b\n== a: b", 2, "twice"),
        ] {
            let fault = parse("group", text).unwrap_err();
            assert!(fault.starts_with(&format!("group.wire:{line}: ")), "{fault}");
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_case_needs_a_section_and_an_end() {
        assert!(parse("group", "== a: b\n--> 1\n<-!").unwrap_err().contains("no section"));
        assert!(parse("group", "@ section 4\n== a: b\n--> 1").unwrap_err().contains("must end"));
        assert!(parse("group", "@ section 4\n== a: b").unwrap_err().contains("must end"));
    }

    #[test]
    fn every_transcript_parses_and_every_name_is_its_own() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/wire");
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "wire") {
                continue;
            }
            let group = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# "), "{group}.wire must open with what it is about");
            for case in parse(group, &text).unwrap() {
                if let Some(other) = names.insert(case.name.clone(), group.to_owned()) {
                    panic!("case {:?} is in {group}.wire and in {other}.wire", case.name);
                }
            }
        }
        assert!(names.len() >= 200, "only {} cases", names.len());
    }
}
