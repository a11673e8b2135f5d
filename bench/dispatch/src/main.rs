//! Timed, and counted by callgrind.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    dispatch::run(|| 0)
}
