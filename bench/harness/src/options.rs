//! The options of a run.

/// The arguments of `bench/run`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// One short round of everything: a test of the harness that writes nothing.
    pub(crate) quick: bool,
    /// Only measurements with this prefix; the others are kept from the last run.
    pub(crate) only: Option<String>,
    /// Also clean builds, which take long.
    pub(crate) builds: bool,
}

impl Options {
    pub(crate) fn from_args() -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match &*arg {
                "--quick" => options.quick = true,
                "--builds" => options.builds = true,
                "--only" => options.only = Some(args.next().ok_or("--only needs a name")?),
                _ => return Err(format!("`{arg}` is no option; see bench/README.md")),
            }
        }
        Ok(options)
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.starts_with(only))
    }

    /// The rounds of every timed measurement.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// The length of a round that is normally this long.
    pub(crate) fn seconds(&self, seconds: f64) -> f64 {
        if self.quick { 0.3 } else { seconds }
    }
}
