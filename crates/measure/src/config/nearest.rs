//! "Did you mean": the known name closest to a misspelt one.

/// The candidate with the fewest edits from `name`, if they are few enough to
/// be a slip: a third of the name's letters, at least two.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_uppercase().chars().take(64).collect();
    let limit = (wanted.len() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| {
            let known: Vec<char> = candidate.to_uppercase().chars().collect();
            (distance(&wanted, &known), candidate)
        })
        .filter(|(edits, candidate)| *edits <= limit && *edits < candidate.len())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two names
/// (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (above[j] + usize::from(x != y))
                .min(above[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["UPDATE_PCT", "SCAN_PCT", "WORK_UNIT", "UPDATE_WORK_UNIT"];

    #[test]
    fn a_slip_finds_its_name() {
        let near = |name| nearest(name, NAMES.iter().copied());
        assert_eq!(near("PDATE_PCT"), Some("UPDATE_PCT"));
        assert_eq!(near("UPDATEPCT"), Some("UPDATE_PCT"));
        assert_eq!(near("work_unti"), Some("WORK_UNIT"));
        assert_eq!(near("update_pct"), Some("UPDATE_PCT"));
        assert_eq!(near("PATH"), None);
        assert_eq!(near(""), None);
    }
}
