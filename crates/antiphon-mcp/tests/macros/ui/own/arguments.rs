use antiphon_mcp::RequestContext;

struct Parameters<T>(T);
struct Args;
struct Weather;

#[antiphon_mcp::server(name = "weather", version = "1")]
impl Weather {
    #[tool]
    fn pattern(&self, (a, b): (i64, i64)) {}

    #[tool]
    fn parameters(&self, Parameters(args): Parameters<Args>) {}

    #[tool]
    fn borrowed(&self, city: &str, days: Vec<&u8>) {}

    #[tool]
    fn any(&self, city: impl ToString) {}

    #[tool]
    fn contexts(&self, one: RequestContext, two: &RequestContext) {}

    #[tool]
    fn exclusive(&self, cx: &mut RequestContext) {}

    #[tool]
    fn attribute(&self, #[arg(short)] city: String) {}

    #[tool]
    fn option(&self, #[param(defualt = 1)] days: u8) {}

    #[tool]
    fn whole(&self, #[params] args: Args, days: u8) {}

    #[tool]
    fn whole_renamed(&self, #[params] #[serde(default)] args: Args) {}

    #[tool]
    fn twice(&self, a: i64, #[param(name = "a")] b: i64) {}

    #[tool]
    fn own_type(&self, other: Option<Self>) {}
}

fn main() {}
