//! The timed server.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    bench_antiphon::serve(|| 0).await
}
