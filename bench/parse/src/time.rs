//! The time of a decode.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{DECODERS, Decoder};

/// The median nanoseconds of each decoder, in interleaved rounds.
pub(crate) fn medians(message: &Bytes, rounds: usize, seconds: f64) -> Vec<f64> {
    let budget = Duration::from_secs_f64(seconds);
    let mut times = vec![Vec::new(); DECODERS.len()];
    DECODERS.iter().for_each(|decoder| {
        round(decoder, message, budget / 2);
    });
    for _ in 0..rounds {
        for (decoder, times) in DECODERS.iter().zip(&mut times) {
            times.push(round(decoder, message, budget));
        }
    }
    times.into_iter().map(median).collect()
}

fn round(decoder: &Decoder, message: &Bytes, budget: Duration) -> f64 {
    let (began, mut count, mut step) = (Instant::now(), 0_u64, 1);
    // The clock is read rarely, whatever a decode costs.
    while began.elapsed() < budget {
        (0..step).for_each(|_| (decoder.decode)(std::hint::black_box(message)));
        count += step;
        step = (step * 2).min(1024);
    }
    began.elapsed().as_nanos() as f64 / count as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
