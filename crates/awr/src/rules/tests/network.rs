//! The network: each rule fires and is silent.

use super::*;

#[test]
fn advice_r23_network_part_of_a_remote_call() {
    // Published: 2.532 ms, of which 1.888 ms disk write: 0.644 ms network.
    let record = imported(&[("redo_transport_us_avg", 2532.0), ("redo_transport_disk_write_us_avg", 1888.0)]);
    let said = fires(&record, "R23");
    assert!(said.text.contains("25 % of a remote call: 644 us of 2,532 us"), "{}", said.text);
    assert!(said.text.contains("a faster disk on the remote side helps more"), "{}", said.text);
    let network = imported(&[("redo_transport_us_avg", 2532.0), ("redo_transport_disk_write_us_avg", 800.0)]);
    assert!(fires(&network, "R23").text.contains("before you buy a faster disk"));
    let disk = imported(&[("redo_transport_us_avg", 2532.0), ("redo_transport_disk_write_us_avg", 2100.0)]);
    is_silent(&disk, "R23");
    assert!(lacks(&imported(&[("redo_transport_us_avg", 600.0)]), "R23"));
    is_silent(&build(&fixtures::run()), "R23");
}

#[test]
fn advice_r23_takes_the_average_and_not_the_first_second() {
    let mut record = imported(&[("redo_transport_us_avg", 2532.0), ("redo_transport_disk_write_us_avg", 2500.0)]);
    let info = record.import.as_mut().expect("an import");
    for (key, us) in [("redo_transport_us_avg", 1708.0), ("redo_transport_disk_write_us_avg", 1025.0)] {
        let first = assay_measure::record::ImportedValue {
            key: key.to_owned(),
            scope: "1 s".to_owned(),
            value: Figure::decimal(us),
            ..Default::default()
        };
        info.values.insert(0, first);
    }
    is_silent(&record, "R23");
}
