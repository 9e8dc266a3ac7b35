//! Builds the record of a storage probe from its readings: computes every derived figure, once.

use super::options;
use super::rows::{Missing, NO_TIME, NS_PER_S, ios_of, latency, seconds, way_rows, ways};
use super::{advice, goal, groups, integrity, series};
use crate::readings::{CloneReading, JobReading, LatencyReading, PreconditionReading, StorageReadings, Way};
use crate::record::info::{
    StorageCpu, StorageDevices, StorageInfo, StorageJob, StoragePrecondition, StorageRefusal, StorageSteady, StorageWay,
};
use assay_awr::record::os;
use assay_measure::kind::attach_metrics;
use assay_measure::record::{Checks, Figure, IoProfileRow, LoadRow, Record};
use assay_measure::snapshot::{HostReading, RunData, SettingLine, Snapshot, Verdict};
use assay_measure::units::{fixed, size};

const MIB: f64 = 1_048_576.0;
/// Why a figure per I/O is missing.
pub(super) const NO_IOS: &str = "no I/O ended";
/// A rate counts as missed below this share of the target.
const RATE_KEPT: f64 = 0.99;

/// Builds the record of a probe. Takes only the labels from `run`, none of its measurements.
#[must_use]
pub fn build(run: &RunData, readings: &StorageReadings) -> Record {
    let mut run = run.clone();
    // Facts about the host have a place of their own.
    let facts = readings.facts.iter();
    let of_files = facts.filter(|fact| !run.host.contains(fact));
    run.engine_facts = of_files.cloned().collect();
    run.sessions = readings.clones.len() as u64;
    if let (0, Some(job)) = (run.seed, readings.jobs.first()) {
        run.seed = job.seed;
    }
    // Of a fleet more may be wrong than its readings show.
    if run.verdict == Verdict::Complete {
        run.verdict = verdict(readings);
    }
    frame(&mut run, readings);
    let mut record = Record::labelled(&run);
    record.os = os(&run);
    record.interval.elapsed_s = seconds(readings.elapsed_ns);
    record.interval.whole_run_s = seconds(readings.elapsed_ns);
    let info = info(readings, &record);
    record.checks = checks(&info, &record);
    record.series = series::series(readings);
    load(&mut record, &info);
    record.integrity = integrity::evaluate(readings);
    record.advice = advice::advise(readings, &info, &record);
    record.parts.put(&info);
    attach_metrics(&super::Storage, &mut record);
    record
}

/// Makes the host's differences an interval, so that they read like those of any run.
fn frame(run: &mut RunData, readings: &StorageReadings) {
    let mut end = readings.host.clone().unwrap_or_default();
    end.disks.clone_from(&readings.disks);
    end.process_cpu_ns = Some(readings.process_cpu_ns);
    let zero = |names: &std::collections::BTreeMap<String, u64>| names.keys().map(|name| (name.clone(), 0)).collect();
    let begin = HostReading {
        cpu_ns: end.cpu_ns.map(|_| [0; 10]),
        context_switches: end.context_switches.map(|_| 0),
        memory_bytes: end.memory_bytes.clone(),
        psi_ns: zero(&end.psi_ns),
        vmstat: zero(&end.vmstat),
        process_read_bytes: end.process_read_bytes.map(|_| 0),
        process_write_bytes: end.process_write_bytes.map(|_| 0),
        process_cpu_ns: Some(0),
        cgroup_throttled_ns: end.cgroup_throttled_ns.map(|_| 0),
        disks: (end.disks.iter())
            .map(|disk| assay_measure::snapshot::DiskReading { name: disk.name.clone(), ..Default::default() })
            .collect(),
        ..HostReading::default()
    };
    let at = |at_ns: u64, host: HostReading| Snapshot { at_ns, host, ..Snapshot::default() };
    run.begin = at(0, begin);
    run.end = at(readings.elapsed_ns, end);
}

pub(crate) fn verdict(readings: &StorageReadings) -> Verdict {
    let mut reasons: Vec<String> = (readings.clones.iter())
        .filter(|clone| clone.error != 0 || clone.errors_passed > 0)
        .filter_map(|clone| {
            let job = readings.jobs.get(clone.job)?;
            let ended = ended_by(clone).unwrap_or_default();
            Some(match clone.errors_passed {
                0 => format!("{}, {ended}", job.name),
                n => format!("{}, clone {}: {n} I/Os failed, and the job continued", job.name, clone.clone),
            })
        })
        .collect();
    if readings.stopped {
        return if reasons.is_empty() {
            Verdict::Incomplete("stopped on request".to_owned())
        } else {
            Verdict::Invalid(reasons)
        };
    }
    if !readings.running {
        reasons.extend((0..readings.jobs.len()).filter_map(|job| missed_rate(readings, job)));
    }
    if reasons.is_empty() { Verdict::Complete } else { Verdict::Invalid(reasons) }
}

/// `clone 3: Input/output error (errno 5)`.
fn ended_by(clone: &CloneReading) -> Option<String> {
    let text = clone.error_text.as_deref().unwrap_or("ended by an error");
    (clone.error != 0).then(|| format!("clone {}: {text} (errno {})", clone.clone, clone.error))
}

/// Why a job missed its rate, if it did.
fn missed_rate(readings: &StorageReadings, job: usize) -> Option<String> {
    let ways = ways(readings, |clone| clone.job == job);
    let clones = readings.clones.iter().filter(|clone| clone.job == job);
    let clones = clones.count() as f64;
    let reading = &readings.jobs[job];
    Way::ALL.into_iter().find_map(|way| {
        let target = reading.label.rate_iops[way.index()]? * clones;
        let (merged, runtime_ns) = &ways[way.index()];
        let due = target * *runtime_ns as f64 / NS_PER_S;
        // Requests due at the very end may still be in flight.
        let slack = 2.0 * clones * f64::from(reading.label.iodepth.max(1));
        (merged.ios as f64 + slack < RATE_KEPT * due).then(|| {
            format!(
                "{}: reached {} of the requested {} {}s/s",
                reading.name,
                fixed(merged.ios as f64 * NS_PER_S / (*runtime_ns).max(1) as f64, 0),
                fixed(target, 0),
                way.name()
            )
        })
    })
}

fn info(readings: &StorageReadings, record: &Record) -> StorageInfo {
    let ios: u64 = readings.clones.iter().map(ios_of).sum();
    let devices = devices(readings);
    StorageInfo {
        layer: "syscall".to_owned(),
        jobs: (0..readings.jobs.len()).map(|job| self::job(readings, job)).collect(),
        groups: groups::groups(readings),
        precondition: readings.precondition.iter().map(precondition).collect(),
        disks: record.os.disk.clone(),
        io_mode_achieved: options::achieved(readings, &devices),
        devices,
        process_cpu_us_per_io: Figure::decimal(readings.process_cpu_ns as f64 / 1e3).per(ios as f64, NO_IOS),
    }
}

fn precondition(reading: &PreconditionReading) -> StoragePrecondition {
    let share = |value: Option<f64>| Figure::known(value, "fewer rounds than a window");
    StoragePrecondition {
        job: reading.job.clone(),
        method: reading.method.clone(),
        files: reading.files.clone(),
        written_over_bytes: reading.bytes,
        fills_count: reading.fills,
        fill_mib_per_s: (reading.fill_bytes_per_s.iter()).map(|rate| Figure::decimal(rate / MIB)).collect(),
        block_bytes: reading.block_bytes,
        round_s: reading.round_s.into(),
        round_ios_per_s: reading.rounds.iter().map(|rate| (*rate).into()).collect(),
        window_rounds_count: reading.window,
        attained: reading.attained,
        excursion_pct: share(reading.excursion_pct),
        slope_pct: share(reading.slope_pct),
        elapsed_s: seconds(reading.elapsed_ns),
    }
}

fn job(readings: &StorageReadings, place: usize) -> StorageJob {
    let job = &readings.jobs[place];
    let clones: Vec<&CloneReading> = (readings.clones.iter()).filter(|clone| clone.job == place).collect();
    let numjobs = clones.len() as f64;
    let merged = ways(readings, |clone| clone.job == place);
    let mut sync = LatencyReading::default();
    for clone in &clones {
        sync.merge(&clone.sync);
    }
    let longest_ns = clones.iter().map(|clone| clone.runtime_ns).max();
    let (mut in_flight, little) = in_flight(&clones);
    if job.label.no_lat && job.label.no_clat && job.label.no_slat {
        // The clock stood still, so any count is meaningless.
        in_flight = Figure::na("no timestamps were taken");
    }
    StorageJob {
        name: job.name.clone(),
        group: job.group,
        rw: job.label.rw.clone(),
        ioengine: job.label.ioengine.clone(),
        iodepth_count: u64::from(job.label.iodepth),
        numjobs_count: u64::from(job.label.numjobs),
        block_sizes: block_sizes(job),
        options: settings(readings, job),
        files: job.files.clone(),
        region_bytes: job.region_bytes,
        timing: job.timing.clone(),
        features: job.features.clone(),
        refused: (job.refused.iter())
            .map(|(feature, reason)| StorageRefusal { feature: feature.clone(), reason: reason.clone() })
            .collect(),
        seed: job.seed,
        runtime_s: longest_ns.map_or_else(|| Figure::na("no clone ran"), seconds),
        ways: way_rows(merged, job.label.rate_iops.map(|rate| rate.map(|rate| rate * numjobs)), Missing::of(job)),
        sync: latency(&sync, Some("no syncs")),
        cpu: cpu(&clones),
        in_flight_mean_count: in_flight,
        little_count: little,
        errors_count: clones.iter().map(|clone| clone.errors_passed).sum(),
        errors: clones.iter().filter_map(|clone| ended_by(clone)).collect(),
        verified_ios_count: clones.iter().map(|clone| clone.verified_ios).sum(),
        steady: job.steady.as_ref().map(|steady| StorageSteady {
            criterion: steady.criterion.clone(),
            attained: steady.attained,
            window_s: steady.duration_s,
            ramp_s: steady.ramp_s,
            last_value: value(steady.last),
            slope_per_s: value(steady.slope),
            deviation_pct: value(steady.deviation_pct),
            window_ios_per_s: steady.iops.clone(),
            window_kib_per_s: steady.bw_kib_per_s.clone(),
        }),
        search: goal::search(job, &clones),
        notes: job.notes.clone(),
    }
}

fn value(value: Option<f64>) -> Figure {
    Figure::known(value, "the window was never full")
}

/// Mean I/Os in flight: counted at each change, and by Little's law.
fn in_flight(clones: &[&CloneReading]) -> (Figure, Figure) {
    let mean = |amount: &dyn Fn(&CloneReading) -> f64| -> Figure {
        let per_clone = clones.iter().filter(|clone| clone.runtime_ns > 0);
        let sum: f64 = per_clone.map(|clone| amount(clone) / clone.runtime_ns as f64).sum();
        if sum > 0.0 { Figure::decimal(sum) } else { Figure::na("not taken") }
    };
    let lat_ns = |clone: &CloneReading| -> f64 {
        let ways = clone.ways.iter();
        ways.map(|way| way.lat.histogram.sum_ns() as f64).sum()
    };
    (mean(&|clone| clone.in_flight_ns as f64), mean(&lat_ns))
}

fn cpu(clones: &[&CloneReading]) -> StorageCpu {
    let ios: u64 = clones.iter().map(|clone| ios_of(clone)).sum();
    let sum = |of: fn(&CloneReading) -> u64| clones.iter().map(|clone| of(clone)).sum::<u64>();
    let per_io = |amount: f64| Figure::decimal(amount).per(ios as f64, NO_IOS);
    let busy_ns = |clone: &CloneReading| (clone.user_ns + clone.system_ns) as f64;
    let busiest = (clones.iter())
        .filter(|clone| clone.runtime_ns > 0)
        .map(|clone| 100.0 * busy_ns(clone) / clone.runtime_ns as f64)
        .fold(0.0, f64::max);
    let runtime_ns = sum(|clone| clone.runtime_ns) as f64;
    let cpu_ns: f64 = clones.iter().map(|clone| busy_ns(clone)).sum();
    StorageCpu {
        user_us_per_io: per_io(sum(|clone| clone.user_ns) as f64 / 1e3),
        system_us_per_io: per_io(sum(|clone| clone.system_ns) as f64 / 1e3),
        thread_cpu_pct: Figure::decimal(100.0 * cpu_ns).per(runtime_ns, NO_TIME),
        thread_cpu_max_pct: if runtime_ns > 0.0 { busiest.into() } else { Figure::na(NO_TIME) },
        kernel_entries_per_io: per_io(sum(|clone| clone.kernel_entries) as f64),
        context_switches_per_io: per_io(sum(|clone| clone.context_switches) as f64),
        major_faults_count: sum(|clone| clone.major_faults),
    }
}

/// `8 KiB`, `4 KiB-64 KiB`, `(R) 4 KiB (W) 8 KiB`: for the directions of the job.
fn block_sizes(job: &JobReading) -> String {
    let of = |way: Way| {
        let (least, most) = job.label.block_bytes[way.index()];
        if least == most { size(least) } else { format!("{}-{}", size(least), size(most)) }
    };
    let reads = of(Way::Read);
    let writes = of(Way::Write);
    if job.label.rw.contains("trim") {
        return of(Way::Trim);
    }
    match options::goes(&job.label.rw) {
        (true, true) if reads != writes => format!("(R) {reads} (W) {writes}"),
        (false, _) => writes,
        _ => reads,
    }
}

/// Every option with its origin: the job's own options override the global ones; resolved values follow.
fn settings(readings: &StorageReadings, job: &JobReading) -> Vec<SettingLine> {
    let line = |name: &str, value: &str, origin: &str| SettingLine::new(name, value, origin);
    let given =
        |(name, value): &(String, Option<String>), origin: &str| line(name, value.as_deref().unwrap_or("1"), origin);
    let own = |name: &str| job.options.iter().any(|(option, _)| option == name);
    let global = readings.global_options.iter();
    let mut lines: Vec<SettingLine> =
        global.filter(|(name, _)| !own(name)).map(|option| given(option, "global")).collect();
    lines.extend(job.options.iter().map(|option| given(option, "job")));
    let effective = job.effective.iter();
    lines.extend(effective.map(|(name, value)| line(name, value, "effective")));
    lines
}

fn devices(readings: &StorageReadings) -> StorageDevices {
    let jobs = ways(readings, |_| true);
    let bytes = |way: Way| jobs[way.index()].0.bytes;
    let device = |of: fn(&assay_measure::snapshot::DiskReading) -> u64| {
        if readings.disks.is_empty() {
            Figure::na("the device below the files is unknown")
        } else {
            Figure::Count(readings.disks.iter().map(of).sum())
        }
    };
    let read = device(|disk| disk.read_bytes);
    let write = device(|disk| disk.write_bytes);
    StorageDevices {
        job_read_bytes: bytes(Way::Read),
        read_ratio: read.per(bytes(Way::Read) as f64, "the jobs read nothing"),
        device_read_bytes: read,
        job_write_bytes: bytes(Way::Write),
        write_ratio: write.per(bytes(Way::Write) as f64, "the jobs wrote nothing"),
        device_write_bytes: write,
    }
}

fn checks(info: &StorageInfo, record: &Record) -> Checks {
    let sum = |of: fn(&StorageJob) -> &Figure| {
        let figures = info.jobs.iter().map(of);
        figures.cloned().reduce(|a, b| a.plus(&b)).unwrap_or_default()
    };
    let [only] = &info.groups[..] else {
        return Checks::default();
    };
    let process = &record.os.process;
    Checks {
        little_sessions: sum(|job| &job.little_count),
        little_expected_sessions: sum(|job| &job.in_flight_mean_count),
        engine_read_bytes: info.devices.job_read_bytes.into(),
        process_read_bytes: process.read_bytes.clone(),
        device_read_bytes: info.devices.device_read_bytes.clone(),
        engine_write_bytes: info.devices.job_write_bytes.into(),
        process_write_bytes: process.write_bytes.clone(),
        device_write_bytes: info.devices.device_write_bytes.clone(),
        steadiness: only.steadiness.clone(),
        ..Checks::default()
    }
}

/// The rows that the summary and comparisons use; with several groups no rate of the whole run is meaningful.
pub fn load(record: &mut Record, info: &StorageInfo) {
    let of = |way: &str, rate: fn(&StorageWay) -> &Figure| match &info.groups[..] {
        [only] => {
            let mut ways = only.ways.iter();
            let found = ways.find(|row| row.way == way);
            found.map_or(Figure::Count(0), |row| rate(row).clone())
        }
        _ => Figure::na("several groups: each group has its own figure"),
    };
    let row = |name: &str, way: &str| LoadRow {
        name: name.to_owned(),
        unit: "count".to_owned(),
        total: match &info.groups[..] {
            [only] => Figure::Count((only.ways.iter()).filter(|row| row.way == way).map(|row| row.ios_count).sum()),
            _ => Figure::na("several groups: each group has its own figure"),
        },
        per_s: of(way, |row| &row.ios_per_s),
        ..LoadRow::default()
    };
    record.instance.load_profile = vec![row("Read IO requests", "read"), row("Write IO requests", "write")];
    let (read, write) = (of("read", |row| &row.mib_per_s), of("write", |row| &row.mib_per_s));
    record.instance.io_profile = vec![IoProfileRow {
        name: "Total (MB)".to_owned(),
        unit: "mib".to_owned(),
        read_write_per_s: read.plus(&write),
        read_per_s: read,
        write_per_s: write,
    }];
}
