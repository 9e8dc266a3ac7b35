//! What the kernel granted to a ring and what it refused, in words for a report.

/// How a ring reaches the kernel. A report prints it: the achieved mode, not the requested one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// Of a [`Ring`](crate::Ring) `io_uring` or `helper threads`; of [`Lanes`](crate::Lanes) `io_uring`, `nop`, `libaio`,
    /// `psync` or `null`.
    pub backend: &'static str,
    /// Names of the features in use, in the order they were obtained: `single_issuer`, `defer_taskrun`,
    /// `coop_taskrun`, `submit_all`, `no_sqarray`, `registered_ring_fd`, `registered_files`, `registered_pool`,
    /// `registered_buffers`, `registered_scatter`. Lanes besides: `huge_pages`, `polled`, `sq_thread`, `min_wait` (one wait
    /// for several completions with a time after which one is enough), `user_ring` (libaio's completions are taken
    /// without a call), `memory_at_once` (requests on a file system in memory are served without a worker thread).
    pub obtained: Vec<String>,
    /// Names of the features that were tried and refused, each with the reason.
    pub refused: Vec<(String, String)>,
}

impl Features {
    /// Whether a feature is in use.
    pub fn has(&self, name: &str) -> bool {
        self.obtained.iter().any(|obtained| obtained == name)
    }

    pub(crate) fn obtain(&mut self, name: &str) {
        self.obtained.push(name.to_owned());
    }

    pub(crate) fn refuse(&mut self, name: &str, why: impl Into<String>) {
        self.refused.push((name.to_owned(), why.into()));
    }
}
