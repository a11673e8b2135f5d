//! The CPU time that a process has used.
//!
//! Unlike calls per second, it hardly depends on other processes of the machine.

use std::ops::{Div, Sub};

use serde::{Deserialize, Serialize};

/// Microseconds.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Cpu {
    pub(crate) fn of(process: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in brackets may contain anything; utime and stime are the 12th and 13th fields after it.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut ticks = fields.split(' ').skip(11).map(str::parse::<f64>);
        // A clock tick in user space is 10 ms on every Linux.
        let mut next = || Some(ticks.next()?.ok()? * 1e4);
        Some(Self { user: next()?, system: next()? })
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { user: self.user - other.user, system: self.system - other.system }
    }
}

impl Div<f64> for Cpu {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self { user: self.user / by, system: self.system / by }
    }
}
