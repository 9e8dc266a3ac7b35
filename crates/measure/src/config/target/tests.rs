//! A target says its kind, and what does not is refused without repeating a password.

use super::*;
use crate::config::command_line;
use proptest::prelude::*;

const SCHEMES: &[Scheme] = &[
    scheme("native", "native:DIR"),
    scheme("postgres", "postgres://USER@HOST:PORT/DB"),
    scheme("null", "null:"),
    scheme("temp", "temp:postgres"),
];

const fn scheme(name: &'static str, form: &'static str) -> Scheme<'static> {
    Scheme { name, form }
}

fn of(options: &[(&str, &str)]) -> Result<String, String> {
    let said = options.iter().map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
    let found = target(&[command_line(said)], SCHEMES);
    found.map(|(url, _)| url).map_err(|problem| problem.text)
}

#[test]
fn targets_are_urls_and_an_engine_alone_has_its_usual_place() {
    assert_eq!(of(&[]).as_deref(), Ok("native:./assay-data"));
    for (given, url) in [
        ("native:/d,/e", "native:/d,/e"),
        ("postgres://u@h:5432/d", "postgres://u@h:5432/d"),
        ("postgresql://u@h/d", "postgres://u@h/d"),
        ("postgres:host=h user=u", "postgres:host=h user=u"),
        ("postgres:", "postgres:"),
        ("null:", "null:"),
        ("temp:postgres:16", "temp:postgres:16"),
    ] {
        assert_eq!(of(&[("TARGET", given)]).as_deref(), Ok(url));
    }
    assert_eq!(of(&[("ENGINE", "NULL")]).as_deref(), Ok("null:"));
    assert!(of(&[("ENGINE", "null"), ("TARGET", "native:/x")]).is_err());
    assert!(of(&[("ENGINE", "oracel")]).is_err());
}

#[test]
fn a_target_without_its_kind_is_refused_with_what_may_have_been_meant() {
    for (given, meant) in [
        ("./x", "did you mean native:./x?"),
        ("/data/x", "did you mean native:/data/x?"),
        ("data", "did you mean native:./data?"),
        ("null", "did you mean null:?"),
        ("host=h user=u password=Kq9", "postgres:NAME=VALUE"),
        ("me:Kq9@h/d", "give one of native:DIR"),
        ("//me:Kq9@h/d", "postgres://USER@HOST/DB"),
        (" postgres://me:Kq9@h/d", "a space; remove it"),
        ("native:./x ", "a space; remove it"),
        ("\u{a0}native:./x", "a space; remove it"),
        ("postgre://me:Kq9@h/d", "did you mean postgres://...?"),
        ("postgresql:/me:Kq9@h/d", "did you mean postgres://...?"),
        ("Native:x", "did you mean native:...?"),
        ("native://me:Kq9@h/d", "did you mean postgres://"),
        ("native:host=h password=Kq9", "did you mean postgres://"),
        ("Kq9:x", "give one of native:DIR"),
    ] {
        for engine in [None, Some(("ENGINE", "native"))] {
            let options: Vec<_> = [("TARGET", given)].into_iter().chain(engine).collect();
            let why = of(&options).expect_err(given);
            assert!(why.contains(meant), "{given}: {why}");
            assert!(!why.contains("Kq9"), "{given}: {why}");
        }
    }
}

proptest! {
    #[test]
    fn no_refusal_repeats_a_password(
        begin in "( |host=h |user=u |//|postgres?:/|oracle://u/|native:)?",
        named in "(password=|passwd = |u:)",
        secret in "[A-Z][0-9]{4}[/?&#@:%]{0,2}[0-9]{4}",
        end in "(@h/d)?",
    ) {
        let given = format!("{begin}{named}{secret}{end}");
        if let Err(why) = of(&[("TARGET", &given)]) {
            prop_assert!(!why.contains(&secret), "{}: {}", given, why);
        }
    }
}
