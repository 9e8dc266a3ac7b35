//! Fewer points that look the same: of every stretch its lowest and its highest value stay, each at its own instant.

/// Points a trace has at most; a screen has fewer columns.
pub(crate) const POINTS: usize = 1500;

/// Rows of one trace to draw, rising; none if all of them are few enough.
///
/// Of every bucket of neighbouring rows its lowest and highest value stay, and one row without a value where there is
/// one, so that a gap stays a gap. The first and the last row stay.
pub(crate) fn line(y: &[Option<f64>], most: usize) -> Option<Vec<usize>> {
    if y.len() <= most {
        return None;
    }
    let mut kept = vec![0];
    for (from, to) in buckets(y.len(), most.saturating_sub(2) / 3) {
        keep_extremes(&mut kept, from, &y[from..to]);
        kept.extend((from..to).find(|row| y[*row].is_none()));
    }
    Some(in_order(kept, y.len()))
}

/// Rows of traces that are stacked, which need the same rows: of every bucket the lowest and the highest sum, and the
/// highest value of each trace.
pub(crate) fn together(columns: &[&[Option<f64>]], most: usize) -> Option<Vec<usize>> {
    let rows = columns.iter().map(|column| column.len()).max()?;
    if rows <= most {
        return None;
    }
    let sums: Vec<Option<f64>> = (0..rows)
        .map(|row| {
            let values = columns.iter().filter_map(|column| *column.get(row)?);
            values.reduce(|a, b| a + b)
        })
        .collect();
    let mut kept = vec![0];
    for (from, to) in buckets(rows, most.saturating_sub(2) / (2 + columns.len())) {
        keep_extremes(&mut kept, from, &sums[from..to]);
        for column in columns {
            let values = &column[from.min(column.len())..to.min(column.len())];
            kept.extend(highest(values).map(|row| from + row));
        }
    }
    Some(in_order(kept, rows))
}

/// The bounds of so many stretches of about equal length, at least one.
pub(crate) fn buckets(rows: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = count.clamp(1, rows.max(1));
    (0..count).map(move |nth| (nth * rows / count, (nth + 1) * rows / count))
}

fn keep_extremes(kept: &mut Vec<usize>, from: usize, values: &[Option<f64>]) {
    kept.extend(lowest(values).map(|row| from + row));
    kept.extend(highest(values).map(|row| from + row));
}

fn lowest(values: &[Option<f64>]) -> Option<usize> {
    let known = values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row)
}

fn highest(values: &[Option<f64>]) -> Option<usize> {
    let known = values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row)
}

fn in_order(mut kept: Vec<usize>, rows: usize) -> Vec<usize> {
    kept.extend(rows.checked_sub(1));
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_single_spike_second_of_a_day_survives_with_its_instant() {
        for spike in [0, 1, 43_210, 86_398, 86_399] {
            let mut y = vec![Some(100.0); 86_400];
            y[spike] = Some(90_000.0);
            let rows = line(&y, POINTS).expect("a day is too many rows");
            assert!(rows.len() <= POINTS, "{} rows", rows.len());
            assert!(rows.contains(&spike), "the spike at {spike} is lost");
            let mut down = vec![Some(100.0); 86_400];
            down[spike] = Some(0.0);
            let rows = line(&down, POINTS).expect("a day is too many rows");
            assert!(rows.contains(&spike), "the dip at {spike} is lost");
        }
    }

    #[test]
    fn a_spike_of_one_stacked_trace_survives_where_the_sum_shows_nothing() {
        let low = vec![Some(1.0); 86_400];
        let (mut thin, mut thick) = (low.clone(), vec![Some(100.0); 86_400]);
        thin[777] = Some(50.0);
        thick[777] = Some(51.0);
        let rows = together(&[&low, &thin, &thick], POINTS).expect("too many rows");
        assert!(rows.len() <= POINTS);
        assert!(rows.contains(&777));
    }

    #[test]
    fn few_rows_stay_as_they_are_and_a_gap_stays_a_gap() {
        assert_eq!(line(&vec![Some(1.0); 1500], POINTS), None);
        assert_eq!(together(&[], POINTS), None);
        let mut y = vec![Some(1.0); 5000];
        y[3000] = None;
        let rows = line(&y, POINTS).expect("too many rows");
        assert!(rows.contains(&3000));
    }

    proptest! {
        #[test]
        fn extremes_survive_and_rows_rise(y in prop::collection::vec(prop::option::of(-1e9..1e9_f64), 0..4000)) {
            let Some(rows) = line(&y, 300) else {
                prop_assert!(y.len() <= 300);
                return Ok(());
            };
            prop_assert!(rows.len() <= 300);
            prop_assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
            let of = |rows: &mut dyn Iterator<Item = usize>| {
                let known: Vec<f64> = rows.filter_map(|row| y[row]).collect();
                let low = known.iter().copied().fold(f64::INFINITY, f64::min);
                (low, known.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            };
            prop_assert_eq!(of(&mut rows.iter().copied()), of(&mut (0..y.len())));
        }
    }
}
