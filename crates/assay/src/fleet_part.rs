//! This process as a host's part of a fleet's run: what it says to its agent, and what it is told.
//!
//! Standard output is for words to the agent, one line of JSON each; what a run prints there is left out.

mod lockstep;

pub(crate) use lockstep::Lockstep;

use crate::cli::FleetPartArgs;
use crate::exit::Failure;
use crate::ui;
use assay_control::fleet::clock::mono_ns;
use assay_control::fleet::message::Begin;
use assay_control::fleet::worker::{Order, Said, line};
use assay_measure::clock::{Clock, Ns};
use assay_measure::locked::locked;
use assay_measure::snapshot::RunData;
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use serde::Serialize;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// How often a part that waits looks for a signal to stop; the agent's word comes at once.
const LOOK: Duration = Duration::from_millis(500);
/// So long before the start the gate is set, after a reading of the host, and its threads wait by themselves. Each further host does
/// it a little before the others, up to a limit: many of them may be one machine, whose CPUs must be free at the start.
const LEAD_NS: Ns = 30_000_000;
const LEAD_OF_HOST_NS: Ns = 3_000_000;
const LEAD_NS_MAX: Ns = 400_000_000;
/// The last of a wait, which no timer ends so exactly.
const SPIN_NS: Ns = 200_000;
/// How much later than this host's sessions those of the others may reach a mark and have told their server: of a snapshot, which
/// should span 50 ms at most.
const PUBLISHED: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug)]
pub(crate) struct FleetPart {
    host: u32,
    hosts: u32,
    seed: u64,
    orders: Mutex<Receiver<Order>>,
    begin: OnceLock<Begin>,
    /// Instant of its gate by `CLOCK_MONOTONIC`, ns.
    gate_ns: OnceLock<Ns>,
    /// Of a probe: it has begun, and so long after the instant, ns.
    has_begun: AtomicBool,
    late_ns: AtomicU64,
}

static PART: OnceLock<FleetPart> = OnceLock::new();

/// The part that this process is; `None` for every other command.
pub(crate) fn get() -> Option<&'static FleetPart> {
    PART.get()
}

/// A probe whose hosts begin at one instant: waits until shortly before it, where this process is a part.
pub(crate) fn ready() {
    if let Some(part) = get() {
        part.await_start(&Stop::of_process(), None);
    }
}

/// Waits for that instant.
pub(crate) fn begin() {
    let Some(part) = get().filter(|part| !part.has_begun.swap(true, Ordering::Relaxed)) else {
        return;
    };
    let clock = Clock::real();
    let gate_ns = part.start_at(clock.now_ns());
    reach(mono_ns() + gate_ns.saturating_sub(clock.now_ns()));
    part.late_ns.store(clock.now_ns().saturating_sub(gate_ns), Ordering::Relaxed);
}

/// Waits for an instant of `CLOCK_MONOTONIC`, which is near.
fn reach(at_ns: Ns) {
    while let Some(left) = at_ns.checked_sub(mono_ns()).filter(|left| *left > 0) {
        match left {
            ..SPIN_NS => std::hint::spin_loop(),
            _ => std::thread::sleep(Duration::from_nanos(left - SPIN_NS)),
        }
    }
}

/// Says what a probe measured here, and where its own record will be.
pub(crate) fn measured(place: &Path, data: Option<RunData>) {
    if let (Some(part), Some(mut data)) = (get(), data) {
        data.began_ns = Some(part.late_ns.load(Ordering::Relaxed));
        part.say(&Said::Dir(std::path::absolute(place).unwrap_or_default().display().to_string()));
        part.measured(&data);
    }
}

/// Makes this process one.
pub(crate) fn attach(args: &FleetPartArgs) -> Result<(), Failure> {
    ui::log_to(Path::new("/dev/null"))?;
    let (sender, orders) = channel();
    let &FleetPartArgs { host, hosts, seed, .. } = args;
    // A second would be a mistake of this program; the first stays.
    let _ = PART.set(FleetPart {
        host,
        hosts,
        seed,
        orders: Mutex::new(orders),
        begin: OnceLock::new(),
        gate_ns: OnceLock::new(),
        has_begun: AtomicBool::new(false),
        late_ns: AtomicU64::new(0),
    });
    std::thread::spawn(move || {
        for text in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str(&text) else { continue };
            if matches!(order, Order::Stop) {
                Stop::of_process().request();
            }
            let _ = sender.send(order);
        }
        // Without its agent nobody would take what it measures, or stop it.
        Stop::of_process().request();
    });
    Ok(())
}

impl FleetPart {
    /// How many hosts there are.
    pub(crate) fn hosts(&self) -> u64 {
        u64::from(self.hosts)
    }

    /// The seed of all hosts.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Leaves of a plan what this host does.
    pub(crate) fn share(&self, plan: &mut Plan) -> Result<(), String> {
        plan.take_share(self.host, self.hosts)
    }

    /// Says something to the agent. One that is gone has ended the input too, which stops the run.
    pub(crate) fn say(&self, word: &Said) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line(word).as_bytes()).and_then(|()| out.flush());
    }

    /// Says that every session is ready, and which server this host can read for all; waits until shortly before the start.
    pub(crate) fn await_start(&self, stop: &Stop, server: Option<String>) {
        if let Some(begin) = self.await_order(stop, &Said::Ready(server)) {
            let _ = self.begin.set(begin);
        }
    }

    /// Says that it waits to begin, and waits until shortly before that; `None` where it shall stop.
    fn await_order(&self, stop: &Stop, waits: &Said) -> Option<Begin> {
        self.say(waits);
        let orders = locked(&self.orders);
        // Many hosts may be one machine: nobody wakes to look whether there is something to do.
        let begin = loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Start(begin)) => break begin,
                Err(RecvTimeoutError::Timeout) if !stop.requested() => {}
                Ok(Order::Stop) | Err(_) => return None,
            }
        };
        let lead_ns = (LEAD_NS + LEAD_OF_HOST_NS * u64::from(self.host)).min(LEAD_NS_MAX);
        while let Some(left) = begin.at_ns.checked_sub(mono_ns() + lead_ns).filter(|_| !stop.requested()) {
            let _ = orders.recv_timeout(Duration::from_nanos(left).min(LOOK));
        }
        Some(begin)
    }

    /// The instant of the gate by the run's clock: the agreed one, unless it is over.
    pub(crate) fn start_at(&self, earliest_ns: Ns) -> Ns {
        let (now_ns, mono) = (Clock::real().now_ns(), mono_ns());
        let agreed = self.begin.get().map_or(0, |begin| now_ns + begin.at_ns.saturating_sub(mono));
        let gate_ns = agreed.max(earliest_ns);
        let _ = self.gate_ns.set(mono + gate_ns.saturating_sub(now_ns));
        self.say(&Said::Gate(mono + gate_ns.saturating_sub(now_ns)));
        gate_ns
    }

    /// Whether this host reads its server for all; if so, a little later than the sessions of all hosts have published there.
    pub(crate) fn reads_server(&self) -> bool {
        let reads = self.begin.get().is_some_and(|begin| begin.reads_server);
        if reads && self.hosts > 1 {
            std::thread::sleep(PUBLISHED);
        }
        reads
    }

    /// Says what was measured.
    pub(crate) fn measured(&self, data: &impl Serialize) {
        if let Ok(data) = serde_json::value::to_raw_value(data) {
            self.say(&Said::Data(data));
        }
    }
}
