//! Subscriptions: a stream on the server and a stream on the client. One subscriber is too slow, and one
//! client outlives the server.
//!
//! `cargo run -p antiphon --example subscriptions`

use std::time::Duration;

use antiphon::{
    CancellationToken, Client, Context, Overflow, Reconnect, Router, Server, Subscription,
    SubscriptionError,
};
use futures_util::{StreamExt, stream};
use tokio::time::sleep;

/// Counts: one number per interval, given in milliseconds.
fn service() -> Router {
    Router::new().subscription("ticks", |(every,): (u64,), _cx: Context| async move {
        Ok(stream::unfold(0_u64, move |n| async move {
            sleep(Duration::from_millis(every)).await;
            Some((n, n + 1))
        }))
    })
}

async fn take_three(ticks: &mut Subscription<u64>) -> Result<(), SubscriptionError> {
    for _ in 0..3 {
        if let Some(tick) = ticks.next().await {
            println!("tick {}", tick?);
        }
    }
    Ok(())
}

/// Buffers only the newest two items and consumes them too slowly. Dropped items are reported, and newer
/// items follow.
async fn too_slow(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    let newest = client.subscribe::<u64>("ticks", (1,)).buffer(2).overflow(Overflow::DropOldest);
    let mut ticks = newest.await?;
    while let Some(tick) = ticks.next().await {
        match tick {
            Ok(_) => sleep(Duration::from_millis(20)).await,
            Err(lost) => {
                println!("too slow: {lost}");
                break;
            }
        }
    }
    Ok(ticks.unsubscribe().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::bind("tcp://127.0.0.1:0").await?;
    let endpoint = server.endpoint().clone();
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.serve_until(service(), stop.clone().cancelled_owned()));

    let reconnect = Reconnect::new().pause(Duration::from_millis(20), Duration::from_secs(1));
    let client = Client::builder().reconnect(reconnect).connect(&endpoint).await?;
    let mut ticks = client.subscribe::<u64>("ticks", (10,)).await?;
    take_three(&mut ticks).await?;
    too_slow(&client).await?;

    stop.cancel();
    running.await??;
    println!("the server stopped and starts again");
    tokio::spawn(Server::bind(&endpoint).await?.serve(service()));
    while let Some(tick) = ticks.next().await {
        if let Err(gap) = tick {
            println!("{gap}");
            break;
        }
    }
    take_three(&mut ticks).await?;
    Ok(())
}
