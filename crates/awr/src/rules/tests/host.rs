//! The host and its limits: each rule fires and is silent.

use super::*;

#[test]
fn advice_r02_fires_on_full_cpus_with_a_queue() {
    let mut record = record();
    cpu(&mut record, "busy", 97.0);
    record.instance.time_model.run_queue_us = record.instance.time_model.db_time_us.scaled(0.06);
    assert_eq!(fires(&record, "R2").severity, "note");
    record.instance.time_model.run_queue_us = record.instance.time_model.db_time_us.scaled(0.12);
    assert_eq!(fires(&record, "R2").severity, "high");
    // The load alone will not do where the time without a CPU was counted.
    record.instance.time_model.run_queue_us = Figure::Count(0);
    record.os.load_end = vec![Figure::Decimal(7.0)];
    is_silent(&record, "R2");
    record.driver.thread_run_delay_s = 1.0.into();
    record.driver.threads_count = 1;
    record.interval.elapsed_s = 10.0.into();
    let said = fires(&record, "R2");
    assert!(said.text.contains("without a CPU for 10.0 % of their time"), "{}", said.text);
}

#[test]
fn advice_r02_is_silent_on_idle_cpus_and_on_full_ones_without_a_queue() {
    is_silent(&record(), "R2");
    let mut full = record();
    cpu(&mut full, "busy", 99.0);
    full.instance.time_model.run_queue_us = Figure::Count(0);
    is_silent(&full, "R2");
}

fn capped(value: &str) -> Record {
    let mut record = record();
    record.host.facts.push(Fact { name: "io_cap_vda_read_iops".to_owned(), value: value.to_owned() });
    record
}

#[test]
fn advice_r12_fires_within_three_percent_of_a_cap() {
    // The frozen run reads 6000 a second.
    let said = fires(&capped("6100 by blkio throttle of /load"), "R12");
    assert!(said.text.contains("blkio throttle of /load"), "{}", said.text);
    // The other limit is the one that is used up: both at once are no pin.
    let mut both = capped("6000 by io.max of /load");
    both.host
        .facts
        .push(Fact { name: "io_cap_vda_read_bytes".to_owned(), value: "50000000 by io.max of /load".to_owned() });
    is_silent(&both, "R12");
}

#[test]
fn advice_r12_is_silent_without_a_cap_or_far_from_it() {
    is_silent(&record(), "R12");
    is_silent(&capped("9000 by blkio throttle of /load"), "R12");
}

#[test]
fn advice_r21_fires_on_steal_throttling_and_a_hole_in_the_account() {
    let mut steal = record();
    cpu(&mut steal, "steal", 1.2);
    assert!(fires(&steal, "R21").text.contains("steal"));
    let mut capped = record();
    capped.os.cgroup_throttled_us = Figure::Count(500_000);
    assert!(fires(&capped, "R21").text.contains("throttled"));
    let mut hole = record();
    cpu(&mut hole, "idle", 20.0);
    assert!(fires(&hole, "R21").text.contains("missing from the account"));
}

#[test]
fn advice_r21_is_silent_on_a_quiet_host() {
    is_silent(&record(), "R21");
}

#[test]
fn advice_r02_of_an_import_judges_by_the_load() {
    let mut record = imported(&[]);
    record.os.cpu_pct.insert("busy".to_owned(), 99.7.into());
    record.os.cpus_count = 16_u64.into();
    assert!(lacks(&record, "R2"));
    record.os.load_end = vec![235.0.into()];
    let said = fires(&record, "R2");
    assert!(said.text.contains("99.7 % busy, load 14.7 per CPU"), "{}", said.text);
}

#[test]
fn advice_r21_judges_by_what_is_known() {
    let mut record = record();
    record.os.cpu_pct.remove("iowait");
    assert!(lacks(&record, "R21"));
    record.os.cgroup_throttled_us = Figure::Count(500_000);
    assert!(fires(&record, "R21").text.contains("throttled"));
    cpu(&mut record, "steal", 3.0);
    assert_eq!(fires(&record, "R21").severity, "high");
}

#[test]
fn advice_r35_is_silent_on_a_window_without_length() {
    let mut record = record();
    cpu(&mut record, "busy", 99.0);
    record.driver.thread_run_delay_s = 2.0.into();
    record.interval.elapsed_s = 0.0.into();
    assert_eq!(says(&record, "R35"), None);
}

/// Steal is time of the hypervisor: neither other work here nor the driver's own threads took it.
#[test]
fn advice_r35_names_the_hypervisor_where_it_withheld_the_cpu() {
    let mut record = record();
    for (column, pct) in [("busy", 99.0), ("steal", 60.0), ("idle", 1.0)] {
        cpu(&mut record, column, pct);
    }
    record.os.process.cpu_s =
        Figure::decimal(0.35 * record.interval.elapsed_s.value().unwrap() * record.os.cpus_count.value().unwrap());
    record.driver.thread_run_delay_s = 100.0.into();
    let said = says(&record, "R35").expect("threads waited");
    assert!(said.text.contains("the hypervisor withheld CPU time"), "{}", said.text);
    assert!(!said.text.contains("DRIVER_THREADS"), "{}", said.text);
}
