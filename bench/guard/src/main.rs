//! Instructions and allocations of each case, against the recorded budget.
//!
//! Both counts do not depend on the load of the machine, so they show a more expensive call at once.
//! `guard` checks; `guard --record` writes the measured values.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The tolerance over the budget, since system libraries differ slightly.
const SLACK: f64 = 0.10;
/// The tolerance for allocations, which are few.
const SLACK_ALLOCATIONS: f64 = 0.25;

/// The cases: name, repetitions, and calls per repetition.
const CASES: [(&str, usize, usize); 14] = [
    ("decode", 2_000, 1),
    ("decode-batch", 50, 100),
    ("lines", 200, 16),
    ("stream", 200, 16),
    ("stream-batch", 50, 100),
    ("service", 500, 1),
    ("service-batch", 50, 100),
    ("tcp", 200, 16),
    ("ws", 200, 16),
    ("ws-batch", 50, 100),
    ("http", 500, 1),
    ("http-pipelined", 100, 16),
    ("call", 200, 16),
    ("http-call", 200, 16),
];

fn main() -> ExitCode {
    let record = std::env::args().any(|arg| arg == "--record");
    match run(record) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("guard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether everything is within its budget.
fn run(record: bool) -> Result<bool, Box<dyn Error>> {
    let measured = CASES.iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("budget.txt");
    if record {
        std::fs::write(&path, table(&measured)?)?;
        println!("recorded in {}", path.display());
        return Ok(true);
    }
    let budget = read(&std::fs::read_to_string(&path)?)?;
    Ok(measured.iter().filter(|cost| !within(cost, &budget)).count() == 0)
}

/// Measures the cost of one call of a case.
struct Cost {
    case: String,
    instructions: f64,
    allocations: f64,
}

fn measure(&(case, count, calls): &(&str, usize, usize)) -> Result<Cost, Box<dyn Error>> {
    let a_call = |once: u64, twice: u64| (twice as f64 - once as f64) / (count * calls) as f64;
    Ok(Cost {
        case: case.to_owned(),
        instructions: a_call(instructions(case, count)?, instructions(case, 2 * count)?),
        allocations: a_call(allocations(case, count)?, allocations(case, 2 * count)?),
    })
}

/// Returns the instructions that callgrind counts.
fn instructions(case: &str, count: usize) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(subject()?)
        .args([case, &count.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}; install valgrind"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    match collected {
        Some((_, count)) if output.status.success() => Ok(count.trim().parse()?),
        _ => Err(format!("`subject {case}` failed under valgrind:\n{text}").into()),
    }
}

/// Returns the allocations that the counting allocator counts.
fn allocations(case: &str, count: usize) -> Result<u64, Box<dyn Error>> {
    let output = Command::new(subject()?).args([case, &count.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        let fault = String::from_utf8_lossy(&output.stderr);
        format!("`subject {case}` failed: {fault}").into()
    })
}

/// The measured program, built beside this one.
fn subject() -> Result<PathBuf, Box<dyn Error>> {
    let path = std::env::current_exe()?.with_file_name("subject");
    if !path.exists() {
        return Err("`subject` is not built; run bench/guard/run".into());
    }
    Ok(path)
}

const HEAD: &str = "\
# The cost budget of a call, measured by bench/guard/run: instructions under callgrind, allocations.
# A change that costs more fails CI. Record an accepted or a lower cost with bench/guard/run --record.
";

fn table(costs: &[Cost]) -> Result<String, std::fmt::Error> {
    let mut text = HEAD.to_owned();
    for Cost { case, instructions, allocations } in costs {
        writeln!(text, "{case:<16} {instructions:>8.0} {allocations:>8.2}")?;
    }
    Ok(text)
}

fn read(text: &str) -> Result<Vec<Cost>, Box<dyn Error>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [case, instructions, allocations] = line.split_whitespace().collect::<Vec<_>>()[..]
            else {
                return Err(format!("budget.txt: {line:?} is no case with two numbers").into());
            };
            let (instructions, allocations) = (instructions.parse()?, allocations.parse()?);
            Ok(Cost { case: case.to_owned(), instructions, allocations })
        })
        .collect()
}

/// Prints the result of a case.
fn within(cost: &Cost, budget: &[Cost]) -> bool {
    let Cost { case, instructions, allocations } = cost;
    let Some(budget) = budget.iter().find(|budget| budget.case == *case) else {
        println!("{case:<16} {instructions:>8.0} instructions: NO BUDGET; record one");
        return false;
    };
    let fits = *instructions <= budget.instructions * (1.0 + SLACK)
        && *allocations <= budget.allocations + SLACK_ALLOCATIONS;
    println!(
        "{case:<16} {instructions:>8.0} of {:>8.0} instructions, {allocations:>6.2} of {:>6.2} \
         allocations a call{}",
        budget.instructions,
        budget.allocations,
        if fits { "" } else { ": OVER BUDGET" }
    );
    fits
}
