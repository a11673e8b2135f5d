//! Markdown tables, and formatted numbers.

/// Rows under a header; all columns except the first are figures.
pub(super) struct Table {
    text: String,
}

impl Table {
    pub(super) fn new<S: AsRef<str>>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self { text: String::new() };
        let columns = table.push(head);
        table.text.push_str("|---|");
        table.text.push_str(&"--:|".repeat(columns - 1));
        table.text.push('\n');
        table
    }

    pub(super) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.push(cells);
    }

    fn push<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) -> usize {
        let cells: Vec<_> = cells.into_iter().collect();
        for cell in &cells {
            self.text.push_str("| ");
            self.text.push_str(cell.as_ref());
            self.text.push(' ');
        }
        self.text.push_str("|\n");
        cells.len()
    }

    pub(super) fn finish(self) -> String {
        self.text + "\n"
    }
}

/// Three significant digits, with a suffix for thousands.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value >= 999_500.0 => format!("{} M", digits(value / 1e6)),
        _ if value >= 9_995.0 => format!("{} k", digits(value / 1e3)),
        _ => digits(value),
    }
}

pub(super) fn digits(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A cell whose figure may be missing.
pub(super) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}
