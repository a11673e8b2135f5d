//! How many calls a client makes in a given time, with some in flight at once.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The error of a benchmark client.
pub type Fault = Box<dyn Error + Send + Sync>;

/// The arguments of every client: ENDPOINT IN_FLIGHT SECONDS.
pub struct Load {
    pub endpoint: String,
    in_flight: usize,
    duration: Duration,
}

impl Load {
    pub fn from_args() -> Result<Self, Fault> {
        let args: Vec<_> = std::env::args().skip(1).collect();
        let [endpoint, in_flight, seconds] = &args[..] else {
            return Err("usage: ENDPOINT IN_FLIGHT SECONDS".into());
        };
        let duration = Duration::from_secs_f64(seconds.parse()?);
        Ok(Self { endpoint: endpoint.clone(), in_flight: in_flight.parse()?, duration })
    }

    /// Calls from as many tasks as shall be in flight; the first fifth of the time warms up.
    /// Prints the rate; a call that fails ends it all.
    pub async fn run<F>(
        self,
        call: impl Fn() -> F + Clone + Send + Sync + 'static,
    ) -> Result<(), Fault>
    where
        F: Future<Output = Result<(), Fault>> + Send + 'static,
    {
        let done = Arc::new(AtomicU64::new(0));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..self.in_flight {
            callers.spawn(caller(call.clone(), done.clone()));
        }
        let (calls, seconds) = tokio::select! {
            Some(ended) = callers.join_next() => return Err(ended?),
            measured = self.measure(&done) => measured,
        };
        println!(
            r#"{{"calls":{calls},"seconds":{seconds},"calls_per_second":{}}}"#,
            calls as f64 / seconds
        );
        Ok(())
    }

    async fn measure(&self, done: &AtomicU64) -> (u64, f64) {
        tokio::time::sleep(self.duration / 5).await;
        let (began, before) = (Instant::now(), done.load(Ordering::Relaxed));
        tokio::time::sleep(self.duration).await;
        (done.load(Ordering::Relaxed) - before, began.elapsed().as_secs_f64())
    }
}

/// Calls until a call fails, and says why.
async fn caller<F>(call: impl Fn() -> F, done: Arc<AtomicU64>) -> Fault
where
    F: Future<Output = Result<(), Fault>>,
{
    loop {
        if let Err(fault) = call().await {
            return fault;
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every reply is looked at.
pub fn check(reply: &str) -> Result<(), Fault> {
    if reply == "hello" { Ok(()) } else { Err(format!("wrong reply: {reply}").into()) }
}
