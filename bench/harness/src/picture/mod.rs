//! The pictures, written as SVG by hand.

mod linear;
mod ratios;

use std::fmt::Write as _;

pub(crate) use linear::linear;
pub(crate) use ratios::ratios;

const ANTIPHON: &str = "#0b6e6e";
const JSONRPSEE: &str = "#b5482a";

/// An SVG under construction. Writing to a `String` cannot fail.
struct Drawing(String);

impl Drawing {
    fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        ))
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\"/>"
        );
    }

    fn line(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(
            self.0,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"/>"
        );
    }

    fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}
