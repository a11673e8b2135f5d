//! Generates `src/generated` from `meta/methods-3.17.json` and the type crate.
//!
//! `cargo run` writes the files. `cargo run -- reduce metaModel.json` writes a new `meta/methods-3.17.json`
//! from a meta model of the protocol.

mod model;
mod names;
mod render;
mod type_crate;

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no parent folder")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            for (name, text) in render::files(root)? {
                fs::write(root.join("src/generated").join(name), text)?;
            }
        }
        ["reduce", meta_model] => {
            let reduced = model::reduce(&fs::read_to_string(meta_model)?)?;
            fs::write(root.join(model::PATH), reduced)?;
        }
        _ => return Err("usage: cargo run [-- reduce metaModel.json]".into()),
    }
    Ok(())
}
