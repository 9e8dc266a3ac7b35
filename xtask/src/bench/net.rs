//! The network against iperf3: both ends the same program, on loopback, where no link hides what a program costs.

use super::table::{Pairs, alternate, print_pairs, push};
use super::{Options, process};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What is asked of both, in the words that both take.
const TESTS: [(&[&str], [&str; 2]); 3] = [
    (&[], ["1 stream, Gbit/s", "1 stream, CPU s/GB"]),
    (&["-P", "4"], ["4 streams, Gbit/s", "4 streams, CPU s/GB"]),
    (&["-u", "-b", "1G", "-l", "8192"], ["UDP 1 Gbit/s asked, Gbit/s", "UDP 1 Gbit/s asked, CPU s/GB"]),
];

/// Reported, not asserted: iperf3 asks the same of the same kernel.
pub(crate) fn run(options: &Options) -> Result<()> {
    let row = |(_, [rate, cpu]): &(&[&str], [&'static str; 2])| [Pairs::new(rate, ">= 1.0"), Pairs::new(cpu, "<= 1.0")];
    let mut rows: Vec<Pairs> = TESTS.iter().flat_map(row).collect();
    for pair in 0..options.pairs {
        let all = |is_ours: bool| {
            let tests = TESTS.iter().map(|(words, _)| measured(options, words, is_ours));
            tests.collect::<Result<Vec<[f64; 2]>>>()
        };
        let (ours, theirs) = alternate(pair, || all(true), || all(false))?;
        let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
        push(&mut rows, &pairs.map(|(a, b)| (*a, *b)).collect::<Vec<_>>());
    }
    print_pairs(options, "", ["assay", "iperf3"], &rows);
    Ok(())
}

/// A server that is gone with the measurement.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn server(options: &Options, port: u16, is_ours: bool) -> Result<Server> {
    let mut command = Command::new(if is_ours { options.assay.as_os_str() } else { "iperf3".as_ref() });
    match is_ours {
        true => command.args(["net", "server", "-p"]),
        false => command.args(["-s", "-p"]),
    };
    command.arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().context("the server; is iperf3 installed?")?);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            bail!("the server does not listen on port {port}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // It needs a moment for the connection that only looked.
    std::thread::sleep(Duration::from_millis(300));
    Ok(server)
}

/// Gbit/s that arrived, and CPU seconds of both ends for each GB.
fn measured(options: &Options, words: &[&str], is_ours: bool) -> Result<[f64; 2]> {
    let port = free_port()?;
    let _server = server(options, port, is_ours)?;
    let place = options.dir.join("run");
    let mut command = Command::new(if is_ours { options.assay.as_os_str() } else { "iperf3".as_ref() });
    match is_ours {
        true => command.args(["net", "127.0.0.1", "-o"]).arg(&place),
        false => command.args(["-c", "127.0.0.1"]),
    };
    let seconds = options.size("5", "1");
    command.args(["-p", &port.to_string(), "-t", seconds, "-J"]).args(words);
    let outcome = process::run(&mut command, None);
    if is_ours {
        std::fs::remove_dir_all(&place).with_context(|| format!("{}", place.display()))?;
    }
    let value: Value = serde_json::from_str(&outcome?.0).context("the JSON of a test")?;
    Ok(figures(&value))
}

fn figures(value: &Value) -> [f64; 2] {
    let of = |path: &str| value.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let (sum, cpu) = ("/end/sum_received", "/end/cpu_utilization_percent");
    let received = match of(&format!("{sum}/bits_per_second")) {
        // UDP of iperf3 3.12 has one sum.
        none if none.is_nan() => of("/end/sum/bits_per_second"),
        bits => bits,
    };
    let cpus = (of(&format!("{cpu}/host_total")) + of(&format!("{cpu}/remote_total"))) / 100.0;
    [received / 1e9, cpus / (received / 8e9)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_what_it_cost_are_read_from_iperf3s_json() {
        let value = serde_json::json!({"end": {
            "sum_received": {"bits_per_second": 16e9},
            "cpu_utilization_percent": {"host_total": 90.0, "remote_total": 30.0},
        }});
        assert_eq!(figures(&value), [16.0, 0.6]);
    }
}
