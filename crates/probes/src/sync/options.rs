//! The probe's own option.

use assay_run::engine::EngineError;
use assay_run::probe::Request;
use assay_run::probe_options;

/// Commits per second that anybody could need.
const MOST: usize = 1_000_000_000;

probe_options! {
    pub(super) OPTIONS:
    COMMITS: "commits" ["N"], "Commits per second that your database needs: the answer says whether this storage makes them";
}

/// The commits per second that were asked for.
///
/// # Errors
/// `Usage`: not a number from 1 on.
pub(super) fn commits_per_s(request: &Request) -> Result<Option<u64>, EngineError> {
    Ok(request.number(&COMMITS, 1..=MOST)?.map(|commits| commits as u64))
}
