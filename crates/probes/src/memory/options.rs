//! The probe's own options.

use assay_block::Pages;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use assay_run::probe_options;

/// Memory of a worker where nobody says.
const USUAL_BYTES: u64 = 256 << 20;
/// Workers that anybody could mean.
const MOST: usize = 100_000;

probe_options! {
    /// All of them. `stress-ng --metrics-brief --verbose` are taken: the metrics are always printed.
    pub(super) OPTIONS:
    HUGE: "huge" ["KIND"] = "thp",
        "Huge pages to measure beside 4 KiB pages: thp (transparent), 2m or 1g (of a reserved pool), off";
    ARRAY: "array" ["SIZE"],
        "Size of each of the three bandwidth arrays; by default four times all last-level caches, as far as memory and time \
          allow";
    SOAK: "soak" | "vm" ["N"],
        "Write and verify memory with N workers for the given time instead of measuring; 0: one worker for each \
         usable CPU";
    SOAK_BYTES: "soak-bytes" | "vm-bytes" ["SIZE"], "Memory of each worker of --soak; by default 256M, as in stress-ng";
    SOAK_TOTAL: "soak-bytes-total" | "vm-bytes-total" ["SIZE"],
        "Total memory of all workers of --soak, in place of --soak-bytes";
    FORCE: "force", "Let --soak take more memory than the host can spare";
    /// A test of the test: the first worker spoils one bit of its memory.
    FLIP: "flip-bit", "";
    METRICS_BRIEF: "metrics-brief", "";
    VERBOSE: "verbose", "";
}

const KINDS: [(&str, Option<Pages>); 4] =
    [("thp", Some(Pages::Transparent)), ("2m", Some(Pages::Pool2M)), ("1g", Some(Pages::Pool1G)), ("off", None)];

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// Huge pages to measure; none where only small ones are wanted.
    pub(super) huge: Option<Pages>,
    /// Bytes of each array.
    pub(super) array_bytes: Option<u64>,
    pub(super) soak: Option<Soak>,
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Soak {
    pub(super) workers: usize,
    pub(super) worker_bytes: u64,
    pub(super) is_forced: bool,
    pub(super) flips: bool,
}

impl Soak {
    pub(super) fn total_bytes(&self) -> u64 {
        self.worker_bytes.saturating_mul(self.workers as u64)
    }
}

impl Ask {
    /// Of a host with so many CPUs.
    pub(super) fn of(request: &Request, cpus: usize) -> Result<Self, EngineError> {
        let said = |option: &ProbeOption| {
            let is_it = |word: &String| word.split('=').next() == Some(option.name);
            request.words.iter().any(is_it)
        };
        let bytes = |option: &ProbeOption| request.size_bytes(option, 4096..=u64::MAX);
        let soak = request.number(&SOAK, 0..=MOST)?.map(|workers| if workers == 0 { cpus } else { workers });
        let of_soak = [SOAK_BYTES, SOAK_TOTAL, FORCE, FLIP];
        if let Some(option) = of_soak.iter().find(|o| soak.is_none() && said(o)) {
            let text = format!("--{} applies only to --soak: add --soak N", option.name);
            return Err(EngineError::Usage(text));
        }
        if let Some(option) = [HUGE, ARRAY].iter().find(|o| soak.is_some() && said(o)) {
            let text =
                format!("--{} applies only to measuring: leave out either --soak or --{}", option.name, option.name);
            return Err(EngineError::Usage(text));
        }
        let soak = soak.map(|workers| {
            let each = match (bytes(&SOAK_TOTAL)?, bytes(&SOAK_BYTES)?) {
                (Some(total), _) => total / workers as u64,
                (None, each) => each.unwrap_or(USUAL_BYTES),
            };
            Ok(Soak {
                workers,
                worker_bytes: each.next_multiple_of(4096),
                is_forced: request.is_on(&FORCE),
                flips: request.is_on(&FLIP),
            })
        });
        Ok(Self { huge: request.choice(&HUGE, &KINDS)?, array_bytes: bytes(&ARRAY)?, soak: soak.transpose()? })
    }
}

/// Pages by the word that asks for them.
pub(super) fn word(pages: Pages) -> &'static str {
    match pages {
        Pages::Base => "4k",
        Pages::Transparent => "thp",
        Pages::Pool2M => "2m",
        Pages::Pool1G => "1g",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(words: &[&str]) -> Result<Ask, EngineError> {
        let request = Request { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Request::default() };
        Ask::of(&request, 4)
    }

    #[test]
    fn memory_01_bytes_are_of_each_worker_or_of_all_together() {
        let soak = |words: &[&str]| ask(words).unwrap().soak.unwrap();
        assert_eq!(soak(&["soak=8", "soak-bytes=64M"]).total_bytes(), 512 << 20);
        assert_eq!(soak(&["soak=8", "soak-bytes-total=64M"]).worker_bytes, 8 << 20);
        let usual = soak(&["soak=0"]);
        assert_eq!((usual.workers, usual.worker_bytes), (4, 256 << 20));
        assert_eq!(ask(&[]).unwrap().soak, None);
        assert_eq!(ask(&[]).unwrap().huge, Some(Pages::Transparent));
        assert_eq!(ask(&["huge=off"]).unwrap().huge, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (words, named) in [
            (&["soak=-1"][..], "--soak -1"),
            (&["huge=4m"], "--huge 4m"),
            (&["array=7"], "--array 7"),
            (&["soak=1", "array=1G"], "--array"),
            (&["soak-bytes=1M"], "--soak-bytes"),
            (&["soak=1", "soak-bytes=lots"], "--soak-bytes lots"),
        ] {
            let Err(EngineError::Usage(why)) = ask(words) else {
                panic!("{words:?} is taken");
            };
            assert!(why.starts_with(named), "{why}");
        }
    }
}
