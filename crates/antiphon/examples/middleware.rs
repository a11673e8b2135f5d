//! Layers around every call: authentication, a rate limit, a timeout and metrics.
//!
//! `cargo run -p antiphon --features full --example middleware`

use std::time::Duration;

use antiphon::http::{HeaderValue, header::AUTHORIZATION};
use antiphon::layer::{Auth, Metrics, Quota, RateLimit, Timeout};
use antiphon::{CallError, Client, Context, Handler, Router, Server};

fn service() -> (impl Handler, Metrics) {
    let router = Router::new()
        .method("whoami", |(): (), cx: Context| async move {
            Ok(cx.identity().map(|identity| identity.name().to_owned()))
        })
        .method("sleep", |(seconds,): (u64,), _cx: Context| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        });
    let metrics = Metrics::new(router.names());
    let service = router
        .layer(Timeout::new(Duration::from_millis(50)))
        .layer(RateLimit::new(Quota::new(3, Duration::from_secs(60))))
        .layer(Auth::new().bearer("s3cret", "ada"))
        .layer(metrics.clone()); // the layer added last sees a call first
    (service, metrics)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (service, metrics) = service();
    let page = metrics.clone();
    let server = Server::bind("http://127.0.0.1:0").await?.page(
        "/metrics",
        Metrics::CONTENT_TYPE,
        move || page.render(),
    );
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve(service));

    let stranger = Client::connect(&endpoint).await?;
    print("without a token", stranger.call::<String>("whoami", ()).await);

    let token = HeaderValue::from_static("Bearer s3cret");
    let ada = Client::builder().header(AUTHORIZATION, token).connect(&endpoint).await?;
    print("with a token", ada.call::<String>("whoami", ()).await);
    print("a call that takes too long", ada.call::<()>("sleep", (60,)).await);
    print("another call", ada.call::<String>("whoami", ()).await);
    print("over the rate limit", ada.call::<String>("whoami", ()).await);

    for line in metrics.render().lines().filter(|line| line.contains(r#"kind="request""#)) {
        println!("{line}");
    }
    Ok(())
}

fn print<T: std::fmt::Debug>(who: &str, outcome: Result<T, CallError>) {
    match outcome {
        Ok(result) => println!("{who}: {result:?}"),
        Err(error) => println!("{who}: {error}"),
    }
}
