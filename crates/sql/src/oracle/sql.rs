//! The dialect: the text of every statement that is sent to a server. It opens no connections and makes no decisions.
//!
//! All names and their numbers are assay's own. Values from a user are always bound, except the name of a tablespace,
//! which [`identifier`] checks. The golden files beside the tests contain all statements.

use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, STAMP_DIGITS};
use assay_run::plan::{Plan, RedoStress};
use std::fmt::Write;

/// Tables of the marker, and the one that is locked for a claim.
pub(super) const DATA_SET: &str = "assay_data_set";
pub(super) const SCHEMAS: &str = "assay_schemas";
pub(super) const CLAIM: &str = "assay_claim";

/// `cf1_<n>`: the rows.
pub(super) fn rows_table(n: u32) -> String {
    format!("cf1_{n}")
}

/// `cf2_<n>`: the scan table.
pub(super) fn scan_table(n: u32) -> String {
    format!("cf2_{n}")
}

/// The index of `cf1_<n>`.
pub(super) fn index(n: u32) -> String {
    format!("i_cf1_{n}")
}

fn column_names() -> impl Iterator<Item = String> {
    (2..2 + COLUMNS).map(|column| format!("c{column}"))
}

/// The columns an update changes: the first and the last, or all.
pub(super) fn changed_columns(redo: RedoStress) -> Vec<String> {
    match redo {
        RedoStress::Lite => vec!["c2".to_owned(), "c20".to_owned()],
        RedoStress::Heavy => column_names().collect(),
    }
}

/// A name that needs no quotes; `None` for any other.
pub(super) fn identifier(name: &str) -> Option<String> {
    let mut letters = name.bytes();
    let begins = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let goes_on = letters.all(|byte| byte.is_ascii_alphanumeric() || b"_$#".contains(&byte));
    (begins && goes_on && name.len() <= 128).then(|| name.to_ascii_uppercase())
}

pub(super) fn in_tablespace(tablespace: Option<&str>) -> String {
    tablespace.map_or_else(String::new, |name| format!(" tablespace {name}"))
}

/// Creates `cf1` or `cf2`: 99 % of each block stays free, so that it holds only one row (slob-method 3.2). `custid` may
/// be null, as in SLOB.
pub(super) fn create_table(table: &str, tablespace: Option<&str>) -> String {
    let mut columns = "custid number(10)".to_owned();
    for name in column_names() {
        let _ = write!(columns, ", {name} varchar2({COLUMN_BYTES} byte)");
    }
    format!(
        "create table {table} ({columns}) pctfree 99 pctused 1 initrans 1 storage (initial 1m next 1m buffer_pool keep){} \
         nocompress cache noparallel",
        in_tablespace(tablespace)
    )
}

/// Limits blocks to one row, whatever their size: the server takes the current maximum of any block as the limit.
pub(super) fn one_row_a_block(table: &str) -> [String; 3] {
    [insert(table, false), format!("alter table {table} minimize records_per_block"), format!("truncate table {table}")]
}

/// Inserts a row: its key, and its columns unless all are the same.
pub(super) fn insert(table: &str, with_content: bool) -> String {
    let names: Vec<String> = column_names().collect();
    let values: Vec<String> = (0..COLUMNS)
        .map(|column| {
            if with_content {
                format!(":{}", column + 2)
            } else {
                format!("rpad('{0}', {COLUMN_BYTES}, '{0}')", char::from(FILL))
            }
        })
        .collect();
    format!("insert into {table} (custid, {}) values (:1, {})", names.join(", "), values.join(", "))
}

/// Creates the index on the key.
pub(super) fn create_index(n: u32, unique: bool, tablespace: Option<&str>) -> String {
    let unique = if unique { "unique " } else { "" };
    format!(
        "create {unique}index {} on {} (custid) pctfree 0 noparallel{}",
        index(n),
        rows_table(n),
        in_tablespace(tablespace)
    )
}

/// Gathers statistics for the optimizer from 5 % of the blocks, as in SLOB; `:1` is the table, in capitals.
pub(super) const GATHER: &str = "begin dbms_stats.gather_table_stats(ownname => user, tabname => :1, \
     estimate_percent => 5, block_sample => true, cascade => true, degree => 1, no_invalidate => false); end;";

/// Drops a table, bypassing the recycle bin, with its indexes and constraints.
pub(super) fn drop_table(table: &str) -> String {
    format!("drop table {table} purge")
}

/// Has the server write what a load left in memory.
pub(super) const CHECKPOINT: &str = "alter system checkpoint";

fn hint(n: u32, batched: bool) -> String {
    let how = if batched { "" } else { "no_" };
    format!("/*+ index(t {}) {how}batch_table_access_by_rowid(t) */", index(n))
}

/// Selects rows of keys `:1` to `:2`; `c2` must be read from the table.
pub(super) fn select(n: u32, batched: bool) -> String {
    format!("select {} count(c2) from {} t where custid between :1 and :2", hint(n, batched), rows_table(n))
}

fn set_columns(redo: RedoStress, value: &mut dyn FnMut() -> String) -> String {
    let set = changed_columns(redo).into_iter();
    let set: Vec<String> = set.map(|name| format!("{name} = {}", value())).collect();
    set.join(", ")
}

/// Updates rows; the binds are the new columns, then the keys.
pub(super) fn update(n: u32, redo: RedoStress, batched: bool) -> String {
    let mut place = 0;
    let mut next = || {
        place += 1;
        format!(":{place}")
    };
    let set = set_columns(redo, &mut next);
    let (first, last) = (next(), next());
    format!("update {} {} t set {set} where custid between {first} and {last}", hint(n, batched), rows_table(n))
}

/// An update with its commit, in one call; the last placeholder returns the number of rows changed. The commit waits
/// for the log like a client's; a plain COMMIT in a block would not.
pub(super) fn update_and_commit(n: u32, redo: RedoStress, batched: bool) -> String {
    let out = changed_columns(redo).len() + 3;
    format!("begin {}; :{out} := to_char(sql%rowcount); commit write wait; end;", update(n, redo, batched))
}

/// Reads every row of the scan table.
pub(super) fn scan(n: u32) -> String {
    format!("select /*+ full(t) */ count(c2) from {} t", scan_table(n))
}

/// Digits of a key in the text of a slice.
pub(super) const KEY_DIGITS: usize = 10;
/// Characters of an operation: its kind and its first key. The stamps of updates are in a separate text.
pub(super) const OP_CHARS: usize = 1 + KEY_DIGITS;
/// Digits of each returned number.
pub(super) const ANSWER_DIGITS: usize = 10;

/// The session loop in the server (LOOP=server): operations as text, the server's clock after each as the answer.
///
/// `:1` operations, `:2` stamps of their updates, `:3` microseconds after which no operation starts. The outputs are
/// the rows of each operation, the time of its end in microseconds since the block began, and the error that ended the
/// slice. A letter selects the operation: select, update, scan; in capitals on the hot schema; `v` and `V` for an
/// update without a commit.
pub(super) fn slice(plan: &Plan, home: u32, batched: bool) -> String {
    let mut arms = String::new();
    let mut schemas = vec![(home, "suvc")];
    if plan.hot_schema_frequency > 0 && home != 1 {
        schemas.push((1, "SUVC"));
    }
    for (n, letters) in schemas {
        slice_arms(&mut arms, plan, n, letters, batched);
    }
    format!(
        "declare \
         ops varchar2(4000) := :1; stamps varchar2(4000) := :2; limit_us number := to_number(:3); \
         began timestamp with time zone := systimestamp; t number := 0; counts varchar2(4000); ends varchar2(4000); \
         failed varchar2(1000); k varchar2(1); a number; b number; r number; n number; u number := 0; \
         x varchar2({COLUMN_BYTES}); \
         function passed return number is d interval day(3) to second(6) := systimestamp - began; begin \
         return extract(day from d) * 86400000000 + extract(hour from d) * 3600000000 \
         + extract(minute from d) * 60000000 + extract(second from d) * 1000000; end; \
         begin \
         for i in 0 .. length(ops) / {OP_CHARS} - 1 loop \
         exit when t >= limit_us; \
         k := substr(ops, i * {OP_CHARS} + 1, 1); \
         a := to_number(substr(ops, i * {OP_CHARS} + 2, {KEY_DIGITS})); r := 0; \
         begin \
         case k {arms}end case; \
         exception when others then failed := substr(sqlerrm, 1, 900); rollback; end; \
         t := passed; \
         counts := counts || to_char(r, 'fm{zeros}'); ends := ends || to_char(t, 'fm{zeros}'); \
         exit when failed is not null; \
         end loop; \
         :4 := counts; :5 := ends; :6 := failed; end;",
        zeros = "0".repeat(ANSWER_DIGITS)
    )
}

/// The code for each letter. A range that wraps past the last key has a second part.
fn slice_arms(arms: &mut String, plan: &Plan, n: u32, letters: &str, batched: bool) {
    let letter: Vec<char> = letters.chars().collect();
    let (rows, scale) = (rows_table(n), plan.scale);
    let hint = hint(n, batched);
    let over = |width: u32, what: &dyn Fn(&str) -> String| {
        format!(
            "b := a + {width} - 1; {} if b > {scale} then {} end if; ",
            what(&format!("between a and least(b, {scale})")),
            what(&format!("between 1 and b - {scale}"))
        )
    };
    let counted =
        |range: &str| format!("select {hint} count(c2) into n from {rows} t where custid {range}; r := r + n;");
    let _ = write!(arms, "when '{}' then {}", letter[0], over(plan.work_unit, &counted));
    if plan.update_pct > 0 {
        let set = set_columns(plan.redo_stress, &mut || "x".to_owned());
        let changed =
            |range: &str| format!("update {hint} {rows} t set {set} where custid {range}; r := r + sql%rowcount;");
        let stamped = format!(
            "x := rpad(substr(stamps, u * {STAMP_DIGITS} + 1, {STAMP_DIGITS}), {COLUMN_BYTES}, '{}'); u := u + 1; ",
            char::from(FILL)
        );
        let body = format!("{stamped}{}", over(plan.update_work_unit, &changed));
        let _ = write!(arms, "when '{}' then {body}commit write wait; when '{}' then {body}", letter[1], letter[2]);
    }
    if plan.scan_pct > 0 {
        let _ =
            write!(arms, "when '{}' then select /*+ full(t) */ count(c2) into r from {} t; ", letter[3], scan_table(n));
    }
}

/// Creates the marker's tables; the row that describes the data set is written last.
pub(super) fn create_marker(tablespace: Option<&str>) -> [String; 2] {
    let place = in_tablespace(tablespace);
    [
        format!("create table {SCHEMAS} (n number(5) primary key, state varchar2(16) not null){place}"),
        format!(
            "create table {DATA_SET} (format number(5) not null, data_set varchar2(16) not null, seed varchar2(20) not \
             null, block_bytes varchar2(20) not null, scale_blocks varchar2(20) not null, scan_blocks varchar2(20) not \
             null, obfuscate varchar2(1) not null, compress_pct varchar2(3) not null, unique_index varchar2(1) not null, \
             checksum varchar2(8) not null, created timestamp not null){place}"
        ),
    ]
}

/// Writes the description of the data set.
pub(super) const WRITE_MARKER: &str = "insert into assay_data_set values (:1, :2, :3, :4, :5, :6, :7, :8, :9, :10, \
     sys_extract_utc(systimestamp))";
/// Reads the description, without the format, which is read first.
pub(super) const READ_MARKER: &str = "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, \
     unique_index, checksum, to_char(created, 'YYYY-MM-DD HH24:MI:SS')||'Z' from assay_data_set";
pub(super) const READ_FORMAT: &str = "select to_char(format) from assay_data_set";
pub(super) const READ_STATES: &str = "select to_char(n), state from assay_schemas order by n";
pub(super) const NOTE_LOADING: &str = "insert into assay_schemas (n, state) values (:1, 'loading')";
pub(super) const NOTE_LOADED: &str = "update assay_schemas set state = 'loaded' where n = :1 and state = 'loading'";
pub(super) const NOTE_GOING: &str = "update assay_schemas set state = 'loading' where n = :1";
pub(super) const FORGET: &str = "delete from assay_schemas where n = :1";
pub(super) const FORGET_ALL: &str = "delete from assay_data_set";

/// The table that is locked for a claim.
pub(super) fn create_claim(tablespace: Option<&str>) -> String {
    format!("create table {CLAIM} (n number(1)){}", in_tablespace(tablespace))
}

/// Locks for a claim: runs share the lock, all other commands hold it exclusively. It ends with the transaction.
pub(super) fn lock_claim(shared: bool, wait_s: u64) -> String {
    let mode = if shared { "share" } else { "exclusive" };
    format!("lock table {CLAIM} in {mode} mode wait {wait_s}")
}

/// The user's objects, except those that are parts of others.
pub(super) const CONTENT: &str = "select lower(object_name), object_type from user_objects where object_type not in ('INDEX', \
     'LOB', 'INDEX PARTITION', 'TABLE PARTITION', 'LOB PARTITION') and object_name not like 'BIN$%' and generated = 'N' \
     order by object_name";
/// Triggers and row policies on our tables, which would execute foreign code in our statements.
pub(super) const STRANGE: &str = "select 'trigger '||owner||'.'||trigger_name||' on '||table_name from all_triggers where \
     table_owner = user and (table_name like 'CF_/_%' escape '/' or table_name like 'ASSAY/_%' escape '/') union all select \
     'policy '||policy_name||' on '||object_name from user_policies where object_name like 'CF_/_%' escape '/' or object_name \
     like 'ASSAY/_%' escape '/'";

/// Holders of a lock on the claims' table, whose owner is `:1`: sessions with mode (4 shared, 6 exclusive), user and machine.
pub(super) const HOLDERS: &str = "select to_char(l.session_id), to_char(l.locked_mode), s.username||' from '||s.machine from \
     gv$locked_object l join gv$session s on s.inst_id = l.inst_id and s.sid = l.session_id join dba_objects o on o.object_id = \
     l.object_id where o.owner = upper(:1) and o.object_name = 'ASSAY_CLAIM' order by l.session_id";

/// Facts about the server, from the querying session; needs no privilege.
pub(super) const WHO: &str = "select sys_context('userenv', 'session_user'), sys_context('userenv', 'db_unique_name'), \
     sys_context('userenv', 'instance_name'), sys_context('userenv', 'con_name'), sys_context('userenv', 'service_name'), \
     sys_context('userenv', 'database_role'), (select min(version) from product_component_version), (select \
     default_tablespace from user_users), sys_context('userenv', 'server_host') from dual";
/// Block size and kind of tablespace `:1`, and the space available to this user.
pub(super) const TABLESPACE: &str = "select to_char(t.block_size), t.status, t.logging, t.segment_space_management, (select \
     to_char(sum(f.bytes)) from user_free_space f where f.tablespace_name = t.tablespace_name), (select \
     decode(q.max_bytes, -1, 'unlimited', to_char(q.max_bytes - q.bytes)) from user_ts_quotas q where q.tablespace_name = \
     t.tablespace_name) from user_tablespaces t where t.tablespace_name = :1";
/// Settings of the instance that a reader of the report needs.
pub(super) const PARAMETERS: &str = "select name, value from v$parameter where name in ('sga_target', 'memory_target', \
     'db_cache_size', 'db_keep_cache_size', 'db_block_checksum', 'db_block_checking', 'filesystemio_options', \
     'disk_asynch_io', 'db_writer_processes', 'log_buffer', 'fast_start_mttr_target', 'commit_logging', 'commit_wait', \
     'processes', 'sessions', 'control_management_pack_access', 'statistics_level', 'timed_statistics', \
     'db_file_multiblock_read_count', 'parallel_max_servers', '_db_block_prefetch_limit', '_db_block_prefetch_quota', \
     '_db_file_noncontig_mblock_read_count')";
/// Current cache sizes, and the log mode.
pub(super) const CACHES: &str = "select component, to_char(current_size) from v$sga_dynamic_components where component in \
     ('DEFAULT buffer cache', 'KEEP buffer cache') union all select 'log mode', log_mode from v$database union all select \
     'log block bytes', to_char(max(blocksize)) from v$log union all select 'log bytes', to_char(sum(bytes)) from v$log union \
     all select 'instances', to_char(count(*)) from gv$instance union all select 'sessions now', to_char(count(*)) from v$session";

/// Explains a statement; the plan is read and deleted in the same transaction. A number replaces each placeholder,
/// since drivers disagree on whether this statement has any.
pub(super) fn explain(sql: &str) -> String {
    let mut parts = sql.split(':');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('1');
        plain.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    format!("explain plan set statement_id = 'assay' for {plain}")
}
pub(super) const PLAN: &str = "select operation||decode(options, null, '', ' '||options)||decode(object_name, null, '', ' \
     '||object_name) from plan_table where statement_id = 'assay' order by id";
pub(super) const FORGET_PLAN: &str = "delete from plan_table where statement_id = 'assay'";

/// Cancels a session's statement.
pub(super) fn cancel(sid: u32, serial: u32, major: u32) -> String {
    // From 18 on a statement can be cancelled without ending the session.
    if major >= 18 {
        format!("alter system cancel sql '{sid}, {serial}'")
    } else {
        format!("alter system disconnect session '{sid},{serial}' immediate")
    }
}
/// Tests that the server answers.
pub(super) const LIFE: &str = "select count(*) from dual";

/// Columns of a table, in their order.
pub(super) const COLUMNS_OF: &str = "select lower(column_name)||' '||lower(data_type)||'('||decode(data_type, 'NUMBER', \
     data_precision, data_length)||')' from user_tab_columns where table_name = :1 order by column_id";
/// Storage attributes of a table.
pub(super) const TABLE_IS: &str = "select to_char(pct_free), compression, partitioned, temporary, nvl(iot_type, 'HEAP'), \
     row_movement from user_tables where table_name = :1";
/// Indexes of a table with their columns.
pub(super) const INDEXES_OF: &str = "select lower(i.index_name)||' '||lower(c.column_name)||' '||lower(i.uniqueness)||' \
     '||lower(i.status)||' '||lower(i.visibility) from user_indexes i join user_ind_columns c on c.index_name = i.index_name \
     where i.table_name = :1 order by 1";
/// Blocks of a table's segment.
pub(super) const SEGMENT: &str = "select to_char(sum(blocks)) from user_segments where segment_name = :1";

/// Rows, distinct keys, first and last key, rows whose columns have another length than loaded, blocks that contain
/// rows, and the rank correlation of key and position.
pub(super) fn verify(table: &str) -> String {
    let wrong: Vec<String> = column_names().map(|name| format!("nvl(lengthb({name}), 0) <> {COLUMN_BYTES}")).collect();
    format!(
        "select to_char(count(*)), to_char(count(distinct custid)), to_char(min(custid)), to_char(max(custid)), \
         to_char(sum(wrong)), to_char(count(distinct block)), to_char(nvl(corr(custid, place), 0), 'fms0.000000') from (select \
         custid, wrong, block, row_number() over (order by block) place from (select /*+ full(t) */ custid, case when {} then 1 \
         else 0 end wrong, dbms_rowid.rowid_relative_fno(rowid) * 4294967296 + dbms_rowid.rowid_block_number(rowid) block from \
         {table} t))",
        wrong.join(" or ")
    )
}

/// The same from the index only: rows, distinct keys, first and last key.
pub(super) fn verify_keys(n: u32) -> String {
    format!(
        "select /*+ index_ffs(t {}) */ to_char(count(custid)), to_char(count(distinct custid)), to_char(min(custid)), \
         to_char(max(custid)) from {} t where custid is not null",
        index(n),
        rows_table(n)
    )
}

/// Views of one instance, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Views {
    /// Sessions are on several instances.
    pub(super) global: bool,
}

impl Views {
    fn of(self, view: &str) -> String {
        let global = if self.global { "g" } else { "" };
        format!("{global}v${view}")
    }

    /// Statistics by name, minus what the querying session itself added.
    pub(super) fn statistics(self) -> String {
        let own = if self.global {
            "case when s.inst_id = to_number(sys_context('userenv', 'instance')) then m.value end"
        } else {
            "m.value"
        };
        format!(
            "select s.name, to_char(sum(s.value - nvl({own}, 0))) from {} s left join v$mystat m on m.statistic# = \
             s.statistic# group by s.name",
            self.of("sysstat")
        )
    }

    /// The time model, us.
    pub(super) fn time_model(self) -> String {
        format!("select stat_name, to_char(sum(value)) from {} group by stat_name", self.of("sys_time_model"))
    }

    /// The host: CPU times in hundredths of a second, and counts.
    pub(super) fn host(self) -> String {
        format!("select stat_name, to_char(sum(value)) from {} group by stat_name", self.of("osstat"))
    }

    /// Waits by event: all of them, with waits, timeouts and time, us; then those of the foreground.
    pub(super) fn events(self) -> String {
        format!(
            "select event, wait_class, to_char(sum(total_waits)), to_char(sum(total_timeouts)), \
             to_char(sum(time_waited_micro)), to_char(sum(total_waits_fg)), to_char(sum(time_waited_micro_fg)) from {} group \
             by event, wait_class",
            self.of("system_event")
        )
    }

    /// Waits by event and power of two of microseconds, without idle events.
    pub(super) fn buckets(self) -> String {
        format!(
            "select h.event, to_char(h.wait_time_micro), to_char(sum(h.wait_count)) from {} h where h.event in (select \
             n.name from v$event_name n where n.wait_class <> 'Idle') group by h.event, h.wait_time_micro",
            self.of("event_histogram_micro")
        )
    }

    /// I/O by function: MiB and requests, small and large, reads then writes; waits and their time, ms.
    pub(super) fn functions(self) -> String {
        format!(
            "select function_name, to_char(sum(small_read_reqs)), to_char(sum(large_read_reqs)), \
             to_char(sum(small_read_megabytes + large_read_megabytes)), to_char(sum(small_write_reqs)), \
             to_char(sum(large_write_reqs)), to_char(sum(small_write_megabytes + large_write_megabytes)), \
             to_char(sum(number_of_waits)), to_char(sum(wait_time)) from {} group by function_name",
            self.of("iostat_function")
        )
    }
}

/// The Diagnostics Pack: whether its use is permitted, and a snapshot that returns its number.
pub(super) const AWR_SNAPSHOT: &str = "begin :1 := to_char(dbms_workload_repository.create_snapshot('TYPICAL')); end;";
/// Samples of assay's sessions during the last hour, from the licensed history.
pub(super) const ASH: &str = "select nvl(event, 'ON CPU'), to_char(count(*)) from v$active_session_history where module = \
     'assay' and sample_time > systimestamp - interval '1' hour group by nvl(event, 'ON CPU') order by count(*) desc fetch \
     first 10 rows only";
/// Statspack: whether it is installed, and a snapshot.
pub(super) const STATSPACK_IS: &str = "select count(*) from all_objects where owner = 'PERFSTAT' and object_name = 'STATSPACK' \
     and object_type = 'PACKAGE'";
pub(super) const STATSPACK_SNAPSHOT: &str = "begin :1 := to_char(perfstat.statspack.snap(i_snap_level => 5)); end;";

/// What our sessions within a call are doing: session, state, event, class. Needs no licence.
pub(super) const ACTIVITY: &str = "select to_char(sid), state, event, wait_class from v$session where type = 'USER' and status = \
     'ACTIVE' and module = 'assay'";

/// Names the session in V$SESSION.
pub(super) const NAME_SESSION: &str = "begin dbms_application_info.set_module(:1, :2); end;";
