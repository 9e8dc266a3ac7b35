//! INT and TERM: the first asks to stop and save, the second to abandon, the third ends the process.

use crate::exit::{Code, Failure};
use crate::ui;
use assay_run::stop::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Watches the signals on a thread of its own for the rest of the process's life.
pub(crate) fn watch(stop: &Stop) -> Result<(), Failure> {
    // Descriptors and threads are the host's to give.
    let fail =
        |error: std::io::Error| Failure::new(Code::Unusable, format!("signal handlers: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(fail)?;
    let stop = stop.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for (count, _) in signals.forever().enumerate() {
                match count {
                    0 => ui::say("stopping: what was measured is saved; once more abandons it"),
                    1 => ui::say("abandoning the operations under way; once more ends at once"),
                    _ => signal_hook::low_level::exit(Code::Interrupted as i32),
                }
                stop.request();
            }
        })
        .map_err(fail)?;
    Ok(())
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
