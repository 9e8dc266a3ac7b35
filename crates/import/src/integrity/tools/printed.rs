//! Figures that sources print twice, one line for each (`assay_measure::identity::formula` explains the syntax), by
//! identity.

use super::{Case, Read, at_most, equal, judge, rule};
use crate::integrity::Side as Num;
use assay_measure::identity::formula::{Formula, Sides};
use assay_measure::record::Identity;

type Entry = (&'static str, &'static str, &'static [&'static str]);

#[rustfmt::skip]
const IDENTITIES: &[Entry] = &[
    // A run by time ends with the transactions that were under way, and pgbench leaves connecting out of the rate. The fullest
    // minute has at least the mean, if the run has whole minutes.
    ("TX1", "counts / elapsed time = their rates", &[
        ".memory_mib_per_s = .memory_moved_mib / .elapsed_s ~ 0.02",
        ".*_per_s = .*_count / .elapsed_s ~ 0.02 + (2e-6 * .transaction_us_avg? + 1e-6 * .connect_us?) / .elapsed_s",
        ".ops_per_s = .events_count / .elapsed_s ~ 0.02 + (2e-6 * .transaction_us_avg? + 1e-6 * .connect_us?) / .elapsed_s",
        ".requests_per_s = .events_count / .elapsed_s ~ 0.02 + (2e-6 * .transaction_us_avg? + 1e-6 * .connect_us?) / .elapsed_s",
        ".transactions_with_connecting_per_s <= .transactions_per_s",
        // Connecting takes next to nothing of a run that says anything.
        ".transactions_with_connecting_per_s = .transactions_per_s ~ 0.2",
        ".transactions_per_s * 60 <= .transactions_per_min_max ~ 0.1 if 180 < .elapsed_s",
    ]),
    ("TX2", "kinds of queries add up to all", &[
        ".queries_read_count + .queries_write_count + .queries_other_count = .queries_total_count",
        ".queries_read_count + .queries_write_count + .queries_other_count = .queries_count",
        ".queries_read_count + .queries_write_count = .read_write_requests_count",
        "queries_read_per_s + queries_write_per_s + queries_other_per_s = queries_per_s",
        ".read_io_requests_count + .write_io_requests_count + .other_operations_count = .operations_count",
        ".read_io_requests_count + .write_io_requests_count = .events_count",
        ".ops_count = .events_count",
        ".queries_other_count = .other_operations_count",
        ".events_count = .transactions_count",
        ".session_events_count_avg * .sessions = .events_count ~ 0.001",
        ".transactions_count <= .sessions_count * .transactions_per_client_count",
        ".transactions_count = .sessions_count * .transactions_per_client_count if .failed_transactions_count? < 1",
        ".new_orders_per_min <= .transactions_per_s * 60",
    ]),
    ("TX3", "failures add up and are no more than transactions", &[
        ".serialization_failures_count + .deadlock_failures_count = .failed_transactions_count",
        ".transactions_retried_count <= .transactions_count + .failed_transactions_count?",
        ".transactions_late_count <= .transactions_count + .failed_transactions_count?",
        ".transactions_retried_count <= .retries_count",
        "sum(failed_count) <= .failed_transactions_count",
        "sum(retried_count) <= .transactions_retried_count",
        "sum(retries_count) <= .retries_count",
        "all(statement_failures_count) = .failed_transactions_count",
    ]),
    ("TX4", "mean time x count = time of all <= sessions x elapsed time", &[
        ".*_us_sum = .*_us_avg * .*_count ~ 0.001",
        ".*_us_sum = .*_us_avg * .events_count ~ 0.001 if .*_count? < 1",
        ".*_us_sum <= .elapsed_s * 1e6 * .sessions ~ 0.02",
        ".*_us_sum = .session_execution_s_avg * 1e6 * .sessions ~ 0.002",
    ]),
    // Those who synchronise at the end do it after the last step.
    ("TX5", "steps of the series come to the whole", &[
        "mean(transactions_per_s) = .transactions_per_s ~ 0.03",
        "mean(events_per_s) = .ops_per_s ~ 0.03",
        "mean(queries_per_s) = .queries_per_s ~ 0.03",
        "mean(file_read_mib_per_s) = .file_read_mib_per_s ~ 0.03",
        "mean(file_write_mib_per_s) = .file_write_mib_per_s ~ 0.03",
        "mean(fsyncs_per_s) = .fsyncs_per_s ~ 0.15",
    ]),
    // The size of a block is a setting: where it is not printed, the ways must agree on one.
    ("TX8", "requests x block size (a power of two) = bytes", &[
        ".file_read_mib_per_s / .read_io_requests_per_s = .file_write_mib_per_s / .write_io_requests_per_s ~ 0.001 \
         if 0 < .file_read_mib_per_s * .file_write_mib_per_s",
        ".file_read_mib_per_s / .read_io_requests_per_s = power ~ 0.005 if 0 < .file_read_mib_per_s",
        ".file_write_mib_per_s / .write_io_requests_per_s = power ~ 0.005 if 0 < .file_write_mib_per_s",
        ".memory_mib_per_s / .ops_per_s = power ~ 0.005 if 0 < .memory_mib_per_s",
        ".file_mib_per_s / .requests_per_s = power ~ 0.005 if 0 < .file_mib_per_s",
    ]),
    ("LOAD1", "phases of a load add up; rows / time = rows per second", &[
        ".load_connection_s + .load_data_generation_s + .load_ddl_s = .load_total_s ~ 0.01",
        ".load_rows_per_s = .load_rows_count / .load_data_generation_s ~ 0.02",
        ".load_batches_count <= .load_rows_count",
        ".load_commits_count <= .load_batches_count",
    ]),
    // pgio reads its counters before the sessions start and its clock after: the rates say which were meant.
    ("SLOB1", "DB CPU <= DB time <= sessions; increase of blks_hit / run time = cache hits/s", &[
        ".db_cpu_s_per_s <= .db_time_s_per_s ~ 0.02 if 0 < .sessions_count",
        ".db_time_s_per_s <= .sessions_count ~ 0.02",
        ".cache_hits_blocks_per_s = (after:pgio_blocks_hit_count - before:pgio_blocks_hit_count) / .elapsed_s ~ 0.02",
    ]),
    ("PG1", "RIOPS = increase of blks_read / run time", &[
        ".physical_read_blocks_per_s = (after:pgio_blocks_read_count - before:pgio_blocks_read_count) / .elapsed_s ~ 0.02",
    ]),
    // Bhatia and Davis, Amer. Math. Monthly 107, 2000. The deviation of a sample of two is 1.41 times that of the population.
    ("STD1", "standard deviation <= sqrt((max - mean)(mean - min))", &[
        "*_stddev * *_stddev <= (*_max - *_avg) * (*_avg - *_min) ~ 0.66",
    ]),
    ("CPU1", "bogo ops / time = bogo ops per second, of wall and of CPU time", &[
        "stress_ops_per_s = stress_ops_count / stress_real_s ~ 1e-4",
        "stress_cpu_ops_per_s = stress_ops_count / (stress_user_s + stress_system_s) ~ 1e-4",
    ]),
    ("CPU2", "CPU time / wall time / CPU used per instance = a whole number of instances", &[
        "(stress_user_s + stress_system_s) * 100 / stress_real_s / stress_cpu_per_instance_pct = whole ~ 0.02",
    ]),
    ("HOST1", "CPU columns of a step sum to 100 %", &[
        "host_idle_pct + host_user_pct + host_nice_pct? + host_system_pct? + host_iowait_pct? + host_irq_pct? \
         + host_softirq_pct? + host_steal_pct? + host_guest_pct? + host_guest_nice_pct? = 100 ~ 0.001",
    ]),
    // A whole of several streams is over the longest; the receiver's time may be the sender's.
    ("NET1", "bytes x 8 / time = bits per second", &[
        "*_throughput_bits_per_s_mean = *_moved_bytes * 8 / *_interval_s ~ 0.002",
    ]),
    ("NET2", "lost percent = (sent - received) / sent", &[
        ".packets_lost_pct = 100 * (.packets_sent_count - .packets_received_count) / .packets_sent_count + cut(.packets_lost_pct)",
    ]),
    // Two digits are printed of a share.
    ("NET7", "lost percent = lost / all", &[
        "udp_lost_count <= udp_datagrams_count",
        "udp_lost_pct = udp_lost_count * 100 / udp_datagrams_count ~ 0.06",
    ]),
    // BSD prints the deviation of a sample, which is a little more.
    ("NET8", "minimum <= mean <= maximum, of round trips and windows", &[
        "*rtt_us_min <= *rtt_us_avg",
        "*rtt_us_avg <= *rtt_us_max",
        ".rtt_us_mdev * .rtt_us_mdev <= (.rtt_us_max - .rtt_us_avg) * (.rtt_us_avg - .rtt_us_min) ~ 0.19",
        // One of so many replies was the fastest, and one the slowest; a duplicate counts without being received.
        "(.rtt_us_min * (.packets_received_count - 1) + .rtt_us_max) / .packets_received_count <= .rtt_us_avg ~ 0.001 \
         if .packets_duplicate_count? < 1",
        ".rtt_us_avg <= (.rtt_us_max * (.packets_received_count - 1) + .rtt_us_min) / .packets_received_count ~ 0.001 \
         if .packets_duplicate_count? < 1",
        "(.rtt_us_max - .rtt_us_min) * (.rtt_us_max - .rtt_us_min) / (2 * .packets_received_count) <= .rtt_us_mdev * .rtt_us_mdev ~ 0.02 \
         if .packets_duplicate_count? < 1",
        "most(tcp_cwnd_bytes) <= sender:tcp_cwnd_bytes_max",
    ]),
    ("NET9", "CPU = user + system", &["network_cpu_pct = network_cpu_user_pct + network_cpu_system_pct ~ 0.01"]),
    ("RED1", "disk write <= latency; rate of a row = message / latency", &[
        "redo_transport_disk_write_us_avg <= redo_transport_us_avg",
        "redo_transport_bytes_per_s = (.redo_transport_message_bytes + 12) * .streams * 1e6 / redo_transport_us_avg ~ 0.01",
    ]),
    // Less what short ones lacked.
    ("IO13", "bytes = I/Os x block size", &[
        "*_moved_bytes = *_ios_count * block ~ 1e-6 +- *_short_ios_count? * block",
    ]),
    // Where reads and writes are mixed neither of the two is the mean.
    ("OR1", "IOPS x mean latency = small I/Os in flight; the least latency is that of its point", &[
        ".small_ios_per_s * maximum:small_read_us_avg * 1e-6 = .small_ios_small_count ~ 0.05 if maximum:small_write_us_avg? < 1e-9",
        ".small_us_avg <= maximum:small_read_us_avg if maximum:small_write_us_avg? < 1e-9",
        "minimum:small_read_us_avg = .small_us_avg if minimum:small_write_us_avg? < 1e-9",
        ".small_us_avg * 1e-6 * .small_ios_per_s <= .small_ios_small_count ~ 0.05",
    ]),
    // What a clock's whole milliseconds and the begin of clones one after the other may do to a rate.
    ("IO14", "I/Os and bytes / run time = IOPS and bytes per second", &[
        "*_ios_per_s = *_ios_count / *_runtime_s ~ 0.002",
        "*_mib_per_s = *_moved_bytes / 1048576 / *_runtime_s ~ 0.002",
        "*_mb_per_s = *_moved_bytes * 1e-6 / *_runtime_s ~ 0.002",
        "*_mb_per_s = *_mib_per_s * 1.048576 ~ 0.001",
        "*_cut_kib_per_s = *_mib_per_s * 1024",
        "*_moved_kib = *_moved_bytes / 1024",
        "*_moved_mb = *_moved_bytes * 1e-6",
        "*_mib_per_s = *_ios_per_s * block / 1048576 ~ 0.01",
    ]),
    ("IO19", "samples of a rate lie between their extremes", &[
        "*_bw_kib_per_s_min <= *_bw_kib_per_s_avg ~ 0.001",
        "*_bw_kib_per_s_avg <= *_bw_kib_per_s_max ~ 0.001",
        "*_iops_per_s_min <= *_iops_per_s_avg ~ 0.001",
        "*_iops_per_s_avg <= *_iops_per_s_max ~ 0.001",
    ]),
    // Each sample is cut to whole KiB and whole I/Os. Where the two are taken at other times, other samples are the extremes.
    ("IO19", "samples of bytes and of I/Os are the same samples", &[
        "*_bw_samples_count / *_iops_samples_count = whole ~ 0.05 if *_iops_samples_count - 1 < *_bw_samples_count",
        "*_iops_samples_count / *_bw_samples_count = whole ~ 0.05 if *_bw_samples_count - 1 < *_iops_samples_count",
        "*_bw_samples_count <= *_iops_samples_count * 50",
        "*_iops_samples_count <= *_bw_samples_count * 50",
        "*_bw_kib_per_s_min = *_iops_per_s_min * block / 1024 ~ 0.05 +- 1 + block / 1024 \
         if (*_bw_samples_count - *_iops_samples_count) * (*_bw_samples_count - *_iops_samples_count) < 0.5",
        "*_bw_kib_per_s_max = *_iops_per_s_max * block / 1024 ~ 0.05 +- 1 + block / 1024 \
         if (*_bw_samples_count - *_iops_samples_count) * (*_bw_samples_count - *_iops_samples_count) < 0.5",
        "*_bw_kib_per_s_stddev = *_iops_per_s_stddev * block / 1024 ~ 0.05 +- 1 + block / 1024 \
         if (*_bw_samples_count - *_iops_samples_count) * (*_bw_samples_count - *_iops_samples_count) < 0.5",
    ]),
    // Short I/Os are counted once and timed twice.
    ("IO23", "every I/O has a latency", &[
        "*_lat_count = *_ios_count ~ 0.001 +- *_short_ios_count?",
        "*_clat_count = *_ios_count ~ 0.001 +- *_short_ios_count?",
        "*_slat_count = *_ios_count ~ 0.001 +- *_short_ios_count?",
    ]),
    // Versions that count whole microseconds cut each of the three.
    ("IO15", "slat + clat = lat, of the means and within the extremes", &[
        "*_lat_us_avg = *_slat_us_avg + *_clat_us_avg ~ 0.005 +- 1",
        "*_clat_us_avg <= *_lat_us_avg +- 1",
        "*_slat_us_avg <= *_lat_us_avg +- 1",
        "*_clat_us_min <= *_lat_us_min +- 1",
        "*_slat_us_min <= *_lat_us_min +- 1",
        "*_clat_us_max <= *_lat_us_max +- 1",
        "*_slat_us_max <= *_lat_us_max +- 1",
        "*_lat_us_max <= *_slat_us_max + *_clat_us_max +- 1",
        "*_slat_us_min + *_clat_us_min <= *_lat_us_min +- 1",
        "*_lat_us_min <= *_slat_us_min + *_clat_us_max +- 1",
        "*_lat_us_min <= *_clat_us_min + *_slat_us_max +- 1",
        // Of a sum the deviation is at most the sum of the deviations.
        "*_lat_us_stddev <= *_slat_us_stddev + *_clat_us_stddev ~ 0.01 +- 1",
        "*_clat_us_stddev <= *_slat_us_stddev + *_lat_us_stddev ~ 0.01 +- 1",
        "*_slat_us_stddev <= *_clat_us_stddev + *_lat_us_stddev ~ 0.01 +- 1",
    ]),
    ("IO18", "CPU of a clone, busy time of a device <= 100 %", &[
        "cpu_user_pct + cpu_system_pct <= 100 ~ 0.02",
        "disk_busy_pct <= 100 ~ 0.001",
        "cpu_busy_pct <= 100 ~ 0.001",
        "cpu_system_pct <= cpu_busy_pct",
    ]),
    ("IO22", "response time = that of reads and writes by their shares", &[
        "lat_us_avg = read_share_pct * 0.01 * read_lat_us_avg? + (1 - read_share_pct * 0.01) * write_lat_us_avg? ~ 0.005 \
         if 0 < read_lat_us_avg? + write_lat_us_avg?",
    ]),
    ("IO22", "mean and deviation of a response time <= the longest", &[
        "*lat_us_avg <= *lat_us_max if 0 < *lat_us_max",
        "lat_us_stddev * lat_us_stddev <= (lat_us_max - lat_us_avg) * lat_us_avg ~ 0.66 if 0 < lat_us_max",
        "read_lat_us_max <= lat_us_max",
        "write_lat_us_max <= lat_us_max",
        "(lat_us_max - read_lat_us_max) * (lat_us_max - write_lat_us_max?) = 0 if operations_per_s? < 1e-9",
        "mib_per_s = ios_per_s * block_bytes / 1048576 ~ 0.002",
        "mib_per_s = read_mib_per_s + write_mib_per_s",
        "read_ios_per_s + write_ios_per_s <= operations_per_s",
    ]),
];

pub(super) fn identities(read: &Read<'_>) -> Vec<Option<Identity>> {
    let judged = |(id, text, lines): &Entry| {
        let cases = lines.iter().filter_map(|line| Formula::of(line)).flat_map(|formula| read.cases(&formula));
        judge(rule(id, text), cases.collect())
    };
    IDENTITIES.iter().map(judged).collect()
}

impl Read<'_> {
    /// A line in each scope, and of each stem, that has its first term.
    fn cases(&self, formula: &Formula<'_>) -> Vec<Case> {
        let first = formula.first();
        let is_of_whole = first.starts_with('.');
        let mut places: Vec<(&str, &str)> = Vec::new();
        match first.trim_start_matches('.').strip_prefix('*') {
            Some(ending) => {
                let values = self.ending(ending).filter(|value| !is_of_whole || value.scope.is_empty());
                let stemmed = values.filter_map(|value| Some((value.scope.as_str(), value.key.strip_suffix(ending)?)));
                places.extend(stemmed);
            }
            None if is_of_whole || first.contains(['(', ':']) => places.push(("", "")),
            None => places.extend(self.scopes(first).into_iter().map(|scope| (scope, ""))),
        }
        let case = |(scope, stem): (&str, &str)| {
            let terms = |function: &str, name: &str| {
                self.term(function, &name.replace('*', stem), scope).ok_or_else(|| "not printed".to_owned())
            };
            let Sides { left, right, share, apart } = formula.sides(&terms)?;
            let name = format!("{scope} {}", first.replace('*', stem)).trim().to_owned();
            let judged = if formula.is_at_most { at_most } else { equal };
            let case = judged(name, left, right, share);
            Some(Case { tolerance: case.tolerance + apart, ..case })
        };
        places.into_iter().filter_map(case).collect()
    }

    fn term(&self, function: &str, name: &str, scope: &str) -> Option<Num> {
        let (scope, key) = match name.strip_prefix('.') {
            Some(key) => ("", key),
            None => name.split_once(':').unwrap_or((scope, name)),
        };
        match (function, key) {
            ("sum", key) => super::steps::sum(&self.steps(key, "")),
            ("most", key) => {
                let steps = self.steps(key, "").into_iter().map(|step| step.num);
                steps.max_by(|a, b| a.value.total_cmp(&b.value))
            }
            ("mean", key) => self.mean_rate(key, self.elapsed()?.value),
            ("all", key) => self.scopes(key).iter().filter_map(|scope| self.num(scope, key)).reduce(Num::plus),
            // Of no weight itself, but as wide again as what was rounded.
            ("cut", key) => Some(Num { value: 0.0, off: self.num(scope, key)?.off + 1e-6 }),
            ("", "sessions") => {
                Some(self.record.run.sessions).filter(|count| *count > 0).map(|count| Num::exact(count as f64))
            }
            ("", "streams") => Some(self.num("", "connections_count").unwrap_or(Num::exact(1.0))),
            ("", "block") => self.blocks.get(scope).copied().map(Num::exact),
            ("", key) => self.num(scope, key),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_can_be_read() {
        for (id, _, lines) in IDENTITIES {
            for line in *lines {
                let formula = Formula::of(line).unwrap_or_else(|| panic!("{id}: {line}"));
                let one = |_: &str, _: &str| Ok(Num::exact(1.0));
                assert!(formula.sides(&one).is_some() || line.contains(" if "), "{id}: {line}");
                // Values are found by the last word of their keys.
                assert!(!formula.first().contains('*') || formula.first().contains('_'), "{id}: {line}");
            }
        }
    }
}
