//! Taking what the hosts kept: all of them at once, and what they measured is read by all CPUs.

use super::FleetError;
use super::bus::KeptRuns;
use super::message::{Kept, KeptPart};
use assay_measure::snapshot::RunData;
use futures_util::future::{join, join_all};
use std::thread;

/// The parts that a host keeps.
pub(super) const DATA: &str = "data";
pub(super) const SERIES: &str = "series";

/// What JetStream has of a host, as it was kept.
pub(super) struct Fetched {
    kept: Kept,
    parts: Vec<(KeptPart, Vec<u8>)>,
}

/// The same, read.
pub(super) struct FoundHost {
    pub(super) kept: Kept,
    pub(super) data: Option<RunData>,
    pub(super) series: Option<Vec<u8>>,
}

/// Fetches what is kept in a place; `None` where nothing is.
///
/// # Errors
/// The server does not answer, or a piece is missing.
pub(super) async fn fetch(kept: &KeptRuns, place: &str) -> Result<Option<Fetched>, FleetError> {
    // The first pieces are nearly always all there is: nobody waits for what says how many there are.
    let first = |name: &'static str| async move { (name, kept.get(&format!("{place}.{name}.0")).await) };
    let (end, mut firsts) = join(kept.get(&format!("{place}.end")), join_all([DATA, SERIES].map(first))).await;
    let Some(end) = end? else {
        return Ok(None);
    };
    let end: Kept = serde_json::from_slice(&end).map_err(unreadable)?;
    let mut parts = Vec::with_capacity(end.parts.len());
    for part in &end.parts {
        let first = match firsts.iter().position(|(name, _)| *name == part.name) {
            Some(at) => firsts.swap_remove(at).1?,
            None => None,
        };
        parts.push((part.clone(), kept.part(place, part, first).await?));
    }
    Ok(Some(Fetched { kept: end, parts }))
}

type Found<T> = Result<Option<T>, FleetError>;

/// Reads what was fetched.
pub(super) fn read_all(mut fetched: Vec<Found<Fetched>>) -> Vec<Found<FoundHost>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let each = fetched.len().div_ceil(threads).max(1);
    let mut chunks: Vec<Vec<Found<Fetched>>> = Vec::with_capacity(threads);
    while !fetched.is_empty() {
        let rest = fetched.split_off(each.min(fetched.len()));
        chunks.push(std::mem::replace(&mut fetched, rest));
    }
    thread::scope(|scope| {
        let started =
            chunks.into_iter().map(|chunk| scope.spawn(move || chunk.into_iter().map(read).collect::<Vec<_>>()));
        let started: Vec<_> = started.collect();
        let ended = started.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.flatten().collect()
    })
}

fn read(fetched: Found<Fetched>) -> Found<FoundHost> {
    let Some(Fetched { kept, parts }) = fetched? else {
        return Ok(None);
    };
    let (mut data, mut series) = (None, None);
    for (part, bytes) in parts {
        part.refuse_damaged(&bytes)?;
        match part.name.as_str() {
            DATA => data = Some(serde_json::from_slice(&bytes).map_err(unreadable)?),
            _ => series = Some(bytes),
        }
    }
    Ok(Some(FoundHost { kept, data, series }))
}

fn unreadable(error: serde_json::Error) -> FleetError {
    FleetError::Unusable(format!("what it kept cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::message::hex;
    use super::*;

    fn fetched(run: &str, damage: bool) -> Found<Fetched> {
        let data = serde_json::to_vec(&RunData { run_id: run.to_owned(), ..RunData::default() }).expect("plain data");
        let hash = if damage { String::new() } else { hex(&data) };
        let part = KeptPart { name: DATA.to_owned(), pieces: 1, hash };
        Ok(Some(Fetched { kept: Kept::default(), parts: vec![(part, data)] }))
    }

    #[test]
    fn what_was_fetched_stays_in_its_order_and_damage_is_of_one_host() {
        let runs: Vec<String> = (0..50).map(|run| run.to_string()).collect();
        let mut all: Vec<_> = runs.iter().map(|run| fetched(run, false)).collect();
        all.push(Ok(None));
        all.push(fetched("x", true));
        let found = read_all(all);
        assert_eq!(found.len(), 52);
        for (found, run) in found.iter().zip(&runs) {
            let data = found.as_ref().ok().and_then(|found| found.as_ref()?.data.as_ref());
            assert_eq!(data.map(|data| &data.run_id), Some(run));
        }
        assert!(matches!(found[50], Ok(None)));
        assert!(found[51].as_ref().is_err_and(|error| error.to_string().contains("is damaged")));
        assert!(read_all(Vec::new()).is_empty());
    }
}
