//! What a slob.conf may say and what it may not.

use super::*;

#[test]
fn slob_41_a_misspelt_name_is_an_error_with_the_nearest_name() {
    assert_error(" PDATE_PCT=30\n", &["slob.conf:1", "PDATE_PCT", "did you mean UPDATE_PCT"]);
    assert_error("# c\n\nupdate_pct=30\n", &["slob.conf:3", "did you mean UPDATE_PCT"]);
}

#[test]
fn slob_41_mixed_quote_styles_are_an_error_showing_the_corrected_line() {
    assert_error(
        "ADMIN_SQLNET_SERVICE=\u{201c}slob_x\" #for OCI\nUPDATE_PCT=10\n",
        &["slob.conf:1", "mixed quote styles", "ADMIN_SQLNET_SERVICE=\"slob_x\""],
    );
    assert_error("ADMIN_SQLNET_SERVICE=\"slob_x\u{201d}\n", &["mixed quote styles"]);
    let resolved = resolve_text("ADMIN_SQLNET_SERVICE=\u{201c}slob_x\" #for OCI\nUPDATE_PCT=12\n");
    assert_eq!(resolved.settings.int("UPDATE_PCT"), 12, "the next line still counts");
}

#[test]
fn slob_41_balanced_typographic_quotes_are_accepted_with_a_warning() {
    assert_value("DBA_PRIV_USER=\u{201c}system\u{201d}\n", "DBA_PRIV_USER", "system", "typographic quotes");
    let resolved = resolve_text("SYSDBA_PASSWD=\u{201c}\u{201d}\n");
    assert!(errors(&resolved).is_empty());
    assert_eq!(resolved.settings.get("SYSDBA_PASSWD").value, Value::Unset);
    assert!(notices(&resolved)[0].contains("typographic"));
}

#[test]
fn slob_41_prose_after_a_value_is_an_error_per_line() {
    let text = "SCALE=1GB (active data set) 131072 blocks\nWORK_UNIT=64 (no of blocks)\n\
                HOT_SCHEMA_FREQUENCY=0 (disable it)\nUPDATE_PCT=0\n";
    let resolved = resolve_text(text);
    let errors = errors(&resolved);
    assert_eq!(errors.len(), 3, "{errors:?}");
    for (line, error) in errors.iter().enumerate() {
        assert!(error.starts_with(&format!("slob.conf:{}:", line + 1)), "{error}");
        assert!(error.contains("text after the value") && error.contains("start comments with #"), "{error}");
    }
    assert_eq!(resolved.settings.int("UPDATE_PCT"), 0, "later lines are not lost");
}

#[test]
fn slob_41_sizes_take_any_case_and_are_binary() {
    for text in ["1GB", "1gib", "1g", "1Gb"] {
        assert_value(&format!("SCALE={text}"), "SCALE", "1G", "units are always binary");
        let settings = resolve_text(&format!("SCALE={text}")).settings;
        assert_eq!(settings.blocks("SCALE", 8192), Some(131_072), "slob_30: {text}");
    }
    assert_value("SCALE=1G", "SCALE", "1G", "");
    assert_value("SCALE=80M", "SCALE", "80M", "");
    assert_eq!(resolve_text("SCALE=80M").settings.blocks("SCALE", 8192), Some(10_240));
    assert_value("SCALE=10000", "SCALE", "10000", "");
    for bad in ["1.5G", "-5", "1KM", "1 0M2", "G", "99999999999999999999", "99999999T", "1P"] {
        assert_error(&format!("SCALE={bad}\n"), &["slob.conf:1: ", "SCALE"]);
    }
}

#[test]
fn slob_41_comments_blanks_and_spaced_signs_are_accepted() {
    assert_value("REDO_STRESS=HEAVY   # note\n", "REDO_STRESS", "HEAVY", "");
    assert_value("REDO_STRESS=HEAVY   \t \n", "REDO_STRESS", "HEAVY", "");
    assert_value("UPDATE_PCT = 40\n", "UPDATE_PCT", "40", "");
    assert_value("  export UPDATE_PCT=40\n", "UPDATE_PCT", "40", "");
    assert_value("UPDATE_PCT= # none\n", "UPDATE_PCT", "10", "");
    assert_value("export UPDATE_PCT SCALE RUN_TIME\n", "UPDATE_PCT", "10", "");
    assert_value("#UPDATE_PCT=50\n", "UPDATE_PCT", "10", "");
}

#[test]
fn slob_41_line_ends_marks_and_hard_blanks_are_stripped_with_a_warning() {
    assert_value("UPDATE_PCT=40\r\nSCAN_PCT=1\r\n", "UPDATE_PCT", "40", "carriage returns");
    assert_value("\u{feff}UPDATE_PCT=40\n", "UPDATE_PCT", "40", "byte order mark");
    assert_value("\u{a0}UPDATE_PCT=\u{a0}40\u{a0}\n", "UPDATE_PCT", "40", "no-break");
}

#[test]
fn slob_41_percentages_name_their_range() {
    for bad in ["abc", "-1", "101", "1e1", "10%"] {
        assert_error(&format!("UPDATE_PCT={bad}"), &[bad, "0 to 100"]);
    }
    for good in ["0", "51", "99", "100"] {
        assert_value(&format!("UPDATE_PCT={good}"), "UPDATE_PCT", good, "");
    }
}

#[test]
fn slob_41_ranges_the_original_refused_are_accepted() {
    assert_value("WORK_UNIT=2", "WORK_UNIT", "2", "");
    assert_value("WORK_UNIT=2000", "WORK_UNIT", "2000", "");
    assert_value("RUN_TIME=20", "RUN_TIME", "20", "short run");
    assert_value("RUN_TIME=300", "RUN_TIME", "300", "");
    assert_error("RUN_TIME=0", &["less than a second"]);
}

#[test]
fn slob_41_words_are_read_in_any_case() {
    assert_value("DO_HOTSPOT=true", "DO_HOTSPOT", "TRUE", "");
    assert!(resolve_text("DO_HOTSPOT=true").settings.bool("DO_HOTSPOT"));
    assert_value("REDO_STRESS=heavy", "REDO_STRESS", "HEAVY", "");
    let resolved = resolve_text("DATABASE_STATISTICS_TYPE=AWR");
    assert_eq!(resolved.settings.text("DATABASE_STATISTICS_TYPE"), "awr");
    assert_error("REDO_STRESS=MEDIUM", &["LITE, HEAVY"]);
    assert_error("DO_HOTSPOT=1", &["TRUE", "FALSE"]);
}

#[test]
fn slob_41_an_empty_value_takes_the_default() {
    for text in ["UPDATE_PCT=", "UPDATE_PCT=\"\"", "UPDATE_PCT=''  # none"] {
        assert_value(text, "UPDATE_PCT", "10", "");
        assert_eq!(resolve_text(text).settings.get("UPDATE_PCT").origin, Origin::Default);
    }
}

#[test]
fn slob_41_nothing_is_expanded_or_executed() {
    for value in ["$(touch f)", "`touch f`", "\"$(touch f)\"", "$HOME", "a\\b", "\"`id`\""] {
        assert_error(&format!("LABEL={value}\n"), &["slob.conf:1", "LABEL"]);
    }
    for value in ["1;touch f", "1&", "1|cat", "<f", ">f"] {
        assert_error(&format!("UPDATE_PCT={value}\n"), &["a shell would interpret"]);
    }
    assert_error("touch f\n", &["not NAME=VALUE"]);
    assert_error("source ./other.conf\n", &["not NAME=VALUE"]);
    assert_value("LABEL='$(touch f)'\n", "LABEL", "$(touch f)", "");
}

#[test]
fn slob_41_a_file_with_three_mistakes_reports_three_in_order() {
    let resolved = resolve_text("UPDATE_PCT=abc\nSCALE=1.5G\nWORKUNIT=64\nSCAN_PCT=5\n");
    let errors = errors(&resolved);
    assert_eq!(errors.len(), 3, "{errors:?}");
    for (line, error) in errors.iter().enumerate() {
        assert!(error.starts_with(&format!("slob.conf:{}: ", line + 1)), "{error}");
    }
}

#[test]
fn a_repeated_name_warns_and_the_last_counts() {
    assert_value("UPDATE_PCT=1\nUPDATE_PCT=2\n", "UPDATE_PCT", "2", "already set at slob.conf:1");
}

#[test]
fn old_names_map_with_a_notice() {
    assert_value("SHARED_DATA_MODULUS=4", "HOT_SCHEMA_FREQUENCY", "4", "old spelling of HOT_SCHEMA_FREQUENCY");
    assert_value("THINK_TM_MODULUS=7", "THINK_TM_FREQUENCY", "7", "old spelling");
    assert_value("THINK_TIME_FREQUENCY=7", "THINK_TM_FREQUENCY", "7", "old spelling");
    assert_value("SHORT_TABLE_SZ=512", "SCAN_TABLE_SZ", "512", "old spelling");
    assert_value("DO_UPDATE_HOTSPOT=FALSE", "UPDATE_HOTSPOT", "FALSE", "old spelling");
    assert_value("DIRECT_IO=FALSE", "IO_MODE", "asynch", "IO_MODE=asynch");
    assert_value("FILESYSTEMIO_OPTIONS=SETALL", "IO_MODE", "setall", "another name of IO_MODE");
    assert_value("UNIQUE_INDEX=UNIQUE", "UNIQUE_INDEX", "TRUE", "a SQL database only");
    assert_value("DO_UPDATE_HOTSPOT=TRUE", "UPDATE_HOTSPOT", "TRUE", "old spelling");
}

#[test]
fn oracle_settings_are_one_notice_elsewhere() {
    let resolved = resolve_text(
        "DATABASE_STATISTICS_TYPE=awr\nSYSDBA_PASSWD=\"Welcome1\"\nDBA_PRIV_USER=\"system\"\nSQLNET_SERVICE_BASE=\"\"\n",
    );
    assert!(errors(&resolved).is_empty());
    let notices = notices(&resolved);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[1].contains("DBA_PRIV_USER, SYSDBA_PASSWD concern Oracle only"), "{notices:?}");
}
