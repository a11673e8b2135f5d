//! The cost of a call inside a library, without a socket: instructions, time and allocations.
//!
//! Usage: `dispatch ENGINE CASE CALLS`. It prints the time and the allocations of that many calls,
//! after a warm-up. The harness counts instructions as the difference between runs of different
//! length. Each engine uses its library's own API, and every reply is checked.

mod antiphon;
mod case;
mod http;
mod jsonrpsee;

use std::error::Error;
use std::time::Instant;

use case::Case;

const WARM_UP: usize = 100;

/// Runs one engine; `allocations` returns the count so far, if the binary counts any.
pub fn run(allocations: fn() -> usize) -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [engine, case, calls] = &args[..] else {
        return Err("usage: dispatch ENGINE CASE CALLS".into());
    };
    let (case, calls) = (Case::named(case).ok_or("CASE is hello, add or batch")?, calls.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let meter = Meter { calls, allocations };
    runtime.block_on(async {
        match &**engine {
            // Bytes to bytes by hand, and the loop around the HTTP services alone.
            "hand" => meter.run(async || by_hand(&case)).await,
            "http" => http::run(&meter, &case, http::Constant(case.reply.clone())).await,
            // The services that each library provides for hyper or axum.
            "antiphon-http" => http::run(&meter, &case, antiphon::service()).await,
            "jsonrpsee-http" => http::run(&meter, &case, jsonrpsee::service()?).await,
            // The in-process APIs of each library.
            "antiphon-text" => antiphon::responder(&meter, &case).await,
            "antiphon-memory" => antiphon::memory(&meter, &case).await?,
            "jsonrpsee-call" => jsonrpsee::call(&meter, &case).await?,
            "jsonrpsee-raw" => jsonrpsee::raw(&meter, &case).await?,
            _ => return Err(format!("there is no engine `{engine}`").into()),
        }
        Ok(())
    })
}

fn by_hand(case: &Case) {
    let mut reply = Vec::new();
    hand::answer(&case.request, &mut reply);
    case.check(&reply);
}

/// Counts the cost of calls.
struct Meter {
    calls: usize,
    allocations: fn() -> usize,
}

impl Meter {
    async fn run(&self, mut call: impl AsyncFnMut()) {
        for _ in 0..WARM_UP {
            call().await;
        }
        let (began, before) = (Instant::now(), (self.allocations)());
        for _ in 0..self.calls {
            call().await;
        }
        let (nanoseconds, after) = (began.elapsed().as_nanos(), (self.allocations)());
        println!(
            r#"{{"calls":{},"nanoseconds":{nanoseconds},"allocations":{}}}"#,
            self.calls,
            after - before
        );
    }
}
