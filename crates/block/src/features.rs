//! What the kernel granted to a ring and what it refused, in words for a report.

/// How a ring reaches the kernel. A report prints it: the achieved mode, not the requested one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// For a [`Ring`](crate::Ring), `io_uring` or `helper threads`; for [`Lanes`](crate::Lanes), `io_uring`, `nop`,
    /// `libaio`, `psync` or `null`.
    pub backend: &'static str,
    /// Names of the features in use, in the order they were obtained: `single_issuer`, `defer_taskrun`, `coop_taskrun`,
    /// `submit_all`, `no_sqarray`, `registered_ring_fd`, `registered_files`, `registered_pool`, `registered_buffers`,
    /// `registered_scatter`. Lanes add `huge_pages`, `polled`, `sq_thread`, `min_wait` (one call waits for several
    /// completions, but after a set time for just one), `user_ring` (libaio completions are taken without a system
    /// call) and `memory_at_once` (requests on an in-memory file system are served without a worker thread).
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
