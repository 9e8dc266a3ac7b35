//! What holds for any text and any settings.

use super::*;
use proptest::prelude::*;

fn a_value(def: &'static ParamDef) -> BoxedStrategy<String> {
    match def.kind {
        ParamKind::Int(min, max) => (min..=max).prop_map(|n| n.to_string()).boxed(),
        ParamKind::Blocks => prop_oneof![
            (1000_u64..1 << 40).prop_map(|n| n.to_string()),
            (8_u64..4096, "[MG](B|iB)?").prop_map(|(n, unit)| format!("{n}{unit}")),
        ]
        .boxed(),
        ParamKind::Mebibytes => "[0-9]{1,6}(\\.[0-9]{1,3})?[KMG]?".boxed(),
        ParamKind::Seconds => "[1-9][0-9]{0,4}(\\.[0-9]{1,6})?(s|ms|m)?".boxed(),
        ParamKind::Bool => prop_oneof!["TRUE", "false"].boxed(),
        ParamKind::Choice(words) => proptest::sample::select(words).prop_map(str::to_owned).boxed(),
        ParamKind::Text | ParamKind::Secret => "[ -&(-~\u{e4}\u{a0}]{0,20}".boxed(),
    }
}

fn some_assignments() -> impl Strategy<Value = Vec<(String, String)>> {
    let defs: Vec<&'static ParamDef> = all_params(&TABLES)
        // These take part in rules that refuse arbitrary values.
        .filter(|def| {
            !matches!(
                def.name,
                "TARGET"
                    | "UNTIL"
                    | "AT_MOST"
                    | "BLOCK_SZ"
                    | "UPDATE_HOTSPOT"
                    | "RUN_TIME"
                    | "SCALE"
                    | "WORK_UNIT"
                    | "UPDATE_WORK_UNIT"
            ) && def.kind != ParamKind::Secret
        })
        .collect();
    proptest::collection::vec(
        proptest::sample::select(defs)
            .prop_flat_map(|def| a_value(def).prop_map(move |value| (def.name.to_owned(), value)))
            .prop_filter("a password is not printed", |(name, value)| mask(name, value) == *value),
        0..12,
    )
}

proptest! {
    #[test]
    fn printed_settings_read_back_the_same(assignments in some_assignments()) {
        let given = command_line(
            assignments.into_iter().map(|(name, value)| ("--set".to_owned(), name, value)),
        );
        let first = resolve(&TABLES, &[given]);
        prop_assert!(!first.has_errors(), "{:?}", first.problems);
        let printed = slob_conf(&first.settings);
        let again = resolve(&TABLES, &[parse("effective.conf", printed.as_bytes())]);
        prop_assert!(!again.has_errors(), "{printed}\n{:?}", again.problems);
        prop_assert_eq!(values(&first.settings), values(&again.settings));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for path in ["x.conf", "x.toml"] {
            let layer = parse(path, &bytes);
            let _ = resolve(&TABLES, &[layer]);
            let _ = redact(path, &bytes, &|name| is_secret(&TABLES, name));
        }
    }

    #[test]
    fn no_text_like_a_file_makes_the_parser_panic(
        text in "((export )?(SCALE|UPDATE_PCT|SYSDBA_PASSWD|NUM_SCHEMAS|x)? ?[=:] ?[\"'\u{201c}\u{201d}\u{2018} 0-9A-Z.$#;()\\[\\]]{0,12}\r?\n){0,8}"
    ) {
        for path in ["x.conf", "x.toml"] {
            let resolved = resolve(&TABLES, &[parse(path, text.as_bytes())]);
            let _ = slob_conf(&resolved.settings);
            let _ = redact(path, text.as_bytes(), &|name| is_secret(&TABLES, name));
        }
    }
}
