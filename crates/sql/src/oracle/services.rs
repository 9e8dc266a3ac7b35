//! Which numbered service each session connects to: SLOB's rotation over
//! `SQLNET_SERVICE_BASE` 1..`SQLNET_SERVICE_MAX`.

/// The services of all sessions, in session order (schemas in order, then their sessions), and a warning if their
/// counts differ.
///
/// With several schemas all sessions of a schema share one service, and schema k uses service number ((k-1) mod max)+1.
/// With one schema the sessions take the services in turn, from number 1. Without a maximum all sessions use `base`
/// itself.
pub(super) fn assign(
    base: &str,
    max: Option<u64>,
    schemas: u32,
    threads_per_schema: u32,
) -> (Vec<String>, Option<String>) {
    let mut services = Vec::new();
    for schema in 0..u64::from(schemas) {
        for thread in 0..u64::from(threads_per_schema) {
            let turn = if schemas == 1 { thread } else { schema };
            services.push(
                max.filter(|max| *max > 0).map_or_else(|| base.to_owned(), |max| format!("{base}{}", turn % max + 1)),
            );
        }
    }
    let turns = if schemas == 1 { u64::from(threads_per_schema) } else { u64::from(schemas) };
    let uneven = max.filter(|max| *max > 0 && turns % max != 0).map(|max| {
        let what = if schemas == 1 { "sessions" } else { "schemas" };
        format!("{turns} {what} cannot be divided evenly among {max} services: some services carry more load")
    });
    (services, uneven)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slob_39_services_rotate_by_schema_or_by_session() {
        let (services, uneven) = assign("x", Some(3), 6, 2);
        let expected = ["x1", "x1", "x2", "x2", "x3", "x3", "x1", "x1", "x2", "x2", "x3", "x3"];
        assert_eq!(services, expected);
        assert_eq!(uneven, None);
        let (services, uneven) = assign("x", Some(3), 1, 6);
        assert_eq!(services, ["x1", "x2", "x3", "x1", "x2", "x3"]);
        assert_eq!(uneven, None);
        let (_, uneven) = assign("x", Some(3), 4, 2);
        assert!(uneven.expect("4 over 3 is uneven").contains("4 schemas"));
        assert_eq!(assign("one", None, 2, 1).0, ["one", "one"]);
    }
}
