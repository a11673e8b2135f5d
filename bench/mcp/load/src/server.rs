//! A server process, which ends with its value.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Fault;

/// The core of the servers; the script that starts this program gives it another one.
const SERVER_CORE: &str = "0";

pub(crate) struct Server {
    child: Child,
    /// Host and port; empty for stdio.
    pub(crate) address: String,
}

impl Server {
    /// The server prints its URL, whose path is `/mcp`, on one line.
    pub(crate) async fn start_http(command: &[String]) -> Result<Self, Fault> {
        let mut child = spawn(command, Stdio::null())?;
        let output = child.stdout.take().ok_or("no stdout")?;
        let line = BufReader::new(output).lines().next_line().await?.unwrap_or_default();
        let address = line.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.ok_or_else(|| format!("it did not start: {line}"))?.to_owned();
        Ok(Self { child, address })
    }

    pub(crate) fn start_stdio(command: &[String]) -> Result<Self, Fault> {
        Ok(Self { child: spawn(command, Stdio::piped())?, address: String::new() })
    }

    pub(crate) fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout), Fault> {
        self.child.stdin.take().zip(self.child.stdout.take()).ok_or_else(|| "no pipes".into())
    }

    /// The CPU time of the process, in microseconds. Unlike calls per second, it hardly depends on other processes.
    pub(crate) fn cpu_micros(&self) -> Result<f64, Fault> {
        let id = self.child.id().ok_or("it has ended")?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name in brackets may contain anything; utime and stime are the 12th and 13th fields after it.
        let (_, fields) = stat.rsplit_once(") ").ok_or("no fields")?;
        let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
        // A clock tick in user space is 10 ms on every Linux.
        Ok(ticks.sum::<Result<f64, _>>()? * 1e4)
    }

    /// The private bytes of the process.
    pub(crate) fn private_bytes(&self) -> Result<u64, Fault> {
        let id = self.child.id().ok_or("it has ended")?;
        let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
        let private = rollup.lines().filter(|line| line.starts_with("Private_"));
        let kilobytes =
            private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Ok(kilobytes.sum::<u64>() * 1024)
    }
}

/// `taskset` replaces itself with the command, so the child is the server itself.
fn spawn(command: &[String], input: Stdio) -> Result<Child, Fault> {
    let mut process = Command::new("taskset");
    process.args(["--cpu-list", SERVER_CORE]).args(command);
    process.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(process.kill_on_drop(true).spawn()?)
}
