//! What a report of a database prints twice, a line each (`assay_measure::identity::formula` says how to read them).
//!
//! | term | what it is |
//! |---|---|
//! | `user_commits_count` | the total of a statistic |
//! | `load_profile:db_time_s.per_s` | a column of a table of the instance, in the row of that name |
//! | `io_profile:*.read_per_s` | the same in each row: the line is judged row by row |
//! | `os.cpu_pct.user` | a figure of the record by its place |
//! | `each:total.iostat_read_bytes` | a value of that scope which has no place; `alone:key` of the report as a whole, `both:*_us_avg` of a class of waits of foreground and background |
//! | `waited:log_file_switch`, `class:user_i_o` | time waited in the events that begin so, of a class |
//! | `printed(x)` | x if it was printed, and does not follow from other figures |
//! | `twice(x)`, `rate(x)` | of a figure that was rounded before it was rounded to be printed; and was printed |
//! | `sum(key)` | over the functions of I/O |
//! | `mib`, `sessions`, `window` | 2^20; the larger of the sessions at begin and end; the elapsed time as wide as its printing |
//! | `block`, `any_block` | bytes of a block, where all are of one size; of the usual one |
//! | `cpu_busy`, `cpu_columns`, `cpu_without_column` | percent of the host's CPUs: busy, the sum of the printed columns, what has none |

use super::{MIB, Printed, Side};
use assay_measure::identity::formula::Formula;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::plain::slug;
use assay_measure::record::{Identity, IoRow, Truth};
use serde_json::Value;
use std::collections::HashMap;

/// Whose reports a line holds in. Ours are of counters that are read at one instant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Any,
    Ours,
    Others,
}

use Of::{Any, Others, Ours};

#[rustfmt::skip]
const LINES: &[(&str, Of, &str, &str)] = &[
    ("I3b", Any, "Read IO (MB) = Physical read (blocks) x block size, per second",
        "load_profile:read_io_mb.per_s = load_profile:physical_read_blocks.per_s * block / mib +- 0.05"),
    ("I4b", Any, "Write IO (MB) = Physical write (blocks) x block size, per second",
        "load_profile:write_io_mb.per_s = load_profile:physical_write_blocks.per_s * block / mib +- 0.05"),
    ("I6d", Any, "Read IO requests <= Physical read (blocks), per second",
        "load_profile:read_io_requests.per_s <= load_profile:physical_read_blocks.per_s"),
    ("I6e", Any, "Write IO requests <= Physical write (blocks), per second",
        "load_profile:write_io_requests.per_s <= load_profile:physical_write_blocks.per_s"),
    ("I7e", Any, "Database Requests <= Total Requests of the I/O profile, reads",
        "io_profile:database_requests.read_per_s <= io_profile:total_requests.read_per_s +- 0.1"),
    ("I7f", Any, "Database Requests <= Total Requests of the I/O profile, writes",
        "io_profile:database_requests.write_per_s <= io_profile:total_requests.write_per_s +- 0.1"),
    ("I13a", Any, "read requests/s by function = TOTAL",
        "sum(iostat_read_requests_per_s) = each:total.iostat_read_requests_per_s +- 0.005 * sum(iostat_read_requests_per_s)"),
    ("I13b", Any, "write requests/s by function = TOTAL",
        "sum(iostat_write_requests_per_s) = each:total.iostat_write_requests_per_s +- 0.005 * sum(iostat_write_requests_per_s)"),
    ("I13c", Ours, "read requests/s by function = Total Requests of the I/O profile",
        "sum(iostat_read_requests_per_s) = io_profile:total_requests.read_per_s +- 0.005 * sum(iostat_read_requests_per_s)"),
    ("I13d", Ours, "write requests/s by function = Total Requests of the I/O profile",
        "sum(iostat_write_requests_per_s) = io_profile:total_requests.write_per_s +- 0.005 * sum(iostat_write_requests_per_s)"),
    // Oracle keeps the two in different places, which it does not read together. A list without its total may be cut.
    ("I13c", Others, "read requests/s by function = Total Requests of the I/O profile",
        "sum(iostat_read_requests_per_s) = io_profile:total_requests.read_per_s +- 0.05 * sum(iostat_read_requests_per_s) + 2 \
         if 0 < each:total.iostat_read_requests_per_s"),
    ("I13d", Others, "write requests/s by function = Total Requests of the I/O profile",
        "sum(iostat_write_requests_per_s) = io_profile:total_requests.write_per_s +- 0.05 * sum(iostat_write_requests_per_s) + 2 \
         if 0 < each:total.iostat_write_requests_per_s"),
    // Reports leave out events of hardly any time, and classes of events that assay does not know. Oracle counts hundredths of a second.
    ("I21", Any, "User I/O events <= user I/O wait time",
        "class:user_i_o <= user_i_o_wait_time_count * 1e4 +- user_i_o_wait_time_count * 100 + 20000"),
    // Oracle's statistics count more than the events' time: how long a request took from the first to the last step.
    ("I22a", Ours, "redo synch time = log file sync",
        "redo_synch_time_ns * 1e-3 = waited:log_file_sync +- redo_synch_time_ns * 1e-5 + 20000"),
    ("I22b", Ours, "redo write time = log file parallel write",
        "redo_write_time_ns * 1e-3 = waited:log_file_parallel_write +- redo_write_time_ns * 1e-5 + 20000"),
    ("I23", Ours, "log file switch events = redo log space wait time",
        "waited:log_file_switch = redo_log_space_wait_time_ns * 1e-3 +- redo_log_space_wait_time_ns * 1e-5 + 20000"),
    // Oracle's statistic counts other waits for room in the log too.
    ("I23", Others, "log file switch events <= redo log space wait time",
        "waited:log_file_switch <= redo_log_space_wait_time_ns * 1e-3 +- redo_log_space_wait_time_ns * 1e-5 + 20000"),
    ("I24", Any, "average active sessions <= sessions",
        "load_profile:db_time_s.per_s <= sessions"),
    ("I25a", Any, "DB CPU per second <= CPUs",
        "load_profile:db_cpu_s.per_s <= os.cpus_count +- 0.05"),
    ("I25b", Any, "DB CPU + background CPU <= busy CPUs of the host",
        "load_profile:db_cpu_s.per_s + load_profile:background_cpu_s.per_s? <= cpu_busy * os.cpus_count * 0.01 +- cpu_busy * os.cpus_count * 2e-4"),
    ("I25c", Any, "DB CPU <= DB time",
        "instance.time_model.db_cpu_us <= instance.time_model.db_time_us +- instance.time_model.db_time_us * 0.1"),
    ("I30", Any, "read requests x block size <= Read IO (MB), per second",
        "load_profile:read_io_requests.per_s * any_block / mib <= load_profile:read_io_mb.per_s \
         +- load_profile:read_io_requests.per_s * any_block / mib * 0.001 + 0.05"),
    ("I31", Any, "CPU columns sum to 100 %", "cpu_columns <= 100 +- 0.5"),
    ("I31b", Any, "CPU columns, and time without a column, sum to 100 %", "100 <= cpu_columns +- 0.5 + cpu_without_column"),
    ("I32a", Any, "I/O wait <= idle time that includes it",
        "printed(os.cpu_pct.iowait) <= printed(os.cpu_pct.idle_awr)"),
    ("I32b", Any, "busy + idle (with I/O wait) = 100 %",
        "printed(os.cpu_pct.busy) + printed(os.cpu_pct.idle_awr) = 100 +- 0.1"),
    // A transaction that changes 131 blocks is one SLOB update of 64: its redo is known.
    ("I34", Any, "redo of one SLOB update of 64 blocks (131 block changes) = 51.7 KB",
        "load_profile:redo_size_bytes.per_tx = 51700 +- 1034 \
         if (load_profile:block_changes.per_tx - 131) * (load_profile:block_changes.per_tx - 131) < 4.000001"),
    // Gets past the cache are in no statistic of ours, so it is judged only where there were hardly any.
    ("AWR1", Any, "Buffer Hit % = 100 % - physical reads cache / session logical reads",
        "efficiency:buffer_hit.value_pct = 100 - physical_reads_cache_blocks * 100 / session_logical_reads_blocks +- 1 \
         if physical_reads_direct_blocks < session_logical_reads_blocks * 0.01"),
    // A rollback of nothing is counted by one of the two.
    ("AWR2", Any, "transactions/s x elapsed time = user commits + user rollbacks",
        "load_profile:transactions.per_s * interval.elapsed_s = user_commits_count + user_rollbacks_count \
         +- load_profile:transactions.per_s * interval.elapsed_s * 0.01 + 5"),
    ("AWR13", Any, "rollbacks <= transactions, per second",
        "load_profile:rollbacks.per_s <= load_profile:transactions.per_s +- 0.05"),
    ("AWR14", Any, "% blocks changed per read x logical reads = block changes, per second",
        "alone:blocks_changed_per_read_pct * 0.01 * rate(load_profile:logical_read_blocks.per_s) = rate(load_profile:block_changes.per_s)"),
    ("AWR14", Any, "rollback per transaction % x transactions = rollbacks, per second",
        "alone:rollback_per_transaction_pct * 0.01 * rate(load_profile:transactions.per_s) = rate(load_profile:rollbacks.per_s)"),
    // Interrupts are busy time that no line prints.
    ("AWR4a", Any, "USER_TIME + SYS_TIME + NICE_TIME <= BUSY_TIME",
        "printed(os.cpu_s.user) + printed(os.cpu_s.system) + os.cpu_s.nice? <= printed(os.cpu_s.busy) +- os.cpu_s.busy * 0.01 + 1"),
    // The share is decided here: no measurement stands behind it. By half of it a busy time that is wrong by half passes.
    ("AWR4b", Any, "70 % of BUSY_TIME <= USER_TIME + SYS_TIME + NICE_TIME",
        "printed(os.cpu_s.busy) * 0.7 <= printed(os.cpu_s.user) + printed(os.cpu_s.system) + os.cpu_s.nice? +- os.cpu_s.busy * 0.01 + 1"),
    // The two are read at different moments of a snapshot, in genuine reports of busy clusters half a minute apart, and the
    // ticks of a virtual machine are not all counted: four of thirty genuine reports (12.1 to 19c) are 4 to 9 % apart.
    ("AWR4c", Any, "BUSY_TIME + IDLE_TIME = CPUs x elapsed time",
        "printed(os.cpu_s.busy) + printed(os.cpu_s.idle_awr) = os.cpus_count * interval.elapsed_s +- os.cpus_count * 45 \
         if os.cpus_count * interval.elapsed_s * 0.1 + 1 < os.cpus_count * 45"),
    ("AWR4c", Any, "BUSY_TIME + IDLE_TIME = CPUs x elapsed time",
        "printed(os.cpu_s.busy) + printed(os.cpu_s.idle_awr) = os.cpus_count * interval.elapsed_s \
         +- os.cpus_count * interval.elapsed_s * 0.1 + 1 \
         if os.cpus_count * 45 - 1e-9 < os.cpus_count * interval.elapsed_s * 0.1 + 1"),
    ("AWR4d", Any, "IOWAIT_TIME <= IDLE_TIME",
        "printed(os.cpu_s.iowait) <= printed(os.cpu_s.idle_awr) +- 1"),
    // Both are of the same statistics; the shares have one decimal, and a report may leave the busy time's least parts out.
    ("AWR4e", Any, "%User x (BUSY_TIME + IDLE_TIME) = USER_TIME",
        "printed(os.cpu_pct.user) * 0.01 * (printed(os.cpu_s.busy) + printed(os.cpu_s.idle_awr)) = printed(os.cpu_s.user) \
         +- (os.cpu_s.busy + os.cpu_s.idle_awr) * 0.005 + 1"),
    ("AWR4e", Any, "%System x (BUSY_TIME + IDLE_TIME) = SYS_TIME",
        "printed(os.cpu_pct.system) * 0.01 * (printed(os.cpu_s.busy) + printed(os.cpu_s.idle_awr)) = printed(os.cpu_s.system) \
         +- (os.cpu_s.busy + os.cpu_s.idle_awr) * 0.005 + 1"),
    ("AWR4e", Any, "%WIO x (BUSY_TIME + IDLE_TIME) = IOWAIT_TIME",
        "printed(os.cpu_pct.iowait) * 0.01 * (printed(os.cpu_s.busy) + printed(os.cpu_s.idle_awr)) = printed(os.cpu_s.iowait) \
         +- (os.cpu_s.busy + os.cpu_s.idle_awr) * 0.005 + 1"),
    ("AWR5", Any, "reads + writes = Read+Write of the I/O profile",
        "printed(io_profile:*.read_write_per_s) = io_profile:*.read_per_s + io_profile:*.write_per_s +- 0.1"),
    // Each of them is cut to the column.
    ("AWR6", Any, "bytes read per second: sum over the functions = TOTAL",
        "sum(iostat_read_bytes_per_s) = each:total.iostat_read_bytes_per_s +- sum(iostat_read_bytes_per_s) * 0.01"),
    ("AWR6", Any, "bytes written per second: sum over the functions = TOTAL",
        "sum(iostat_write_bytes_per_s) = each:total.iostat_write_bytes_per_s +- sum(iostat_write_bytes_per_s) * 0.01"),
    ("AWR6", Any, "waits: sum over the functions = TOTAL",
        "sum(waits_count) = each:total.iostat_waits_count +- sum(waits_count) * 0.02"),
    ("AWR6", Any, "bytes read = bytes per second x elapsed time",
        "io_functions:*.read_bytes = each:*.iostat_read_bytes_per_s * interval.elapsed_s +- io_functions:*.read_bytes * 0.02"),
    ("AWR6", Any, "bytes written = bytes per second x elapsed time",
        "io_functions:*.write_bytes = each:*.iostat_write_bytes_per_s * interval.elapsed_s +- io_functions:*.write_bytes * 0.02"),
    ("AWR6", Any, "TOTAL: bytes read = bytes per second x elapsed time",
        "each:total.iostat_read_bytes = each:total.iostat_read_bytes_per_s * interval.elapsed_s +- each:total.iostat_read_bytes * 0.02"),
    ("AWR6", Any, "TOTAL: bytes written = bytes per second x elapsed time",
        "each:total.iostat_written_bytes = each:total.iostat_write_bytes_per_s * interval.elapsed_s +- each:total.iostat_written_bytes * 0.02"),
    ("AWR9a", Any, "DB Time(s) per second x elapsed time = DB time, s",
        "rate(load_profile:db_time_s.per_s) * window = printed(instance.time_model.db_time_us) * 1e-6"),
    ("AWR9b", Any, "DB CPU(s) per second x elapsed time = DB CPU, s",
        "rate(load_profile:db_cpu_s.per_s) * window = printed(instance.time_model.db_cpu_us) * 1e-6"),
    ("AWR9c", Any, "Background CPU(s) per second x elapsed time = background cpu time, s",
        "rate(load_profile:background_cpu_s.per_s) * window = printed(instance.time_model.bg_cpu_us) * 1e-6"),
    ("AWR9d", Any, "% DB time of DB CPU x DB time = DB CPU, s",
        "alone:db_cpu_db_time_pct * 0.01 * printed(instance.time_model.db_time_us) * 1e-6 = printed(instance.time_model.db_cpu_us) * 1e-6"),
    // Background time is of no execution: genuine reports print 0 there.
    ("AWR10", Any, "DB Time(s): per execution x executions per second = per second",
        "rate(load_profile:db_time_s.per_exec) * rate(load_profile:executes_sql.per_s) = rate(load_profile:db_time_s.per_s)"),
    ("AWR10", Any, "DB CPU(s): per execution x executions per second = per second",
        "rate(load_profile:db_cpu_s.per_exec) * rate(load_profile:executes_sql.per_s) = rate(load_profile:db_cpu_s.per_s)"),
    ("AWR10", Any, "DB Time(s): per call x calls per second = per second",
        "rate(load_profile:db_time_s.per_call) * rate(load_profile:user_calls.per_s) = rate(load_profile:db_time_s.per_s)"),
    ("AWR10", Any, "DB CPU(s): per call x calls per second = per second",
        "rate(load_profile:db_cpu_s.per_call) * rate(load_profile:user_calls.per_s) = rate(load_profile:db_cpu_s.per_s)"),
    // The data's part of the I/O profile is in the load profile too.
    ("AWR11", Any, "Database Requests of the I/O profile = Read IO requests",
        "twice(io_profile:database_requests.read_per_s) = rate(load_profile:read_io_requests.per_s)"),
    ("AWR11", Any, "Database Requests of the I/O profile = Write IO requests",
        "twice(io_profile:database_requests.write_per_s) = rate(load_profile:write_io_requests.per_s)"),
    ("AWR11", Any, "Database (MB) of the I/O profile = Read IO (MB)",
        "twice(io_profile:database_mb.read_per_s) = rate(load_profile:read_io_mb.per_s)"),
    ("AWR11", Any, "Database (MB) of the I/O profile = Write IO (MB)",
        "twice(io_profile:database_mb.write_per_s) = rate(load_profile:write_io_mb.per_s)"),
    ("AWR11", Any, "Database (blocks) of the I/O profile = Physical read (blocks)",
        "twice(io_profile:database_blocks.read_per_s) = rate(load_profile:physical_read_blocks.per_s)"),
    ("AWR11", Any, "Database (blocks) of the I/O profile = Physical write (blocks)",
        "twice(io_profile:database_blocks.write_per_s) = rate(load_profile:physical_write_blocks.per_s)"),
    ("AWR12a", Any, "waits x average = total wait time, us",
        "printed(wait_classes:*.waits_count) * printed(wait_classes:*.us_avg) = printed(wait_classes:*.total_us)"),
    ("AWR12b", Any, "% DB time x DB time = total wait time, us",
        "printed(wait_classes:*.db_time_pct) * 0.01 * printed(instance.time_model.db_time_us) = printed(wait_classes:*.total_us)"),
    ("AWR12a", Any, "waits x average = total wait time of foreground and background, us",
        "both:*_waits_count * both:*_us_avg = both:*_total_us"),
];

/// The scope of classes of waits that foreground and background share in one row.
const BOTH: &str = "wait class, foreground and background";

/// Every line whose terms a record holds.
pub(super) fn identities(p: &Printed<'_>) -> Vec<Identity> {
    let tree = Tree::of(p);
    let of = if p.is_own() { Ours } else { Others };
    let lines = LINES.iter().filter(|(_, whose, ..)| [Any, of].contains(whose));
    lines.flat_map(|(id, _, text, line)| tree.judged(id, text, line)).collect()
}

/// A record by the places of its figures.
struct Tree<'a> {
    printed: &'a Printed<'a>,
    record: Value,
    /// The rows of each table: their names, and as terms have them.
    tables: HashMap<&'static str, Vec<(String, String)>>,
}

impl<'a> Tree<'a> {
    fn of(printed: &'a Printed<'a>) -> Self {
        let of = printed.record;
        let record = serde_json::json!({"instance": of.instance, "os": of.os, "interval": of.interval});
        let rows = |table: &str| -> Vec<(String, String)> {
            let rows = record["instance"][table].as_array().into_iter().flatten();
            rows.map(|row| (name(row).to_owned(), slug(name(row)))).collect()
        };
        let tables = ["load_profile", "io_profile", "io_functions", "wait_classes", "efficiency"];
        let mut tables: HashMap<_, _> = tables.into_iter().map(|table| (table, rows(table))).collect();
        let values = of.import.iter().flat_map(|info| &info.values).filter(|value| value.scope == BOTH);
        let both = values.filter_map(|v| Some((v.name.clone(), v.key.strip_suffix("_waits_count")?.to_owned())));
        tables.insert("both", both.collect());
        Self { printed, record, tables }
    }

    /// A line, row by row where it is of rows.
    fn judged(&self, id: &'static str, text: &'static str, line: &str) -> Vec<Identity> {
        let Some(table) = line.split([' ', '(']).find_map(|word| word.split_once(":*")).map(|(table, _)| table) else {
            return self.judge(id, text, line).into_iter().collect();
        };
        let of_row = |(name, row): &(String, String)| {
            let mut identity = self.judge(id, text, &line.replace(":*", &format!(":{row}")))?;
            identity.rule = format!("{name}: {}", identity.rule);
            Some(identity)
        };
        self.tables[table].iter().filter_map(of_row).collect()
    }

    fn judge(&self, id: &'static str, text: &'static str, line: &str) -> Option<Identity> {
        let formula = Formula::of(line)?;
        let terms = |function: &str, name: &str| self.term(function, name).ok_or_else(|| "not printed".to_owned());
        let sides = formula.sides(&terms)?;
        let (left, right) = (sides.left, sides.right);
        let rule = IdentityRule::within(id, Scope::Window, text, left.off + right.off + sides.apart);
        let rule = if formula.is_at_most { rule.at_most() } else { rule };
        let identity = rule.compare(Ok(left.value), Ok(right.value));
        (!matches!(identity.ok, Truth::Na(_))).then_some(identity)
    }

    fn term(&self, function: &str, name: &str) -> Option<Side> {
        let p = self.printed;
        if function == "sum" {
            let of_row = |row: &IoRow| {
                let placed = || self.term("", &format!("io_functions:{}.{name}", slug(&row.function)));
                p.alone(&row.function, name).or_else(placed)
            };
            return p.record.instance.io_functions.iter().filter_map(of_row).reduce(Side::plus);
        }
        if let Some(special) = self.special(name) {
            return special;
        }
        let at = self.place(name)?;
        let value = self.record.pointer(&at)?.as_f64()?;
        if ["printed", "rate"].contains(&function) && !p.rounding.contains_key(at.as_str()) {
            return None;
        }
        let side = p.rounded(value, &at);
        Some(if ["twice", "rate"].contains(&function) { side.twice_rounded() } else { side })
    }

    /// Where a figure stands.
    fn place(&self, name: &str) -> Option<String> {
        let (path, column) = name.rsplit_once('.').unwrap_or((name, "total"));
        match path.split_once(':') {
            Some((table, row)) => {
                let at = self.tables.get(table)?.iter().position(|(_, slug)| slug == row)?;
                Some(format!("/instance/{table}/{at}/{column}"))
            }
            None if path == name => Some(format!("/instance/stats/{name}/total")),
            None => Some(format!("/{}/{column}", path.replace('.', "/"))),
        }
    }

    /// What has no place of its own; `None` for what has one.
    fn special(&self, name: &str) -> Option<Option<Side>> {
        let p = self.printed;
        let found = match name.split_once(':') {
            Some(("alone", key)) => p.alone("", key),
            Some(("both", key)) => p.alone(BOTH, key),
            Some(("each", name)) => name.split_once('.').and_then(|(scope, key)| self.of_function(scope, key)),
            Some(("waited", begin)) => p.waited(|event| slug(&event.name).starts_with(begin)),
            Some(("class", class)) => p.waited(|event| slug(&event.class) == class),
            None => match name {
                "mib" => Some(Side::exact(MIB)),
                "window" => p.elapsed().map(|elapsed| Side { off: elapsed.off + 0.01, ..elapsed }),
                "block" => p.block().filter(|_| !p.has_several_block_sizes()).map(Side::exact),
                "any_block" => p.block().map(Side::exact),
                "sessions" => self.sessions(),
                "cpu_busy" => self.term("", "os.cpu_pct.busy").map(|busy| Side { off: 0.1, ..busy }),
                "cpu_columns" => self.cpu_columns(),
                "cpu_without_column" => Some(Side::exact(self.cpu_without_column())),
                _ => return None,
            },
            _ => return None,
        };
        Some(found)
    }

    fn of_function(&self, scope: &str, key: &str) -> Option<Side> {
        let rows = self.printed.record.instance.io_functions.iter().map(|row| row.function.as_str());
        let function = rows.chain(["TOTAL"]).find(|function| slug(function) == scope)?;
        self.printed.alone(function, key)
    }

    fn sessions(&self) -> Option<Side> {
        let of = |end: &str| self.term("", &format!("interval.sessions_{end}_count"));
        of("begin").zip(of("end")).map(|(a, b)| if a.value > b.value { a } else { b })
    }

    /// Shares of CPU time as printed. Rounding is in what is allowed.
    fn cpu_columns(&self) -> Option<Side> {
        let share = |name: &str| self.term("printed", &format!("os.cpu_pct.{name}"));
        let whole_idle = share("idle_awr").filter(|_| share("idle").is_none());
        let idle = whole_idle.or_else(|| Some(share("idle")?.plus(share("iowait")?)))?;
        let used = share("user")?.plus(share("system")?).plus(idle);
        let sum = share("steal").map_or(used, |steal| used.plus(steal));
        Some(Side { off: 0.0, ..sum })
    }

    /// AWR prints no column of nice, of interrupts, of steal: the busy time that is neither user nor system, if the
    /// statistics of the operating system stand there too, else a few percent.
    fn cpu_without_column(&self) -> f64 {
        let seconds = |name: &str| self.term("", &format!("os.cpu_s.{name}")).map(|side| side.value);
        let unprinted = || {
            let (busy, idle) = (seconds("busy")?, seconds("idle_awr")?);
            let other = busy - seconds("user")? - seconds("system")?;
            Some(100.0 * other.max(0.0) / (busy + idle).max(1e-9))
        };
        if self.printed.is_own() { 0.0 } else { unprinted().unwrap_or(5.0) }
    }
}

/// What a row of a table is called.
fn name(row: &Value) -> &str {
    ["name", "function", "class"].iter().find_map(|key| row[key].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::counter_catalog::DICTIONARY;
    use assay_measure::record::{IoProfileRow, IoRow, LoadRow, PercentRow, TimeModel, WaitClassRow};

    /// A figure that is renamed would end its line without a word.
    #[test]
    fn every_term_is_a_figure_that_a_record_can_have() {
        fn has<T: serde::Serialize + Default>(column: &str) -> bool {
            serde_json::to_value(T::default()).is_ok_and(|row| row.get(column).is_some())
        }
        let is_known = |term: &str| match (term.split_once(':'), term.rsplit_once('.')) {
            (Some(("alone" | "both" | "each" | "waited" | "class", _)), _) => true,
            (Some((table, _)), Some((_, column))) => match table {
                "load_profile" => has::<LoadRow>(column),
                "io_profile" => has::<IoProfileRow>(column),
                "io_functions" => has::<IoRow>(column),
                "wait_classes" => has::<WaitClassRow>(column),
                "efficiency" => has::<PercentRow>(column),
                _ => false,
            },
            (None, Some(("instance.time_model", column))) => has::<TimeModel>(column),
            (None, Some((place, _))) => ["os.cpu_pct", "os.cpu_s", "os", "interval"].contains(&place),
            (None, None) => {
                let special = [
                    "mib",
                    "window",
                    "block",
                    "any_block",
                    "sessions",
                    "cpu_busy",
                    "cpu_columns",
                    "cpu_without_column",
                ];
                // Oracle's own, in hundredths of a second.
                let of_oracle = term == "user_i_o_wait_time_count";
                special.contains(&term) || of_oracle || DICTIONARY.iter().any(|stat| stat.key == term)
            }
            _ => false,
        };
        for (id, _, _, line) in LINES {
            let seen = |function: &str, name: &str| {
                let name = name.trim_end_matches('?');
                assert!(function == "sum" || is_known(name), "{id}: {name}");
                Ok(Side::exact(1.0))
            };
            let formula = Formula::of(line).expect("a line");
            let _ = (formula.each(&seen), formula.sides(&seen));
        }
    }

    #[test]
    fn every_line_can_be_read() {
        for (id, _, _, line) in LINES {
            let formula = Formula::of(line).unwrap_or_else(|| panic!("{id}: {line}"));
            let one = |_: &str, _: &str| Ok(Side::exact(1.0));
            assert!(formula.sides(&one).is_some() || line.contains(" if "), "{id}: {line}");
        }
    }
}
