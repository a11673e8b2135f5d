struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    fn one(&self) {}

    #[tool(name = "one")]
    fn other(&self) {}

    #[tool(name = "")]
    fn empty(&self) {}

    #[tool]
    fn größe(&self) {}

    #[prompt]
    fn first(&self) -> &'static str {
        "a prompt may have the name of a tool"
    }

    #[prompt(name = "first")]
    fn second(&self) -> &'static str {
        ""
    }

    #[resource(uri = "weather://all", name = "first")]
    fn resource(&self) -> &'static str {
        "names of resources need not differ"
    }

    #[resource(uri = "weather://all", name = "first")]
    fn same_uri(&self) -> &'static str {
        ""
    }

    #[resource(template = "weather://{id}")]
    fn template(&self, id: String) -> String {
        id
    }

    #[resource(template = "weather://{id}")]
    fn same_template(&self, id: String) -> String {
        id
    }
}

fn main() {}
