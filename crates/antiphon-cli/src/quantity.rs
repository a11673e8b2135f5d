//! Sizes, counts and durations of the command line: `64k`, `32MiB`, `10000`, `500ms`, `2m`.
//!
//! `Display` writes what `FromStr` reads, so a default in `--help` is valid input.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

/// A count, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// A duration, longer than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// A duration, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaybeSpan(pub(crate) Option<Duration>);

/// Units of bytes, the largest first. All are powers of 1024, and `iB` is optional.
const SIZES: [(char, usize); 3] = [('G', 1 << 30), ('M', 1 << 20), ('k', 1 << 10)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = || format!("`{text}` is not a size; use 65536, 64k, 1M or 32MiB");
        let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, suffix) = text.split_at(at);
        let unit = unit_of(suffix).ok_or_else(remedy)?;
        let number: usize = digits.parse().map_err(|_| remedy())?;
        match number.checked_mul(unit) {
            None => Err(format!("`{text}` is more than this machine can address")),
            Some(0) => Err("the size must be at least 1 byte".to_owned()),
            Some(bytes) => Ok(Self(bytes)),
        }
    }
}

fn unit_of(suffix: &str) -> Option<usize> {
    if suffix.is_empty() {
        return Some(1);
    }
    let mut chars = suffix.chars();
    let letter = chars.next()?;
    let (_, unit) = SIZES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(&letter))?;
    matches!(chars.as_str(), "" | "iB" | "ib").then_some(unit)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZES.into_iter().find(|(_, unit)| self.0.is_multiple_of(*unit)) {
            Some((letter, unit)) => write!(f, "{}{letter}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Err(_) => Err(format!("`{text}` is not a count; use a whole number such as 1024")),
            Ok(0) => Err("the count must be at least 1".to_owned()),
            Ok(count) => Ok(Self(count)),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match duration(text)? {
            Duration::ZERO => Err("the duration must be at least 1ms".to_owned()),
            span => Ok(Self(span)),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            _ if millis.is_multiple_of(60_000) => write!(f, "{}m", millis / 60_000),
            _ if millis.is_multiple_of(1_000) => write!(f, "{}s", millis / 1_000),
            _ => write!(f, "{millis}ms"),
        }
    }
}

impl FromStr for MaybeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let span = duration(text)?;
        Ok(Self((!span.is_zero()).then_some(span)))
    }
}

impl From<Duration> for MaybeSpan {
    fn from(span: Duration) -> Self {
        Self(Some(span))
    }
}

impl fmt::Display for MaybeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => Span(span).fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// Parses a number with a unit. Without a unit it is in seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let remedy = || format!("`{text}` is not a duration; use 500ms, 30s, 2m or 1h");
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(remedy()),
    };
    let number: f64 = number.parse().map_err(|_| remedy())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [
            ("1", 1),
            ("65536", 65_536),
            ("64k", 65_536),
            ("64KiB", 65_536),
            ("1m", 1 << 20),
            ("32MiB", 32 << 20),
            ("2G", 2 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "k", "-1", "1.5M", "1MB", "1 k", "0", "0k", "99999999999999999999", "1Mi"]
        {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert!("99999999999G".parse::<Size>().unwrap_err().contains("address"));
    }

    #[test]
    fn durations_have_units() {
        for (text, millis) in
            [("500ms", 500), ("30", 30_000), ("30s", 30_000), ("0.5s", 500), ("2m", 120_000)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1.2.3s", "0", "0ms", "1e9s", "9".repeat(40).as_str()] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn zero_and_none_mean_no_duration() {
        for text in ["0", "0s", "none", "None"] {
            assert_eq!(text.parse(), Ok(MaybeSpan(None)), "{text}");
        }
        assert_eq!("1s".parse(), Ok(MaybeSpan(Some(Duration::from_secs(1)))));
        assert!("never".parse::<MaybeSpan>().unwrap_err().contains("`never`"));
    }

    #[test]
    fn display_writes_what_from_str_reads() {
        for text in ["1", "64k", "32M", "1G", "1025"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["500ms", "30s", "2m", "none"] {
            assert_eq!(text.parse::<MaybeSpan>().unwrap().to_string(), text);
        }
    }
}
