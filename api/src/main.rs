//! Compares the public API of the libraries with its recorded listing, and checks its documentation.
//!
//! It reads the JSON that rustdoc writes; `api/run` makes it. It never builds a crate itself.

mod crate_docs;
mod exhaustive;
mod listing;
mod rules;

use crate_docs::CrateDocs;
use std::path::PathBuf;
use std::process::ExitCode;

/// The libraries, by the names of their rustdoc output.
const LIBRARIES: [&str; 2] = ["antiphon", "antiphon_core"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (docs, listings, update) = match arguments.as_slice() {
        [docs, listings] => (docs, listings, false),
        [docs, listings, flag] if flag == "--update" => (docs, listings, true),
        _ => return fail("usage: api/run [--update]"),
    };
    let mut problems = Vec::new();
    for library in LIBRARIES {
        let json = PathBuf::from(docs).join(format!("{library}.json"));
        let listing = PathBuf::from(listings).join(format!("{}.txt", library.replace('_', "-")));
        match CrateDocs::read(&json)
            .and_then(|docs| Ok((listing::check(&json, &listing, update)?, docs)))
        {
            Err(error) => return fail(&error),
            Ok((difference, docs)) => {
                problems.extend(difference);
                problems.extend(rules::check(&docs));
            }
        }
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}

fn fail(message: &str) -> ExitCode {
    eprintln!("api/run: {message}");
    ExitCode::from(2)
}
