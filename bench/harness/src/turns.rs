//! Interleaved measurements, taken while the two cores share a cache.
//!
//! A measurement is repeated if the cores shared no cache before or after it, and the first is kept
//! separately. The decision ignores the measured value and is equal for all servers.

use std::collections::BTreeMap;

use crate::Fault;
use crate::cores;
use crate::options::Options;

/// The maximum number of repetitions.
const PATIENCE: usize = 30;

/// The measurements of each server.
pub(crate) struct Turns<C, T> {
    pub(crate) counted: BTreeMap<C, Vec<T>>,
    /// Measurements without a shared cache, which do not count.
    pub(crate) apart: BTreeMap<C, Vec<T>>,
    /// A server has no measurement with a shared cache, so everything counts.
    pub(crate) all_count: bool,
}

pub(crate) fn take<C: Copy + Ord, T>(
    options: &Options,
    who: &[C],
    mut measure: impl FnMut(C) -> Result<T, Fault>,
) -> Result<Turns<C, T>, Fault> {
    let mut turns = Turns { counted: BTreeMap::new(), apart: BTreeMap::new(), all_count: false };
    let mut patience = if options.quick { 0 } else { PATIENCE };
    let mut were_apart = cores::are_apart()?;
    for round in 0..options.rounds() {
        // Each round starts with another server.
        let (last, first) = who.split_at(round % who.len());
        for one in first.iter().chain(last) {
            loop {
                let measured = measure(*one)?;
                let are_apart = cores::are_apart()?;
                let apart = std::mem::replace(&mut were_apart, are_apart) || are_apart;
                let place = if apart { &mut turns.apart } else { &mut turns.counted };
                place.entry(*one).or_default().push(measured);
                if !apart || patience == 0 {
                    break;
                }
                patience -= 1;
            }
        }
    }
    if who.iter().any(|one| !turns.counted.contains_key(one)) {
        turns.all_count = true;
        for (one, measured) in std::mem::take(&mut turns.apart) {
            turns.counted.entry(one).or_default().extend(measured);
        }
    }
    Ok(turns)
}
