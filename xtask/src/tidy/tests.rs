//! Each rule with a sample that keeps it and one that breaks it.

use super::tree::{Crate, Dependency, Package};
use super::*;

/// A project with one library crate, `crates/run`, and these files.
fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree {
        files: BTreeMap::new(),
        others: ["docs/images/page.png".to_owned()].into(),
        packages: vec![Package {
            name: "assay-run".to_owned(),
            manifest: "crates/run/Cargo.toml".to_owned(),
            dependencies: Vec::new(),
            roots: vec![("crates/run/src/lib.rs".to_owned(), false)],
        }],
        crates: Vec::new(),
    };
    for (path, text) in files {
        tree.files.insert((*path).to_owned(), (*text).to_owned());
    }
    tree
}

/// The rules broken by a library whose `lib.rs` is `code`.
fn broken(code: &str) -> Vec<&'static str> {
    rules(&tree(&[("crates/run/src/lib.rs", code)]))
}

fn rules(tree: &Tree) -> Vec<&'static str> {
    check(tree).into_iter().map(|v| v.rule).collect()
}

#[test]
fn files_have_at_most_800_lines_outside_tests() {
    let code = "const A: u8 = 0;\n";
    assert_eq!(broken(&code.repeat(800)), [""; 0]);
    assert_eq!(broken(&code.repeat(801)), ["file-length"]);
    let tests = format!("{}#[cfg(test)]\nmod tests {{\n}}\n", code.repeat(800));
    assert_eq!(broken(&tests), [""; 0]);
}

#[test]
fn code_in_documentation_is_no_test() {
    let fenced = |kind: &str| format!("/// So:\n/// ```{kind}\n/// f(    1);\n/// ```\nfn f() {{}}\n");
    assert_eq!(broken(&fenced("text")), [""; 0]);
    for kind in ["", "rust", "no_run"] {
        assert_eq!(broken(&fenced(kind)), ["doc-test"]);
    }
    let indented = format!("///\n///{}f(1);\nfn f() {{}}\n", " ".repeat(5));
    assert_eq!(broken(&indented), ["doc-test"]);
    assert_eq!(broken(&fenced("text").repeat(2)), [""; 0]);
}

#[test]
fn long_tests_move_to_a_file_of_their_own() {
    let module = |lines: usize| {
        let body = "    const A: u8 = 0;\n".repeat(lines);
        format!("const B: u8 = 0;\n#[cfg(test)]\nmod tests {{\n{body}}}\n")
    };
    assert_eq!(broken(&module(197)), [""; 0]);
    assert_eq!(broken(&module(198)), ["inline-tests"]);
}

#[test]
fn tests_run() {
    let ignored = "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n";
    assert_eq!(broken(ignored), ["ignored-test"]);
    assert_eq!(broken("#[test]\nfn ignore() {}\n"), [""; 0]);
    let long = "#[test]\n#[ignore = \"it takes long: ./test.sh --long has it\"]\nfn f() {}\n";
    assert_eq!(broken(long), [""; 0]);
}

#[test]
fn sources_are_ascii() {
    let found = check(&tree(&[("crates/run/src/lib.rs", "//! Doc.\n//! 5 \u{b5}s\n")]));
    assert_eq!((found[0].rule, found[0].line), ("ascii", 2));
    assert_eq!(broken("//! 5 us \\u{b5}\n"), [""; 0]);
}

#[test]
fn no_crate_is_above_its_budget() {
    let tree = |budgets: &str| {
        let lib = "//! Doc.\nfn f<'a>() -> u8 {\n    1 // and 2\n}\n#[cfg(test)]\nmod tests;\n";
        let tests = ("crates/run/src/tests.rs", "fn g() {}\n");
        tree(&[("crates/run/src/lib.rs", lib), tests, ("xtask/size.toml", budgets)])
    };
    let found = |budgets: &str| check(&tree(budgets)).into_iter().map(|v| v.text).collect::<Vec<_>>();
    assert_eq!(found("run = 24\n"), [""; 0]);
    let above = "`run` has 24 tokens of product code, its budget is 23: make it smaller, or raise its line in a commit \
                 that says what the reader gets for it";
    assert_eq!(found("run = 23\n"), [above]);
    assert_eq!(found(""), ["`run` has 24 tokens of product code and no budget: give it a line"]);
    assert_eq!(found("awr = 1\nrun = 24\n"), ["there is no crate `awr`: remove its line"]);
    assert!(found("run = many\n")[0].starts_with("cannot be read: "));

    let lowered = |budgets: &str| size::lowered(&tree(budgets));
    assert_eq!(lowered("# Why.\n\nrun = 30\n"), "# Why.\n\nrun = 24\n");
    assert_eq!(lowered("run = 23\n"), "run = 23\n");
    let table = size::table(&tree("run = 30\n")).expect("budgets");
    assert_eq!(table.lines().nth(1), Some("run                 24        30"));
}

#[test]
fn every_file_is_reached() {
    let lib = "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\n";
    let good = [
        ("crates/run/src/lib.rs", lib),
        ("crates/run/src/a.rs", "mod c;"),
        ("crates/run/src/a/c.rs", ""),
        ("crates/run/src/b/mod.rs", "mod d;"),
        ("crates/run/src/b/d.rs", ""),
        ("crates/run/src/tests.rs", "fn f() {}"),
    ];
    assert_eq!(rules(&tree(&good)), [""; 0]);
    let mut bad = tree(&good);
    bad.files.insert("crates/run/src/c.rs".into(), String::new());
    assert_eq!(rules(&bad), ["dead-file"]);
    assert_eq!(check(&bad)[0].path, "crates/run/src/c.rs");
}

#[test]
fn modules_of_a_folder_use_each_other_one_way() {
    let circles = |root: &str, a: &str, b: &str, inner: &str| {
        let lib = format!("mod a;\nmod b;\n{root}");
        let tree = tree(&[
            ("crates/run/src/lib.rs", &lib),
            ("crates/run/src/a.rs", a),
            ("crates/run/src/b.rs", &format!("mod inner;\n{b}")),
            ("crates/run/src/b/inner.rs", inner),
        ]);
        let found = check(&tree);
        assert!(found.iter().all(|v| v.rule == "circles"), "{found:?}");
        found.into_iter().map(|v| v.text).collect::<Vec<_>>()
    };
    let uses_b = "fn f() { crate::b::f(); }";
    assert_eq!(circles("use a::A;", uses_b, "", ""), [""; 0]);
    assert_eq!(circles("", uses_b, "use inner::C;", "use super::B;"), [""; 0]);
    let text = "a loop: `a` uses `b` (crates/run/src/a.rs:1), `b` uses `a` (crates/run/src/b.rs:2); \
                move what they share to a module below them";
    assert_eq!(circles("", uses_b, "use super::a::{self as x, A};", ""), [text]);
    for inner in [
        "use super::super::a;",
        "use crate::{b::B, a as other};",
        "fn f(a: crate::a::A) {}",
        // By a name that the root or another one imports.
        "fn f() { vec![crate::A::new()] }",
        "use crate::name::g;",
        "use crate as root; fn f() { root::a::f() }",
    ] {
        let root = "pub use a::{x::X, A}; use crate::a as name;";
        assert_eq!(circles(root, uses_b, "", inner).len(), 1, "{inner}");
    }
    let tests = "#[cfg(test)] mod tests { use crate::a::A; }";
    assert_eq!(circles("", uses_b, tests, tests), [""; 0]);
    let others = "use std::a::A; fn f(a: B) { a::<A>(); \"crate::a::A\"; B::a() }";
    assert_eq!(circles("", uses_b, others, others), [""; 0]);
}

#[test]
fn crates_depend_downward() {
    let mut tree = tree(&[("crates/run/src/lib.rs", "")]);
    let depends =
        |name: &str, ours: bool| Dependency { name: name.to_owned(), ours, for_tests: false, versions: String::new() };
    tree.packages[0].dependencies = vec![depends("assay-measure", true)];
    assert_eq!(rules(&tree), [""; 0]);
    tree.packages[0].dependencies = vec![depends("assay-report", true)];
    assert_eq!(rules(&tree), ["layers"]);
    // Tests may look at what they make through whoever reads it.
    tree.packages[0].dependencies[0].for_tests = true;
    assert_eq!(rules(&tree), [""; 0]);
    // What only tests share is in no program.
    tree.packages[0].dependencies = vec![depends("assay-testkit", true)];
    for name in ["assay-run", "assay", "xtask"] {
        tree.packages[0].name = name.to_owned();
        assert_eq!(rules(&tree), ["layers"]);
    }
    tree.packages[0].dependencies[0].for_tests = true;
    assert_eq!(rules(&tree), [""; 0]);
    tree.packages[0].dependencies[0].for_tests = false;
    tree.packages[0].name = "assay-odd".to_owned();
    assert_eq!(rules(&tree), ["layers"]);
}

#[test]
fn the_asynchronous_runtime_stays_in_control() {
    let mut tree = tree(&[("docs/DEPENDENCIES.md", "| `tokio` | why | MIT | plan |")]);
    tree.packages[0].dependencies =
        vec![Dependency { name: "tokio".to_owned(), ours: false, for_tests: false, versions: String::new() }];
    assert_eq!(rules(&tree), ["runtime"]);
    tree.packages[0].name = "assay-control".to_owned();
    assert_eq!(rules(&tree), [""; 0]);
}

#[test]
fn every_dependency_is_argued_for() {
    let used = |text: &str| {
        let mut tree = tree(&[("docs/DEPENDENCIES.md", text)]);
        tree.packages[0].dependencies =
            vec![Dependency { name: "serde".to_owned(), ours: false, for_tests: false, versions: String::new() }];
        rules(&tree)
    };
    assert_eq!(used("| `serde` | why | MIT | plan |\n"), [""; 0]);
    assert_eq!(used("| `serde` | why | MIT | |\n"), ["dependencies"]);
    assert_eq!(used("| Crate | Why |\n"), ["dependencies"]);
    let unused = "| `serde` | why | MIT | plan |\n| `rand` | why | MIT | plan |\n";
    assert_eq!(used(unused), ["dependencies"]);
}

/// The rules broken by a target in a folder of `crates/run`, with this registry, README and test, and one more file.
fn broken_by_target(registry: &str, readme: &str, test: &str, more: (&str, &str)) -> Vec<&'static str> {
    let target = format!("impl Target for Null {{}}\n#[cfg(test)]\nmod tests {{\n{test}\n}}\n");
    let mut tree = tree(&[
        ("crates/run/src/lib.rs", "mod null;\nmod more;"),
        ("crates/run/src/null/mod.rs", &target),
        ("crates/assay/src/registry.rs", registry),
        (readme, "What it writes."),
        more,
    ]);
    let registry = ("crates/assay/src/registry.rs".to_owned(), false);
    tree.packages[0].roots.push(registry);
    rules(&tree)
}

#[test]
fn targets_are_listed_described_and_tested() {
    let registry = "use assay_run::null::Null;";
    let unlisted = "// Null";
    let readme = "crates/run/src/null/README.md";
    let suite = "use assay_testkit::conformance;";
    let none = ("crates/run/src/more.rs", "");
    assert_eq!(broken_by_target(registry, readme, suite, none), [""; 0]);
    assert_eq!(broken_by_target(unlisted, readme, suite, none), ["targets"]);
    assert_eq!(broken_by_target(registry, "README.md", suite, none), ["targets"]);
    assert_eq!(broken_by_target(registry, readme, "", none), ["targets"]);
    let elsewhere = ("crates/run/src/more.rs", "use assay_testkit::conformance;");
    assert_eq!(broken_by_target(registry, readme, "", elsewhere), ["targets"]);
}

#[test]
fn every_target_and_probe_has_a_folder_of_its_own() {
    let broken = |more: (&str, &str)| {
        let registry = "use x::{Disk, Null, assay_run};";
        let readme = "crates/run/src/null/README.md";
        broken_by_target(registry, readme, "use assay_testkit::conformance;", more)
    };
    let probe = "pub const SPEC: ProbeSpec = ProbeSpec {};\n#[cfg(test)]\nuse assay_testkit::conformance;";
    // In the crate itself it has neither a README nor the crate to itself.
    assert_eq!(broken(("crates/run/src/more.rs", probe)), ["targets", "targets"]);
    let of_a_test = format!("#[cfg(test)]\nmod tests {{\n{probe}\n}}\n");
    assert_eq!(broken(("crates/run/src/more.rs", &of_a_test)), [""; 0]);
    // What leads the life of several is none itself; each of them is one.
    let (leads, led) = ("impl Target for On<L> {}", "impl Life for Disk {}");
    assert_eq!(broken(("crates/run/src/more.rs", leads)), [""; 0]);
    assert!(broken(("crates/run/src/more.rs", led)).contains(&"targets"));
}

#[test]
fn a_database_is_named_in_its_folder_alone() {
    let broken =
        |code: &str| rules(&tree(&[("crates/sql/src/postgres/README.md", ""), ("crates/run/src/lib.rs", code)]));
    for code in ["const A: &str = \"PostgreSQL 16+\";\n", "fn mysql() {}\n"] {
        assert_eq!(broken(code), ["database"]);
        let test = format!("/// As in Postgres.\n#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(broken(&test), [""; 0]);
    }
}

#[test]
fn paths_of_one_machine_are_refused() {
    let found = |text: &str| rules(&tree(&[("README.md", text)]));
    assert_eq!(found(concat!("cd /", "root/assay")), ["machine-path"]);
    assert_eq!(found(concat!("`/", "home/me/x`")), ["machine-path"]);
    assert_eq!(found("cd data/work/x and $HOME/work/ and /u01/data"), [""; 0]);
}

#[test]
fn the_readme_is_read_in_one_sitting() {
    let found = |lines: usize| rules(&tree(&[("README.md", &"a line\n".repeat(lines))]));
    assert_eq!(found(150), [""; 0]);
    assert_eq!(found(151), ["readme-length"]);
}

#[test]
fn links_lead_somewhere() {
    let found = |text: &str| rules(&tree(&[("docs/guides/first-hour.md", text)]));
    for kept in [
        "[here](first-hour.md), [there](../guides/first-hour.md#here), [folder](../guides), [part](#part)",
        "![page](../images/page.png) [elsewhere](https://example.org/x.md)",
        "`[code](is.no.link)`\n```\n[nor](this.one)\n```\n",
        "`docs/guides/first-hour.md`, `docs/guides/*.md`",
    ] {
        assert_eq!(found(kept), [""; 0], "{kept}");
    }
    // A document that any file names by its path moves with its name.
    let named = concat!("see `docs", "/gone.md`.");
    for broken in ["[here](gone.md)", "[`code`](gone.rs)", "[up](../../../x.md)", named] {
        assert_eq!(found(broken), ["links"], "{broken}");
    }
}

#[test]
fn crates_keep_the_rules_of_deny_toml() {
    let rules_of = |line: &str, versions: &str| {
        let mut tree = tree(&[(
            "deny.toml",
            "[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n[bans]\ndeny = [{ crate = \"chrono\" }, { crate = \"crc\", \
             wrappers = [\"b\"] }]\n",
        )]);
        tree.packages[0].roots.clear();
        tree.packages[0].dependencies =
            vec![Dependency { name: "a".to_owned(), ours: false, for_tests: false, versions: versions.to_owned() }];
        tree.crates = vec![Crate::read(line).unwrap()];
        let mut rules = rules(&tree);
        rules.retain(|rule| *rule != "dependencies");
        rules
    };
    let none = [""; 0];
    assert_eq!(rules_of("a v1.0.0|ISC OR MIT", "^1"), none);
    assert_eq!(rules_of("a v1.0.0 (proc-macro)|MIT/Apache-2.0", "^1"), none);
    assert_eq!(rules_of("assay-run v0.1.0 (/any/place)|MIT", "^1"), none);
    assert_eq!(rules_of("a v1.0.0|MIT AND ISC", "^1"), ["licences"]);
    assert_eq!(rules_of("a v1.0.0|", "^1"), ["licences"]);
    assert_eq!(rules_of("chrono v1.0.0|MIT", "^1"), ["refused-crate"]);
    // What came with a wrapper is the wrapper's; a package of ours that asks for it is refused.
    assert_eq!(rules_of("crc v1.0.0|MIT", "^1"), none);
    let git = "a v1.0.0 (https://place/a#0123)|MIT";
    assert_eq!(rules_of(git, "^1"), ["sources"]);
    let macros = "a v1.0.0 (proc-macro) (/elsewhere/a)|MIT";
    assert_eq!(rules_of(macros, "^1"), ["sources"]);
    assert_eq!(rules_of("a v1.0.0|MIT", "*"), ["wildcards"]);
}

#[test]
fn every_promise_names_a_test_that_is_there() {
    let found = |security: &str| {
        rules(&tree(&[
            ("crates/run/src/lib.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a_promise_is_kept() {}\n}\n"),
            ("docs/SECURITY.md", security),
        ]))
    };
    let good = "| promise | how | held by |\n|---|---|---|\n| it | so | `a_promise_is_kept` |\n\n- More: `PG_A_B_C`\n  held by \
                `a_promise_is_kept`.\n\n## Not promised\n\n- Nothing else.\n";
    assert_eq!(found(good), [""; 0]);
    assert_eq!(found("- It never harms: `run::bounded`.\n"), ["promises"]);
    assert_eq!(found("| it | so | `a_promise_is_broken` |\n"), ["promises"]);
}
