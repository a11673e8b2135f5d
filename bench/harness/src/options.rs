//! What is asked for.

/// The arguments of `bench/run`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// One short round of everything: a test of the harness, which writes nothing.
    pub(crate) quick: bool,
    /// Only the measurements whose name begins so; the others are kept from the last run.
    pub(crate) only: Option<String>,
    /// Clean builds too, which take long.
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

    /// Of every measurement that is timed.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// The length of a round that would be this long.
    pub(crate) fn seconds(&self, seconds: f64) -> f64 {
        if self.quick { 0.3 } else { seconds }
    }
}
