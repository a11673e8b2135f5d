use antiphon::{Context, ErrorObject, Sink};
use futures_core::Stream;

#[antiphon::rpc]
pub trait Clock {
    #[subscription]
    async fn value(&self) -> Result<i64, ErrorObject>;
    #[subscription]
    async fn borrowed(&self) -> Result<impl Stream<Item = i64>, ErrorObject>;
    #[subscription]
    async fn untold(&self) -> Result<impl Stream + Send + 'static, ErrorObject>;
    #[subscription]
    async fn sink(&self, sink: Sink) -> Result<(), ErrorObject>;
    #[subscription(item = i64)]
    async fn sinks(&self, one: Sink, two: Sink) -> Result<(), ErrorObject>;
    #[subscription(item = Result<i64, ErrorObject>)]
    async fn fallible_sink(&self, sink: Sink) -> Result<(), ErrorObject>;
    #[subscription(topic = antiphon::Topic::new("a"), name = "b")]
    async fn named(&self) -> Result<impl Stream<Item = i64> + Send + 'static, ErrorObject>;
    #[subscription(aliases = ["b"])]
    async fn aliased(&self) -> Result<impl Stream<Item = i64> + Send + 'static, ErrorObject>;
    async fn stray(&self, sink: Sink) -> Result<(), ErrorObject>;
    async fn stream(&self) -> Result<impl Stream<Item = i64> + Send + 'static, ErrorObject>;
    #[subscription]
    async fn ticks(&self, cx: Context) -> Result<impl Stream<Item = i64> + Send + 'static, ErrorObject>;
    async fn subscribe_ticks(&self) -> Result<i64, ErrorObject>;
}

fn main() {}
