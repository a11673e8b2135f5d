use std::cell::Cell;
use std::rc::Rc;

struct Counter(Cell<u32>);

#[antiphon_mcp::server(name = "counter", version = "1")]
impl Counter {
    #[tool]
    fn count(&self) -> u32 {
        self.0.get()
    }
}

struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    async fn held(&self) {
        let held = Rc::new(1);
        std::future::ready(()).await;
        drop(held);
    }
}

fn main() {}
