//! Text tables with aligned columns.

use crate::output;

/// The maximum width of a column. A longer cell shifts the rest of its row.
const WIDEST: usize = 48;

/// Formats each row as a line. The last column is not padded, and a column without any text is omitted.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<_> = (0..columns).map(|column| width(&rows, column)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// Returns a text on one line for a terminal: without tabs, and with control and invisible characters escaped.
pub(crate) fn cell(text: &str) -> String {
    output::visible(&on_one_line(text))
}

/// Returns a text on one line for a program: without tabs, and with control characters escaped.
pub(crate) fn field(text: &str) -> String {
    output::without_controls(&on_one_line(text))
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn width(rows: &[Vec<String>], column: usize) -> usize {
    let widths = rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count());
    widths.filter(|width| *width <= WIDEST).max().unwrap_or_default()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let shown = row.iter().zip(widths).filter(|(text, width)| **width > 0 || !text.is_empty());
    let padded: Vec<_> = shown.map(|(text, &width)| format!("{text:width$}")).collect();
    padded.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |texts: [&str; 3]| texts.map(str::to_owned).to_vec();
        let long = "x".repeat(60);
        let rows = [row(["a", "", "b c"]), row(["long\n er", "", ""]), row([&long, "", "d"])];
        let lines = aligned(&rows);
        assert_eq!(lines, ["a        b c", "long er", &format!("{long}  d")]);
        assert_eq!(aligned(&[]), [""; 0]);
    }
}
