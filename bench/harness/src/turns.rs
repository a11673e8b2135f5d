//! Those who are compared take turns, and each turn is measured while the cores are together.
//!
//! A measurement before or after which they were apart is made again, and kept beside the others. That
//! is decided without a look at what was measured, and for all alike.

use std::collections::BTreeMap;

use crate::Fault;
use crate::cores;
use crate::options::Options;

/// Measurements that are made again before the cores are taken as they are.
const PATIENCE: usize = 30;

/// What was measured of each.
pub(crate) struct Turns<C, T> {
    pub(crate) counted: BTreeMap<C, Vec<T>>,
    /// With the cores apart, and so not counted.
    pub(crate) apart: BTreeMap<C, Vec<T>>,
    /// Somebody was never measured with the cores together, so that everything is counted.
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
        // Every round is begun by another.
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
