//! Gates: what they refuse, and when they fire.

use super::*;

#[test]
fn a_gate_says_what_is_wrong_with_it() {
    for text in ["reads_per_s", "reads_per_s < much", "< 5%", "two words < 5%", "x > nan", "x > %"] {
        let error = Gate::parse(text).unwrap_err();
        assert!(error.to_string().contains("KEY < LIMIT"), "{error}");
    }
    let record = paced(1.0);
    let comparison = compared(&[&[&record], &[&record]]);
    let error = Gate::parse("read_per_s < -5%").unwrap().check(&comparison).unwrap_err();
    assert!(error.to_string().contains("reads_per_s"), "{error}");
}

#[test]
fn a_gate_fires_where_the_change_is_shown_and_beyond_its_limit() {
    let with = |pace: f64, noise: f64| {
        let mut record = paced(pace);
        set_seconds(&mut record, &waves(600, noise));
        record
    };
    let (base, slower, wild) = (with(1.0, 0.02), with(0.93, 0.02), with(0.93, 0.99));
    let judge = |text: &str, record: &Record| {
        let comparison = compared(&[&[&base], &[record]]);
        Gate::parse(text).unwrap().judge(&comparison)[0].outcome
    };
    assert_eq!(judge("ops_per_s < -5%", &slower), GateOutcome::Fires);
    assert_eq!(judge("ops_per_s<-10 %", &slower), GateOutcome::Holds);
    assert_eq!(judge("read_us_p99 > 5%", &slower), GateOutcome::Fires);
    // "Must gain 5 %": what is shown to gain less fails.
    assert_eq!(judge("ops_per_s < 5%", &again(&base)), GateOutcome::Fires);
    // Nothing is judged of a run that is compared with itself.
    assert_eq!(judge("ops_per_s < 5%", &base), GateOutcome::NotJudged);
    assert_eq!(judge("ops_per_s < 5%", &slower), GateOutcome::Fires);
    let mut rough = wild.clone();
    rough
        .series
        .metrics
        .values_mut()
        .for_each(|column| column.sort_by(|a, b| a.value().partial_cmp(&b.value()).unwrap()));
    assert_eq!(judge("ops_per_s < -5%", &rough), GateOutcome::Unsure);
    assert_eq!(judge("read_us_p99 > 1us", &base), GateOutcome::Fires);
    assert_eq!(judge("read_us_p99 > 1s", &base), GateOutcome::Holds);
    assert_eq!(judge("ops_per_s < 50", &base), GateOutcome::Holds);
    assert_eq!(judge("ops_per_s < 5ms", &base), GateOutcome::NotJudged);
    let comparison = compared(&[&[&base], &[&slower]]);
    let line = &Gate::parse("ops_per_s < -5%").unwrap().judge(&comparison)[0].line;
    let beginning = "ops_per_s fell by 7.0 %, limit a fall of 5 %: failed (B ";
    assert!(line.starts_with(beginning), "{line}");
    let comparison = compared(&[&[&base], &[&again(&base)]]);
    let line = |text: &str| Gate::parse(text).unwrap().judge(&comparison)[0].line.clone();
    assert!(line("ops_per_s < -5%").starts_with("ops_per_s did not change, limit a fall of 5 %: passed"));
    assert!(line("ops_per_s < 5%").contains("limit a rise of at least 5 %: failed"));
    assert!(line("read_us_p99 > 1s").contains("limit at most 1 s: passed"));
}
