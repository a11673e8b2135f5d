//! What was known before: which cases failed or warned. It is a file for people to keep with their
//! code, one case a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::verdict::{Judged, Verdict};
use crate::exit::Failure;

/// The findings of an earlier run, by the names of their cases.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Baseline(BTreeMap<String, Verdict>);

/// A case that is not what it was.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) was: Verdict,
    pub(crate) is: Verdict,
}

impl Change {
    pub(crate) fn is_worse(&self) -> bool {
        rank(self.is) > rank(self.was)
    }
}

fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 2,
        Verdict::Warned => 1,
        Verdict::Passed | Verdict::Differs | Verdict::NotRun => 0,
    }
}

impl Baseline {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("{name} cannot be read: {error}"))
                .hint("--update-baseline writes it")
        })?;
        Self::parse(&text).map_err(|fault| Failure::usage(format!("{name}: {fault}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = || format!("line {}: write `failed NAME` or `warned NAME`", index + 1);
            let (verdict, name) = line.split_once(' ').ok_or_else(fault)?;
            let verdict = match verdict {
                "failed" => Verdict::Failed,
                "warned" => Verdict::Warned,
                _ => return Err(fault()),
            };
            known.insert(name.trim().to_owned(), verdict);
        }
        Ok(Self(known))
    }

    /// Writes what was found now. A case that was not run keeps what was known of it.
    pub(crate) fn write(&self, path: &Path, judged: &[Judged]) -> Result<(), Failure> {
        let mut known = self.0.clone();
        for judged in judged.iter().filter(|judged| judged.verdict != Verdict::NotRun) {
            match rank(judged.verdict) {
                0 => known.remove(&judged.name),
                _ => known.insert(judged.name.clone(), judged.verdict),
            };
        }
        let mut text =
            String::from("# Known findings of `antiphon check`, as --baseline reads them.\n");
        for (name, verdict) in known {
            let _ = writeln!(text, "{verdict} {name}");
        }
        std::fs::write(path, text).map_err(|error| {
            Failure::usage(format!("{} cannot be written: {error}", path.display()))
        })
    }

    /// What is not as it was, in the order of the run.
    pub(crate) fn compare(&self, judged: &[Judged]) -> Vec<Change> {
        let run = judged.iter().filter(|judged| judged.verdict != Verdict::NotRun);
        let changes = run.map(|judged| Change {
            name: judged.name.clone(),
            was: self.0.get(&judged.name).copied().unwrap_or(Verdict::Passed),
            is: judged.verdict,
        });
        changes.filter(|change| rank(change.was) != rank(change.is)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::transcript::Level;

    fn judged(name: &str, verdict: Verdict) -> Judged {
        Judged {
            group: "g".into(),
            name: name.into(),
            title: "t".into(),
            level: Level::Must,
            section: "4".into(),
            why: None,
            verdict,
            reason: None,
            fault: None,
            dialogue: Vec::new(),
        }
    }

    #[test]
    fn worse_and_better_are_told_apart() {
        let known = Baseline::parse("# known\n\nfailed a\nwarned b\nfailed c\nwarned d\n").unwrap();
        let now = [
            judged("a", Verdict::Failed),
            judged("b", Verdict::Failed),
            judged("c", Verdict::Passed),
            judged("d", Verdict::NotRun),
            judged("e", Verdict::Warned),
            judged("f", Verdict::Differs),
        ];
        let changes = known.compare(&now);
        let told: Vec<_> = changes.iter().map(|c| (&*c.name, c.is_worse())).collect();
        assert_eq!(told, [("b", true), ("c", false), ("e", true)]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(Baseline::parse("failed a\noops").unwrap_err().starts_with("line 2"));
        assert!(Baseline::parse("passed a").is_err());
    }

    #[test]
    fn what_was_not_run_stays_known() {
        let path = std::env::temp_dir().join(format!("antiphon-baseline-{}", std::process::id()));
        let known = Baseline::parse("failed a\nfailed b\n").unwrap();
        let now = [
            judged("a", Verdict::NotRun),
            judged("b", Verdict::Passed),
            judged("c", Verdict::Warned),
        ];
        known.write(&path, &now).unwrap();
        let again = Baseline::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again, Baseline::parse("failed a\nwarned c\n").unwrap());
    }
}
