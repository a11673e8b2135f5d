//! The binary for timing and for callgrind.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    dispatch::run(|| 0)
}
