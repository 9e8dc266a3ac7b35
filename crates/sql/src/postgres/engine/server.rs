//! Whether the server can serve the plan, and facts about it.

use super::options::Options;
use crate::postgres::errors;
use crate::postgres::wire::Connection;
use assay_measure::facts::{ENGINE, READ_WITHOUT_CALLS, SERVER_TOLD};
use assay_measure::snapshot::Fact;
use assay_measure::units::size;
use assay_run::engine::EngineError;
use assay_run::plan::Plan;
use std::time::{Duration, Instant};

/// Server versions with known views and plans.
const VERSIONS: std::ops::RangeInclusive<u32> = 13..=18;
/// Connections that must stay free besides the sessions: for assay's statistics, and for an administrator.
const SPARE_CONNECTIONS: i64 = 10;

/// How long processes of closed sessions may still occupy connections.
const GOODBYE_MAX: Duration = Duration::from_millis(500);
const GOODBYE_POLL: Duration = Duration::from_millis(20);

/// Settings that explain figures; those that a version does not have are left out.
const SETTINGS: &str = "\
    autovacuum bgwriter_delay bgwriter_lru_maxpages block_size checkpoint_completion_target \
    checkpoint_timeout commit_delay data_checksums debug_io_direct effective_io_concurrency fsync \
    full_page_writes huge_pages huge_pages_status io_combine_limit io_direct io_method io_workers \
    max_wal_size maintenance_work_mem shared_buffers shared_preload_libraries synchronous_commit \
    synchronous_standby_names track_io_timing track_wal_io_timing wal_buffers wal_compression \
    wal_level wal_sync_method work_mem";

/// The settings a report shows first.
pub(in crate::postgres) const TOLD: &str = "\
    server_version server_host database setting_shared_buffers setting_huge_pages_status setting_huge_pages \
    setting_synchronous_commit setting_fsync setting_full_page_writes setting_wal_level setting_max_wal_size \
    setting_checkpoint_timeout setting_io_method setting_effective_io_concurrency setting_data_checksums jit \
    io_timing_achieved setting_track_wal_io_timing setting_autovacuum plan connection_encrypted statistics_reset";

/// Refuses a plan that cannot work, and returns the facts.
pub(super) fn examine(control: &mut Connection, plan: &Plan, options: &Options) -> Result<Vec<Fact>, EngineError> {
    let text = |control: &mut Connection, sql: &str| -> Result<String, EngineError> {
        let answer = control.query(sql).map_err(errors::unusable)?;
        let value = answer.rows.into_iter().next().and_then(|mut row| row.pop());
        Ok(value.flatten().unwrap_or_default())
    };
    let number = text(control, "show server_version_num")?;
    let major = number.parse::<u32>().unwrap_or(0) / 10_000;
    if !VERSIONS.contains(&major) {
        return Err(EngineError::Unusable(format!(
            "the server is PostgreSQL {}; assay supports {} to {}",
            text(control, "show server_version")?,
            VERSIONS.start(),
            VERSIONS.end()
        )));
    }
    let standby = text(control, "select pg_is_in_recovery()")? == "t";
    writes_allowed(control, plan, options, standby)?;
    connections(control, plan)?;
    let mut facts = vec![
        ENGINE.fact("PostgreSQL"),
        SERVER_TOLD.fact(TOLD),
        Fact::new("server_version", text(control, "show server_version")?),
        Fact::new("server_build", text(control, "select version()")?),
        Fact::new("database", text(control, "select current_database()")?),
        Fact::new("pg_schema", options.names.schema()),
        Fact::new("standby", if standby { "yes, read-only" } else { "no" }),
        Fact::new("scale_blocks", plan.scale),
        Fact::new("scan_blocks", plan.scan_blocks),
        Fact::new("block_bytes", plan.block_bytes),
        Fact::new("read_mode", options.read_mode_name()),
        Fact::new(
            "loop",
            if options.in_server {
                "server: a procedure performs slices of operations; operations do not include round trips; latencies \
                 are whole microseconds of the server's clock"
            } else {
                "client: every operation is a separate round trip"
            },
        ),
        Fact::new("commit_mode", options.commit_mode.as_deref().unwrap_or("the server's synchronous_commit")),
    ];
    facts.extend(settings(control)?);
    active_set(control, plan, &mut facts)?;
    Ok(facts)
}

/// Updates need a server, a database and a role that allow writes.
fn writes_allowed(control: &mut Connection, plan: &Plan, options: &Options, standby: bool) -> Result<(), EngineError> {
    if standby && options.in_server {
        return Err(EngineError::Unusable(
            "the server is a hot standby: LOOP=server creates a temporary procedure, which a standby refuses; use LOOP=client".to_owned(),
        ));
    }
    if plan.update_pct == 0 {
        return Ok(());
    }
    let answer = control.query("show default_transaction_read_only").map_err(errors::unusable)?;
    let read_only = answer.rows.concat().concat_text() == "on";
    if standby || read_only {
        return Err(EngineError::Unusable(format!(
            "{}, but UPDATE_PCT={} writes: use UPDATE_PCT=0, or a server that accepts writes",
            if standby {
                "the server is a hot standby (read-only)"
            } else {
                "transactions of this role are read-only (default_transaction_read_only)"
            },
            plan.update_pct
        )));
    }
    Ok(())
}

/// Concatenates a row's values.
trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<Option<String>> {
    fn concat_text(&self) -> String {
        self.iter().flatten().map(String::as_str).collect()
    }
}

/// Checks that there are connections for every session and some spare ones.
pub(in crate::postgres) fn connections(control: &mut Connection, plan: &Plan) -> Result<(), EngineError> {
    let begun = Instant::now();
    loop {
        let room = room(control, plan)?;
        // Processes of just closed sessions (such as a load's) still count for a moment.
        if room.is_ok() || begun.elapsed() > GOODBYE_MAX {
            return room.map_err(EngineError::Unusable);
        }
        std::thread::sleep(GOODBYE_POLL);
    }
}

/// Whether the sessions fit now; the inner error says why not.
fn room(control: &mut Connection, plan: &Plan) -> Result<Result<(), String>, EngineError> {
    // A role without privileges sees only the database of other roles' sessions, not their type.
    let answer = control
        .query(
            "select name, setting from pg_settings where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections') \
             union all select 'present', count(*)::text from pg_stat_activity where pid <> pg_backend_pid() \
             and (backend_type = 'client backend' or backend_type is null and datid is not null)",
        )
        .map_err(errors::unusable)?;
    let of = |wanted: &str| -> i64 {
        answer
            .rows
            .iter()
            .find(|row| row.first().and_then(Option::as_deref) == Some(wanted))
            .and_then(|row| row.get(1)?.as_deref()?.parse().ok())
            .unwrap_or(0)
    };
    let max = of("max_connections");
    let reserved = of("superuser_reserved_connections") + of("reserved_connections");
    let present = of("present");
    let free = max - reserved - present;
    let wanted = plan.sessions() as i64 + SPARE_CONNECTIONS;
    if free >= wanted {
        return Ok(Ok(()));
    }
    Ok(Err(format!(
        "{} sessions and {SPARE_CONNECTIONS} spare connections do not fit: max_connections is {max}, {reserved} are \
         reserved and {present} are in use, so {} sessions would fit; raise max_connections to {} or use fewer \
         sessions",
        plan.sessions(),
        (free - SPARE_CONNECTIONS).max(0),
        max + wanted - free
    )))
}

/// The settings as `name = value unit`.
pub(in crate::postgres) fn settings(control: &mut Connection) -> Result<Vec<Fact>, EngineError> {
    let list: Vec<String> = SETTINGS.split(' ').map(|name| format!("'{name}'")).collect();
    let sql = format!(
        "select name, setting, coalesce(unit, '') from pg_settings where name in ({}) order by name",
        list.join(", ")
    );
    let answer = control.query(&sql).map_err(errors::unusable)?;
    let mut facts = Vec::new();
    for row in answer.rows {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || values.next().unwrap_or_default();
        let (name, value, unit) = (next(), next(), next());
        let value = match (value.as_str(), unit.as_str()) {
            ("", _) => "unset".to_owned(),
            (_, "") => value,
            (value, unit) => in_words(value, unit),
        };
        if (name.as_str(), value.as_str()) == ("io_method", "io_uring") {
            facts.push(READ_WITHOUT_CALLS.fact(&value));
        }
        facts.push(Fact::new(&format!("setting_{name}"), value));
    }
    Ok(facts)
}

/// `16384` of `8kB` as `128 MiB`, `65536` of `kB` as `64 MiB`; a value that is not a size keeps its unit.
fn in_words(value: &str, unit: &str) -> String {
    let digits = unit.trim_end_matches(|last: char| !last.is_ascii_digit());
    let shift = match &unit[digits.len()..] {
        "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        _ => return format!("{value} {unit}"),
    };
    let each: u64 = digits.parse().unwrap_or(1);
    let bytes = value.parse().ok().and_then(|n: u64| n.checked_mul(each << shift));
    // A negative value means that the server decides.
    bytes.map_or_else(|| format!("{value} {unit}"), size)
}

#[test]
fn sizes_of_settings_are_said_as_people_say_them() {
    assert_eq!(in_words("16384", "8kB"), "128 MiB");
    assert_eq!(in_words("65536", "kB"), "64 MiB");
    assert_eq!(in_words("1024", "MB"), "1 GiB");
    assert_eq!(in_words("-1", "kB"), "-1 kB");
    assert_eq!(in_words("300", "s"), "300 s");
    assert_eq!(in_words("0", "8kB"), "0 B");
}

/// Compares the cache with the data that the sessions touch.
fn active_set(control: &mut Connection, plan: &Plan, facts: &mut Vec<Fact>) -> Result<(), EngineError> {
    let answer =
        control.query("select setting from pg_settings where name = 'shared_buffers'").map_err(errors::unusable)?;
    let cache: u64 = answer.rows.concat().concat_text().parse().unwrap_or(0);
    let active = u64::from(plan.schemas) * plan.scale;
    facts.push(Fact::new("cache_blocks", cache));
    facts.push(Fact::new("active_set_blocks", active));
    Ok(())
}
