//! All measurements, stored in `results.json`. Older ones stay, with their date.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::allocations::Count;
use crate::build::Build;
use crate::clients::Clients;
use crate::dispatch::Dispatch;
use crate::idle::Idle;
use crate::load::Figure;
use crate::machine::Machine;
use crate::parser::Parsers;
use crate::place::Place;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// By the name of the workload.
    pub(crate) loads: BTreeMap<String, Dated<Vec<Figure>>>,
    pub(crate) idle: Option<Dated<Idle>>,
    pub(crate) clients: Option<Dated<Clients>>,
    pub(crate) dispatch: Option<Dated<Dispatch>>,
    pub(crate) allocations: Option<Dated<Vec<Count>>>,
    pub(crate) parsers: Option<Dated<Parsers>>,
    pub(crate) builds: Option<Dated<BTreeMap<String, Build>>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Dated<T> {
    pub(crate) date: String,
    pub(crate) value: T,
}

impl Results {
    /// Loads the results of the last run, or none.
    pub(crate) fn read(place: &Place) -> Result<Self, Fault> {
        match std::fs::read(place.bench.join("results.json")) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(_) => Ok(Self::default()),
        }
    }

    pub(crate) fn write(&self, place: &Place) -> Result<(), Fault> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(std::fs::write(place.bench.join("results.json"), text)?)
    }

    /// The result of a server under a workload, unless it failed.
    pub(crate) fn figure(&self, workload: &str, peer: &str) -> Option<&Figure> {
        let figures = &self.loads.get(workload)?.value;
        figures.iter().find(|figure| figure.peer == peer && figure.fault.is_none())
    }

    /// The speed of one server as a multiple of another's, under the same workload.
    pub(crate) fn ratio(&self, workload: &str, peer: &str, to: &str) -> Option<f64> {
        let speed = |peer| self.figure(workload, peer).map(|figure| figure.calls_per_second);
        Some(speed(peer)? / speed(to)?)
    }

    /// All failures as text.
    pub(crate) fn faults(&self) -> Vec<String> {
        let figures = self
            .loads
            .iter()
            .flat_map(|(name, load)| load.value.iter().map(move |figure| (name, figure)));
        figures
            .filter_map(|(name, figure)| {
                Some(format!("{name}, {}: {}", figure.peer, figure.fault.as_ref()?))
            })
            .collect()
    }
}
