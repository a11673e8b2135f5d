//! The parser comparison, as the binary `parse` prints it.

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::options::Options;
use crate::place::{LOAD_CORE, Place, output};

#[derive(Serialize, Deserialize)]
pub(crate) struct Parsers {
    pub(crate) decoders: Vec<String>,
    pub(crate) times: Vec<Times>,
    pub(crate) verdicts: Vec<Verdicts>,
}

/// The cost of decoding a message, by decoder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) message: String,
    pub(crate) bytes: usize,
    pub(crate) nanoseconds: Vec<f64>,
}

/// The result of each decoder for a message, and whether it is correct.
#[derive(Serialize, Deserialize)]
pub(crate) struct Verdicts {
    pub(crate) case: String,
    pub(crate) expected: String,
    pub(crate) verdicts: Vec<String>,
    pub(crate) right: Vec<bool>,
}

pub(crate) fn measure(place: &Place, options: &Options) -> Result<Parsers, Fault> {
    let mut command = place.pinned(LOAD_CORE, "parse");
    let seconds = if options.quick { "0.01" } else { "0.1" };
    Ok(serde_json::from_str(&output(command.args([&options.rounds().to_string(), seconds]))?)?)
}
