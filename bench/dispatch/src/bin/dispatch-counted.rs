//! `dispatch` with counted allocations. A separate binary, since counting takes time.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    dispatch::run(|| COUNTED.stats().allocations + COUNTED.stats().reallocations)
}
