//! The distance between the two cores.
//!
//! The cores of a virtual machine are threads of its host, which moves them. For seconds or minutes
//! they may not share a cache. Then a byte that goes from the load to the server and back costs
//! several times as much. Nothing else in the machine shows it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use rustix::io;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Fault;
use crate::place::{LOAD_CORE, SERVER_CORE};
use crate::spread::Spread;

/// Nanoseconds: about 20 to 60 between cores that share a cache, 100 to 300 between others.
const APART: f64 = 90.0;
/// Round trips per measurement.
const TRIPS: u32 = 500;
/// The number of measurements: their median ignores interruptions by other processes.
const BURSTS: u32 = 15;

pub(crate) fn are_apart() -> Result<bool, Fault> {
    Ok(distance()? > APART)
}

/// The time that a word takes from one core to the other, in nanoseconds.
fn distance() -> io::Result<f64> {
    let word = AtomicU32::new(0);
    let reply = || {
        let pinned = pin(SERVER_CORE);
        for trip in 0..BURSTS * TRIPS {
            pass(&word, 2 * trip + 1);
        }
        pinned
    };
    let call = || {
        let pinned = pin(LOAD_CORE);
        let bursts = (0..BURSTS).map(|burst| {
            let start = Instant::now();
            for trip in burst * TRIPS..(burst + 1) * TRIPS {
                pass(&word, 2 * trip);
            }
            start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS)
        });
        let bursts = bursts.collect();
        pinned.map(|()| Spread::of(bursts).median)
    };
    thread::scope(|scope| {
        let reply = scope.spawn(reply);
        let call = scope.spawn(call);
        let pinned = reply.join().expect("counting does not panic");
        let distance = call.join().expect("nor does timing");
        pinned.and(distance)
    })
}

/// Waits until the word has a value, and sets it to the next.
fn pass(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
    }
    word.store(value + 1, Ordering::Release);
}

fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set)
}
