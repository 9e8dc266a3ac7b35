//! INT, TERM and HUP: the first asks to stop and save, the second to abandon, the third ends the process.

use crate::exit::{Code, Failure};
use crate::{ui, view};
use assay_run::stop::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Watches the signals on a thread of its own for the rest of the process's life; what they ask for.
pub(crate) fn watch() -> Result<Stop, Failure> {
    // Descriptors and threads are the host's to give.
    let fail = |error: std::io::Error| Failure::new(Code::Unusable, format!("signal handlers: {error}"));
    let mut signals = Signals::new(asking()).map_err(fail)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for (count, _) in signals.forever().enumerate() {
                match count {
                    0 => ui::say("stopping and saving the results; interrupt again to abandon the run"),
                    1 => ui::say("abandoning operations in flight; interrupt again to end immediately"),
                    _ => {
                        view::leave();
                        signal_hook::low_level::exit(Code::Interrupted as i32)
                    }
                }
                Stop::of_process().request();
            }
        })
        .map_err(fail)?;
    Ok(Stop::of_process())
}

/// The signals that ask to stop. One that was ignored when this process began stays ignored: `nohup` means it.
fn asking() -> Vec<i32> {
    let ignored = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_ignored = |signal: i32| ignored.unwrap_or(0) >> (signal - 1) & 1 == 1;
    let stays = |signal: &i32| *signal != SIGHUP || !is_ignored(*signal);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(stays).collect()
}

/// A file at the limit of its size is a write that fails, as on a full disk. A handler that does nothing, in place of
/// ignoring it, is not inherited by the commands that are started.
pub(crate) fn fail_writes_at_the_size_limit() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Lets no signal that can be caught end this process: something else decides.
pub(crate) fn outlive() -> Result<(), Failure> {
    let unread = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&unread))
            .map_err(|error| Failure::new(Code::Bug, format!("signal handlers: {error}")))?;
    }
    Ok(())
}
