struct RequestContext;

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    async fn by_value(&self, _cx: RequestContext) {}

    #[tool]
    async fn by_reference(&self, _cx: &RequestContext) {}
}

fn main() {}
