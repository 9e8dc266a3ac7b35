//! The lines that `charbench` prints while it runs: `10:05:12  [100/100]  120345  2050`, columns by their titles.

use super::super::Confidence;
use super::super::draft::Draft;
use super::super::number;
use super::super::rows::{clock_s, put_step, setting, step};
use super::super::text::Text;
use super::client;

const DAY_S: f64 = 86_400.0;

/// Titles with a series each.
const COLUMNS: [(&str, &str, &str); 2] =
    [("TPS", "transactions_per_s", "commits_count_per_s"), ("Errors", "errors_count", "errors_count")];

/// `Time  Users  TPM  TPS ...`
fn titles(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let has = |title: &str| words.contains(&title);
    (words.first() == Some(&"Time") && has("Users") && has("TPS")).then_some(words)
}

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = text.head().iter().any(|line| titles(&line.text).is_some());
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| clock_s(word).is_some())
    };
    let rows = text.head().iter().any(|line| row(&line.text));
    Confidence::of(86, &[("titles Time Users TPM TPS", has), ("rows with a time", rows)])
}

pub(super) fn read(text: &Text, draft: &mut Draft) {
    draft.recognised("", "charbench progress");
    let (mut columns, mut begin_s) = (Vec::new(), None);
    for line in &text.lines {
        if let Some(found) = titles(&line.text) {
            columns = found.into_iter().map(str::to_owned).collect::<Vec<_>>();
            continue;
        }
        let words: Vec<&str> = line.text.split_whitespace().filter(|word| !["AM", "PM"].contains(word)).collect();
        let clock = words.first().and_then(|word| clock_s(word)).and_then(|clock| clock.number());
        let (Some(clock), true) = (clock, words.len() >= columns.len().min(4)) else {
            continue;
        };
        let begin = *begin_s.get_or_insert(clock);
        let since = (clock - begin).rem_euclid(DAY_S);
        let Some(step) = step(draft, since) else {
            draft.note(line.at, "a line out of order was skipped");
            continue;
        };
        for (title, word) in columns.iter().zip(&words) {
            if title == "Users" {
                users(word, draft);
            }
            let column = COLUMNS.iter().find(|(known, ..)| known == title);
            if let (Some((name, key, series)), Some(printed)) = (column, number::measure(word)) {
                let reading = client(line.at, key, name, printed).scope(&format!("{since} s"));
                put_step(draft, reading, series, step);
            }
        }
    }
}

/// `[100/100]`: those that run of those that were asked for.
fn users(word: &str, draft: &mut Draft) {
    let all = word.trim_matches(['[', ']']).rsplit('/').next();
    let all = all.and_then(|all| all.parse::<u64>().ok());
    let known = draft.record.run.sessions;
    if let Some(all) = all.filter(|all| *all > known) {
        draft.record.run.sessions = all;
        if known == 0 {
            setting(draft, "users", &all.to_string());
        }
    }
}
