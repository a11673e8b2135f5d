use antiphon_mcp::RequestContext;
use std::collections::BTreeMap;

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[prompt]
    fn packing(&self, city: String) -> String {
        city
    }

    #[complete(prompt = "pack", argument = "city")]
    fn no_prompt(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "town")]
    fn no_argument(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(template = "a://{b}", variable = "b")]
    fn no_template(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "city")]
    fn one(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "city")]
    fn two(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }
}

struct Stations;

#[antiphon_mcp::server(name = "stations", version = "1")]
impl Stations {
    #[complete(prompt = "packing")]
    fn half(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", variable = "city")]
    fn mixed(&self, typed: &str) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "city")]
    fn nothing_typed(&self) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "city")]
    fn context(&self, typed: &str, cx: RequestContext) -> Vec<String> {
        Vec::new()
    }

    #[complete(prompt = "packing", argument = "city")]
    fn three(&self, typed: &str, known: BTreeMap<String, String>, more: u8) -> Vec<String> {
        Vec::new()
    }
}

fn main() {}
