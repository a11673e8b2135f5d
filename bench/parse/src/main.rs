//! The parser comparison: the cost of decoding a message, and the mistakes of each parser.
//!
//! Prints one JSON document: nanoseconds per decode, medians of interleaved rounds, and verdicts on
//! difficult messages. Usage: `parse ROUNDS SECONDS`, with the seconds of one round.

mod antiphon;
mod cases;
mod derived;
mod messages;
mod tape;
mod time;
mod verdict;

use serde_json::json;
use verdict::Verdict;

/// One decoder.
struct Decoder {
    name: &'static str,
    /// Decodes as much as a dispatcher needs: the method's name, and the position of params and id.
    decode: fn(&bytes::Bytes),
    /// Returns its verdict on a message.
    judge: fn(&[u8]) -> Verdict,
}

const DECODERS: [Decoder; 5] = [
    Decoder { name: "antiphon", decode: antiphon::decode, judge: antiphon::judge },
    Decoder {
        name: "serde_json from_slice",
        decode: derived::serde_slice,
        judge: derived::judge_serde_slice,
    },
    Decoder {
        name: "serde_json from_str",
        decode: derived::serde_str,
        judge: derived::judge_serde_str,
    },
    Decoder { name: "sonic-rs lazy", decode: derived::sonic, judge: derived::judge_sonic },
    Decoder { name: "simd-json tape", decode: tape::decode, judge: tape::judge },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [rounds, seconds] = &args[..] else { return Err("usage: parse ROUNDS SECONDS".into()) };
    let (rounds, seconds) = (rounds.parse()?, seconds.parse()?);
    let decoders: Vec<_> = DECODERS.iter().map(|decoder| decoder.name).collect();
    let times = messages::all().map(|(name, message)| {
        json!({
            "message": name, "bytes": message.len(),
            "nanoseconds": time::medians(&message, rounds, seconds),
        })
    });
    let verdicts: Vec<_> = cases::all().iter().map(cases::Case::judged).collect();
    let document = json!({"decoders": decoders, "times": times, "verdicts": verdicts});
    println!("{document}");
    Ok(())
}
