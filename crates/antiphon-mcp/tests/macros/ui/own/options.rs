struct Weather;

#[antiphon_mcp::server(nam = "weather", version = "1", icons = ["a"])]
impl Weather {
    #[tool(readonly)]
    fn unknown(&self) {}

    #[tool(task = "maybe")]
    fn task(&self) {}

    #[tool(read_only, destructive)]
    fn contradiction(&self) {}

    #[tool(read_only = "yes")]
    fn flag(&self) {}

    #[tool]
    #[prompt]
    fn two(&self) -> String {
        String::new()
    }

    #[tool(read_only)]
    #[tool(idempotent)]
    fn twice(&self) {}

    #[cfg_attr(all(), tool)]
    fn conditional(&self) {}

    #[prompt(mime_type = "text/plain")]
    fn prompt(&self) -> String {
        String::new()
    }
}

fn main() {}
