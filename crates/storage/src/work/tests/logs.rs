//! fio's log files.

use super::*;
use crate::readings::Way;
use crate::work::logs::{Ended, Logs, write_all};

#[test]
fn logs_have_fios_rows_and_overwrite_nothing() {
    let (dir, path) = file(1 << 20);
    let prefix = dir.path().join("p").display().to_string();
    let logged = job(|options| {
        reads(&path)(options);
        options.engine = IoEngine::IoUring;
        options.pattern.mode = Mode::Read;
        options.clones = 2;
        options.measure.lat_log = Some(prefix.clone());
        options.measure.bw_log = Some(prefix.clone());
        options.measure.iops_log = Some(prefix.clone());
        options.measure.hist_log = Some(prefix.clone());
        options.measure.hist_log_ns = 1_000_000_000;
        options.measure.log_offset = true;
    });
    run(vec![logged.clone()]).unwrap();
    for kind in ["slat", "clat", "lat", "bw", "iops"] {
        for clone in 1..=2 {
            let text = std::fs::read_to_string(format!("{prefix}_{kind}.{clone}.log")).unwrap();
            assert_eq!(text.lines().count(), 256, "{kind}");
            assert!(text.lines().all(|line| line.split(", ").count() == 6), "{kind}");
        }
    }
    let text = std::fs::read_to_string(format!("{prefix}_clat_hist.1.log")).unwrap();
    let fields: Vec<u64> = text.lines().next().unwrap().split(", ").map(|field| field.parse().unwrap()).collect();
    assert_eq!(fields.len(), 3 + 1856);
    assert_eq!(fields[3..].iter().sum::<u64>(), 256);
    let again = crate::aim(invocation(vec![logged])).err().unwrap();
    assert!(again.to_string().contains("_slat.1.log"), "{again}");
}

fn rows_of(text: &str) -> Vec<Vec<u64>> {
    text.lines().map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect()).collect()
}

/// Both logs of averages over 250 ms, below this prefix.
fn averaged(prefix: &str) -> StorageJob {
    job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pace.rate_iops[R] = Some(1000);
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(1_000_000_000);
        options.measure.iops_log = Some(prefix.to_owned());
        options.measure.bw_log = Some(prefix.to_owned());
        options.measure.log_average_ns = 250_000_000;
    })
}

#[test]
fn averaged_logs_have_a_row_a_window() {
    let dir = directory();
    let prefix = dir.path().join("p").display().to_string();
    let (writer, batches) = std::sync::mpsc::channel();
    let mut logs = Logs::new(&averaged(&prefix).options, "j", 0, &writer).unwrap();
    let begun = 7_000_000_000;
    logs.begin(begun);
    // One a millisecond, but none in the third window; the fourth has as many more, and the last is cut short.
    for ms in (0..500).chain(750..1000).chain(750..1000).chain(1000..1100) {
        let now = begun + ms * 1_000_000;
        logs.ended(&Ended { way: Way::Read, start_ns: now, issue_ns: now, now, bytes: 4096, offset: 0 }, true);
    }
    logs.finish(begun + 1_100_000_000);
    drop(writer);
    assert!(write_all(&batches).is_empty());
    let written = |kind| rows_of(&std::fs::read_to_string(format!("{prefix}_{kind}.1.log")).unwrap());
    let row = |(at, value): (u64, u64)| vec![at, value, 0, 0, 0];
    let ends = [(250, 1000), (500, 1000), (1000, 2000), (1100, 1000)];
    assert_eq!(written("iops"), ends.map(row));
    assert_eq!(written("bw"), ends.map(|(at, rate)| row((at, 4 * rate))));
}

#[test]
fn averaged_logs_of_a_run_hold_each_of_its_ios() {
    let dir = directory();
    let prefix = dir.path().join("p").display().to_string();
    let readings = run(vec![averaged(&prefix)]).unwrap();
    let text = std::fs::read_to_string(format!("{prefix}_iops.1.log")).unwrap();
    let mut ios = 0;
    for row in rows_of(&text) {
        // The last window ends with the run.
        let length_ms = if row[0] % 250 == 0 { 250 } else { row[0] % 250 };
        ios += (row[1] * length_ms + 500) / 1000;
        assert_eq!(row[2..], [0, 0, 0], "{text}");
    }
    assert_eq!(ios, readings.clones[0].ways[R].ios, "{text}");
}
