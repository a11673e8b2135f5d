//! One bar per workload, for the main workloads only.

use super::{ANTIPHON, Drawing, JSONRPSEE};
use crate::results::Results;
use crate::workload;

const PEERS: [(&str, &str, &str); 3] = [
    ("antiphon", "Antiphon", ANTIPHON),
    ("axum", "axum, JSON by hand", "#b9a44c"),
    ("ajj", "ajj", "#c9c9c9"),
];

/// Calls per second as multiples of jsonrpsee's: right of its line is faster.
pub(crate) fn ratios(results: &Results) -> String {
    const ROW: f64 = 44.0;
    let loads = workload::throughput();
    let bottom = 70.0 + ROW * loads.len() as f64;
    let mut drawing = Drawing::new(820.0, bottom + 20.0);
    drawing.text((300.0, 22.0), "start", "calls per second, times jsonrpsee's (doubling scale)");
    let at = |ratio: f64| 345.0 + 90.0 * ratio.clamp(0.5, 32.0).log2();
    for ratio in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
        let is_base = ratio == 1.0;
        let colour = if is_base { JSONRPSEE } else { "#e2e2e2" };
        drawing.line(
            &[(at(ratio), 50.0), (at(ratio), bottom)],
            colour,
            if is_base { 2.0 } else { 1.0 },
        );
        let title = if is_base { "jsonrpsee" } else { &format!("{ratio}x") };
        drawing.text((at(ratio), 44.0), "middle", title);
    }
    for (nth, load) in loads.iter().enumerate() {
        let top = 58.0 + ROW * nth as f64;
        drawing.text((248.0, top + 14.0), "end", &load.title.replace(", 64 connections", ""));
        bars(&mut drawing, results, &load.name, top, at);
    }
    legend(&mut drawing, bottom + 6.0);
    drawing.finish()
}

fn bars(drawing: &mut Drawing, results: &Results, load: &str, top: f64, at: impl Fn(f64) -> f64) {
    let mut y = top;
    for (peer, _, colour) in PEERS {
        let height = if peer == "antiphon" { 18.0 } else { 6.0 };
        if let Some(ratio) = results.ratio(load, peer, "jsonrpsee") {
            let (from, to) = (at(1.0).min(at(ratio)), at(1.0).max(at(ratio)));
            drawing.bar((from, y), (to - from, height), colour);
            if peer == "antiphon" {
                let places = if ratio < 2.0 { 2 } else { 1 };
                let title = format!("<tspan font-weight=\"bold\">{ratio:.places$}x</tspan>");
                drawing.text((to + 6.0, y + 14.0), "start", &title);
            }
        }
        y += height + 2.0;
    }
}

fn legend(drawing: &mut Drawing, y: f64) {
    let mut x = 255.0;
    for (_, title, colour) in PEERS {
        drawing.bar((x, y), (12.0, 10.0), colour);
        drawing.text((x + 18.0, y + 10.0), "start", title);
        x += 48.0 + 7.0 * title.len() as f64;
    }
}
