//! What people type who know another tool: its command line in assay's words.

use std::fmt::Write as _;

/// A program of others.
struct Peer {
    program: &'static str,
    /// Our command that does its work.
    command: &'static str,
    words: Words,
}

enum Words {
    /// Our command takes the program's options as they are.
    Same,
    /// Each option has a counterpart, or none.
    Table(&'static [Word]),
    /// Our command has options of its own.
    Own,
}

/// An option of a program and ours: a format in which `{}` is its value.
struct Word {
    theirs: &'static str,
    ours: Ours,
}

enum Ours {
    Flag(&'static str),
    /// As a flag, its value in our unit.
    Converted(&'static str, fn(&str) -> Option<String>),
    /// Part of the target: the user, the connect string.
    User,
    Connect,
    /// A secret is neither repeated nor has an option.
    Secret,
    /// Another command does this.
    Command(&'static str),
    /// Says what our command does anyway.
    Implied,
}

const fn word(theirs: &'static str, ours: Ours) -> Word {
    Word { theirs, ours }
}

/// Source: the help of Swingbench 2.7's `oewizard -h`.
const OEWIZARD: &[Word] = &[
    word("-cs", Ours::Connect),
    word("-u", Ours::User),
    word("-p", Ours::Secret),
    word("-dbap", Ours::Secret),
    word("-scale", Ours::Flag("--scale {}")),
    word("-tc", Ours::Flag("--threads {}")),
    word("-create", Ours::Implied),
    word("-cl", Ours::Implied),
    word("-drop", Ours::Command("orders destroy")),
    word("-noindexes", Ours::Flag("--indexes none")),
    word("-pkindexes", Ours::Flag("--indexes keys")),
    word("-allindexes", Ours::Flag("--indexes all")),
    word("-nopart", Ours::Flag("--partitions none")),
    word("-hashpart", Ours::Flag("--partitions hash")),
];

/// Source: the help of Swingbench 2.7's `charbench -h`. Its think times are milliseconds, ours seconds.
const CHARBENCH: &[Word] = &[
    word("-cs", Ours::Connect),
    word("-u", Ours::User),
    word("-p", Ours::Secret),
    word("-uc", Ours::Flag("--sessions {}")),
    word("-rt", Ours::Converted("--time {}", hours_and_minutes)),
    word("-di", Ours::Flag("--disable {}")),
    word("-en", Ours::Flag("--enable {}")),
    word("-min", Ours::Converted("--set THINK_INTRA_MIN={}", milliseconds)),
    word("-max", Ours::Converted("--set THINK_INTRA_MAX={}", milliseconds)),
    word("-intermin", Ours::Converted("--set THINK_INTER_MIN={}", milliseconds)),
    word("-intermax", Ours::Converted("--set THINK_INTER_MAX={}", milliseconds)),
    word("-a", Ours::Implied),
];

const PEERS: &[Peer] = &[
    Peer { program: "oewizard", command: "orders prepare", words: Words::Table(OEWIZARD) },
    Peer { program: "charbench", command: "orders run", words: Words::Table(CHARBENCH) },
    Peer { program: "swingbench", command: "orders run", words: Words::Own },
    Peer { program: "fio", command: "io", words: Words::Same },
    Peer { program: "oratcptest", command: "redo", words: Words::Same },
    Peer { program: "runit.sh", command: "runit", words: Words::Same },
    Peer { program: "setup.sh", command: "setup", words: Words::Same },
    Peer { program: "lscpu", command: "topology", words: Words::Own },
    Peer { program: "iperf3", command: "net", words: Words::Own },
    Peer { program: "iperf", command: "net", words: Words::Own },
    Peer { program: "netperf", command: "net", words: Words::Own },
    Peer { program: "pg_test_fsync", command: "sync", words: Words::Own },
    Peer { program: "pg_test_timing", command: "clock", words: Words::Own },
    Peer { program: "pgbench", command: "run --target postgres://USER@HOST:PORT/DB", words: Words::Own },
    Peer { program: "pgio", command: "run --target postgres://USER@HOST:PORT/DB", words: Words::Own },
    Peer { program: "sysbench", command: "run --target mysql://USER@HOST:PORT/DB", words: Words::Own },
    Peer { program: "hammerdb", command: "orders run", words: Words::Own },
    Peer { program: "hammerdbcli", command: "orders run", words: Words::Own },
    Peer { program: "slob", command: "run", words: Words::Own },
    Peer { program: "orion", command: "io", words: Words::Own },
    Peer { program: "ioping", command: "io", words: Words::Own },
    Peer { program: "vdbench", command: "io", words: Words::Own },
    Peer { program: "mlc", command: "memory", words: Words::Own },
];

/// What to type in assay for the command line of another program; `None` where the program is unknown.
pub(crate) fn translated(program: &str, options: &[String]) -> Option<String> {
    if program == "stress-ng" {
        let of_memory = options.iter().any(|option| option.starts_with("--vm"));
        return Some(same(program, if of_memory { "memory" } else { "cpu" }, options));
    }
    let peer = PEERS.iter().find(|peer| peer.program == program)?;
    Some(match peer.words {
        Words::Same => same(program, peer.command, options),
        Words::Table(table) => by_table(peer, table, options),
        Words::Own => format!(
            "`{program}` is another program; in assay its work is done by\n\n  assay {}\n\nwhose options `assay {} --help` lists",
            peer.command,
            peer.command.split(" --").next().unwrap_or(peer.command)
        ),
    })
}

fn same(program: &str, command: &str, options: &[String]) -> String {
    let options: String = options.iter().map(|option| format!(" {}", quoted(option))).collect();
    format!("`{program}` is another program; assay has its options in\n\n  assay {command}{options}")
}

fn by_table(peer: &Peer, table: &[Word], options: &[String]) -> String {
    let mut command = peer.command;
    let (mut user, mut connect) = ("soe", "//HOST:PORT/SERVICE");
    let (mut flags, mut without) = (String::new(), Vec::new());
    let mut rest = options.iter().map(String::as_str).peekable();
    while let Some(option) = rest.next() {
        let value = rest.next_if(|next| !next.starts_with('-'));
        let known = table.iter().find(|word| word.theirs == option).map(|word| &word.ours);
        let flag = match (known, value) {
            (Some(Ours::Connect), Some(value)) => {
                connect = value;
                continue;
            }
            (Some(Ours::User), Some(value)) => {
                user = value;
                continue;
            }
            (Some(Ours::Secret | Ours::Implied), _) => continue,
            (Some(Ours::Command(other)), _) => {
                command = other;
                continue;
            }
            (Some(Ours::Flag(flag)), None) if !flag.contains("{}") => Some((*flag).to_owned()),
            (Some(Ours::Flag(flag)), Some(value)) if flag.contains("{}") => Some(flag.replace("{}", &quoted(value))),
            (Some(Ours::Converted(flag, convert)), Some(value)) => {
                convert(value).map(|value| flag.replace("{}", &value))
            }
            _ => None,
        };
        match flag {
            Some(flag) => flags.extend([" ", &flag]),
            None => without.push([Some(option), value].into_iter().flatten().collect::<Vec<_>>().join(" ")),
        }
    }
    let target = quoted(&format!("oracle://{user}@{connect}")).into_owned();
    let mut text = format!(
        "`{}` is a program of Swingbench; in assay this is\n\n  assay {command} --target {target}{flags}",
        peer.program
    );
    if !without.is_empty() {
        let _ = write!(text, "\n\nwithout a counterpart: {}", without.join(", "));
    }
    text
}

/// For the shell.
fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

/// Swingbench's `hh:mm` or `hh:mm.ss` as a duration of ours.
fn hours_and_minutes(text: &str) -> Option<String> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once('.').unwrap_or((rest, "0"));
    let whole = |text: &str| text.parse::<u32>().ok().filter(|n| *n < 10_000).map(u64::from);
    let s = whole(hours)? * 3600 + whole(minutes)? * 60 + whole(seconds)?;
    Some(if s.is_multiple_of(60) { format!("{}m", s / 60) } else { format!("{s}s") })
}

fn milliseconds(text: &str) -> Option<String> {
    text.parse::<u32>().ok().map(|ms| format!("{}", f64::from(ms) / 1e3))
}

#[cfg(test)]
mod tests {
    use super::translated;

    fn of(line: &str) -> String {
        let mut words = line.split_whitespace();
        let program = words.next().expect("a program");
        translated(program, &words.map(str::to_owned).collect::<Vec<_>>()).expect(program)
    }

    #[test]
    fn swingbenchs_command_lines_are_told_in_ours_without_the_password() {
        let text =
            of("oewizard -cs //db1:1521/pdb1 -dba system -dbap manager -u soe -p soe1 -scale 5 -tc 4 -create -cl");
        assert!(
            text.contains("assay orders prepare --target oracle://soe@//db1:1521/pdb1 --scale 5 --threads 4\n"),
            "{text}"
        );
        assert!(text.ends_with("without a counterpart: -dba system"), "{text}");
        assert!(!text.contains("soe1") && !text.contains("manager"), "{text}");
        let text = of("charbench -cs //db1/p -uc 24 -di -rt 0:10 -intermax 50 -v users,tpm");
        let line =
            "assay orders run --target oracle://soe@//db1/p --sessions 24 --time 10m --set THINK_INTER_MAX=0.05\n";
        assert!(text.contains(line), "{text}");
        assert!(text.ends_with("without a counterpart: -di, -v users,tpm"), "{text}");
        assert!(of("charbench -rt 0:1.30 -di SQ,WQ").ends_with("--time 90s --disable SQ,WQ"));
        assert!(of("oewizard -drop").contains("assay orders destroy --target"));
    }

    #[test]
    fn programs_whose_options_are_ours_too_name_the_command() {
        assert!(of("stress-ng --vm 8 --vm-bytes 6G").ends_with("assay memory --vm 8 --vm-bytes 6G"));
        assert!(of("stress-ng --cpu 4 --timeout 60").ends_with("assay cpu --cpu 4 --timeout 60"));
        assert!(of("fio --name=a --rw=randread").ends_with("assay io --name=a --rw=randread"));
        assert!(of("pgbench -c 8").contains("assay run --target postgres://"));
        assert!(translated("rune", &[]).is_none());
    }
}
