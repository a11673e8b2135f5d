//! Several measurements of one figure.

/// One measurement.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    /// Calls per second, or bytes.
    pub(crate) value: f64,
    /// The CPU time of the server per call.
    pub(crate) cpu_micros: Option<f64>,
}

#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Needs at least one measurement.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        let median = f64::midpoint(values[last / 2], values[last.div_ceil(2)]);
        Self { median, min: values[0], max: values[last] }
    }
}
