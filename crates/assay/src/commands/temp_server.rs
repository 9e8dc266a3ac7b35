//! Temporary servers: the processes behind them, and a server held for a script.

use crate::cli::SettingArgs;
use crate::configure;
use crate::exit::{Code, Failure};
use crate::{plan_text, registry, signals, ui};
use assay_sql::temp;
use std::ffi::OsString;
use std::io::Read;
use std::time::Duration;

/// Between two looks at a stop request.
const TICK: Duration = Duration::from_millis(50);

/// The keeper: ends when its standard input does, whatever signals come.
pub(super) fn keep() -> Result<Code, Failure> {
    signals::outlive()?;
    temp::keep();
    Ok(Code::Good)
}

pub(super) fn become_server(part: &str, command: &[OsString]) -> Result<Code, Failure> {
    Err(Failure::new(Code::Unusable, temp::become_server(part, command)))
}

/// A server for a script: where it is in one line of JSON, then it stays until standard input ends or a signal comes.
pub(super) fn hold(mut args: SettingArgs) -> Result<Code, Failure> {
    args.target.get_or_insert_with(|| "temp:postgres".to_owned());
    let mut configured = configure::configure(&args, Vec::new())?;
    if !configured.is_temporary() {
        return Err(Failure::usage(format!(
            "{} is not a temporary server; write --target with one of {}",
            configured.shown(),
            registry::temporary_forms()
        )));
    }
    let stop = signals::watch()?;
    configured.start(&stop)?;
    let lines = plan_text::lines_json(configured.started_lines());
    ui::product(&format!("{lines}\n"))?;
    let ended = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().by_ref(), &mut std::io::sink());
        ended.request();
    });
    while !stop.requested() {
        std::thread::sleep(TICK);
    }
    Ok(Code::Good)
}
