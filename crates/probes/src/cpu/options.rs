//! The probe's own options.

use assay_run::engine::EngineError;
use assay_run::probe::Request;
use assay_run::probe_options;

/// Workers that anybody could mean.
const MOST: usize = 100_000;

probe_options! {
    /// All of them. `stress-ng --metrics-brief --verbose` are taken: the metrics are always printed.
    pub(super) OPTIONS:
    SOAK: "soak" | "cpu" ["N"],
        "Load the CPUs with N workers for the given time instead of measuring; 0: one worker for each usable CPU";
    LARGE: "large", "Also measure the 1 GiB data sets";
    METRICS_BRIEF: "metrics-brief", "";
    VERBOSE: "verbose", "";
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// Workers of a soak; 0: one for each CPU.
    pub(super) soak: Option<usize>,
    /// Whether the sets of 1 GiB are wanted.
    pub(super) is_large: bool,
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let soak = request.number(&SOAK, 0..=MOST)?;
        let is_large = request.is_on(&LARGE);
        if soak.is_some() && is_large {
            let text = "--large applies only to measuring: --soak has no 1 GiB data sets";
            return Err(EngineError::Usage(text.to_owned()));
        }
        Ok(Self { soak, is_large })
    }

    /// Threads at once at most.
    pub(super) fn workers(&self, cpus: usize) -> usize {
        match self.soak {
            Some(0) | None => cpus,
            Some(workers) => workers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(words: &[&str]) -> Result<Ask, EngineError> {
        Ask::of(&Request { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Request::default() })
    }

    #[test]
    fn a_soak_has_so_many_workers_and_none_means_every_cpu() {
        let usual = ask(&[]).unwrap();
        assert_eq!((usual.soak, usual.is_large, usual.workers(4)), (None, false, 4));
        assert_eq!(ask(&["soak=0"]).unwrap().workers(4), 4);
        assert_eq!(ask(&["soak=2000"]).unwrap().workers(4), 2000);
        for bad in ["soak=-1", "soak=two", "soak=100001"] {
            assert!(matches!(ask(&[bad]), Err(EngineError::Usage(_))), "{bad}");
        }
        assert!(ask(&["soak=1", "large"]).is_err());
        assert!(ask(&["large"]).unwrap().is_large);
    }
}
