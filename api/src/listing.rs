//! The listing of a public API: one line per item, as `cargo public-api` prints it.
//!
//! Blanket implementations are left out, since they follow from the traits of other crates. Of the auto
//! traits, `Send` and `Sync` are listed: a task needs them.

use public_api::Builder;
use similar::TextDiff;
use std::fs;
use std::path::Path;

/// Compares the API in `json` with the file `listing`, or writes that file. Returns the difference.
pub fn check(json: &Path, listing: &Path, update: bool) -> Result<Option<String>, String> {
    let api = Builder::from_rustdoc_json(json).omit_blanket_impls(true).build();
    let api = api.map_err(|error| format!("cannot read {}: {error}", json.display()))?;
    let lines = api.items().map(ToString::to_string).filter(|line| is_listed(line));
    let current: String = lines.map(|line| line + "\n").collect();
    if update {
        let written = fs::write(listing, current);
        return written
            .map(|()| None)
            .map_err(|error| format!("cannot write {}: {error}", listing.display()));
    }
    let recorded = fs::read_to_string(listing).unwrap_or_default();
    Ok((recorded != current).then(|| explain(listing, &recorded, &current)))
}

/// Whether the listing keeps a line: all but the auto traits that a user never names.
fn is_listed(line: &str) -> bool {
    const AUTO_TRAITS: [&str; 4] = ["Freeze", "RefUnwindSafe", "UnsafeUnpin", "UnwindSafe"];
    let name = line.split(" for ").next().and_then(|it| it.rsplit("::").next());
    !(line.starts_with("impl") && name.is_some_and(|it| AUTO_TRAITS.contains(&it)))
}

fn explain(listing: &Path, recorded: &str, current: &str) -> String {
    let name = listing.display().to_string();
    let difference = TextDiff::from_lines(recorded, current);
    let difference =
        difference.unified_diff().context_radius(0).header(&name, "the public API now").to_string();
    format!(
        "{difference}the public API differs from {name}: if that is intended, run `api/run --update` and commit"
    )
}
