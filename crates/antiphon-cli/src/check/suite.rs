//! Which cases are there, and which of them are wanted?

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::transcript::{Case, Level, parse};
use crate::exit::Failure;

/// The transcripts that are shipped, in the order in which they are run.
macro_rules! shipped {
    ($($group:literal)*) => {
        &[$(($group, include_str!(concat!("../../testdata/wire/", $group, ".wire")))),*]
    };
}

const SHIPPED: &[(&str, &str)] = shipped! {
    "examples" "ids" "envelope" "batch" "parse" "notifications" "params" "shape" "errors" "reserved"
    "streams" "pipelining" "reverse" "http" "websocket" "limits" "lsp" "bitcoin" "ethereum" "hostile"
};

/// Reads the files, or what is shipped where there is none.
pub(crate) fn cases(files: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let cases = if files.is_empty() { shipped()? } else { of_files(files)? };
    let mut groups = HashMap::new();
    for case in &cases {
        if let Some(other) = groups.insert(&case.name, &case.group) {
            return Err(Failure::usage(format!(
                "the case {} is in {other} and in {}",
                case.name, case.group
            ))
            .hint("baselines know cases by their names: each name must be its own"));
        }
    }
    Ok(cases)
}

fn shipped() -> Result<Vec<Case>, Failure> {
    let cases: Result<Vec<_>, _> = SHIPPED.iter().map(|(group, text)| parse(group, text)).collect();
    Ok(cases.map_err(Failure::usage)?.concat())
}

fn of_files(files: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for path in files {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
        let found = parse(&group_of(path), without_mark(&text)).map_err(|fault| {
            Failure::usage(format!("{name}: {fault}"))
                .hint("testdata/wire/README.md of Antiphon describes the format")
        })?;
        if found.is_empty() {
            return Err(Failure::usage(format!("{name} holds no case"))
                .hint("a case begins with `== its-name: what must happen`"));
        }
        cases.extend(found);
    }
    Ok(cases)
}

/// The text behind the byte order mark that some editors write.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn group_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Whether `--only` or `--skip` mean this case: its group, its name, the beginning of its name with a
/// `*`, or its level.
pub(crate) fn is_meant(pattern: &str, group: &str, name: &str, level: Level) -> bool {
    let is_name = match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    is_name || group == pattern || level.to_string() == pattern
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
            assert!(text.starts_with("# "), "{group}.wire must open with what it is about");
        }
    }

    #[test]
    fn what_is_shipped_can_be_read_and_every_name_is_its_own() {
        let cases = cases(&[]).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(cases.len() >= 300, "only {} cases", cases.len());
    }

    #[test]
    fn patterns_mean_groups_names_and_levels() {
        for meant in ["ids", "id-null", "id-*", "*", "SHOULD"] {
            assert!(is_meant(meant, "ids", "id-null", Level::Should), "{meant}");
        }
        for other in ["id", "ids-*", "MUST", "null"] {
            assert!(!is_meant(other, "ids", "id-null", Level::Should), "{other}");
        }
    }
}
