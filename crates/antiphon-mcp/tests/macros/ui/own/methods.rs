struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    fn exclusive(&mut self) {}

    #[tool]
    fn consumed(self) {}

    #[tool]
    fn boxed(self: Box<Self>) {}

    #[tool]
    fn generic<T: ToString>(&self, value: T) {}

    #[tool]
    fn lifetime<'a>(&'a self, value: &'a str) {}

    #[tool]
    fn clause(&self)
    where
        Self: Sized,
    {
    }

    #[tool]
    unsafe fn dangerous(&self) {}
}

fn main() {}
