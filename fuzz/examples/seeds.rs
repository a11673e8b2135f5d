//! Writes the messages of the transcripts as inputs of one target: `seeds TARGET DIRECTORY`.

use std::path::Path;

use antiphon_fuzz::{TARGETS, wire};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = &arguments[..] else {
        return Err("usage: seeds TARGET DIRECTORY".into());
    };
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.ok_or_else(|| format!("there is no target `{name}`"))?;
    std::fs::create_dir_all(directory)?;
    let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/wire");
    for (at, message) in wire::messages(&transcripts).iter().enumerate() {
        let file = Path::new(directory).join(format!("wire-{at:04}"));
        std::fs::write(file, (target.seed)(message))?;
    }
    Ok(())
}
