//! The cost per entry, and per byte, as messages grow.

use super::{ANTIPHON, Drawing, JSONRPSEE};
use crate::results::Results;
use crate::workload::{BATCHES, SIZES};

/// The servers that are drawn, and the distance of each label from the end of its line.
const PEERS: [(&str, &str, &str, f64); 2] =
    [("antiphon", "Antiphon", ANTIPHON, 32.0), ("jsonrpsee", "jsonrpsee", JSONRPSEE, -12.0)];

/// Both axes are logarithmic.
pub(crate) fn linear(results: &Results) -> String {
    let mut drawing = Drawing::new(820.0, 330.0);
    batches(&mut drawing, results);
    sizes(&mut drawing, results);
    drawing.finish()
}

fn batches(drawing: &mut Drawing, results: &Results) {
    let title = "ns per entry, by entries of a batch";
    let panel = Panel { left: 60.0, title, x: (10.0, 1e4), y: (10.0, 1e4) };
    panel.axes(drawing, &BATCHES.map(|batch| (batch as f64, batch.to_string())));
    panel.lines(drawing, |peer| {
        let points =
            BATCHES.map(|batch| point(results, &format!("linear-batch-{batch}"), peer, batch, 1));
        points.into_iter().flatten().collect()
    });
}

fn sizes(drawing: &mut Drawing, results: &Results) {
    let title = "ns per byte, by bytes of a message";
    let panel = Panel { left: 470.0, title, x: (1024.0, 16_777_216.0), y: (0.1, 100.0) };
    let ticks =
        [(1 << 10, "1 KiB"), (32 << 10, "32 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB")];
    panel.axes(drawing, &ticks.map(|(size, title)| (f64::from(size), title.to_owned())));
    panel.lines(drawing, |peer| {
        let points =
            SIZES.map(|size| point(results, &format!("linear-echo-{size}"), peer, size, size));
        points.into_iter().flatten().collect()
    });
}

/// A position on the axis, and the cost per unit there.
fn point(results: &Results, load: &str, peer: &str, x: usize, units: usize) -> Option<(f64, f64)> {
    let figure = results.figure(load, peer)?;
    Some((x as f64, 1e9 / figure.calls_per_second / units as f64))
}

/// One plot of two.
struct Panel {
    left: f64,
    title: &'static str,
    x: (f64, f64),
    y: (f64, f64),
}

impl Panel {
    const WIDTH: f64 = 290.0;
    const TOP: f64 = 50.0;
    const HEIGHT: f64 = 230.0;

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part =
            |value: f64, (from, to): (f64, f64)| (value / from).log10() / (to / from).log10();
        let y = part(y.clamp(self.y.0, self.y.1), self.y);
        (self.left + Self::WIDTH * part(x, self.x), Self::TOP + Self::HEIGHT * (1.0 - y))
    }

    fn lines(&self, drawing: &mut Drawing, points: impl Fn(&str) -> Vec<(f64, f64)>) {
        for (peer, title, colour, distance) in PEERS {
            let points: Vec<_> = points(peer).into_iter().map(|point| self.at(point)).collect();
            drawing.line(&points, colour, 2.5);
            if let Some((x, y)) = points.last() {
                let title = format!("<tspan fill=\"{colour}\">{title}</tspan>");
                drawing.text((*x, y + distance), "end", &title);
            }
        }
    }

    fn axes(&self, drawing: &mut Drawing, ticks: &[(f64, String)]) {
        drawing.text((self.left, Self::TOP - 24.0), "start", self.title);
        let mut y = self.y.0;
        while y <= self.y.1 * 1.01 {
            let (left, height) = self.at((self.x.0, y));
            drawing.line(&[(left, height), (left + Self::WIDTH, height)], "#e2e2e2", 1.0);
            drawing.text(
                (left - 6.0, height + 4.0),
                "end",
                &format!("{}", (y * 10.0).round() / 10.0),
            );
            y *= 10.0;
        }
        for (x, title) in ticks {
            let (x, bottom) = self.at((*x, self.y.0));
            drawing.text((x, bottom + 18.0), "middle", title);
        }
    }
}
