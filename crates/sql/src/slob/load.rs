//! Loading a data set: the output that all servers share.

use crate::checked::Findings;
use crate::marked::Own;
use crate::wanted::Wanted;
use assay_run::dataset::lines::{decimal, text};
use assay_run::engine::{EngineError, Line};
use std::time::Instant;

/// Loads with `work`, has the server write its dirty pages with `write_out`, so that the first run does not have to, and sums up.
///
/// # Errors
/// Those of `work`; a failed `write_out` only adds a note.
pub(crate) fn summed_up<S, X: Own>(
    plan: &Wanted<X>,
    keeper: &mut S,
    work: impl FnOnce(&mut S) -> Result<Findings, EngineError>,
    write_out: impl FnOnce(&mut S) -> Result<(), String>,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    let findings = work(keeper)?;
    let mut lines = plan.summary(begun.elapsed().as_secs_f64(), " and verification");
    let written = Instant::now();
    let label = "Time to write out the tables, s";
    lines.push(match write_out(keeper) {
        Ok(()) => decimal("checkpoint_s", label, written.elapsed().as_secs_f64()),
        Err(why) => text("checkpoint_s", label, format!("n/a ({why})")),
    });
    lines.extend(findings.lines());
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}
