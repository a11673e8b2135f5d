//! A server with a tool and a prompt. Usage: `weather`; a client starts it and speaks to its stdin and stdout.

use antiphon_mcp::{McpService, RequestContext, ServeError};

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1.0")]
impl Weather {
    /// The temperature in a city, in degrees Celsius.
    #[tool(read_only)]
    async fn forecast(
        &self,
        /// The name of the city.
        city: String,
        #[schemars(range(min = 1, max = 10))] days: Option<u8>,
        cx: RequestContext,
    ) -> String {
        cx.progress(1.0, Some(2.0), Some("asking the station")).await;
        format!("{city}: {} °C", 20 + days.unwrap_or(1))
    }

    #[prompt]
    fn packing_list(&self, city: String) -> String {
        format!("Write a packing list for {city}. Look up the weather first.")
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    Weather.into_server().serve("stdio:").await
}
