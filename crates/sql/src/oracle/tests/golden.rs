//! The dialect as golden text, and what independent parsers say of it: sqlglot (PyPI) by its Oracle dialect, and ANTLR's
//! PL/SQL grammar as `antlr4ts-sql` (npm) has it. `test.sh` fetches both and says where they are in `ASSAY_SQLGLOT` and
//! `ASSAY_PLSQL_GRAMMAR`; without them their half is skipped aloud.

use super::super::sql::{self, Views};
use assay_run::plan::{Plan, RedoStress};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// Every statement by a name of its own.
#[expect(clippy::too_many_lines, reason = "a list")]
fn statements() -> Vec<(String, String)> {
    let tablespace = Some("IOPS");
    let plan =
        Plan { update_pct: 20, scan_pct: 10, scan_blocks: 16, hot_schema_frequency: 4, ..Plan::plain(4, 1, 10_000) };
    let [dummy, freeze, empty] = sql::one_row_a_block("cf1_3");
    let [schemas, data_set] = sql::create_marker(tablespace);
    let one = Views { global: false };
    let all = Views { global: true };
    let named = [
        ("create cf1", sql::create_table("cf1_3", tablespace)),
        ("create cf2 where the user's tables are", sql::create_table("cf2_3", None)),
        ("one row a block: the row", dummy),
        ("one row a block: the freeze", freeze),
        ("one row a block: away with it", empty),
        ("load, columns alike", sql::insert("cf1_3", false)),
        ("load, random columns", sql::insert("cf1_3", true)),
        ("create index", sql::create_index(3, false, tablespace)),
        ("create unique index", sql::create_index(3, true, None)),
        ("optimizer statistics", sql::GATHER.to_owned()),
        ("drop table", sql::drop_table("cf1_3")),
        ("checkpoint", sql::CHECKPOINT.to_owned()),
        ("select, single", sql::select(3, false)),
        ("select, batched", sql::select(3, true)),
        ("update LITE", sql::update(3, RedoStress::Lite, false)),
        ("update HEAVY", sql::update(3, RedoStress::Heavy, true)),
        ("update LITE and commit", sql::update_and_commit(3, RedoStress::Lite, false)),
        ("update HEAVY and commit", sql::update_and_commit(3, RedoStress::Heavy, false)),
        ("scan", sql::scan(3)),
        ("LOOP=server, all kinds and the hot schema", sql::slice(&plan, 3, false)),
        ("LOOP=server, selects alone", sql::slice(&Plan::plain(1, 1, 1000), 1, true)),
        ("create marker: schemas", schemas),
        ("create marker: data set", data_set),
        ("write marker", sql::WRITE_MARKER.to_owned()),
        ("read marker", sql::READ_MARKER.to_owned()),
        ("read format", sql::READ_FORMAT.to_owned()),
        ("read states", sql::READ_STATES.to_owned()),
        ("note loading", sql::NOTE_LOADING.to_owned()),
        ("note loaded", sql::NOTE_LOADED.to_owned()),
        ("note going", sql::NOTE_GOING.to_owned()),
        ("forget a schema", sql::FORGET.to_owned()),
        ("forget the data set", sql::FORGET_ALL.to_owned()),
        ("create claim", sql::create_claim(tablespace)),
        ("claim shared", sql::lock_claim(true, 2)),
        ("claim alone", sql::lock_claim(false, 2)),
        ("content", sql::CONTENT.to_owned()),
        ("strange", sql::STRANGE.to_owned()),
        ("holders", sql::HOLDERS.to_owned()),
        ("who", sql::WHO.to_owned()),
        ("tablespace", sql::TABLESPACE.to_owned()),
        ("parameters", sql::PARAMETERS.to_owned()),
        ("caches", sql::CACHES.to_owned()),
        ("explain", sql::explain(&sql::select(3, false))),
        ("plan", sql::PLAN.to_owned()),
        ("forget plan", sql::FORGET_PLAN.to_owned()),
        ("cancel, from 18", sql::cancel(12, 34, 19)),
        ("cancel, before", sql::cancel(12, 34, 12)),
        ("sign of life", sql::LIFE.to_owned()),
        ("columns", sql::COLUMNS_OF.to_owned()),
        ("table", sql::TABLE_IS.to_owned()),
        ("indexes", sql::INDEXES_OF.to_owned()),
        ("segment", sql::SEGMENT.to_owned()),
        ("verify", sql::verify("cf1_3")),
        ("verify keys", sql::verify_keys(3)),
        ("statistics", one.statistics()),
        ("statistics of all instances", all.statistics()),
        ("time model", one.time_model()),
        ("host", one.host()),
        ("events", one.events()),
        ("buckets", one.buckets()),
        ("buckets of all instances", all.buckets()),
        ("functions", one.functions()),
        ("activity", sql::ACTIVITY.to_owned()),
        ("AWR snapshot", sql::AWR_SNAPSHOT.to_owned()),
        ("ASH", sql::ASH.to_owned()),
        ("Statspack is there", sql::STATSPACK_IS.to_owned()),
        ("Statspack snapshot", sql::STATSPACK_SNAPSHOT.to_owned()),
        ("name the session", sql::NAME_SESSION.to_owned()),
    ];
    named.map(|(name, text)| (name.to_owned(), text)).to_vec()
}

#[test]
fn the_dialect_is_as_it_was_reviewed() {
    let all: Vec<String> = statements().into_iter().map(|(name, text)| format!("-- {name}\n{text}\n")).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn placeholders_of_a_statement_are_counted_from_one() {
    counted_from_one(&statements());
}

/// Placeholders are numbered from 1, each once: that is how the driver binds by position, in SQL and in blocks alike.
pub(in super::super) fn counted_from_one(all: &[(String, String)]) {
    for (name, text) in all {
        // What stands between quotes is no placeholder.
        let outside: String = text.split('\'').step_by(2).collect();
        let numbers: Vec<u32> = outside
            .split(':')
            .skip(1)
            .filter_map(|rest| {
                let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
                rest[..end].parse().ok()
            })
            .collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>(), "{name}: {text}");
    }
}

#[test]
fn a_name_with_anything_odd_in_it_is_none() {
    assert_eq!(sql::identifier("Iops_1$#").as_deref(), Some("IOPS_1$#"));
    for odd in ["", "1a", "a b", "a;drop", "a\"b", "\u{e9}", &"a".repeat(129)] {
        assert_eq!(sql::identifier(odd), None, "{odd}");
    }
}

/// Reads `name, tab, statement` lines and answers with the names of those that it cannot read.
const SQLGLOT: &str = "\
import re, sys, logging, sqlglot
logging.disable(logging.CRITICAL)
for line in sys.stdin:
    name, text = line.rstrip('\\n').split('\\t')
    try:
        # It takes names after a colon, not numbers.
        text = re.sub(r':(\\d+)', r':p\\1', text)
        trees = sqlglot.parse(text, read='oracle', error_level=sqlglot.ErrorLevel.RAISE)
        if any(tree is None or isinstance(tree, sqlglot.exp.Command) for tree in trees):
            print(name)
    except Exception:
        print(name)
";

/// The same by ANTLR's grammar, which knows capitals alone.
const ANTLR: &str = "\
const { CommonTokenStream, CharStreams } = require('antlr4ts');
const out = 'antlr4ts-sql/dist/src/grammar-output/plsql/';
const { PlSqlLexer } = require(out + 'PlSqlLexer.js');
const { PlSqlParser } = require(out + 'PlSqlParser.js');
const { PredictionMode } = require('antlr4ts/atn/PredictionMode');
const errors = (text, mode) => {
    let wrong = 0;
    const listener = { syntaxError: () => { wrong += 1; } };
    const lexer = new PlSqlLexer(CharStreams.fromString(text));
    const parser = new PlSqlParser(new CommonTokenStream(lexer));
    for (const part of [lexer, parser]) { part.removeErrorListeners(); part.addErrorListener(listener); }
    parser.interpreter.setPredictionMode(mode);
    parser.sql_script();
    return wrong;
};
for (const line of require('fs').readFileSync(0, 'utf8').split('\\n').filter(Boolean)) {
    const [name, text] = line.split('\\t');
    const end = /^(begin|declare|create or replace package)/.test(text) ? '\\n/' : ';';
    // What the quick way cannot read, the other may.
    const wrong = (mode) => errors(text.toUpperCase() + end, mode) > 0;
    if (wrong(PredictionMode.SLL) && wrong(PredictionMode.LL)) { console.log(name); }
}
";

/// What a parser refuses of these statements.
fn refused(mut program: Command, all: &[(String, String)]) -> BTreeSet<String> {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("test.sh says that it is there");
    let lines: String = all.iter().map(|(name, text)| format!("{name}\t{}\n", text.replace('\n', " "))).collect();
    let mut input = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).expect("it reads"));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it wrote");
    assert!(output.status.success(), "{program:?} failed");
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines().map(str::to_owned).collect()
}

/// Said aloud, past what the harness holds back.
fn skipped(what: &str) {
    let stderr = std::fs::File::options().append(true).open("/proc/self/fd/2");
    if let Ok(mut stderr) = stderr {
        let _ = writeln!(stderr, "!! SKIPPED: {what}");
    }
}

/// What neither grammar knows: ALTER SYSTEM, each as Oracle's SQL Language Reference has it.
const BEYOND: [&str; 3] = ["cancel, before", "cancel, from 18", "checkpoint"];

#[test]
fn independent_parsers_of_oracle_read_every_statement() {
    read_but_for(&statements(), &BEYOND);
}

/// What sqlglot refuses, where it is there.
fn by_sqlglot(all: &[(String, String)]) -> Option<BTreeSet<String>> {
    let place = std::env::var_os("ASSAY_SQLGLOT")?;
    let mut python = Command::new("python3");
    python.args(["-c", SQLGLOT]).env("PYTHONPATH", place);
    Some(refused(python, all))
}

/// What ANTLR's grammar refuses, where it is there.
pub(in super::super) fn by_antlr(all: &[(String, String)]) -> Option<BTreeSet<String>> {
    let place = std::env::var_os("ASSAY_PLSQL_GRAMMAR")?;
    let mut node = Command::new("node");
    node.args(["-e", ANTLR]).current_dir(place);
    Some(refused(node, all))
}

/// Each statement is read by one of the parsers that are there, but for those that neither knows.
pub(in super::super) fn read_but_for(all: &[(String, String)], beyond: &[&str]) {
    let sqlglot = by_sqlglot(all);
    if sqlglot.is_none() {
        skipped("sqlglot over the Oracle dialect: ASSAY_SQLGLOT is not set (test.sh fetches it)");
    }
    // The other, which takes ten times as long, gets what is left.
    let mut left = all.to_vec();
    left.retain(|(name, _)| sqlglot.as_ref().is_none_or(|refused| refused.contains(name)));
    let antlr = by_antlr(&left);
    if antlr.is_none() {
        skipped("ANTLR's PL/SQL grammar: ASSAY_PLSQL_GRAMMAR is not set (test.sh fetches it where there is npm)");
    }
    match (&sqlglot, &antlr) {
        (Some(_), Some(neither)) => assert!(neither.iter().eq(beyond), "sqlglot: {sqlglot:?}\nneither: {neither:?}"),
        // Nobody checks blocks where only sqlglot is there, and it reads no DDL of storage.
        (Some(refused), None) | (None, Some(refused)) => {
            left.retain(|(name, text)| refused.contains(name) && text.starts_with("select"));
            assert!(left.is_empty(), "not read: {left:?}");
        }
        (None, None) => {}
    }
}

/// The proof that the parsers would say so: a statement with a word missing.
#[test]
fn parsers_refuse_what_is_no_statement() {
    let wrong = [("broken".to_owned(), "select count(c2) cf1_1 where where custid".to_owned())];
    for refused in [by_sqlglot(&wrong), by_antlr(&wrong)].into_iter().flatten() {
        assert_eq!(refused.len(), 1);
    }
}
