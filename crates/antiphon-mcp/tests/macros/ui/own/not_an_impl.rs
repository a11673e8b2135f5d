#[antiphon_mcp::server(name = "weather", version = "1")]
struct Weather;

fn main() {}
