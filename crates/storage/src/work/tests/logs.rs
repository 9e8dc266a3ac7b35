//! fio's log files.

use super::*;

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

#[test]
fn averaged_logs_have_a_row_a_window() {
    let dir = directory();
    let prefix = dir.path().join("p").display().to_string();
    run(vec![job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pace.rate_iops[R] = Some(1000);
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(1_000_000_000);
        options.measure.iops_log = Some(prefix.clone());
        options.measure.bw_log = Some(prefix.clone());
        options.measure.log_average_ns = 250_000_000;
    })])
    .unwrap();
    let text = std::fs::read_to_string(format!("{prefix}_iops.1.log")).unwrap();
    let rows: Vec<Vec<u64>> =
        text.lines().map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect()).collect();
    assert!((4..=5).contains(&rows.len()), "{text}");
    for (row, at) in rows[..4].iter().zip([250, 500, 750, 1000]) {
        assert_eq!(row[0], at);
        assert!((950..=1050).contains(&row[1]), "{text}");
        assert_eq!(row[2..], [0, 0, 0]);
    }
}
