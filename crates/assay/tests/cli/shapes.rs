//! The shape of the work against published load profiles: what one operation of the
//! original costs in rows, block changes, gets and redo, whatever the machine.

use crate::common::{Place, with};

const DATA: &[&str] = &["--set", "SCALE=10000", "--set", "REDO_LOG_MB=64", "--set", "UNDO_MB=16"];
const UPDATES: u64 = 300;

/// What one operation came to.
struct Shape(serde_json::Value);

impl Shape {
    /// So much of a counter per operation.
    fn per_op(&self, key: &str) -> f64 {
        let row = &self.0["instance"]["stats"][key];
        let total = row["whole_run_total"].as_f64();
        total.unwrap_or_else(|| panic!("{key}: {row}")) / UPDATES as f64
    }

    fn within(&self, key: &str, least: f64, most: f64) {
        let found = self.per_op(key);
        assert!((least..=most).contains(&found), "{key}: {found} per operation");
    }
}

fn prepared() -> Place {
    let place = Place::new();
    place.assay(&with(&["prepare", "-s", "1"], DATA)).code(0);
    place
}

/// UPDATES operations of one session with the original's rules and WORK_UNIT=64.
fn operations(place: &Place, settings: &[&str]) -> Shape {
    let count = format!("WORK_LOOP={UPDATES}");
    let args = [
        "run",
        "-s",
        "1",
        "--format",
        "json",
        "--set",
        &count,
        "--set",
        "COMPAT=slob253",
        "--set",
        "WORK_UNIT=64",
        "--set",
        "SCALE=10000",
    ];
    let ran = place.assay(&with(&args, settings)).code(0);
    Shape(serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out)))
}

#[test]
fn identity_i33_a_select_gets_its_rows_and_two_or_three_index_blocks() {
    let shape = operations(&prepared(), &["--set", "UPDATE_PCT=0"]);
    shape.within("execute_count", 1.0, 1.0);
    shape.within("table_rows_visited_count", 63.0, 63.0);
    // Root, branch and leaf; about an eighth of the ranges reach into the next leaf.
    shape.within("consistent_gets_index_blocks", 2.0, 3.2);
    shape.within("session_logical_reads_blocks", 65.0, 66.2);
}

#[test]
fn identity_i34_an_update_has_the_published_shape() {
    let place = prepared();
    // Through undo, cache and log files alike, however small the cache is.
    for cache in ["CACHE_MB=64", "CACHE_MB=2"] {
        let shape = operations(&place, &["--set", "UPDATE_PCT=100", "--set", cache]);
        shape.within("user_commits_count", 1.0, 1.0);
        shape.within("table_rows_visited_count", 63.0, 63.0);
        shape.within("table_rows_changed_count", 63.0, 63.0);
        shape.within("db_block_changes_count", 129.0, 133.0);
        shape.within("redo_size_bytes", 51_700.0 * 0.98, 51_700.0 * 1.02);
        shape.within("session_logical_reads_blocks", 75.0, 81.0);
    }
}

#[test]
fn shape_heavy_redo_is_about_5300_bytes_a_row() {
    let shape = operations(&prepared(), &["--set", "UPDATE_PCT=100", "--set", "REDO_STRESS=HEAVY"]);
    let row = shape.per_op("redo_size_bytes") / shape.per_op("table_rows_changed_count");
    assert!((5_250.0..=5_350.0).contains(&row), "{row} bytes a row");
    // 2,592 bytes of undo a row: 2,432 of old columns and 160 around them.
    shape.within("undo_change_vector_size_bytes", 63.0 * 2592.0, 63.0 * 2592.0);
}
