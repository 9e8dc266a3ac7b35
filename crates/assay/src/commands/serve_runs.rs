//! `serve --allow-run`: runs that a form starts, one at a time, and stops.
//!
//! What is started is this program itself, with words that stand in the tables below and no others: never a shell, a script, a
//! command, a place or a target. Where it measures says the environment of the server.

use super::runs::tag;
use crate::exit::Failure;
use crate::{rundir, ui};
use assay_control::serve::{Ask, FORM_TOKEN, Reply};
use assay_measure::config::{self, ParamKind, known_params};
use assay_measure::locked::locked;
use assay_report::html::Control;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lines of a form's settings, and characters of one, at most.
const LINES: usize = 64;
const CHARACTERS: usize = 200;
/// How long the end waits for a run that saves.
const SAVING: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// A test that a form may start.
struct Test {
    /// As the form and its directory call it.
    name: &'static str,
    workload: &'static str,
    words: &'static [&'static str],
    /// What makes it say what is wrong and do nothing.
    dry: &'static str,
    takes: Takes,
}

/// What settings of a form are.
enum Takes {
    /// Parameters, but for texts: those are places, scripts, targets and names of servers.
    Settings,
    /// These flags.
    Flags(&'static [&'static str]),
}

const TESTS: [Test; 4] = [
    Test { name: "run", workload: "slob", words: &["run"], dry: "--dry-run", takes: Takes::Settings },
    Test {
        name: "orders run",
        workload: "orders",
        words: &["orders", "run"],
        dry: "--dry-run",
        takes: Takes::Settings,
    },
    Test {
        name: "io",
        workload: "io",
        words: &["io", "--name=form"],
        dry: "--parse-only",
        takes: Takes::Flags(&[
            "rw",
            "bs",
            "size",
            "runtime",
            "ramp_time",
            "time_based",
            "iodepth",
            "numjobs",
            "rwmixread",
            "direct",
            "fsync",
            "fdatasync",
            "rate_iops",
            "loops",
        ]),
    },
    Test {
        name: "sync",
        workload: "sync",
        words: &["sync", "."],
        dry: "--dry-run",
        takes: Takes::Flags(&["time", "commits"]),
    },
];
/// Texts among the parameters that are a figure or a list of names.
const TEXTS: [&str; 3] = ["UNTIL", "ORDERS_DISABLE", "ORDERS_ENABLE"];

/// See the module.
pub(super) struct Starter {
    dir: PathBuf,
    form_token: String,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    running: Option<Started>,
    /// What became of the last one, if it is not just kept.
    said: String,
    /// What was typed into the form.
    typed: BTreeMap<String, String>,
}

/// A process of this program.
struct Started {
    child: Child,
    /// Its directory among the runs.
    name: String,
    /// The last error that it said.
    error: Arc<Mutex<String>>,
}

impl Starter {
    /// For a directory of runs; forms hold this token.
    pub(super) fn new(dir: &Path, form_token: String) -> Self {
        Self { dir: dir.to_path_buf(), form_token, now: Mutex::default() }
    }

    /// What forms hold.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }

    /// What a page offers.
    pub(super) fn control(&self) -> Control {
        let mut now = locked(&self.now);
        now.look();
        let field = |name: &str| now.typed.get(name).cloned().unwrap_or_default();
        Control {
            field: FORM_TOKEN,
            token: self.form_token.clone(),
            tests: TESTS.iter().map(|test| (test.name, test.name == field("test"))).collect(),
            settings: field("settings"),
            label: field("label"),
            running: now.running.as_ref().map(|started| started.name.clone()),
            said: now.said.clone(),
        }
    }

    /// Does what a form of ours says; the page with the runs tells what is wrong with it.
    ///
    /// `find` is the directory of the run at a path of the site.
    pub(super) fn act(
        &self,
        ask: &Ask,
        form: &BTreeMap<String, String>,
        find: impl Fn(&str) -> Result<PathBuf, Failure>,
    ) -> Reply {
        let field = |name: &str| form.get(name).map_or("", String::as_str);
        let done = match ask.path.as_str() {
            "start" => self.start(field("test"), field("settings"), field("label"), form),
            "stop" => self.stop(),
            "tag" => {
                let tagged = find(field("run")).and_then(|run| tag::changed(&run, &[field("change").to_owned()]));
                tagged.map(drop).map_err(|failure| failure.lines.join("; "))
            }
            _ => return Reply::refused(404, "there is no such form"),
        };
        locked(&self.now).said = done.err().unwrap_or_default();
        Reply::elsewhere("/".to_owned())
    }

    fn start(&self, name: &str, settings: &str, label: &str, form: &BTreeMap<String, String>) -> Result<(), String> {
        let mut now = locked(&self.now);
        now.look();
        now.typed.clone_from(form);
        if now.running.is_some() {
            return Err("a run goes on: stop it, or wait until it ends".to_owned());
        }
        let test = TESTS.iter().find(|test| test.name == name).ok_or("there is no such test")?;
        let mut words = words(test, settings)?;
        if !label.trim().is_empty() {
            words.push(format!("--label={}", one_line(label)?));
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut tried = Command::new(&program);
        tried.args(&words).arg(test.dry).stdin(Stdio::null()).stdout(Stdio::null());
        let tried = tried.output().map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&tried.stderr);
        match errors.lines().find_map(refusal) {
            Some(why) => return Err(why.to_owned()),
            None if !tried.status.success() => return Err(format!("assay {}: {}", words.join(" "), tried.status)),
            None => {}
        }
        let name = rundir::place(None, test.workload, &rundir::new_id());
        let place = self.dir.join(name.file_name().unwrap_or_default());
        let mut command = Command::new(&program);
        command.args(&words).arg("-o").arg(&place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C at the server's terminal is for the server, which stops the run once.
        let mut child = command.process_group(0).spawn().map_err(|error| error.to_string())?;
        let error = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = child.stderr.take() {
            let error = Arc::clone(&error);
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    if let Some(why) = refusal(&line) {
                        why.clone_into(&mut locked(&error));
                    }
                }
            });
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ui::say(&format!("a page started {}: assay {}", place.display(), words.join(" ")));
        now.running = Some(Started { child, name, error });
        Ok(())
    }

    fn stop(&self) -> Result<(), String> {
        let mut now = locked(&self.now);
        now.look();
        let started = now.running.as_ref().ok_or("no run goes on that was started here")?;
        // It was not waited for, so its number is no other's.
        kill_process(Pid::from_child(&started.child), Signal::INT).map_err(|error| error.to_string())
    }

    /// Stops the run that goes on, and waits until it is saved.
    pub(super) fn end(&self) {
        if self.stop().is_err() {
            return;
        }
        ui::say("stopping the run that a page started");
        let begun = Instant::now();
        while begun.elapsed() < SAVING && locked(&self.now).look() {
            std::thread::sleep(LOOK);
        }
    }
}

impl Now {
    /// Whether a run goes on.
    fn look(&mut self) -> bool {
        let Some(started) = &mut self.running else { return false };
        match started.child.try_wait() {
            Ok(None) => return true,
            Ok(Some(status)) if !status.success() => {
                let error = locked(&started.error);
                let code = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
                self.said =
                    format!("{} ended with {code}{}{error}", started.name, if error.is_empty() { "" } else { ": " });
            }
            _ => {}
        }
        self.running = None;
        false
    }
}

/// Why a command would not run, if the line says so.
fn refusal(line: &str) -> Option<&str> {
    let line = line.strip_prefix("error: ").or_else(|| line.strip_prefix("notice: assay would refuse the run: "));
    line.map(str::trim)
}

/// The words of a command line.
fn words(test: &Test, settings: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = test.words.iter().map(|word| (*word).to_owned()).collect();
    let lines: Vec<&str> = settings.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.len() > LINES {
        return Err(format!("{} settings are more than {LINES}", lines.len()));
    }
    for line in lines {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("{}: write NAME=VALUE", shown(line)))?;
        let (name, value) = (name.trim(), one_line(value)?);
        words.push(match test.takes {
            Takes::Settings => format!("--set={}={value}", parameter(name)?),
            Takes::Flags(flags) => {
                let flag = flags.iter().find(|flag| **flag == name.trim_start_matches('-'));
                let flag = flag.ok_or_else(|| {
                    format!("{} is not for this form: {} takes {}", shown(name), test.name, flags.join(", "))
                })?;
                format!("--{flag}={value}")
            }
        });
    }
    Ok(words)
}

/// The parameter of this name, if a form may set it.
fn parameter(name: &str) -> Result<&'static str, String> {
    let known = known_params();
    let is_it =
        |def: &&config::ParamDef| [def.name].iter().chain(def.aliases).any(|known| known.eq_ignore_ascii_case(name));
    let Some(def) = known.iter().copied().find(is_it) else {
        let near = config::nearest(name, known.iter().map(|def| def.name));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        return Err(format!("there is no setting {}{near}", shown(name)));
    };
    match def.kind {
        ParamKind::Text | ParamKind::Secret if !TEXTS.contains(&def.name) => {
            Err(format!("{} is not for a form: set ASSAY_{} in the environment of assay serve", def.name, def.name))
        }
        _ => Ok(def.name),
    }
}

/// A value without what a line has not.
fn one_line(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if text.chars().any(char::is_control) || text.chars().count() > CHARACTERS {
        return Err(format!("{}: give one line of at most {CHARACTERS} characters", shown(text)));
    }
    Ok(text)
}

/// What was typed, as far as it fits a sentence.
fn shown(text: &str) -> String {
    assay_measure::units::shorten(text, 40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    fn made(name: &str, settings: &str) -> Result<String, String> {
        registry::install();
        let test = TESTS.iter().find(|test| test.name == name).expect("a test");
        words(test, settings).map(|words| words.join(" "))
    }

    #[test]
    fn settings_become_words_of_the_command_line_one_each() {
        assert_eq!(
            made("run", " run_time = 5 \r\nUPDATE_PCT=30\n\n").as_deref(),
            Ok("run --set=RUN_TIME=5 --set=UPDATE_PCT=30")
        );
        assert_eq!(made("run", "UNTIL=p99=5%").as_deref(), Ok("run --set=UNTIL=p99=5%"));
        assert_eq!(made("io", "rw=randread\n--bs=8k").as_deref(), Ok("io --name=form --rw=randread --bs=8k"));
        assert_eq!(made("sync", "time=2s").as_deref(), Ok("sync . --time=2s"));
        assert_eq!(made("orders run", "").as_deref(), Ok("orders run"));
    }

    #[test]
    fn no_place_script_target_or_other_option_comes_from_a_form() {
        for text in [
            "TARGET=native:/",
            "ENGINE=null",
            "EXTERNAL_SCRIPT=/bin/sh",
            "trace=/tmp/x",
            "REDO_DIR=/",
            "PG_BIN=/tmp",
            "LABEL=x",
        ] {
            let why = made("run", text).expect_err(text);
            assert!(why.contains("not for a form"), "{why}");
        }
        for (test, text) in [
            ("run", "--at=0 sh"),
            ("run", "-o=/tmp/x"),
            ("run", "NO_SUCH=1"),
            ("run", "no setting"),
            ("io", "filename=/dev/sda"),
            ("io", "exec_prerun=sh"),
            ("io", "destroy=/dev/sda"),
            ("io", "output=/tmp/x"),
            ("sync", "logfile=/tmp/x"),
            ("sync", "output=/tmp/x"),
        ] {
            assert!(made(test, text).is_err(), "{test} {text}");
        }
        assert!(made("run", &"RUN_TIME=1\n".repeat(65)).is_err());
        assert!(made("run", &format!("RUN_TIME={}", "1".repeat(201))).is_err());
    }

    #[test]
    fn what_is_allowed_is_an_option_of_its_command() {
        registry::install();
        for text in TEXTS {
            assert!(known_params().iter().any(|def| def.name == text), "{text}");
        }
    }
}
