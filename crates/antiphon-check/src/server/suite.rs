//! The cases of a run: the shipped transcripts, or files of the user.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::CheckError;
use crate::selection::{CaseSummary, Selection};
use crate::transcript::{Profile, TranscriptCase, parse};

/// The shipped transcripts, in the order of the run.
macro_rules! shipped {
    ($($group:literal)*) => {
        &[$(($group, include_str!(concat!("../../testdata/wire/", $group, ".wire")))),*]
    };
}

const SHIPPED: &[(&str, &str)] = shipped! {
    "examples" "ids" "envelope" "batch" "parse" "notifications" "params" "shape" "errors" "reserved"
    "streams" "pipelining" "reverse" "http" "websocket" "limits" "lsp" "bitcoin" "ethereum"
    "mcp-legacy" "mcp-modern" "mcp-messages" "hostile"
};

/// The cases of a run.
#[derive(Clone, Debug)]
pub struct Suite {
    pub(super) cases: Vec<TranscriptCase>,
    is_shipped: bool,
}

impl Suite {
    /// Returns the transcripts that are built in.
    ///
    /// # Errors
    ///
    /// Never, unless a shipped transcript is malformed; a test rules that out.
    pub fn shipped() -> Result<Self, CheckError> {
        Self::checked(shipped()?, true)
    }

    /// Reads transcripts from files.
    ///
    /// # Errors
    ///
    /// A file cannot be read, is malformed or empty, or two cases have one name.
    pub fn from_files(files: &[PathBuf]) -> Result<Self, CheckError> {
        Self::checked(of_files(files)?, false)
    }

    fn checked(cases: Vec<TranscriptCase>, is_shipped: bool) -> Result<Self, CheckError> {
        let mut groups = HashMap::new();
        for case in &cases {
            if let Some(other) = groups.insert(&case.name, &case.group) {
                return Err(CheckError::usage(format!(
                    "the case {} is in {other} and in {}",
                    case.name, case.group
                ))
                .hint("a baseline refers to cases by name, so each name must be unique"));
            }
        }
        Ok(Self { cases, is_shipped })
    }

    /// Keeps the chosen cases.
    ///
    /// # Errors
    ///
    /// A pattern matches no case, or no case is left.
    pub fn select(&mut self, selection: &Selection) -> Result<(), CheckError> {
        selection.apply(&mut self.cases, TranscriptCase::summary)
    }

    /// Returns the cases, in the order of the run.
    pub fn summaries(&self) -> impl ExactSizeIterator<Item = CaseSummary<'_>> {
        self.cases.iter().map(TranscriptCase::summary)
    }

    /// Returns the cases with the groups of the profile first, so that a short run covers them.
    pub(super) fn in_order_for(&self, profile: Profile) -> Vec<TranscriptCase> {
        let own: HashSet<&str> = self
            .cases
            .iter()
            .filter(|case| case.facts.profiles.contains(&profile))
            .map(|case| &*case.group)
            .collect();
        let (mut first, rest): (Vec<_>, Vec<_>) =
            self.cases.iter().cloned().partition(|case| own.contains(&*case.group));
        first.extend(rest);
        first
    }

    /// Reports whether the transcripts are the built-in ones.
    pub fn is_shipped(&self) -> bool {
        self.is_shipped
    }
}

fn shipped() -> Result<Vec<TranscriptCase>, CheckError> {
    let cases: Result<Vec<_>, _> = SHIPPED.iter().map(|(group, text)| parse(group, text)).collect();
    Ok(cases.map_err(CheckError::usage)?.concat())
}

fn of_files(files: &[PathBuf]) -> Result<Vec<TranscriptCase>, CheckError> {
    let mut cases = Vec::new();
    for path in files {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CheckError::usage(format!("cannot read {name}: {error}")))?;
        let group = group_of(path);
        let found = parse(&group, without_mark(&text)).map_err(|fault| {
            let rest = fault.strip_prefix(&format!("{group}.wire")).unwrap_or(&fault);
            CheckError::usage(format!("{name}{rest}"))
                .hint("Antiphon's testdata/wire/README.md describes the format")
        })?;
        if found.is_empty() {
            return Err(CheckError::usage(format!("{name} has no case"))
                .hint("a case begins with `== its-name: what must happen`"));
        }
        cases.extend(found);
    }
    Ok(cases)
}

/// Returns the text without the byte order mark that some editors write.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn group_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transcript_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/wire");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "wire"))
            .map(|path| group_of(&path))
            .collect();
        let mut groups: Vec<&str> = SHIPPED.iter().map(|(group, _)| *group).collect();
        files.sort();
        groups.sort_unstable();
        assert_eq!(groups, files);
        for (group, text) in SHIPPED {
            assert!(
                text.starts_with("# "),
                "{group}.wire must begin with a comment about its subject"
            );
        }
    }

    #[test]
    fn the_group_of_the_profile_runs_first() {
        let suite = Suite::shipped().unwrap_or_else(|error| panic!("{error:?}"));
        let groups = |profile| {
            let mut groups: Vec<String> =
                suite.in_order_for(profile).into_iter().map(|case| case.group).collect();
            groups.dedup();
            groups
        };
        let plain = groups(Profile::Plain);
        assert_eq!(plain, SHIPPED.iter().map(|(group, _)| *group).collect::<Vec<_>>());
        for (profile, own) in
            [(Profile::Lsp, "lsp"), (Profile::Bitcoin, "bitcoin"), (Profile::Ethereum, "ethereum")]
        {
            let found = groups(profile);
            assert_eq!(found[0], own);
            let others = |groups: &[String]| -> Vec<String> {
                groups.iter().filter(|group| *group != own).cloned().collect()
            };
            assert_eq!(others(&found), others(&plain));
        }
    }

    #[test]
    fn shipped_transcripts_are_valid_and_names_are_unique() {
        let suite = Suite::shipped().unwrap_or_else(|error| panic!("{error:?}"));
        assert!(suite.cases.len() >= 300, "only {} cases", suite.cases.len());
    }
}
