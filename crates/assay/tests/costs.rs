//! What reading a file costs: memory in proportion to its size, and work too, whatever is in it.
//!
//! Nothing is timed: requests for memory and their bytes are counted, at one size and at four times that.

#[path = "../../block/tests/counting/mod.rs"]
mod counting;

use assay_awr::recover::{Header, SERIES_SCHEMA, recover};
use assay_import::{COST, Source, import_all};
use assay_measure::series::SeriesWriter;
use assay_measure::snapshot::{Mark, Snapshot};
use assay_run::bounded;
use assay_storage::language::{World, parse};
use counting::{Counting, Counts, cost_of};
use std::io::Cursor;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;
const SIZES: [usize; 2] = [MIB, 4 * MIB];

/// A text of so many bytes, made of a unit as often as it fits between two ends.
fn filled(begin: &str, unit: impl Fn(usize) -> String, end: &str, bytes: usize) -> String {
    let mut text = begin.to_owned();
    for n in 0.. {
        let unit = unit(n);
        if text.len() + unit.len() + end.len() > bytes {
            break;
        }
        text.push_str(&unit);
    }
    text + end
}

/// Four times the text takes four times the work: nothing goes through all of it for each part of it.
fn is_linear(name: &str, small: Counts, large: Counts) {
    for (what, small, large) in [("requests", small.requests, large.requests), ("bytes", small.bytes, large.bytes)] {
        assert!(large <= 5 * small + 1000, "{name}: {small} {what} for one size, {large} for four times that");
    }
}

/// What an import costs besides its text, and how many values it has read; `None` where it was refused.
fn imported(text: &str) -> (Counts, Option<usize>, String) {
    let source = Source { path: "f".to_owned(), text: text.to_owned() };
    let (counts, (values, why)) = cost_of(|| {
        let (mut values, mut why) = (None, String::new());
        for one in import_all(vec![source]) {
            match one.result {
                Ok(record) => *values.get_or_insert(0) += record.import.map_or(0, |info| info.values.len()),
                Err(error) => why = error.to_string(),
            }
        }
        (values, why)
    });
    (counts, values, why)
}

#[test]
fn a_text_that_is_no_report_costs_eight_times_its_size_whatever_it_consists_of() {
    for (name, unit, said) in [
        ("line ends", "\n", "lines have fewer than 12 bytes on average"),
        ("short lines", "0123456789\n", "lines have fewer than 12 bytes on average"),
        ("the shortest lines", "0123456789ab\n", "not recognised"),
        ("lines left out", "[ redacted ]\n", "not recognised"),
        ("quoted mail", "> > > > > > \u{201c}\n", "not recognised"),
        ("one line", "0123456789 ", "not recognised"),
        ("tables of tabs", "a word\tanother\t12\n", "not recognised"),
    ] {
        let costs = SIZES.map(|size| {
            let text = filled("", |_| unit.to_owned(), "", size);
            let (counts, values, why) = imported(&text);
            assert!(values.is_none() && why.contains(said), "{name}: {why}");
            // The text itself was there before.
            let peak = counts.peak as usize + text.len();
            assert!(peak <= COST as usize * text.len(), "{name}: {peak} bytes for {}", text.len());
            counts
        });
        is_linear(name, costs[0], costs[1]);
    }
}

/// Jobs of a report that alternate two groups, the next worst to a group for each.
fn jobs(groups: usize) -> impl Fn(usize) -> String {
    let fio = include_str!("../../../testdata/import/fio-3.33-mixed.json");
    let fio: serde_json::Value = serde_json::from_str(fio).expect("JSON");
    let mut job = fio["jobs"][0].clone();
    job["write"] = serde_json::json!({});
    move |n| {
        let mut job = job.clone();
        job["jobname"] = format!("job{n}").into();
        job["groupid"] = (n % groups).into();
        format!("{},\n", serde_json::to_string_pretty(&job).expect("JSON"))
    }
}

#[test]
fn a_report_costs_what_its_record_holds_besides_and_its_parts_are_not_compared_with_each_other() {
    // What is put down of a value, and what a record takes at most before it is refused, bytes.
    const VALUE: usize = 3 * 1024;
    const MOST: usize = 192 * MIB;
    // Smaller ones than the others: whoever makes records takes long where no optimiser was.
    const SIZES: [usize; 2] = [MIB / 2, 2 * MIB];
    let fio = "{\n\"fio version\" : \"fio-3.33\",\n\"jobs\" : [\n";
    let vmstat = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   \
                  buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";
    let rate = "  read: IOPS=29.0k, BW=113MiB/s\n";
    let row = |_| " 1  0      0 123456  12345 1234567    0    0     1    21   45   34  3  2 90  1  0\n".to_owned();
    let runs = include_str!("../../../testdata/import/fio-3.33-mixed.txt");
    let announced = format!("a: (groupid=0, jobs=1): err= 0\n{rate}");
    let progress = "progress: 1.0 s, 626.9 tps, lat 6.231 ms stddev 6.929, 0 failed\n";
    type Shape<'a> = (&'a str, &'a str, Box<dyn Fn(usize) -> String + 'a>, &'a str);
    let shapes: [Shape<'_>; 9] = [
        ("jobs of two groups", fio, Box::new(jobs(2)), "{}]\n}\n"),
        ("jobs of a group each", fio, Box::new(jobs(usize::MAX)), "{}]\n}\n"),
        ("empty jobs", fio, Box::new(|n| if n % 12 == 0 { "{},\n".to_owned() } else { "{},".to_owned() }), "{}]\n}\n"),
        ("members", fio, Box::new(|n| format!("{}\"{n:07}\":1\n", if n == 0 { "{" } else { "," })), "}]\n}\n"),
        ("steps", vmstat, Box::new(row), ""),
        ("runs", "", Box::new(|_| runs.to_owned()), ""),
        ("bare jobs", rate, Box::new(|n| format!("j{n}: (groupid={n}, jobs=1): err= 0\n")), ""),
        ("announced jobs", &announced, Box::new(|n| format!("j{n}: (g=0): rw=read\n")), ""),
        ("a series each", progress, Box::new(|n| format!("progress: {n}.0 s, 1 a{n}\n")), ""),
    ];
    for (name, begin, unit, end) in &shapes {
        let costs = SIZES.map(|size| {
            // A record for each run takes its time.
            let size = if *name == "runs" { size / 8 } else { size };
            let text = filled(begin, unit, end, size);
            let (counts, values, why) = imported(&text);
            let peak = counts.peak as usize + text.len();
            let most = 2 * COST as usize * text.len() + values.map_or(MOST, |values| VALUE * values);
            assert!(peak <= most, "{name}: {peak} bytes for {} and {values:?} values: {why}", text.len());
            counts
        });
        is_linear(name, costs[0], costs[1]);
    }
}

#[test]
fn a_crafted_record_costs_eight_times_its_size_and_what_a_small_one_may() {
    const SMALL: usize = 256 * MIB;
    let values = "{\"schema\":\"assay/2\",\"provenance\":{\"values\":[";
    let value = |n: usize| {
        format!(
            "{{\"key\":\"k{n}\",\"scope\":\"a job of some name\",\"value\":{n},\"rounding\":0.5,\"name\":\"n\",\
             \"layer\":\"syscall\",\"at\":\"/parts/storage/jobs/1/ways/0\",\"printed\":\"{n}\",\"file\":0,\"line\":{n}}},"
        )
    };
    let old = "{\"schema\":\"assay/1\",\"x\":[";
    let jobs = "{\"schema\":\"assay/2\",\"kind\":\"storage\",\"parts\":{\"storage\":{\"jobs\":[";
    type Unit<'a> = &'a dyn Fn(usize) -> String;
    let series = "{\"schema\":\"assay/2\",\"series\":{\"metrics\":{\"a\":[";
    let shapes: [(&str, &str, Unit<'_>, &str, bool); 7] = [
        ("figures not available", series, &|_| "{\"na\":\"\"},".to_owned(), "0]}}}", true),
        ("values", values, &value, "{}]}}", true),
        (
            "words",
            "{\"schema\":\"assay/2\",\"warnings\":[",
            &|_| "\"a sentence of some words\",".to_owned(),
            "\"\"]}",
            true,
        ),
        ("empty values", values, &|_| "{},".to_owned(), "{}]}}", false),
        ("empty jobs", jobs, &|_| "{},".to_owned(), "{}]}}}", false),
        ("numbers", "{\"schema\":\"assay/2\",\"series\":{\"t_s\":[", &|_| "0,".to_owned(), "0]}}", false),
        ("of an earlier schema", old, &|_| "0,".to_owned(), "0]}", false),
    ];
    for (name, begin, unit, end, is_read) in shapes {
        let costs = SIZES.map(|size| {
            let text = filled(begin, unit, end, size);
            let (counts, read) = cost_of(|| assay_report::json::read(&text).map_err(|error| error.to_string()));
            let peak = counts.peak as usize + text.len();
            assert!(peak <= COST as usize * text.len() + SMALL, "{name}: {peak} bytes for {}", text.len());
            assert!(!is_read || read.is_ok(), "{name}: {:?}", read.err());
            counts
        });
        is_linear(name, costs[0], costs[1]);
    }
}

#[test]
fn a_file_of_settings_prices_or_jobs_costs_a_fixed_part_and_a_fixed_multiple() {
    const TIMES: usize = 64;
    const FIXED: usize = 32 * MIB;
    let settings = |size| filled("", |n| format!("a{n}=1\n"), "", size);
    let sections = |size| filled("[global]\nbssplit=4k/50:8k\n", |n| format!("[j{n}]\n"), "", size);
    type Read<'a> = &'a dyn Fn(&'static str);
    type Text<'a> = &'a dyn Fn(usize) -> String;
    let readers: [(&str, Text<'_>, Read<'_>); 3] = [
        ("settings", &settings, &|text| drop(assay_measure::config::parse("f", text.as_bytes()))),
        ("prices", &settings, &|text| drop(assay_report::cost::parse("f", text))),
        ("jobs", &sections, &|text| {
            let world = World { read_file: &|_| Ok(text.to_owned()), ..World::here() };
            drop(parse(&["f".to_owned()], &world));
        }),
    ];
    for (name, text, read) in readers {
        // Their limit is 1 MiB.
        let costs = [MIB / 4, MIB].map(|size| {
            let text: &'static str = text(size).leak();
            let (counts, ()) = cost_of(|| read(text));
            let peak = counts.peak as usize + size;
            assert!(peak <= TIMES * size + FIXED, "{name}: {peak} bytes for {size}");
            counts
        });
        is_linear(name, costs[0], costs[1]);
    }
}

#[test]
fn a_file_is_read_into_the_room_that_it_needs() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    for size in SIZES {
        std::fs::write(&path, vec![b'x'; size]).expect("written");
        let (counts, read) = cost_of(|| bounded::text(&path, bounded::RECORD).expect("read"));
        assert_eq!(read.len(), size);
        assert!(counts.peak as usize <= size + 4096 && counts.requests < 16, "{counts:?}");
    }
}

#[test]
fn a_series_of_bare_seconds_costs_a_row_for_each() {
    let header = Header { schema: SERIES_SCHEMA.to_owned(), run: assay_testkit::fixtures::run() };
    let costs = SIZES.map(|size| {
        let mut text = serde_json::to_string(&header).expect("JSON") + "\n";
        let mut writer = SeriesWriter::new("run");
        for second in 0.. {
            let mark = if second == 0 { Mark::Gate } else { Mark::Second };
            let line = writer.line(mark, &Snapshot { at_ns: second * 1_000_000_000, ..Snapshot::default() });
            if text.len() + line.len() > size {
                break;
            }
            text.push_str(&line);
        }
        let (counts, recovered) = cost_of(|| recover(Cursor::new(&text)).map(|found| found.data.begin.at_ns));
        assert!(recovered.is_ok(), "it is read");
        let peak = counts.peak as usize;
        assert!(peak <= COST as usize * size, "{peak} bytes for {size}");
        counts
    });
    is_linear("series", costs[0], costs[1]);
}
