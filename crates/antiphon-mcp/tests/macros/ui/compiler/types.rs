use antiphon_mcp::{RequestError, ToolError};

#[derive(serde::Deserialize)]
struct NoSchema;

struct NoResult;

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    fn no_schema(&self, _value: NoSchema) {}

    #[tool]
    fn whole(&self, #[params] _value: NoSchema) {}

    #[tool]
    async fn result(&self) -> NoResult {
        NoResult
    }

    #[tool]
    async fn inner_result(&self) -> Result<NoResult, ToolError> {
        Ok(NoResult)
    }

    #[tool]
    async fn error(&self) -> Result<String, NoResult> {
        Err(NoResult)
    }

    #[resource(uri = "weather://a")]
    async fn contents(&self) -> Result<NoResult, RequestError> {
        Ok(NoResult)
    }

    #[prompt]
    async fn prompt(&self) -> NoResult {
        NoResult
    }

    #[prompt]
    async fn argument(&self, city: String) -> String {
        city
    }

    #[complete(prompt = "argument", argument = "city")]
    fn completion(&self, typed: u8) -> u8 {
        typed
    }
}

fn main() {}
