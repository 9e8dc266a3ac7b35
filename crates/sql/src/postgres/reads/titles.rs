//! Tells by their titles which server processes serve no client.

/// Titles of processes that serve no client: the text after `postgres: ` and the cluster's name.
const BACKGROUND: &[&str] = &[
    "checkpointer",
    "background writer",
    "writer",
    "walwriter",
    "wal writer",
    "walsummarizer",
    "walsender",
    "walreceiver",
    "wal receiver",
    "autovacuum",
    "logical replication",
    "slotsync worker",
    "archiver",
    "startup",
    "stats collector",
    "io worker",
    "logger",
    "bgworker",
];

/// Whether this title, `postgres: [cluster: ]description`, belongs to a process that serves no client.
pub(super) fn serves_no_client(title: &str, cluster_name: &str) -> bool {
    let rest = title.strip_prefix("postgres: ").unwrap_or(title);
    let rest = rest.strip_prefix(cluster_name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(rest);
    BACKGROUND.iter().any(|name| rest.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_tell_who_serves_clients() {
        for (title, background) in [
            ("postgres: checkpointer ", true),
            ("postgres: 15/main: walwriter ", true),
            ("postgres: 15/main: io worker 2", true),
            ("postgres: autovacuum worker postgres", true),
            ("postgres: 15/main: me db [local] SELECT", false),
        ] {
            assert_eq!(serves_no_client(title, "15/main"), background, "{title}");
        }
    }
}
