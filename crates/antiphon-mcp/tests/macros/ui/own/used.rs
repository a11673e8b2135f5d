//! The uses of a refused server are no further errors.

use antiphon_mcp::McpService;

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool(oops)]
    fn current(
        &self,
        /// The city.
        city: String,
        #[schemars(range(min = 1))] days: u8,
    ) -> String {
        format!("{city} {days}")
    }
}

fn main() {
    let weather = Weather;
    weather.current("Rome".to_owned(), 1);
    let _ = weather.into_server();
}
