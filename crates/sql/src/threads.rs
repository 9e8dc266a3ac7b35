//! Threads that work side by side: the first failure ends all, while the calling thread watches them.

use assay_run::engine::EngineError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Interval between two calls of `watch`.
const TICK: Duration = Duration::from_millis(100);

/// Runs this work in the caller's threads and merges their results. `ended` tells the threads that one has failed; the
/// calling thread calls `watch` at every tick.
pub(crate) fn side_by_side<F: Default + Send>(
    threads: usize,
    ended: &AtomicBool,
    work: impl Fn(usize) -> Result<F, EngineError> + Sync,
    merge: fn(&mut F, &F),
    watch: impl FnMut() -> Result<(), EngineError>,
) -> Result<F, EngineError> {
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (tell, work) = (tell.clone(), &work);
            scope.spawn(move || {
                let done = work(thread);
                if done.is_err() {
                    ended.store(true, Ordering::Release);
                }
                // The receiver outlives the threads.
                let _ = tell.send(done);
            });
        }
        drop(tell);
        gather(threads, &told, merge, watch)
    })
}

/// Waits for so many threads; a failure of `watch` ends the wait.
pub(crate) fn gather<F: Default>(
    threads: usize,
    told: &mpsc::Receiver<Result<F, EngineError>>,
    merge: fn(&mut F, &F),
    mut watch: impl FnMut() -> Result<(), EngineError>,
) -> Result<F, EngineError> {
    let (mut findings, mut failed, mut ended) = (F::default(), None, 0);
    while ended < threads {
        match told.recv_timeout(TICK) {
            Ok(done) => {
                ended += 1;
                match (done, &failed) {
                    (Ok(more), _) => merge(&mut findings, &more),
                    // Threads stopped after the first failure return only `Interrupted`.
                    (Err(error), None | Some(EngineError::Interrupted)) => failed = Some(error),
                    (Err(_), Some(_)) => {}
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(failed
                    .unwrap_or_else(|| EngineError::Unusable("a thread of assay ended without a result".to_owned())));
            }
        }
        if let Err(error) = watch() {
            let known = failed.filter(|failed| !matches!(failed, EngineError::Interrupted));
            return Err(known.unwrap_or(error));
        }
    }
    failed.map_or(Ok(findings), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who watches gives up while others still work: the failure that ended them is what the user is told.
    #[test]
    fn a_failure_that_is_known_is_told_when_the_watch_gives_up() {
        let given_up = |known: Option<EngineError>| {
            let (tell, told) = mpsc::channel();
            if let Some(known) = known {
                tell.send(Err(known)).unwrap();
            }
            let give_up = || Err(EngineError::Interrupted);
            gather::<()>(2, &told, |(), ()| (), give_up).unwrap_err().to_string()
        };
        let full = || EngineError::Unusable("no room".to_owned());
        assert_eq!(given_up(Some(full())), full().to_string());
        assert_eq!(given_up(Some(EngineError::Interrupted)), EngineError::Interrupted.to_string());
        assert_eq!(given_up(None), EngineError::Interrupted.to_string());
    }
}
