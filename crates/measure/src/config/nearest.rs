//! "Did you mean": the known name closest to a misspelt one.

/// The candidate with the fewest edits from `name`, if they are few enough to
/// be a slip: a third of the name's letters, at least two.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_uppercase().chars().take(64).collect();
    let mut rows = Rows::default();
    let mut limit = (wanted.len() / 3).max(2);
    let mut nearest = None;
    for candidate in candidates {
        let edits = rows.distance(&wanted, candidate, limit);
        if let Some(edits) = edits.filter(|edits| *edits < candidate.len()) {
            nearest = Some(candidate);
            // The next one has to be nearer still.
            match edits.checked_sub(1) {
                Some(fewer) => limit = fewer,
                None => break,
            }
        }
    }
    nearest
}

/// The letters of a name, a bit each; some share one.
fn letters(name: &[char]) -> u64 {
    name.iter().fold(0, |all, letter| all | 1 << (u32::from(*letter) % 64))
}

/// More than any distance.
const FAR: usize = usize::MAX / 2;

/// Three rows of the table of distances, and the letters it is for, used again for each candidate.
#[derive(Default)]
struct Rows {
    known: Vec<char>,
    before: Vec<usize>,
    above: Vec<usize>,
    row: Vec<usize>,
}

impl Rows {
    /// Insertions, deletions, replacements and swaps of neighbours between two names
    /// (optimal string alignment), the second in whichever case; `None` above `limit`.
    fn distance(&mut self, a: &[char], b: &str, limit: usize) -> Option<usize> {
        self.known.clear();
        self.known.extend(b.chars().map(|letter| letter.to_ascii_uppercase()));
        let Self { known: b, before, above, row } = self;
        // Each letter that one of them has and the other has not costs an edit; most candidates are told apart by that.
        let (in_a, in_b) = (letters(a), letters(b));
        let missing = (in_a & !in_b).count_ones().max((in_b & !in_a).count_ones()) as usize;
        if a.len().abs_diff(b.len()).max(missing) > limit {
            return None;
        }
        above.clear();
        above.extend(0..=b.len());
        for (i, x) in a.iter().enumerate() {
            row.clear();
            row.resize(b.len() + 1, FAR);
            row[0] = i + 1;
            // What lies further from the diagonal is above the limit.
            for j in i.saturating_sub(limit)..(i + limit + 1).min(b.len()) {
                let mut best = (above[j] + usize::from(*x != b[j])).min(above[j + 1] + 1).min(row[j] + 1);
                if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == b[j] {
                    best = best.min(before[j - 1] + 1);
                }
                row[j + 1] = best;
            }
            if row.iter().all(|edits| *edits > limit) {
                return None;
            }
            std::mem::swap(before, above);
            std::mem::swap(above, row);
        }
        Some(above[b.len()]).filter(|edits| *edits <= limit)
    }
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
