//! The one runner: sets up, lets the contenders take turns, reads what they print, shows the tables.

use super::figures::{self, Figures};
use super::print::{self, Pairs};
use super::process::{self, Watch};
use super::spec::{self, Bench, Measure, Run, Shown, Table, Words};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run of ours leaves its record there, and from the first second on its series.
const RECORD: &str = "shot/run";

/// What was asked for, and what came of it.
pub(super) struct Runner<'a> {
    table: &'a Table,
    dir: &'a Path,
    words: Words,
    pairs: usize,
    smoke: bool,
    only: Option<&'a str>,
    /// The rows of all tables printed so far, each with its bench and part.
    pub(super) kept: Vec<(String, Pairs)>,
}

impl<'a> Runner<'a> {
    /// Measures `program` in a directory of its own: so many pairs, small or not, and perhaps one part alone.
    pub(super) fn new(
        table: &'a Table,
        dir: &'a Path,
        memory: Option<&Path>,
        program: &Path,
        (pairs, smoke, only): (usize, bool, Option<&'a str>),
    ) -> Self {
        let mut words = table.words.clone();
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let own = std::env::current_exe().unwrap_or_default();
        for (word, path) in [("assay", program), ("xtask", &own), ("dir", dir), ("here", Path::new(here))] {
            words.insert(word.to_owned(), format!("'{}'", path.display()));
        }
        words.insert(
            "memory".to_owned(),
            spec::found(&memory.map_or(String::new(), |memory| memory.display().to_string())),
        );
        Self { table, dir, words, pairs, smoke, only, kept: Vec::new() }
    }

    /// All measures of a bench, or the parts that are wanted.
    ///
    /// # Errors
    /// A measurement that failed.
    pub(super) fn bench(&mut self, bench: &Bench) -> Result<()> {
        for [program, place] in &bench.needs {
            if self.shell(&format!("command -v {program}")).is_err() {
                println!("!! left out: no {program} is installed ({place})");
                return Ok(());
            }
        }
        let mut words = self.words.clone();
        for tool in self.table.tool.iter().filter(|tool| tool.of == bench.name) {
            let printed = self.shell(&self.expand(&tool.find, &words)?)?;
            match printed.trim() {
                "" => println!("!! {}", tool.missing),
                found => println!("{}: {found}", tool.name),
            }
            words.insert(tool.name.clone(), spec::found(printed.trim()));
        }
        words.extend(bench.words.clone());
        let mut place = Place::default();
        for measure in &bench.measure {
            let whole = [Words::new()];
            for each in if measure.each.is_empty() { &whole[..] } else { &measure.each } {
                let part = each.get("only").unwrap_or(&measure.only);
                let is_wanted = self.only.is_none_or(|only| part == only || bench.parts().next().is_none());
                if !is_wanted || (self.smoke && each.contains_key("full")) {
                    continue;
                }
                let mut words = words.clone();
                words.extend(measure.words.clone());
                words.extend(each.clone());
                if !self.measure(&bench.name, measure, words, &mut place)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Its rounds and tables with these words; false if there is no server.
    fn measure(&mut self, bench: &str, measure: &Measure, mut words: Words, place: &mut Place) -> Result<bool> {
        let is_there = |run: &usize| spec::expand(&measure.run[run - 1].command, &words, self.smoke).is_some();
        let tables: Vec<&Shown> =
            measure.table.iter().filter(|shown| shown.alone || shown.sides.iter().all(is_there)).collect();
        if tables.is_empty() {
            let part = measure.table.first().map_or("", |shown| &shown.part);
            println!("!! left out, for want of a tool: {}", self.expand(part, &words)?);
            return Ok(true);
        }
        let as_it_is = measure.server.is_empty() && measure.setup.is_empty();
        if !(as_it_is || self.set_up(measure, &words, place)?) {
            return Ok(false);
        }
        words.extend(place.said.clone());
        let rounds = (0..self.pairs).map(|at| self.round(at, measure, &words, &place.told));
        let rounds = rounds.collect::<Result<Vec<_>>>()?;
        for shown in tables {
            let shown = shown.with(|text| self.expand(text, &words))?;
            let rows = print::table(&shown, &measure.run, &rounds);
            let row_of = if shown.part.is_empty() { bench.to_owned() } else { format!("{bench}, {}", shown.part) };
            self.kept.extend(rows.into_iter().map(|row| (row_of.clone(), row)));
        }
        Ok(true)
    }

    /// Makes the server and what is set up, if they are not there yet; false if there is no server.
    fn set_up(&self, measure: &Measure, words: &Words, place: &mut Place) -> Result<bool> {
        let commands = [&measure.server].into_iter().chain(&measure.setup);
        let wanted: Vec<String> = commands.filter_map(|command| spec::expand(command, words, self.smoke)).collect();
        if place.wanted == wanted {
            return Ok(true);
        }
        // The old server is gone before its directory.
        *place = Place::default();
        super::clear(self.dir)?;
        let mut words = words.clone();
        if !measure.server.is_empty() {
            let Some((server, said)) = Server::told(self.command(&wanted[0]))? else { return Ok(false) };
            words.extend(said.clone());
            (place.server, place.said) = (Some(server), said);
        }
        for command in measure.setup.iter().filter_map(|command| spec::expand(command, &words, self.smoke)) {
            place.told[0][0].extend(self.read(&command)?);
        }
        place.wanted = wanted;
        if !measure.say.is_empty() {
            println!("{}", print::fill(&self.expand(&measure.say, &words)?, &place.told, print::figure));
        }
        Ok(true)
    }

    /// One shot of each run; who begins moves on, so that nobody always finds the device as the same other one left it.
    fn round(&self, at: usize, measure: &Measure, words: &Words, told: &Told) -> Result<Vec<Figures>> {
        let count = measure.run.len();
        let mut shots = vec![Figures::new(); count + 1];
        shots[0].clone_from(&told[0][0]);
        for step in 0..count {
            let turn = if measure.in_order { step } else { (at + step) % count };
            let run = &measure.run[turn];
            if let Some(command) = spec::expand(&run.command, words, self.smoke) {
                let command = print::fill(&command, told, |value| value.to_string());
                shots[turn + 1] = self.shoot(run, &command, &measure.watch, words)?;
            }
        }
        Ok(shots)
    }

    /// Runs a contender once, and reads all that is known of it.
    fn shoot(&self, run: &Run, command: &str, window: &str, words: &Words) -> Result<Figures> {
        let shot = self.dir.join("shot");
        let _ = std::fs::remove_dir_all(&shot);
        std::fs::create_dir(&shot).context("the directory of a shot")?;
        let mut words = words.clone();
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        words.insert("port".to_owned(), port.to_string());
        let expand = |text: &str| self.expand(text, &words);
        let _server = match run.server.as_str() {
            "" => None,
            server => Some(Server::listening(self.command(&expand(server)?), port)?),
        };
        let numbers = |text: &str| -> Result<Vec<f64>> {
            Ok(expand(text)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
        };
        let mut watch = Watch { kill: numbers(&run.kill)?.first().copied(), ..Watch::default() };
        if let [after, length] = numbers(window)?[..] {
            watch.window = Some((after, length));
        }
        if command.contains(RECORD) && (watch.window.is_some() || watch.kill.is_some()) {
            watch.begun = Some(self.dir.join(RECORD).join("series.jsonl"));
            // Its first line comes after a second.
            watch.window = watch.window.map(|(after, length)| ((after - 1.0).max(0.0), length));
        }
        let before = self.read(&expand(&run.before)?)?;
        // Lines of several commands are a script; else the shell becomes the program, which is looked at.
        let word = if command.contains('\n') { "" } else { "exec " };
        let (output, seen) = process::run(&mut self.command(&format!("{word}{}", expand(command)?)), &watch)?;
        let mut figures = figures::read(&output, &self.table.patterns);
        let faults = figures::faults(&figures);
        if !faults.is_empty() {
            println!("!! this run is not sound: {}", faults.join(", "));
        }
        figures.extend(seen);
        for (name, value) in self.read(&expand(&run.after)?)? {
            let number = |text: &String| text.parse::<f64>().ok();
            let increase = before.get(&name).and_then(number).and_then(|was| Some(number(&value)? - was));
            figures.insert(name, increase.map_or(value, |increase| increase.to_string()));
        }
        figures.extend(run.figures.clone());
        figures::derive(&mut figures, &self.table.derived);
        Ok(figures)
    }

    fn expand(&self, text: &str, words: &Words) -> Result<String> {
        spec::expand(text, words, self.smoke).with_context(|| format!("a tool is absent for: {text}"))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.dir);
        command
    }

    /// What a command printed that is not measured.
    fn shell(&self, line: &str) -> Result<String> {
        Ok(process::run(&mut self.command(line), &Watch::default())?.0)
    }

    /// The figures of such a command, if there is one.
    fn read(&self, line: &str) -> Result<Figures> {
        if line.is_empty() { Ok(Figures::new()) } else { Ok(figures::read(&self.shell(line)?, &self.table.patterns)) }
    }
}

/// The one shot of a setup, in the form of rounds.
type Told = [Vec<Figures>; 1];

/// What the runs find.
struct Place {
    /// The commands that made it.
    wanted: Vec<String>,
    server: Option<Server>,
    /// What the server said: words.
    said: Words,
    told: Told,
}

impl Default for Place {
    fn default() -> Self {
        Self { wanted: Vec::new(), server: None, said: Words::new(), told: [vec![Figures::new()]] }
    }
}

/// A server that is gone when it is no longer needed.
struct Server {
    child: Child,
    /// One that says where it is ends with its input.
    is_killed: bool,
}

impl Server {
    /// One that says in a line of JSON where it is, and that line; none, said aloud, if it ends without it.
    fn told(mut command: Command) -> Result<Option<(Self, Figures)>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let complaints = process::drain(child.stderr.take());
        let said = child.stdout.take().context("its output")?;
        let server = Self { child, is_killed: false };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        if line.is_empty() {
            drop(server);
            println!("!! left out, without a server: {}", complaints.join().unwrap_or_default().trim());
            return Ok(None);
        }
        Ok(Some((server, figures::read(&line, &Figures::new()))))
    }

    /// One that listens on a port.
    fn listening(mut command: Command, port: u16) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { child, is_killed: true };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(begun.elapsed() < Duration::from_secs(10), "no server listens: {command:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // It needs a moment for the connection that only looked.
        std::thread::sleep(Duration::from_millis(300));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.is_killed {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two contenders that count how often they ran, one that uses an absent tool, and one that is told what was set up.
    const TABLE: &str = r#"
derived = [["figure", "none", "zero", "ran * 10"]]
patterns = { ran = "ran #" }
tool = [{ name = "absent", of = "x", find = "", missing = "no tool" }]
words = { count = "echo ran $(($(cat count) + 1)) | tee line; cut -d ' ' -f 2 line > count" }
[[bench]]
name = "x"
about = ""
[[bench.measure]]
setup = ["echo {start} > count; echo start={start}", "{absent}"]
each = [{ start = "{70|40}" }, { start = "0", full = "" }, { start = "{70|40}" }]
run = [
    { name = "ours", before = "echo total=5", command = "\n{count}", after = "echo total=7" },
    { name = "theirs", command = "\n{count}", figures.known = "3" },
    { command = "{absent}" },
    { command = "echo told={= start@0 + 1}; test -d shot" },
]
[[bench.measure.table]]
part = "from {start}"
rows = [["a", ">= 1", "figure"], ["b", "", "total", "known"], ["c", "", "told@4", "start@0"]]
[[bench.measure.table]]
sides = [1, 3]
rows = [["never", "", "ran"]]
"#;

    /// The rows that the bench of a table kept, and what its server left beside its directory.
    fn rows(table: &str, pairs: usize, only: Option<&str>) -> (Vec<(String, Pairs)>, Option<String>) {
        let table: Table = toml::from_str(table).unwrap();
        let beside = std::env::temp_dir().join(format!("assay-runner-{}-{pairs}", std::process::id()));
        let dir = super::super::Scratch::new(&beside).unwrap();
        let mut runner = Runner::new(&table, &dir.0, None, Path::new("/bin/true"), (pairs, true, only));
        runner.bench(&table.bench[0]).unwrap();
        let kept = runner.kept;
        drop(dir);
        let left = std::fs::read_to_string(beside.join("left")).ok();
        std::fs::remove_dir_all(beside).unwrap();
        (kept, left)
    }

    #[test]
    fn contenders_take_turns_and_what_is_set_up_stays_until_another_is_wanted() {
        let (kept, _) = rows(TABLE, 2, None);
        let names: Vec<String> = kept.iter().map(|(place, row)| format!("{place}: {}", row.name)).collect();
        let once = ["x, from 40: a", "x, from 40: b", "x, from 40: c"];
        assert_eq!(names, [once, once].concat());
        // In the second round theirs came first. The last set of words finds the count where the first left it.
        let a = |at: usize| (&kept[at].1.ours[..], &kept[at].1.theirs[..]);
        assert_eq!(a(0), (&[410.0, 440.0][..], &[420.0, 430.0][..]));
        assert_eq!(a(3), (&[450.0, 480.0][..], &[460.0, 470.0][..]));
        assert_eq!(a(1), (&[2.0, 2.0][..], &[3.0, 3.0][..]));
        assert_eq!(a(2), (&[41.0, 41.0][..], &[40.0, 40.0][..]));
    }

    #[test]
    fn a_part_is_measured_alone_and_a_server_says_where_it_is_and_is_gone_with_the_bench() {
        let (kept, left) = rows(
            r#"
derived = []
patterns = {}
tool = []
words = {}
[[bench]]
name = "x"
about = ""
[[bench.measure]]
only = "other"
setup = ["false"]
run = [{ name = "ours", command = "false" }]
[[bench.measure.table]]
sides = [1, 1]
[[bench.measure]]
only = "part"
server = "echo x=2 > served; echo '{\"file\": \"served\"}'; cat; echo gone > ../left"
run = [{ name = "ours", command = "cat {file}" }, { name = "theirs", command = "echo x=1" }]
[[bench.measure.table]]
rows = [["x", "", "x"]]
"#,
            1,
            Some("part"),
        );
        assert_eq!((kept.len(), kept[0].1.ratios()), (1, vec![2.0]));
        assert_eq!(left.unwrap(), "gone\n");
    }
}
