//! Calls over stdio: one client with a window of calls in flight.

use std::time::Instant;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::contenders::{Contender, Load};
use crate::messages::{INITIALIZED, call, check, initialize};
use crate::server::Server;
use crate::spread::Figure;
use crate::{Fault, Options};

const IN_FLIGHT: u64 = 16;
/// The id of the call before the measurement, which no later call has.
const FIRST: u64 = 1 << 40;

pub(crate) async fn calls_per_second(
    one: &Contender,
    load: Load,
    options: &Options,
) -> Result<Figure, Fault> {
    let mut server = Server::start_stdio(&one.command(load))?;
    let (input, output) = server.pipes()?;
    let mut pipe =
        Pipe { input, output: BufReader::with_capacity(64 * 1024, output), line: Vec::new() };
    let modern = load.is_modern();
    if !modern {
        pipe.send(&initialize()).await?;
        pipe.receive().await?;
        pipe.send(INITIALIZED).await?;
    }
    // The measurement begins after the first reply, so it does not contain the start of the process.
    pipe.send(&call(FIRST, modern)).await?;
    check(pipe.receive().await?)?;
    let first: Vec<String> = (0..IN_FLIGHT).map(|id| call(id, modern)).collect();
    pipe.send(&first.join("\n")).await?;
    // The id in flight in each slot of the window: replies come in any order.
    let mut slots: Vec<u64> = (0..IN_FLIGHT).collect();
    let (start, mut count) = (Instant::now() + options.warm_up, 0_u64);
    let end = start + options.span;
    let mut before = None;
    while Instant::now() < end {
        let id = check(pipe.receive().await?)?;
        let slot = &mut slots[(id % IN_FLIGHT) as usize];
        if *slot != id {
            return Err(format!("a second reply to {id}").into());
        }
        *slot += IN_FLIGHT;
        pipe.send(&call(id + IN_FLIGHT, modern)).await?;
        if Instant::now() >= start {
            if before.is_none() {
                before = Some(server.cpu_micros()?);
            }
            count += 1;
        }
    }
    let cpu_micros = Some((server.cpu_micros()? - before.unwrap_or(0.0)) / count as f64);
    Ok(Figure { value: count as f64 / options.span.as_secs_f64(), cpu_micros })
}

struct Pipe {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipe {
    async fn send(&mut self, message: &str) -> Result<(), Fault> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes()).await?)
    }

    async fn receive(&mut self) -> Result<&[u8], Fault> {
        self.line.clear();
        match self.output.read_until(b'\n', &mut self.line).await? {
            0 => Err("the server ended".into()),
            _ => Ok(&self.line),
        }
    }
}
