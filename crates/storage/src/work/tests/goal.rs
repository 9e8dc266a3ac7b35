//! `latency_target` on real files: what is measured, and what is told.

use super::*;

fn searched(change: impl FnOnce(&mut JobOptions)) -> Result<StorageReadings, EngineError> {
    let (_dir, path) = file(1 << 20);
    run(vec![job(|options| {
        reads(&path)(options);
        options.engine = IoEngine::IoUring;
        options.pace.depth = 16;
        options.pace.latency.target_ns = Some(60 * NS_PER_S);
        options.pace.latency.window_ns = 50_000_000;
        change(options);
    })])
}

#[test]
fn the_search_is_no_part_of_the_figures_and_repeats_the_amount() {
    let readings = searched(|_| {}).unwrap();
    let clone = &readings.clones[0];
    let search = clone.search.unwrap();
    // 1, 2, 4, 8 and 16, which is all there is; then one more window.
    assert_eq!((search.depth, search.windows), (16, 5));
    assert!(search.searched_ns >= 5 * 50_000_000);
    assert!(clone.runtime_ns >= 50_000_000 && clone.runtime_ns + search.searched_ns <= readings.elapsed_ns);
    assert_eq!((search.ios, search.slow_ios), (clone.ways[R].ios, 0));
    // All of it at the depth that was found.
    assert_eq!(clone.depths[depth_slot(16)], clone.ways[R].ios, "{:?}", clone.depths);
    assert_eq!(clone.in_flight_ns, u128::from(clone.ways[R].lat.histogram.sum_ns()));
}

#[test]
fn a_target_that_nothing_keeps_is_measured_at_depth_1_and_told() {
    let readings = searched(|options| {
        options.pace.latency.target_ns = Some(1);
        options.pace.latency.percentile = 50.0;
    })
    .unwrap();
    let clone = &readings.clones[0];
    let search = clone.search.unwrap();
    assert_eq!((search.depth, search.windows), (1, 1));
    assert_eq!((search.ios, search.slow_ios), (clone.ways[R].ios, clone.ways[R].ios));
    assert_eq!(clone.depths[0], clone.ways[R].ios);
    assert_eq!(clone.error, 0);
}

#[test]
fn a_target_that_all_have_to_keep_fails_as_in_fio_where_depth_1_misses_it() {
    let readings = searched(|options| options.pace.latency.target_ns = Some(1)).unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.error, 110);
    let text = clone.error_text.as_deref().unwrap();
    assert!(text.contains("latency_percentile=100 allows none"), "{text}");
}

#[test]
fn latency_run_measures_all_of_it_and_ends_with_the_job() {
    let readings = searched(|options| {
        options.pace.latency.adapts = true;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(NS_PER_S / 2);
    })
    .unwrap();
    let clone = &readings.clones[0];
    assert!(clone.runtime_ns >= NS_PER_S / 2);
    let search = clone.search.unwrap();
    // It doubles with each window that keeps the target; how many there are in half a second is the host's affair.
    assert_eq!(search.depth, 1 << search.windows.min(4), "{search:?}");
    assert!(clone.depths[0] > 0, "{:?}", clone.depths);
}

#[test]
fn the_time_of_the_job_bounds_its_search_and_something_is_measured() {
    let readings = searched(|options| {
        options.pace.latency.window_ns = 200_000_000;
        options.pace.runtime_ns = Some(300_000_000);
    })
    .unwrap();
    let clone = &readings.clones[0];
    let search = clone.search.unwrap();
    // A second window does not fit; a host that was busy elsewhere may have had no time to judge the first.
    assert!(search.depth == 1 && search.windows <= 1, "{search:?}");
    assert!(clone.ways[R].ios > 0);
    assert!(clone.runtime_ns >= 200_000_000 && clone.runtime_ns + search.searched_ns <= readings.elapsed_ns);
}
