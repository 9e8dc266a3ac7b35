//! Time model and instance efficiency.

use super::Reader;
use super::part::Part;
use crate::draft::Reading;
use crate::number;
use assay_measure::plain::slug;
use assay_measure::record::PercentRow;

/// `Time Model Statistics`.
pub(super) fn model(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, reader.titles_max()).iter() {
        let Some(time) = table.ruler.find(&["(s)"], &["%"]) else {
            continue;
        };
        reader.table(table, "a row of the time model");
        for row in &table.rows {
            let name = row.cells[0].trim();
            let seconds = row.cells.get(time).and_then(|cell| number::suffixed(cell, number::Suffix::Decimal));
            let Some(printed) = seconds else {
                continue;
            };
            let us = printed.clone().scaled(1e6);
            let reading = |key: &str| Reading::new(row.at, key, us.clone()).name(name).again();
            let draft = &mut *reader.draft;
            match name {
                "DB time" => put!(draft, reading("db_time_us"), instance.time_model.db_time_us),
                "DB CPU" => put!(draft, reading("db_cpu_us"), instance.time_model.db_cpu_us),
                "background cpu time" => {
                    put!(draft, reading("bg_cpu_us"), instance.time_model.bg_cpu_us)
                }
                "background elapsed time" => {
                    put!(draft, reading("bg_elapsed_us"), instance.time_model.bg_elapsed_us)
                }
                "foreground waits" => {
                    put!(draft, reading("fg_wait_us"), instance.time_model.fg_wait_us)
                }
                "background waits" => {
                    put!(draft, reading("bg_wait_us"), instance.time_model.bg_wait_us)
                }
                "on thread" => put!(draft, reading("on_thread_us"), instance.time_model.on_thread_us),
                "run queue" => put!(draft, reading("run_queue_us"), instance.time_model.run_queue_us),
                "CPU inside waits" => {
                    put!(draft, reading("cpu_in_wait_us"), instance.time_model.cpu_in_wait_us)
                }
                "run delay of driver threads (kernel)" => {
                    put!(draft, reading("kernel_run_delay_us"), instance.time_model.kernel_run_delay_us);
                }
                "" => {}
                _ => {
                    let key = format!("time_model_{}_s", slug(name));
                    draft.alone(Reading::new(row.at, key, printed).name(name));
                }
            }
        }
    }
}

/// `Instance Efficiency Percentages`: two labels and shares on a line.
pub(super) fn efficiency(reader: &mut Reader<'_>, part: &Part<'_>) {
    for labelled in part.labelled() {
        let name = labelled.label;
        let [printed] = labelled.numbers.as_slice() else {
            continue;
        };
        // `% Non-Parse CPU` has its sign in front.
        if !name.contains('%') {
            continue;
        }
        let draft = &mut *reader.draft;
        let new = || PercentRow { name: name.clone(), ..PercentRow::default() };
        let rows = &mut draft.record.instance.efficiency;
        let Some(i) = super::row_of(rows, |row| row.name == name, new) else {
            return;
        };
        let key = format!("{}_pct", slug(&name));
        let reading = Reading::new(labelled.at, key, printed.clone()).name(&name);
        put!(draft, reading, instance.efficiency[i].value_pct);
    }
}
