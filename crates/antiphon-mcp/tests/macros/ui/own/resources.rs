use antiphon_mcp::RequestContext;

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[resource]
    fn missing(&self) -> String {
        String::new()
    }

    #[resource(uri = "a://b", template = "a://{b}")]
    fn both(&self) -> String {
        String::new()
    }

    #[resource(uri = "")]
    fn empty(&self) -> String {
        String::new()
    }

    #[resource(uri = "a://{id}")]
    fn braces(&self, id: String) -> String {
        id
    }

    #[resource(uri = "a://b")]
    fn argument(&self, cx: RequestContext, id: String) -> String {
        id
    }

    #[resource(template = "a://b")]
    fn no_variable(&self) -> String {
        String::new()
    }

    #[resource(template = "a://{id}/{part}/{x.y}")]
    fn absent(&self, id: String, more: u8) -> String {
        id
    }

    #[resource(template = "a://{?query}")]
    fn operator(&self, query: String) -> String {
        query
    }

    #[resource(template = "a://{a}{b}")]
    fn adjacent(&self, a: String, b: String) -> String {
        a + &b
    }

    #[resource(template = "a://{a")]
    fn open(&self, a: String) -> String {
        a
    }

    #[resource(template = "a://{a}", size = 5)]
    fn size(&self, a: String) -> String {
        a
    }
}

fn main() {}
