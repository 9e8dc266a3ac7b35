use crate::record::build;
use assay_measure::record::{Figure, Record, RequestLayers};
use assay_measure::snapshot::RunData;
use assay_testkit::fixtures;

fn row<'a>(record: &'a Record, request: &str) -> &'a RequestLayers {
    record.instance.layers.iter().find(|row| row.request == request).unwrap_or_else(|| panic!("no row {request}"))
}

fn rounded(figure: &Figure) -> Option<f64> {
    figure.value().map(|value| (value * 10.0).round() / 10.0)
}

/// Changes the device's readings at the end of the window.
fn with_disk(change: impl Fn(&mut assay_measure::snapshot::DiskReading)) -> RunData {
    let mut run = fixtures::run();
    change(&mut run.end.host.disks[0]);
    run
}

#[test]
fn the_same_reads_are_shown_at_three_layers_with_the_share_lost() {
    let record = build(&fixtures::run());
    let read = row(&record, "single-block read");
    assert_eq!(read.event, "db file sequential read");
    for layer in [&read.engine, &read.syscall, &read.device] {
        assert_eq!(layer.count, Figure::Count(120_000), "{}", layer.layer);
    }
    assert_eq!(rounded(&read.engine.latency.us_avg), Some(500.0));
    assert_eq!(rounded(&read.syscall.latency.us_avg), Some(480.0));
    assert_eq!(rounded(&read.device.latency.us_avg), Some(450.0));
    assert_eq!(rounded(&read.lost_above_syscall_pct), Some(4.0));
    assert_eq!(rounded(&read.lost_above_device_pct), Some(6.3));
    assert_eq!(rounded(&read.lost_total_pct), Some(10.0));
    assert_eq!(read.device.latency.us_p99, Figure::na("unknowable"));
    assert_eq!(read.notes, Vec::<String>::new());
    assert_eq!(read.syscall.latency.hist_ns.count(), 120_000);
}

#[test]
fn a_batched_wait_has_no_share_in_its_requests() {
    let record = build(&fixtures::run());
    let write = row(&record, "data write");
    assert!(write.is_batched);
    assert_eq!(write.lost_above_syscall_pct.value(), None);
    assert!(write.notes[0].contains("25.0 requests"), "{:?}", write.notes);
    // Their own time is still compared with the device.
    assert_eq!(write.lost_above_device_pct, write.lost_total_pct);
    assert!(write.lost_total_pct.value().is_some());
}

#[test]
fn kinds_that_are_few_are_not_compared_with_the_device() {
    let record = build(&fixtures::run());
    let log = row(&record, "log write");
    assert!(log.device.latency.us_avg.reason().is_some());
    assert_eq!(log.lost_total_pct.value(), None);
    assert_eq!(rounded(&log.lost_above_syscall_pct), Some(1.3));
}

#[test]
fn a_mixed_direction_gets_a_row_of_all_its_requests() {
    let mut run = fixtures::run();
    for snapshot in [&mut run.begin, &mut run.end] {
        let requests = &mut snapshot.stats.requests;
        let mut direct = requests[0].clone();
        direct.event = "direct path read".to_owned();
        requests.push(direct);
    }
    let record = build(&run);
    let all = row(&record, "all reads");
    assert_eq!(all.syscall.count, Figure::Count(240_000));
    assert_eq!(all.engine.latency.us_avg.reason(), Some("several events"));
    let single = row(&record, "single-block read");
    assert_eq!(single.lost_total_pct.value(), None);
    assert_eq!(rounded(&single.lost_above_syscall_pct), Some(4.0));
    assert!(record.instance.layers.iter().all(|row| row.request != "all writes"));
}

#[test]
fn a_flush_belongs_to_the_time_of_the_writes() {
    let plain = build(&fixtures::run());
    let flushed = build(&with_disk(|disk| {
        disk.flushes += 200;
        disk.flush_ns += 10_220 * 100_000;
    }));
    let mean = |record: &Record| row(record, "data write").device.latency.us_avg.value().unwrap();
    assert!((mean(&flushed) - mean(&plain) - 100.0).abs() < 0.1);
    let notes = &row(&flushed, "data write").notes;
    assert!(notes.iter().any(|note| note.contains("200 flushes")), "{notes:?}");
}

#[test]
fn reads_from_the_page_cache_lose_nothing_to_a_device() {
    let begin = fixtures::run().begin.host.disks[0].clone();
    let record = build(&with_disk(|disk| {
        disk.reads = begin.reads + 100;
        disk.read_bytes = begin.read_bytes + 100 * 8192;
        disk.read_ns = begin.read_ns + 100_000_000;
    }));
    let read = row(&record, "single-block read");
    assert_eq!(read.lost_total_pct, Figure::na("page cache"));
    assert_eq!(read.device.count, Figure::Count(100));
    assert!(read.notes[0].contains("completed 100 read requests"), "{:?}", read.notes);
    assert!(read.notes[0].contains("page cache"), "{:?}", read.notes);
}

#[test]
fn requests_of_others_are_shown_with_both_counts() {
    let record = build(&with_disk(|disk| {
        disk.reads += 30_000;
        disk.read_bytes += 30_000 * 8192;
    }));
    let read = row(&record, "single-block read");
    let note = &read.notes[0];
    assert!(note.contains("150000") && note.contains("120000"), "{note}");
    assert!(note.contains("other programs also use the device"), "{note}");
    assert!(read.lost_total_pct.value().is_some());
}

#[test]
fn split_requests_are_told_from_those_of_others() {
    let record = build(&with_disk(|disk| disk.reads += 120_000));
    let note = &row(&record, "single-block read").notes[0];
    assert!(note.contains("split or merged"), "{note}");
}

#[test]
fn several_devices_are_added_up_by_name() {
    let mut run = fixtures::run();
    for snapshot in [&mut run.begin, &mut run.end] {
        let disks = &mut snapshot.host.disks;
        let mut second = disks[0].clone();
        second.name = "vdb".to_owned();
        // Each does half of the reads.
        for disk in [&mut disks[0], &mut second] {
            disk.reads /= 2;
            disk.read_bytes /= 2;
            disk.read_ns /= 2;
        }
        disks.push(second);
    }
    let record = build(&run);
    let read = row(&record, "single-block read");
    assert_eq!(read.device.count, Figure::Count(120_000));
    assert_eq!(rounded(&read.device.latency.us_avg), Some(450.0));
    assert_eq!(read.notes, ["device figures are sums over vda, vdb"]);
}

#[test]
fn without_a_device_the_ring_is_the_last_layer() {
    let mut run = fixtures::run();
    run.begin.host.disks.clear();
    run.end.host.disks.clear();
    let record = build(&run);
    let read = row(&record, "single-block read");
    let reason = Some("no block device under the data");
    assert_eq!(read.device.count.reason(), reason);
    assert_eq!(read.lost_above_device_pct.reason(), reason);
    assert_eq!(rounded(&read.lost_above_syscall_pct), Some(4.0));
}

#[test]
fn a_run_without_timed_requests_has_no_layers() {
    let mut run = fixtures::run();
    for snapshot in [&mut run.begin, &mut run.end] {
        snapshot.stats.requests.clear();
    }
    let record = build(&run);
    assert!(record.instance.layers.is_empty());
    assert!(crate::testing::text(&record).contains("Latency by Layer\n~~~~~~~~~~~~~~~~\nn/a ("));
}

#[test]
fn a_scan_is_given_in_both_units_and_with_its_cpu() {
    let mut run = fixtures::run();
    let mib = 20 * 1000;
    for (snapshot, n) in [(&mut run.begin, 0), (&mut run.end, mib)] {
        snapshot.stats.add(assay_measure::counter_catalog::TABLE_SCANS, n / 1000);
        snapshot.stats.add(assay_measure::counter_catalog::SCAN_BLOCKS, n * 128);
        snapshot.stats.io.push(assay_measure::snapshot::IoReading {
            function: "Direct Reads".to_owned(),
            file_type: "Data File".to_owned(),
            large_read_requests: n,
            read_bytes: n << 20,
            ..Default::default()
        });
    }
    let record = build(&run);
    assert_eq!(record.instance.scan.scans_count, Figure::Count(20));
    assert_eq!(record.instance.scan.direct_requests_count, Figure::Count(mib));
    assert_eq!(rounded(&record.instance.scan.direct_mib_per_s), Some(1000.0));
    assert_eq!(rounded(&record.instance.scan.direct_mb_per_s), Some(1048.6));
    let text = crate::testing::text(&record);
    assert!(text.contains("MiB/s (2^20)"), "{text}");
    assert!(text.contains("1,000.0"), "{text}");
    let reason = record.instance.scan.cpu_per_gb_s.reason();
    assert_eq!(reason, Some("other operations ran too"));
    // The process's CPU of the window over what was read: 15.6 s over 20.97 GB.
    run.begin.driver.ops.clear();
    run.end.driver.ops.clear();
    let cpu = build(&run).instance.scan.cpu_per_gb_s.value().unwrap();
    assert!((cpu - 15.6 / 20.97).abs() < 0.01, "{cpu}");
}
